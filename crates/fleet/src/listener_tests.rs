//! The listener against strangers, with real connections on the loopback: wrong keys, keys of old runs,
//! garbage, recorded handshakes, silence, floods, a damaged stream; and that those who are awaited come in
//! all the same.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use linerate_wire::sealed::{AgentKey, Caller, Key, Sealed, SealedHandshake};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use super::listener::{Guest, Keys, Listener, UNKNOWN_MAX};
use crate::sealed;

/// A listener on the loopback.
async fn listening(keys: Keys) -> (Listener, SocketAddr) {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let listener = Listener::new(vec![socket], keys);
    let address = listener.addresses()[0];
    (listener, address)
}

fn key(byte: u8) -> Key {
    Key::new([byte; 32])
}

/// Dials as a node program does.
async fn dial(to: SocketAddr, key: Key, node: &str) -> std::io::Result<(TcpStream, Sealed)> {
    shake(to, SealedHandshake::dial(&key).unwrap(), node).await
}

/// The same with this handshake; `node` is the name in the first record.
async fn shake(
    to: SocketAddr,
    mut handshake: SealedHandshake,
    node: &str,
) -> std::io::Result<(TcpStream, Sealed)> {
    let mut stream = TcpStream::connect(to).await?;
    stream.write_all(&handshake.take_output()).await?;
    let mut buffer = [0; 256];
    let mut sealed = loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(sealed) = handshake.received(&buffer[..count]).unwrap() {
            break sealed;
        }
    };
    let mut bytes = Vec::new();
    sealed.sealer.seal(&Caller { node: node.to_owned(), pid: 7 }.record(), &mut bytes).unwrap();
    stream.write_all(&bytes).await?;
    Ok((stream, sealed))
}

/// Everything that the other end still says; its end is an end however it comes.
async fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    bytes
}

fn run(body: impl AsyncFnOnce(Listener, SocketAddr)) {
    run_with(Keys::Run(key(1)), body);
}

fn agent_key(byte: u8) -> AgentKey {
    AgentKey::new([byte; AgentKey::BYTES])
}

/// Awaits the agents of `n1` and `n2`, with the keys 1 and 2.
fn run_for_agents(body: impl AsyncFnOnce(Listener, SocketAddr)) {
    let known =
        [("n1", agent_key(1)), ("n2", agent_key(2))].map(|(name, key)| (key.id(), (name.into(), key)));
    run_with(Keys::Agents { known: BTreeMap::from(known), none: key(7) }, body);
}

fn run_with(keys: Keys, body: impl AsyncFnOnce(Listener, SocketAddr)) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (listener, address) = listening(keys).await;
        body(listener, address).await;
    });
}

/// The guests of a listener while something else happens, until that has ended.
async fn guests_during<T>(listener: &mut Listener, work: impl Future<Output = T>) -> (Vec<Guest>, T) {
    let mut guests = Vec::new();
    tokio::pin!(work);
    loop {
        tokio::select! {
            guest = listener.next() => guests.push(guest),
            done = &mut work => return (guests, done),
        }
    }
}

/// Waits until so many were cut off; gives the words about the last.
async fn turned_away(listener: &mut Listener, count: u64) -> String {
    for _ in 0..10_000 {
        if listener.turned_away.count >= count {
            break;
        }
        // The listener works only while somebody waits at it.
        let guest = timeout(Duration::from_millis(10), listener.next()).await;
        assert!(guest.is_err(), "{guest:?}");
    }
    assert_eq!(listener.turned_away.count, count);
    listener.turned_away.last.as_ref().map(|(_, why)| why.to_string()).unwrap_or_default()
}

#[test]
fn strangers_are_cut_off_without_an_answer_and_a_node_comes_in() {
    run(async |mut listener, to| {
        let strangers = async {
            for bytes in [
                b"GET / HTTP/1.0\r\n\r\n".to_vec(),
                SealedHandshake::dial(&key(2)).unwrap().take_output(),
                vec![0; 100_000],
            ] {
                let mut stream = TcpStream::connect(to).await.unwrap();
                // It may be cut off before all of it is taken.
                let _ = stream.write_all(&bytes).await;
                assert_eq!(rest(stream).await, b"", "nothing is said to a stranger");
            }
        };
        let (guests, ()) = guests_during(&mut listener, strangers).await;
        assert!(guests.is_empty());
        turned_away(&mut listener, 3).await;
        let (guest, node) = tokio::join!(listener.next(), dial(to, key(1), "n1"));
        node.unwrap();
        assert_eq!(guest.caller, Caller { node: "n1".into(), pid: 7 });
    });
}

