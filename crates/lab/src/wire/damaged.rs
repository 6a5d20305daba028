//! A frame with a flipped bit, as a bad cable or a failing line card makes them.
//!
//! In: a frame behind its virtio-net header. Out: the same with its checksum made, as it would be on a real
//! wire, and then a bit of its end flipped: a check of the checksum fails. It never damages addresses or
//! ports.

use linerate_sys::tap::VNET_HEADER_BYTES as VNET;

const NEEDS_CHECKSUM: u8 = 1;
/// Offsets in the virtio-net header of the checksum's start and location.
const START: usize = 6;
const OFFSET: usize = 8;

/// Flips a bit of the last byte.
pub fn damage(frame: &mut [u8]) {
    let _ = make_checksum(frame);
    let Some((header, ethernet)) = frame.split_at_mut_checked(VNET) else { return };
    // No receiver may trust the checksum, or compute it again.
    header.fill(0);
    if let Some(last) = ethernet.last_mut() {
        *last ^= 0x10;
    }
}

/// The checksum that the sender left to its NIC; the field holds the sum of the pseudo header.
fn make_checksum(frame: &mut [u8]) -> Option<()> {
    if frame.first()? & NEEDS_CHECKSUM == 0 {
        return None;
    }
    // The virtio-net header is in the byte order of the machine.
    let number = |at: usize| Some(usize::from(u16::from_ne_bytes(frame.get(at..at + 2)?.try_into().ok()?)));
    let start = VNET + number(START)?;
    let at = start + number(OFFSET)?;
    let mut sum: u64 = frame
        .get(start..)?
        .chunks(2)
        .map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)))
        .sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // Zero would mean that there is none.
    let checksum = match !(sum as u16) {
        0 => 0xffff,
        other => other,
    };
    frame.get_mut(at..at + 2)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(bytes: &[u8]) -> u16 {
        let mut sum: u32 = bytes.chunks(2).map(|p| u32::from(p[0]) << 8 | u32::from(p[1])).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    #[test]
    fn the_checksum_is_made_and_then_wrong() {
        let mut frame = vec![7; VNET + 34 + 8 + 20];
        frame[..VNET].fill(0);
        frame[0] = NEEDS_CHECKSUM;
        frame[START..START + 2].copy_from_slice(&34_u16.to_ne_bytes());
        frame[OFFSET..OFFSET + 2].copy_from_slice(&6_u16.to_ne_bytes());
        // The sum of a pseudo header of zeros.
        frame[VNET + 40..VNET + 42].fill(0);
        let mut whole = frame.clone();
        make_checksum(&mut whole).unwrap();
        assert_eq!(sum(&whole[VNET + 34..]), 0xffff, "good before the damage");
        damage(&mut frame);
        assert_ne!(sum(&frame[VNET + 34..]), 0xffff);
        assert_eq!(frame[0], 0, "no receiver computes it again");
        assert_eq!(frame[..frame.len() - 1][VNET..], whole[..whole.len() - 1][VNET..]);
    }

    #[test]
    fn garbage_is_damaged_without_a_panic() {
        for length in 0..80 {
            let mut frame = vec![0xff; length];
            damage(&mut frame);
        }
    }
}
