//! Packets that the kernel drops, by reason: an eBPF program at the tracepoint `skb:kfree_skb`. Needs root of
//! the machine, and Linux 5.17, which has reasons.
//!
//! In: nothing. Out: packets and bytes by reason, EtherType, device and network namespace, since it began,
//! and what the program cost. Names of reasons are those of the running kernel: their numbers move between
//! versions. Keys are bounded; what does not fit is counted together. Where a CPU has very many of a reason
//! between two readings each 64th is counted, for 64. What drivers and cards drop themselves never becomes a
//! packet and is not seen. Nothing is pinned or mounted.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

use crate::bpf::{self, BpfUnavailable};
use crate::bpf_code::{AccessSize, By, Code, Register, Sum, When};
use crate::bpf_counts::{BpfCounts, CountedPoint, CountingProgram, is_others, tracefs, word};
use crate::btf::Btf;
use crate::tracepoint::Tracepoint;

/// Offsets on the stack: the key, what is read from the packet, and addresses in between.
const KEY: i16 = -16;
const KEY_PROTOCOL: i16 = -12;
const KEY_DEVICE: i16 = -8;
const KEY_NAMESPACE: i16 = -4;
const LENGTH: i16 = -24;
const ADDRESS: i16 = -32;
const ZEROS: i16 = -48;
const SLOT: i16 = -56;
/// What the kernel hands to the tracepoint, eight bytes each: packet, address of the code, reason, and since
/// Linux 6.11 the socket (`TP_PROTO` of include/trace/events/skb.h).
const PACKET: i16 = 0;
const REASON: i16 = 16;
const SOCKET: i16 = 24;

/// What packets have in common that are counted together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DropKind {
    /// The kernel's name, without `SKB_DROP_REASON_`; a number where it has none. `None` for all that did not
    /// fit.
    pub reason: Option<String>,
    /// EtherType; 0 where the packet has none.
    pub protocol: u16,
    /// Number of the device it came in by; 0 for what this host sent.
    pub device: u32,
    /// Network namespace: the inode of `/proc/PID/ns/net`; 0 where it is not known.
    pub netns: u32,
}

/// How much was dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DropCount {
    /// Packets; one that is still to be segmented counts once. Of very many each 64th was counted, for 64.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Where the kernel's structs have what is needed, bytes.
#[derive(Debug, Clone, Copy)]
struct Layout {
    /// Whether the kernel hands over the socket.
    has_socket: bool,
    protocol: i32,
    length: i32,
    arrived_by: i32,
    device: i32,
    net_of_device: i32,
    net_of_socket: i32,
    number: i32,
}

impl Layout {
    fn of(point: &Tracepoint, types: &Btf) -> Option<Self> {
        Some(Self {
            has_socket: point.field("rx_sk").is_some(),
            protocol: types.offset("sk_buff", "protocol")?,
            length: types.offset("sk_buff", "len")?,
            arrived_by: types.offset("sk_buff", "skb_iif")?,
            device: types.offset("sk_buff", "dev")?,
            net_of_device: types.offset("net_device", "nd_net")?,
            net_of_socket: types.offset("sock_common", "skc_net")?,
            number: types.offset("net", "ns")? + types.offset("ns_common", "inum")?,
        })
    }
}

/// Puts the rest of the key and the length of the packet on the stack; `R6` has what was handed over.
fn key(code: &mut Code, layout: Layout) {
    code.set(Register::R8, 0);
    code.store(AccessSize::Word, Register::Stack, KEY_PROTOCOL, Register::R8);
    code.store(AccessSize::Double, Register::Stack, KEY_DEVICE, Register::R8);
    code.store(AccessSize::Double, Register::Stack, LENGTH, Register::R8);
    code.load(AccessSize::Double, Register::R7, Register::R6, PACKET);
    for (offset, to, bytes) in
        [(layout.length, LENGTH, 4), (layout.arrived_by, KEY_DEVICE, 4), (layout.protocol, KEY_PROTOCOL, 2)]
    {
        code.copy(Register::R3, Register::R7);
        code.sum(Sum::Add, Register::R3, By::Value(offset));
        code.read_kernel(to, bytes);
    }
    let (found, by_device, end) = (code.label(), code.label(), code.label());
    if layout.has_socket {
        // Sockets use the field of the device for other things.
        code.load(AccessSize::Double, Register::R3, Register::R6, SOCKET);
        code.jump_when(Register::R3, When::Equal, 0, by_device);
        code.sum(Sum::Add, Register::R3, By::Value(layout.net_of_socket));
        code.jump(found);
    }
    code.here(by_device);
    code.copy(Register::R3, Register::R7);
    code.sum(Sum::Add, Register::R3, By::Value(layout.device));
    code.read_kernel(ADDRESS, 8);
    code.load(AccessSize::Double, Register::R3, Register::Stack, ADDRESS);
    code.jump_when(Register::R3, When::Equal, 0, end);
    code.sum(Sum::Add, Register::R3, By::Value(layout.net_of_device));
    code.here(found);
    code.read_kernel(ADDRESS, 8);
    code.load(AccessSize::Double, Register::R3, Register::Stack, ADDRESS);
    code.sum(Sum::Add, Register::R3, By::Value(layout.number));
    code.read_kernel(KEY_NAMESPACE, 4);
    code.here(end);
}

