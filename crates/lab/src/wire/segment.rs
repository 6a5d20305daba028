//! Offloaded frames: how many packets of a real wire a frame stands for, and cutting it between two of them.
//!
//! In: a frame behind its virtio-net header. Out: its shape, or the part of it that holds some of its
//! segments, with lengths, sequence number and checksum seeds corrected. It never fails: what it does not
//! understand is one segment.

use std::ops::Range;

use linerate_sys::tap::VNET_HEADER_BYTES as VNET;

/// Bytes of an Ethernet header.
pub const ETHERNET_BYTES: usize = 14;
/// What every packet costs on a real wire beside its Ethernet header: preamble 8, check sequence 4, gap 12.
pub const WIRE_OVERHEAD_BYTES: usize = 24;
const WIRE_FRAME_BYTES_MIN: usize = 60;

const NEEDS_CHECKSUM: u8 = 1;
const GSO_TCP4: u8 = 1;
const GSO_TCP6: u8 = 4;
const GSO_ECN: u8 = 0x80;

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// What a frame is on a real wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentKind {
    /// Ethernet, IP and TCP headers that each segment repeats.
    pub header_bytes: usize,
    /// Bytes after the headers.
    pub payload_bytes: usize,
    /// Payload of each segment but the last.
    pub segment_bytes: usize,
    /// Packets on the wire, at least 1.
    pub segments: usize,
}

impl SegmentKind {
    /// Bytes that segments of the frame occupy on a real wire.
    pub fn wire_bytes(&self, segments: &Range<usize>) -> usize {
        let payload = (segments.end * self.segment_bytes).min(self.payload_bytes)
            - (segments.start * self.segment_bytes).min(self.payload_bytes);
        let packets = segments.len();
        if packets == 1 {
            return (self.header_bytes + payload).max(WIRE_FRAME_BYTES_MIN) + WIRE_OVERHEAD_BYTES;
        }
        packets * (self.header_bytes + WIRE_OVERHEAD_BYTES) + payload
    }

    /// Size of the largest IP packet in it.
    pub fn packet_bytes(&self) -> usize {
        (self.header_bytes + self.segment_bytes.min(self.payload_bytes)).saturating_sub(ETHERNET_BYTES)
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn put_u16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Offset of the TCP header of an offloaded TCP frame, counted from the Ethernet header.
fn tcp_offset(ethernet: &[u8], kind: u8) -> Option<usize> {
    match kind & !GSO_ECN {
        GSO_TCP4 => Some(ETHERNET_BYTES + usize::from(*ethernet.get(ETHERNET_BYTES)? & 0x0f) * 4),
        GSO_TCP6 => Some(ETHERNET_BYTES + 40),
        _ => None,
    }
}

/// The shape of a frame that comes behind its virtio-net header.
pub fn shape(frame: &[u8]) -> SegmentKind {
    let whole = frame.len().saturating_sub(VNET);
    let single =
        SegmentKind { header_bytes: 0, payload_bytes: whole, segment_bytes: whole.max(1), segments: 1 };
    offloaded(frame).unwrap_or(single)
}

fn offloaded(frame: &[u8]) -> Option<SegmentKind> {
    let kind = *frame.get(1)?;
    // The virtio-net header is in the byte order of the machine.
    let segment_bytes = usize::from(u16::from_ne_bytes(frame.get(4..6)?.try_into().ok()?));
    let ethernet = frame.get(VNET..)?;
    let tcp = tcp_offset(ethernet, kind)?;
    let header_bytes = tcp + usize::from(ethernet.get(tcp + 12)? >> 4) * 4;
    let payload_bytes = ethernet.len().checked_sub(header_bytes)?;
    if segment_bytes == 0 || header_bytes < tcp + 20 || payload_bytes <= segment_bytes {
        return None;
    }
    Some(SegmentKind {
        header_bytes,
        payload_bytes,
        segment_bytes,
        segments: payload_bytes.div_ceil(segment_bytes),
    })
}

/// The frame that holds only these segments of an offloaded frame. `segments` must lie within the shape.
pub fn part(frame: &[u8], shape: &SegmentKind, segments: &Range<usize>) -> Vec<u8> {
    if shape.segments == 1 || segments.len() == shape.segments {
        return frame.to_vec();
    }
    let first = segments.start * shape.segment_bytes;
    let last = (segments.end * shape.segment_bytes).min(shape.payload_bytes);
    let headers = VNET + shape.header_bytes;
    let mut part = Vec::with_capacity(headers + last - first);
    part.extend_from_slice(&frame[..headers]);
    part.extend_from_slice(&frame[headers + first..headers + last]);
    let kind = part[1] & !GSO_ECN;
    if segments.len() == 1 {
        part[1] = 0;
        part[4..6].fill(0);
    }
    let tcp = headers - usize::from(tcp_header_bytes(&part, kind, shape));
    correct_tcp(&mut part[tcp..], first, segments, shape.segments);
    correct_ip(&mut part, kind, tcp, segments.start);
    part
}

fn tcp_header_bytes(frame: &[u8], kind: u8, shape: &SegmentKind) -> u16 {
    let tcp = tcp_offset(&frame[VNET..], kind).unwrap_or(shape.header_bytes);
    (shape.header_bytes - tcp) as u16
}

fn correct_tcp(tcp: &mut [u8], skipped_bytes: usize, segments: &Range<usize>, of: usize) {
    let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]).wrapping_add(skipped_bytes as u32);
    tcp[4..8].copy_from_slice(&sequence.to_be_bytes());
    // As a NIC does when it segments: the end of the data belongs to the last segment, CWR to the first.
    if segments.end < of {
        tcp[13] &= !(TCP_FIN | TCP_PSH);
    }
    if segments.start > 0 {
        tcp[13] &= !TCP_CWR;
    }
}