#[test]
fn the_key_of_an_old_run_opens_nothing() {
    let old = run_and_forget();
    run(async |mut listener, to| {
        let (guests, refused) = guests_during(&mut listener, dial(to, old.clone(), "n1")).await;
        assert!(guests.is_empty() && refused.is_err());
        assert!(turned_away(&mut listener, 1).await.contains("does not know the key"));
    });
}

/// The key of a run that is over.
fn run_and_forget() -> Key {
    let old = Key::new(crate::clock::random().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut listener, to) = listening(Keys::Run(old.clone())).await;
        let (_, node) = tokio::join!(listener.next(), dial(to, old.clone(), "n1"));
        node.unwrap();
        drop(listener);
        assert!(TcpStream::connect(to).await.is_err(), "nothing listens when the listener is gone");
    });
    old
}

#[test]
fn a_recorded_handshake_does_not_bring_a_second_guest() {
    run(async |mut listener, to| {
        let mut handshake = SealedHandshake::dial(&key(1)).unwrap();
        let recorded = handshake.take_output();
        let (guests, ()) = guests_during(&mut listener, replay(to, &recorded)).await;
        assert!(guests.is_empty());
        assert!(turned_away(&mut listener, 1).await.contains("record 0"));
    });
}

/// Sends a recorded handshake again. The answer, as long as it, is for the end that has the numbers behind
/// the handshake; anything else that follows is forged.
async fn replay(to: SocketAddr, recorded: &[u8]) {
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(recorded).await.unwrap();
    let mut answer = vec![0; recorded.len()];
    stream.read_exact(&mut answer).await.unwrap();
    stream.write_all(&[0, 40]).await.unwrap();
    stream.write_all(&[9; 40]).await.unwrap();
    assert_eq!(rest(stream).await, b"");
}

#[test]
fn silent_connections_are_bounded_and_keep_nobody_out() {
    run(async |mut listener, to| {
        let mut silent = Vec::new();
        for _ in 0..UNKNOWN_MAX + 44 {
            let (guests, stream) = guests_during(&mut listener, TcpStream::connect(to)).await;
            assert!(guests.is_empty());
            silent.push(stream.unwrap());
        }
        let (guest, node) = tokio::join!(listener.next(), dial(to, key(1), "n1"));
        node.unwrap();
        assert_eq!(guest.caller.node, "n1");
        // Those beyond the limit were cut off, the oldest first.
        assert!(listener.turned_away.count >= 44, "{:?}", listener.turned_away);
        assert_eq!(rest(silent.swap_remove(0)).await, b"");
        // All others are cut off by their time, also those that begin and do not go on.
        let last = silent.pop().unwrap();
        let half = async move {
            let mut last = last;
            // Its time may be over already.
            let _ = last.write_all(b"LRDIAL").await;
            rest(last).await
        };
        let (guests, shown) = guests_during(&mut listener, half).await;
        assert!(guests.is_empty() && shown.is_empty());
    });
}

#[test]
fn an_unknown_agent_a_wrong_key_and_a_borrowed_name_are_cut_off_alike() {
    run_for_agents(async |mut listener, to| {
        let as_agent = |key: &AgentKey, name: &str| SealedHandshake::dial_as(key, name).unwrap();
        let strangers = async {
            for (handshake, node) in [
                (as_agent(&agent_key(3), "n3"), "n3"),
                (as_agent(&AgentKey::unknown(agent_key(1).id(), key(9)), "n1"), "n1"),
                // A stolen key under the name of another host.
                (as_agent(&agent_key(2), "n1"), "n1"),
            ] {
                let refused = shake(to, handshake, node).await;
                assert!(refused.is_err(), "nothing is answered: {node}");
            }
        };
        let (guests, ()) = guests_during(&mut listener, strangers).await;
        assert!(guests.is_empty());
        assert_eq!(turned_away(&mut listener, 3).await, "it does not know the key");
        // With its own name in the handshake and that of another behind it.
        let (guests, _open) =
            guests_during(&mut listener, shake(to, as_agent(&agent_key(2), "n2"), "n1")).await;
        assert!(guests.is_empty());
        turned_away(&mut listener, 4).await;
        let (guest, node) = tokio::join!(listener.next(), shake(to, as_agent(&agent_key(2), "n2"), "n2"));
        node.unwrap();
        assert_eq!(guest.caller.node, "n2");
    });
}

