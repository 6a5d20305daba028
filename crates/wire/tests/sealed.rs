//! Sealed streams against strangers, old keys, damaged, cut, swapped, repeated and oversized bytes.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use linerate_wire::agent::AgentFile;
use linerate_wire::sealed::{
    AgentKey, Caller, DialOrder, HANDSHAKE_BYTES, Key, Opener, RECORD_BYTES_MAX, SealError, Sealed,
    SealedHandshake,
};
use proptest::prelude::*;

fn key(byte: u8) -> Key {
    Key::new([byte; 32])
}

/// Both ends of a stream: the one that dialled, and the one that answered.
fn pair() -> (Sealed, Sealed) {
    let (mut dials, mut answers) =
        (SealedHandshake::dial(&key(1)).unwrap(), SealedHandshake::answer(&key(1)).unwrap());
    let answered = answers.received(&dials.take_output()).unwrap().unwrap();
    (dials.received(&answers.take_output()).unwrap().unwrap(), answered)
}

fn drain(opener: &mut Opener) -> Result<Vec<Vec<u8>>, SealError> {
    let mut records = Vec::new();
    while let Some(record) = opener.next_record()? {
        records.push(record);
    }
    Ok(records)
}

#[test]
fn both_ends_send_and_receive() {
    let (mut node, mut operator) = pair();
    for (from, to, text) in [
        (&mut node.sealer, &mut operator.opener, b"plain text".to_vec()),
        (&mut operator.sealer, &mut node.opener, vec![7; 100_000]),
    ] {
        let mut bytes = Vec::new();
        from.seal(&text, &mut bytes).unwrap();
        assert!(!bytes.windows(8).any(|w| w == b"what is " || w == [7; 8]), "nothing goes in the clear");
        to.push(&bytes);
        let records = drain(to).unwrap();
        assert!(records.iter().all(|r| r.len() <= RECORD_BYTES_MAX));
        assert_eq!(records.concat(), text);
    }
}

#[test]
fn what_is_behind_the_handshake_in_the_same_bytes_is_not_lost() {
    let (mut dials, mut answers) =
        (SealedHandshake::dial(&key(1)).unwrap(), SealedHandshake::answer(&key(1)).unwrap());
    let mut answered = answers.received(&dials.take_output()).unwrap().unwrap();
    let mut bytes = answers.take_output();
    answered.sealer.seal(b"first", &mut bytes).unwrap();
    let mut node = dials.received(&bytes).unwrap().unwrap();
    assert_eq!(node.opener.next_record().unwrap().unwrap(), b"first");
}

#[test]
fn a_stranger_gets_no_answer() {
    let mut answers = SealedHandshake::answer(&key(1)).unwrap();
    assert_eq!(answers.received(b"GET / HTTP/1.1\r\n").unwrap_err(), SealError::Stranger);
    assert!(answers.take_output().is_empty());
    assert_eq!(
        answers.received(&SealedHandshake::dial(&key(1)).unwrap().take_output()).unwrap_err(),
        SealError::Stranger
    );
    // Refused at the first byte that differs, not only when a whole handshake is there.
    assert_eq!(SealedHandshake::answer(&key(1)).unwrap().received(b"X").unwrap_err(), SealError::Stranger);
}

#[test]
fn another_key_is_refused_at_both_ends() {
    let mut answers = SealedHandshake::answer(&key(1)).unwrap();
    assert_eq!(
        answers.received(&SealedHandshake::dial(&key(2)).unwrap().take_output()).unwrap_err(),
        SealError::Key
    );
    assert!(answers.take_output().is_empty());
    // A peer that answers without the key: its bytes are those of another conversation.
    let mut dials = SealedHandshake::dial(&key(1)).unwrap();
    let mut other = SealedHandshake::answer(&key(2)).unwrap();
    other.received(&SealedHandshake::dial(&key(2)).unwrap().take_output()).unwrap().unwrap();
    assert_eq!(dials.received(&other.take_output()).unwrap_err(), SealError::Key);
}

#[test]
fn a_recorded_conversation_cannot_be_replayed() {
    let mut dials = SealedHandshake::dial(&key(1)).unwrap();
    let mut recorded = dials.take_output();
    let mut answers = SealedHandshake::answer(&key(1)).unwrap();
    answers.received(&recorded).unwrap().unwrap();
    let mut node = dials.received(&answers.take_output()).unwrap().unwrap();
    let from = recorded.len();
    node.sealer.seal(&Caller { node: "n1".into(), pid: 7 }.record(), &mut recorded).unwrap();
    // The handshake alone is one that knows the key; but its sender cannot go on.
    let mut again = SealedHandshake::answer(&key(1)).unwrap();
    let mut replayed = again.received(&recorded[..from]).unwrap().unwrap();
    replayed.opener.push(&recorded[from..]);
    assert_eq!(replayed.opener.next_record().unwrap_err(), SealError::Forged { number: 0 });
}