/// Lengths and checksums. The TCP checksum field of a frame that still needs its checksum holds the folded
/// sum of the pseudo header, which contains the length.
fn correct_ip(part: &mut [u8], kind: u8, tcp: usize, skipped_segments: usize) {
    let ip = VNET + ETHERNET_BYTES;
    let tcp_bytes = part.len() - tcp;
    let addresses = if kind == GSO_TCP4 {
        let total = part.len() - ip;
        put_u16(part, ip + 2, total as u16);
        let id = u16_at(part, ip + 4).unwrap_or(0).wrapping_add(skipped_segments as u16);
        put_u16(part, ip + 4, id);
        put_u16(part, ip + 10, 0);
        let checksum = !fold(sum(&part[ip..tcp]));
        put_u16(part, ip + 10, checksum);
        ip + 12..ip + 20
    } else {
        put_u16(part, ip + 4, (part.len() - ip - 40) as u16);
        ip + 8..ip + 40
    };
    if part[0] & NEEDS_CHECKSUM != 0 {
        const PROTOCOL_TCP: u32 = 6;
        let seed = fold(sum(&part[addresses]) + PROTOCOL_TCP + tcp_bytes as u32);
        put_u16(part, tcp + 16, seed);
    }
}

fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An offloaded TCP frame over IPv4 with `payload` bytes in segments of `segment`.
    pub(super) fn frame(payload: usize, segment: u16) -> Vec<u8> {
        let mut f = vec![0; VNET + 54 + payload];
        f[0] = NEEDS_CHECKSUM;
        f[1] = GSO_TCP4;
        f[4..6].copy_from_slice(&segment.to_ne_bytes());
        f[VNET + 12] = 8;
        f[VNET + 14] = 0x45;
        put_u16(&mut f, VNET + 16, (40 + payload) as u16);
        put_u16(&mut f, VNET + 18, 7);
        f[VNET + 23] = 6;
        f[VNET + 26..VNET + 34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        f[VNET + 38..VNET + 42].copy_from_slice(&1000_u32.to_be_bytes());
        f[VNET + 46] = 0x50;
        f[VNET + 47] = 0x18 | TCP_FIN;
        for (n, byte) in f[VNET + 54..].iter_mut().enumerate() {
            *byte = (n % 251) as u8;
        }
        f
    }

    #[test]
    fn counts_segments_and_their_wire_bytes() {
        let s = shape(&frame(3000, 1448));
        assert_eq!((s.segments, s.header_bytes, s.payload_bytes), (3, 54, 3000));
        assert_eq!(s.wire_bytes(&(0..3)), 3 * 78 + 3000);
        assert_eq!(s.wire_bytes(&(2..3)), 54 + 104 + 24);
        assert_eq!(s.packet_bytes(), 1488);
        assert_eq!(shape(&frame(100, 1448)).segments, 1);
    }

    #[test]
    fn a_part_has_its_own_headers() {
        let whole = frame(5000, 1448);
        let s = shape(&whole);
        let middle = part(&whole, &s, &(1..3));
        assert_eq!(shape(&middle).segments, 2);
        assert_eq!(u16_at(&middle, VNET + 16), Some(40 + 2896));
        assert_eq!(u16_at(&middle, VNET + 18), Some(8));
        assert_eq!(middle[VNET + 38..VNET + 42], (1000_u32 + 1448).to_be_bytes());
        assert_eq!(middle[VNET + 47] & (TCP_FIN | TCP_PSH), 0);
        assert_eq!(fold(sum(&middle[VNET + 14..VNET + 34])), 0xffff, "IP checksum");
        assert_eq!(middle[VNET + 54..], whole[VNET + 54 + 1448..VNET + 54 + 3 * 1448]);
        let last = part(&whole, &s, &(3..4));
        assert_eq!((last[1], last.len()), (0, VNET + 54 + 5000 - 3 * 1448));
        assert_ne!(last[VNET + 47] & TCP_FIN, 0);
    }

    #[test]
    fn garbage_is_one_segment() {
        for length in 0..80 {
            for kind in [0_u8, 1, 4, 5, 0x81, 0xff] {
                let mut f = vec![0xff; length];
                if length > 1 {
                    f[1] = kind;
                }
                let s = shape(&f);
                assert!(s.segments >= 1);
                let _ = part(&f, &s, &(0..s.segments));
            }
        }
    }
}
