//! Frames against torn, cut, oversized, damaged and random streams.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use linerate_wire::frame::{
    BODY_BYTES_MAX, Decoder, Frame, FrameError, FrameKind, HEADER_BYTES, MAGIC, SkipToMagic, encode,
};
use proptest::prelude::*;

fn stream(bodies: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    for body in bodies {
        encode(FrameKind::ToNode, body, &mut out).unwrap();
    }
    out
}

fn drain(decoder: &mut Decoder) -> Result<Vec<Frame>, FrameError> {
    let mut frames = Vec::new();
    while let Some(frame) = decoder.next_frame()? {
        frames.push(frame);
    }
    Ok(frames)
}

#[test]
fn an_oversized_frame_is_refused_at_both_ends_before_its_body() {
    let body = vec![0; BODY_BYTES_MAX + 1];
    assert_eq!(
        encode(FrameKind::ToNode, &body, &mut Vec::new()),
        Err(FrameError::TooLarge { bytes: BODY_BYTES_MAX + 1 })
    );
    let mut bytes = stream(&[vec![1]]);
    bytes[4..8].copy_from_slice(&100_000_000_u32.to_le_bytes());
    let mut decoder = Decoder::new();
    decoder.push(&bytes[..HEADER_BYTES]);
    assert_eq!(decoder.next_frame(), Err(FrameError::TooLarge { bytes: 100_000_000 }));
    // After an error nothing is kept, whatever still comes.
    decoder.push(&vec![0; 1 << 20]);
    assert_eq!(decoder.next_frame(), Err(FrameError::TooLarge { bytes: 100_000_000 }));
}

#[test]
fn the_largest_frame_passes() {
    let body = vec![7; BODY_BYTES_MAX];
    let mut decoder = Decoder::new();
    for piece in stream(std::slice::from_ref(&body)).chunks(1 << 16) {
        decoder.push(piece);
    }
    assert_eq!(decoder.next_frame().unwrap().unwrap().body.len(), BODY_BYTES_MAX);
}

#[test]
fn a_torn_frame_reports_how_much_is_missing() {
    let bytes = stream(&[b"hello".to_vec()]);
    for cut in 1..bytes.len() {
        let mut decoder = Decoder::new();
        decoder.push(&bytes[..cut]);
        assert_eq!(decoder.next_frame(), Ok(None));
        let want_bytes = if cut < HEADER_BYTES { HEADER_BYTES } else { bytes.len() };
        assert_eq!(decoder.end(), Err(FrameError::Torn { have_bytes: cut, want_bytes }));
    }
}

#[test]
fn garbage_is_refused_at_its_first_byte() {
    let mut decoder = Decoder::new();
    decoder.push(b"x");
    assert!(matches!(decoder.next_frame(), Err(FrameError::Garbage { .. })));
    let mut decoder = Decoder::new();
    decoder.push(b"LR\x07\x00");
    assert!(matches!(decoder.next_frame(), Err(FrameError::Garbage { .. })));
}

#[test]
fn a_banner_is_passed_over_and_a_flood_is_not() {
    let mut skip = SkipToMagic::new(100);
    let mut bytes = b"Welcome to arc-1\r\nYou have mail.\r\n".to_vec();
    bytes.extend_from_slice(&MAGIC);
    bytes.extend_from_slice(b"rest");
    let mut rest = Vec::new();
    for byte in &bytes {
        rest.extend(skip.push(&[*byte]).unwrap());
    }
    assert_eq!(rest, b"rest");
    assert_eq!(skip.noise(), "Welcome to arc-1 You have mail.");

    let mut flood = vec![b'y'; 101];
    flood.extend_from_slice(&MAGIC);
    assert!(matches!(SkipToMagic::new(100).push(&flood), Err(FrameError::NoMagic { .. })));
    assert_eq!(SkipToMagic::new(101).push(&flood), Ok(Vec::new()));
}

proptest! {
    #[test]
    fn any_cut_of_a_stream_gives_the_same_frames(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..8),
        cuts in prop::collection::vec(1usize..50, 1..40),
    ) {
        let bytes = stream(&bodies);
        let mut decoder = Decoder::new();
        let mut got = Vec::new();
        let (mut at, mut sizes) = (0, cuts.iter().cycle());
        while at < bytes.len() {
            let end = (at + sizes.next().unwrap()).min(bytes.len());
            decoder.push(&bytes[at..end]);
            got.extend(drain(&mut decoder).unwrap().into_iter().map(|f| f.body));
            at = end;
        }
        prop_assert_eq!(got, bodies);
        prop_assert_eq!(decoder.end(), Ok(()));
    }

    #[test]
    fn random_bytes_never_panic_and_never_give_a_frame(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let mut decoder = Decoder::new();
        decoder.push(&bytes);
        if let Ok(frames) = drain(&mut decoder) {
            prop_assert!(frames.is_empty());
        }
        let mut skip = SkipToMagic::new(64);
        let _ = skip.push(&bytes);
    }

    #[test]
    fn one_wrong_bit_is_found(body in prop::collection::vec(any::<u8>(), 1..100), bit in any::<prop::sample::Index>()) {
        let mut bytes = stream(&[body]);
        let at = bit.index(bytes.len() * 8);
        bytes[at / 8] ^= 1 << (at % 8);
        let mut decoder = Decoder::new();
        decoder.push(&bytes);
        // A wrong length may ask for more bytes; what must not happen is a frame.
        prop_assert!(!matches!(decoder.next_frame(), Ok(Some(_))));
        prop_assert!(decoder.end().is_err());
    }
}