#[test]
fn records_out_of_turn_twice_or_left_out_are_refused() {
    let (mut node, _) = pair();
    let mut records = Vec::new();
    for text in [b"a", b"b", b"c"] {
        let mut bytes = Vec::new();
        node.sealer.seal(text, &mut bytes).unwrap();
        records.push(bytes);
    }
    for (order, number) in [(vec![1, 0], 0), (vec![0, 0], 1), (vec![0, 2], 1)] {
        let (mut node, mut operator) = pair();
        let mut records = Vec::new();
        for text in [b"a", b"b", b"c"] {
            let mut bytes = Vec::new();
            node.sealer.seal(text, &mut bytes).unwrap();
            records.push(bytes);
        }
        for at in order {
            operator.opener.push(&records[at]);
        }
        assert_eq!(drain(&mut operator.opener).unwrap_err(), SealError::Forged { number });
        // Nothing is taken after that.
        operator.opener.push(&records[usize::try_from(number).unwrap()]);
        assert!(operator.opener.next_record().is_err());
    }
    // Those of another stream with the same key are forged as well.
    let (_, mut operator) = pair();
    operator.opener.push(&records[0]);
    assert_eq!(drain(&mut operator.opener).unwrap_err(), SealError::Forged { number: 0 });
}

#[test]
fn a_record_of_a_length_that_none_has_is_refused_before_it_comes() {
    for bytes in [0, 1, 16, RECORD_BYTES_MAX + 17, usize::from(u16::MAX)] {
        let (mut node, _) = pair();
        node.opener.push(&u16::try_from(bytes).unwrap().to_be_bytes());
        assert_eq!(node.opener.next_record().unwrap_err(), SealError::Length { bytes });
    }
}

#[test]
fn the_key_is_in_the_order_and_nowhere_else() {
    let order = DialOrder {
        key: key(0xab),
        addresses: vec!["[::1]:5".parse().unwrap()],
        build: "b".into(),
        wait_s: 9,
    };
    let line = serde_json::to_string(&order).unwrap();
    assert!(line.contains(&"ab".repeat(32)));
    assert_eq!(serde_json::from_str::<DialOrder>(&line).unwrap(), order);
    assert!(!format!("{order:?} {:?}", SealedHandshake::dial(&order.key).unwrap()).contains("abab"));
    for wrong in ["", "ab", &"zz".repeat(32), &"+a".repeat(32)] {
        let error = serde_json::from_str::<DialOrder>(&line.replace(&"ab".repeat(32), wrong)).unwrap_err();
        assert!(wrong.is_empty() || !error.to_string().contains(wrong), "{error}");
    }
}

fn agent_key(byte: u8) -> AgentKey {
    AgentKey::new([byte; AgentKey::BYTES])
}

#[test]
fn an_agent_has_its_key_and_its_name_alone() {
    let begin = |key: &AgentKey, name: &str| SealedHandshake::dial_as(key, name).unwrap();
    let (mut dials, mut answers) =
        (begin(&agent_key(1), "n1"), SealedHandshake::answer_to(&agent_key(1), "n1").unwrap());
    let first = dials.take_output();
    assert_eq!(AgentKey::named(&first).unwrap(), Some(agent_key(1).id()));
    assert!(!first.windows(2).any(|two| two == b"n1"), "the name does not go in the clear");
    let mut answered = answers.received(&first).unwrap().unwrap();
    let mut node = dials.received(&answers.take_output()).unwrap().unwrap();
    let mut bytes = Vec::new();
    node.sealer.seal(b"text", &mut bytes).unwrap();
    answered.opener.push(&bytes);
    assert_eq!(answered.opener.next_record().unwrap().unwrap(), b"text");
    // Its key under another name, the number of its key with another secret, another key, the key of a run.
    let secret = AgentKey::unknown(agent_key(1).id(), key(9));
    for mut stranger in [begin(&agent_key(1), "n2"), begin(&secret, "n1")] {
        let mut answers = SealedHandshake::answer_to(&agent_key(1), "n1").unwrap();
        assert_eq!(answers.received(&stranger.take_output()).unwrap_err(), SealError::Key);
        assert!(answers.take_output().is_empty());
    }
    for mut stranger in [begin(&agent_key(2), "n1"), SealedHandshake::dial(&key(1)).unwrap()] {
        let mut answers = SealedHandshake::answer_to(&agent_key(1), "n1").unwrap();
        assert_eq!(answers.received(&stranger.take_output()).unwrap_err(), SealError::Stranger);
        assert!(answers.take_output().is_empty());
    }
    assert_eq!(SealedHandshake::answer(&key(1)).unwrap().received(&first).unwrap_err(), SealError::Stranger);
}