fn program(layout: Layout, counts: &BpfCounts) -> Code {
    let mut code = Code::default();
    let skip = code.label();
    code.copy(Register::R6, Register::R1);
    code.load(AccessSize::Double, Register::R8, Register::R6, REASON);
    code.store(AccessSize::Word, Register::Stack, KEY, Register::R8);
    counts.sample(&mut code, SLOT, skip);
    key(&mut code, layout);
    counts.count(&mut code, KEY, ZEROS, Some(LENGTH), Some(Register::R9));
    code.here(skip);
    code.set(Register::R0, 0);
    code.exit();
    code
}

/// What the program cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProgramCost {
    /// How often it ran.
    pub runs: u64,
    /// How long all of that took, nanoseconds.
    pub ns: u64,
}

const COUNTED: CountedPoint<Layout> = CountedPoint {
    tracepoint: "skb/kfree_skb",
    raw: Some(c"kfree_skb"),
    program: "linerate_drops",
    key_bytes: 16,
    unread: "the tracepoint of dropped packets cannot be read",
    unknown: "the kernel's structs of packets are not as they are known",
    layout: Layout::of,
    code: program,
};

/// Drops are counted until this is dropped.
#[derive(Debug)]
pub struct PacketDrops {
    counting: CountingProgram,
    reasons: BTreeMap<u32, String>,
    /// Has the kernel take the time of programs (Linux 5.8); without it their cost is not known.
    timed: Option<OwnedFd>,
}

impl PacketDrops {
    /// Begins to count.
    ///
    /// # Errors
    /// No right, or a kernel that has not what it takes; in words for a person.
    pub fn begin() -> Result<Self, BpfUnavailable> {
        let tracefs = tracefs()?;
        let reasons = tracefs.symbols(COUNTED.tracepoint, "reason").map_err(BpfUnavailable::at(
            "the kernel has no reasons for dropped packets (Linux 5.17 or later)",
        ))?;
        let timed = bpf::time_programs().ok();
        Ok(Self { counting: COUNTED.begin(&tracefs)?, reasons, timed })
    }

    /// What was dropped since it began.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn read(&self) -> io::Result<BTreeMap<DropKind, DropCount>> {
        let (mut drops, mut reasons) = (BTreeMap::new(), Vec::new());
        let counts = &self.counting.counts;
        counts.each(|key, count| {
            reasons.push(word(key, 0));
            drops.insert(self.kind(key), DropCount { packets: count.events, bytes: count.sum });
        })?;
        counts.begin_again(reasons)?;
        Ok(drops)
    }

    fn kind(&self, key: &[u8]) -> DropKind {
        // No reason has this number.
        if is_others(key) {
            return DropKind { reason: None, protocol: 0, device: 0, netns: 0 };
        }
        let word = |at: i16| word(key, (at - KEY) as usize);
        let reason = word(KEY);
        let name = self.reasons.get(&reason).cloned().unwrap_or_else(|| reason.to_string());
        DropKind {
            reason: Some(name),
            // As packets have it.
            protocol: u16::from_be(word(KEY_PROTOCOL) as u16),
            device: word(KEY_DEVICE),
            netns: word(KEY_NAMESPACE),
        }
    }

    /// What the program cost since it began; `None` where the kernel does not take its time.
    pub fn cost(&self) -> Option<ProgramCost> {
        self.timed.as_ref()?;
        let (ns, runs) = self.counting.program.times().ok()?;
        Some(ProgramCost { runs, ns })
    }
}

#[cfg(test)]
#[path = "packet_drops_tests.rs"]
mod tests;