#[test]
fn a_recorded_handshake_of_an_agent_brings_no_second_one() {
    run_for_agents(async |mut listener, to| {
        let recorded = SealedHandshake::dial_as(&agent_key(1), "n1").unwrap().take_output();
        let (guests, ()) = guests_during(&mut listener, replay(to, &recorded)).await;
        assert!(guests.is_empty());
        assert!(turned_away(&mut listener, 1).await.contains("record 0"));
    });
}

#[test]
fn a_flood_of_strangers_keeps_no_agent_out() {
    run_for_agents(async |mut listener, to| {
        let mut silent = Vec::new();
        for _ in 0..UNKNOWN_MAX + 44 {
            // They begin as an agent does.
            let begin = async {
                let mut stream = TcpStream::connect(to).await?;
                stream.write_all(b"LRAGENT1").await.map(|()| stream)
            };
            let (guests, stream) = guests_during(&mut listener, begin).await;
            assert!(guests.is_empty());
            silent.push(stream);
        }
        let handshake = SealedHandshake::dial_as(&agent_key(1), "n1").unwrap();
        let (guest, node) = tokio::join!(listener.next(), shake(to, handshake, "n1"));
        node.unwrap();
        assert_eq!(guest.caller.node, "n1");
        assert!(listener.turned_away.count >= 44, "{:?}", listener.turned_away);
    });
}

#[test]
fn a_failed_accept_neither_closes_the_listener_nor_holds_up_those_inside() {
    run(async |mut listener, to| {
        // One that is inside already, and one that comes while no descriptor is left.
        let (inside, _silent) = guests_during(&mut listener, TcpStream::connect(to)).await;
        assert!(inside.is_empty());
        listener.pause();
        let (guest, node) = tokio::join!(listener.next(), dial(to, key(1), "n1"));
        assert_eq!((guest.caller.node.as_str(), node.is_ok()), ("n1", true));
    });
}

#[test]
fn a_stream_goes_both_ways_and_a_damaged_one_says_so() {
    run(async |mut listener, to| {
        let (guest, node) = tokio::join!(listener.next(), dial(to, key(1), "n1"));
        let (mut stream, mut node) = node.unwrap();
        let shown = sealed::Said::default();
        let mut pipes = sealed::pipes(guest.connection, guest.sealed, shown.clone());
        let text: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        // Towards the node.
        let mut stdin = pipes.stdin.take().unwrap();
        let writes = async {
            stdin.write_all(&text).await.unwrap();
            stdin.flush().await.unwrap();
        };
        let reads = async {
            let (mut heard, mut buffer) = (Vec::new(), vec![0; 10_000]);
            while heard.len() < text.len() {
                let count = stream.read(&mut buffer).await.unwrap();
                assert!(count > 0);
                node.opener.push(&buffer[..count]);
                while let Some(record) = node.opener.next_record().unwrap() {
                    heard.extend(record);
                }
            }
            heard
        };
        let ((), heard) = tokio::join!(writes, reads);
        assert!(heard == text);
        // From the node, and then one bit wrong.
        let mut bytes = Vec::new();
        node.sealer.seal(&text, &mut bytes).unwrap();
        let mut heard = vec![0; text.len()];
        let (written, read) = tokio::join!(stream.write_all(&bytes), pipes.stdout.read_exact(&mut heard));
        written.unwrap();
        read.unwrap();
        assert!(heard == text);
        let mut bytes = Vec::new();
        node.sealer.seal(b"undo", &mut bytes).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        stream.write_all(&bytes).await.unwrap();
        assert!(pipes.stdout.read(&mut heard).await.is_err(), "nothing forged gets through");
        assert!(String::from_utf8_lossy(&shown.lock().unwrap()).contains("sealed stream is broken"));
        // The end of the session is the end of the connection.
        drop((stdin, pipes));
        assert_eq!(rest(stream).await, b"");
    });
}

#[test]
fn every_key_is_another() {
    let keys: BTreeSet<[u8; 32]> = (0..8).map(|_| crate::clock::random().unwrap()).collect();
    assert_eq!(keys.len(), 8);
}