#[test]
fn the_file_of_an_agent_is_read_as_it_is_written_and_a_flaw_has_its_line_and_no_key() {
    let operators = vec!["10.0.0.9:9442".parse().unwrap(), "[2001:db8::9]:9442".parse().unwrap()];
    let file = AgentFile { name: "n1".into(), operators, key: agent_key(0xab) };
    let text = file.text();
    assert_eq!(AgentFile::parse(&text).unwrap(), file);
    let digits = "ab".repeat(AgentKey::BYTES);
    assert!(text.contains(&digits) && !format!("{file:?}").contains("abab"));
    let key = format!("key = \"{digits}\"");
    for (from, to, words) in [
        ("name = \"n1\"", "name = \"\"", "line 2: name has 0 bytes"),
        ("name = \"n1\"\n", "", "missing field `name`"),
        (":9442\", \"", ":0\", \"", "line 3: an operator that is no address"),
        ("operators = [", "operators = [] # [", "line 3: operators has 0 addresses"),
        ("name = ", "nome = ", "line 2: unknown field"),
        (&key, &key[..90], "not TOML"),
        (&key, &key.replace("ab\"", "a\""), "line 4: key is not 96 hexadecimal digits"),
        ("key = \"", "name = \"", "not TOML"),
        ("name = \"n1\"", &format!("name = {digits}"), "line 2: not TOML"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = AgentFile::parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(words) && !error.contains("abab"), "{to}: {error}");
    }
}

#[test]
fn a_caller_names_itself_in_few_bytes() {
    let caller = Caller { node: "n1".into(), pid: 7 };
    assert_eq!(Caller::read(&caller.record()).unwrap(), caller);
    assert_eq!(Caller::read(b"{}").unwrap_err(), SealError::Name);
    let long = Caller { node: "n".repeat(600), pid: 7 };
    assert_eq!(Caller::read(&long.record()).unwrap_err(), SealError::Name);
}

proptest! {
    #[test]
    fn any_bit_that_flips_is_noticed(texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 1..5), at: prop::sample::Index, bit in 0..8_u8) {
        let (mut node, mut operator) = pair();
        let mut bytes = Vec::new();
        for text in &texts {
            node.sealer.seal(text, &mut bytes).unwrap();
        }
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        operator.opener.push(&bytes);
        let mut received = 0;
        let refused = loop {
            match operator.opener.next_record() {
                Ok(Some(text)) => { prop_assert_eq!(&text, &texts[received]); received += 1; }
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        // A length that grew waits for more; nothing behind the flip is ever received.
        prop_assert!(refused || received < texts.len());
    }

    #[test]
    fn a_handshake_with_a_flipped_bit_or_cut_short_is_none(at in 0..HANDSHAKE_BYTES, bit in 0..8_u8) {
        let handshake = SealedHandshake::dial(&key(1)).unwrap().take_output();
        let mut answers = SealedHandshake::answer(&key(1)).unwrap();
        prop_assert!(answers.received(&handshake[..at]).unwrap().is_none());
        prop_assert!(answers.take_output().is_empty());
        let mut damaged = handshake;
        damaged[at] ^= 1 << bit;
        let mut answers = SealedHandshake::answer(&key(1)).unwrap();
        prop_assert!(answers.received(&damaged).is_err());
        prop_assert!(answers.take_output().is_empty());
    }

    #[test]
    fn a_stream_in_any_pieces_is_the_same_and_a_cut_one_a_beginning(
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..200), 1..5),
        size in 1..50_usize,
        cut: prop::sample::Index,
    ) {
        let (mut node, mut operator) = pair();
        let mut bytes = Vec::new();
        for text in &texts {
            node.sealer.seal(text, &mut bytes).unwrap();
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        let mut received = Vec::new();
        for piece in bytes.chunks(size) {
            operator.opener.push(piece);
            received.extend(drain(&mut operator.opener).unwrap());
        }
        prop_assert!(texts.starts_with(&received));
    }
}
