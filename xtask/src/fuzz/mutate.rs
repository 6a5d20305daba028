//! Makes new inputs out of old ones. Pure: the same generator and corpus give the same input.
//!
//! What comes in: a corpus. What goes out: one of its members, changed in one to eight places.

use linerate_model::random::Random;

/// Bytes at which formats break.
const BYTES: [u8; 12] = [0, 1, 2, 9, 0x7f, 0x80, 0xff, 0xfe, b'"', b'{', b'\\', b'\n'];

/// Words at which readers of text break.
const WORDS: [&str; 20] = [
    "-1",
    "18446744073709551615",
    "9223372036854775808",
    "1e400",
    "1e-400",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "[[[[[[[[",
    "{\"a\":{\"a\":",
    "\u{0}",
    "\u{1f600}",
    "\u{a0}",
    "\u{a1}",
    "\u{2003}",
    "  ",
    "4294967296",
    "0.1",
];

/// A changed member of the corpus.
pub(super) fn mutated(corpus: &[Vec<u8>], random: &mut Random, most: usize) -> Vec<u8> {
    let mut input = corpus[random.below(corpus.len())].clone();
    for _ in 0..=random.below(8) {
        change(&mut input, corpus, random);
    }
    input.truncate(most);
    input
}

fn change(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = at + random.below((input.len() - at).min(64) + 1);
    match random.below(9) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = BYTES[random.below(BYTES.len())];
            }
        }
        2 => input.insert(at, random.below(256) as u8),
        3 => drop(input.drain(at..end)),
        4 => {
            let part = input[at..end].to_vec();
            let place = random.below(input.len() + 1);
            input.splice(place..place, part);
        }
        5 => {
            // A part of somebody else.
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len() + 1);
            let to = from + random.below(other.len() - from + 1);
            input.splice(at..end, other[from..to].iter().copied());
        }
        6 => {
            let lengths = [0, 1, 255, 8192, 8193, 1 << 24, u32::MAX, input.len() as u32];
            let length = lengths[random.below(lengths.len())];
            let bytes = if random.below(2) == 0 { length.to_be_bytes() } else { length.to_le_bytes() };
            let upto = (at + 4).min(input.len());
            input.splice(at..upto, bytes);
        }
        7 => {
            let word = WORDS[random.below(WORDS.len())];
            input.splice(at..at, word.bytes());
        }
        _ => number(input, at, random),
    }
}

/// Puts another value in the place of the next number in a text.
fn number(input: &mut Vec<u8>, from: usize, random: &mut Random) {
    let Some(start) = input[from..].iter().position(u8::is_ascii_digit).map(|at| from + at) else { return };
    let length = input[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let word = WORDS[random.below(WORDS.len())];
    input.splice(start..start + length, word.bytes());
}
