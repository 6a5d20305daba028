//! The NIC fault of the casebook: generic receive offload joins the packets of a TCP burst inside vxlan and
//! forwards a packet that no receiver accepts.
//!
//! vxlan frames are segmented before they reach a TAP, so the burst is recognised packet by packet: a
//! full-size segment of an inner TCP flow right behind another one of the same flow would have been joined
//! with it, and is destroyed.
//!
//! In: frames into a hypervisor. Out: whether the NIC destroys them. It never changes a frame. Plain TCP,
//! overlay UDP, overlay pings and single small segments pass, as with the real fault.

use std::collections::HashMap;

use linerate_sys::tap::VNET_HEADER_BYTES as VNET;

use crate::wire::segment::ETHERNET_BYTES;

/// UDP port of vxlan.
const VXLAN_PORT: u16 = 4789;
/// A NIC joins what arrives within one round of interrupt moderation.
const JOIN_NS: u64 = 500_000;
const FULL_SIZE_BYTES: usize = 1000;
/// Flows are forgotten all at once when there are more: the lab never has that many.
const FLOWS_MAX: usize = 4096;

/// Addresses and ports of the inner flow.
type Flow = [u8; 12];

/// Memory of the NIC: when it last saw a full-size segment of each inner flow.
#[derive(Debug, Default)]
pub struct OverlayJoin {
    last_ns: HashMap<Flow, u64>,
}

impl OverlayJoin {
    /// Whether the NIC destroys the frame that arrives at `now_ns`.
    pub fn destroys(&mut self, now_ns: u64, frame: &[u8]) -> bool {
        let Some(flow) = frame.get(VNET..).and_then(full_inner_tcp) else {
            return false;
        };
        if self.last_ns.len() > FLOWS_MAX {
            self.last_ns.clear();
        }
        self.last_ns.insert(flow, now_ns).is_some_and(|last| now_ns.saturating_sub(last) < JOIN_NS)
    }
}

/// Whether the frame, behind its virtio-net header, is one of the tunnel.
pub fn is_tunnel(frame: &[u8]) -> bool {
    let port = |ethernet| {
        let (outer, udp): (&[u8], usize) = ipv4(ethernet, 17)?;
        Some(outer.get(udp + 2..udp + 4)? == VXLAN_PORT.to_be_bytes())
    };
    frame.get(VNET..).and_then(port).unwrap_or(false)
}

/// The inner flow, when the frame is vxlan over IPv4 with a full-size TCP segment over IPv4 inside.
fn full_inner_tcp(ethernet: &[u8]) -> Option<Flow> {
    let (outer, udp) = ipv4(ethernet, 17)?;
    if outer.get(udp + 2..udp + 4)? != VXLAN_PORT.to_be_bytes() {
        return None;
    }
    let inner_ethernet = outer.get(udp + 16..)?;
    let (inner, tcp) = ipv4(inner_ethernet, 6)?;
    let headers = tcp + usize::from(inner.get(tcp + 12)? >> 4) * 4;
    if inner.len() < headers + FULL_SIZE_BYTES {
        return None;
    }
    let mut flow = Flow::default();
    flow[..8].copy_from_slice(inner.get(12..20)?);
    flow[8..].copy_from_slice(inner.get(tcp..tcp + 4)?);
    Some(flow)
}

/// The IPv4 packet in an Ethernet frame and the offset of its payload, when it carries this protocol.
fn ipv4(ethernet: &[u8], protocol: u8) -> Option<(&[u8], usize)> {
    if ethernet.get(12..ETHERNET_BYTES)? != [8, 0] {
        return None;
    }
    let packet = ethernet.get(ETHERNET_BYTES..)?;
    (*packet.get(9)? == protocol).then_some(())?;
    Some((packet, usize::from(packet.first()? & 0x0f) * 4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(protocol: u8, payload: &[u8]) -> Vec<u8> {
        let mut f = vec![0; 34];
        f[12] = 8;
        f[14] = 0x45;
        f[23] = protocol;
        f.extend_from_slice(payload);
        f
    }

    fn overlay(inner_protocol: u8, bytes: usize) -> Vec<u8> {
        let mut tcp = vec![0; 20 + bytes];
        tcp[12] = 0x50;
        let mut udp = vec![0; 16];
        udp[2..4].copy_from_slice(&VXLAN_PORT.to_be_bytes());
        udp.extend(ip(inner_protocol, &tcp));
        let mut frame = vec![0; VNET];
        frame.extend(ip(17, &udp));
        frame
    }

    #[test]
    fn only_bursts_of_full_inner_tcp_are_destroyed() {
        let mut nic = OverlayJoin::default();
        assert!(!nic.destroys(0, &overlay(6, 1300)));
        assert!(nic.destroys(100_000, &overlay(6, 1300)));
        assert!(!nic.destroys(10_000_000, &overlay(6, 1300)), "a later segment stands alone");
        assert!(!nic.destroys(10_000_001, &overlay(6, 0)), "an acknowledgement");
        assert!(!nic.destroys(10_000_002, &overlay(17, 1300)), "inner UDP");
        let mut plain = vec![0; VNET];
        plain.extend(ip(6, &[0x50; 1400]));
        assert!(!nic.destroys(0, &plain) && !nic.destroys(1, &plain), "plain TCP");
        assert!(is_tunnel(&overlay(17, 100)) && !is_tunnel(&plain) && !is_tunnel(&[0; 20]));
    }

    #[test]
    fn torn_frames_are_ignored() {
        let whole = overlay(6, 1300);
        let mut nic = OverlayJoin::default();
        for length in 0..whole.len().min(200) {
            assert!(!nic.destroys(length as u64, &whole[..length]));
        }
    }
}
