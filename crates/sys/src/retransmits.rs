//! Segments of TCP that this machine sends again, by peer and kind: an eBPF program at the tracepoint
//! `tcp:tcp_retransmit_skb`. Needs root of the machine.
//!
//! In: nothing. Out: segments by peer, kind and network namespace, since it began. The kind is that of the
//! state in which the kernel sends: a timeout, a recovery, a probe of the tail, a handshake. Keys are
//! bounded; what does not fit is counted together. Nothing is pinned or mounted.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

use crate::bpf::BpfUnavailable;
use crate::bpf_code::{AccessSize, By, Code, Register, Sum, When};
use crate::bpf_counts::{BpfCounts, CountedPoint, CountingProgram, is_others, tracefs, word};
use crate::btf::Btf;
use crate::tracepoint::Tracepoint;

/// Offsets on the stack: the key, and what is read in between.
const KEY: i16 = -24;
const KEY_KIND: i16 = -8;
const KEY_NAMESPACE: i16 = -4;
const ADDRESS: i16 = -32;
const ZEROS: i16 = -48;
/// States of a connection (`enum` in net/tcp_states.h).
const SYN_SENT: i32 = 2;
const SYN_RECEIVED: i32 = 3;
/// Kinds that the program writes besides states of congestion control, which are below eight.
const SYN: i32 = 16;
const SYN_ANSWER: i32 = 17;
/// `enum tcp_ca_state`: below it nothing was known to be lost.
const RECOVERY: u32 = 3;
const LOSS: u32 = 4;

/// Why a segment was sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RetransmitKind {
    /// No answer within the timeout (RTO).
    Timeout,
    /// Acknowledgements of later segments showed the loss.
    Recovery,
    /// The last segments, to see whether they arrived (TLP).
    TailProbe,
    /// The first segment of a connection, or its answer.
    Handshake,
}

/// What segments have in common that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Retransmit {
    /// The other end.
    pub peer: IpAddr,
    /// Why.
    pub kind: RetransmitKind,
    /// Network namespace: the inode of `/proc/PID/ns/net`.
    pub netns: u32,
}

/// Where the tracepoint and the kernel's structs have what is needed, bytes.
#[derive(Debug, Clone, Copy)]
struct Layout {
    socket: i16,
    state: i16,
    peer: i32,
    congestion: i32,
    net: i32,
    number: i32,
}

impl Layout {
    fn of(point: &Tracepoint, types: &Btf) -> Option<Self> {
        Some(Self {
            socket: point.offset("skaddr", 8)?,
            state: point.offset("state", 4)?,
            // Of IPv4 it is the mapped address.
            peer: point.offset("daddr_v6", 16)?.into(),
            // The first five bits.
            congestion: types.offset("inet_connection_sock", "icsk_ca_state")?,
            net: types.offset("sock_common", "skc_net")?,
            number: types.offset("net", "ns")? + types.offset("ns_common", "inum")?,
        })
    }
}

fn program(layout: Layout, counts: &BpfCounts) -> Code {
    let mut code = Code::default();
    let (handshake, answer, named) = (code.label(), code.label(), code.label());
    code.copy(Register::R6, Register::R1);
    // Not every field is aligned, so that it is copied.
    code.copy(Register::R3, Register::R6);
    code.sum(Sum::Add, Register::R3, By::Value(layout.peer));
    code.read_kernel(KEY, 16);
    code.load(AccessSize::Double, Register::R7, Register::R6, layout.socket);
    code.load(AccessSize::Word, Register::R9, Register::R6, layout.state);
    code.jump_when(Register::R9, When::Equal, SYN_SENT, handshake);
    code.jump_when(Register::R9, When::Equal, SYN_RECEIVED, answer);
    code.set(Register::R8, 0);
    code.store(AccessSize::Double, Register::Stack, ADDRESS, Register::R8);
    code.copy(Register::R3, Register::R7);
    code.sum(Sum::Add, Register::R3, By::Value(layout.congestion));
    code.read_kernel(ADDRESS, 1);
    code.load(AccessSize::Word, Register::R8, Register::Stack, ADDRESS);
    code.sum(Sum::And, Register::R8, By::Value(0x1f));
    code.jump(named);
    code.here(handshake);
    code.set(Register::R8, SYN);
    code.jump(named);
    code.here(answer);
    code.set(Register::R8, SYN_ANSWER);
    code.here(named);
    code.store(AccessSize::Word, Register::Stack, KEY_KIND, Register::R8);
    code.copy(Register::R3, Register::R7);
    code.sum(Sum::Add, Register::R3, By::Value(layout.net));
    code.read_kernel(ADDRESS, 8);
    code.load(AccessSize::Double, Register::R3, Register::Stack, ADDRESS);
    code.sum(Sum::Add, Register::R3, By::Value(layout.number));
    code.read_kernel(KEY_NAMESPACE, 4);
    counts.count(&mut code, KEY, ZEROS, None, None);
    code.set(Register::R0, 0);
    code.exit();
    code
}

const COUNTED: CountedPoint<Layout> = CountedPoint {
    tracepoint: "tcp/tcp_retransmit_skb",
    raw: None,
    program: "linerate_resent",
    key_bytes: 24,
    unread: "the tracepoint of retransmissions cannot be read",
    unknown: "the kernel's structs of connections are not as they are known",
    layout: Layout::of,
    code: program,
};

/// Retransmissions are counted until this is dropped.
#[derive(Debug)]
pub struct Retransmits {
    counting: CountingProgram,
}

impl Retransmits {
    /// Begins to count.
    ///
    /// # Errors
    /// No right, or a kernel that has not what it takes; in words for a person.
    pub fn begin() -> Result<Self, BpfUnavailable> {
        Ok(Self { counting: COUNTED.begin(&tracefs()?)? })
    }

    /// What was sent again since it began; what did not fit is left out.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn read(&self) -> io::Result<BTreeMap<Retransmit, u64>> {
        let mut sums = BTreeMap::new();
        self.counting.counts.each(|key, count| {
            if let Some(one) = parse(key) {
                *sums.entry(one).or_insert(0_u64) += count.events;
            }
        })?;
        Ok(sums)
    }
}

fn parse(key: &[u8]) -> Option<Retransmit> {
    let address: [u8; 16] = key.get(..16).filter(|_| !is_others(key))?.try_into().ok()?;
    let at = |offset: i16| word(key, (offset - KEY) as usize);
    let kind = match at(KEY_KIND) {
        kind if kind == SYN as u32 || kind == SYN_ANSWER as u32 => RetransmitKind::Handshake,
        RECOVERY => RetransmitKind::Recovery,
        LOSS => RetransmitKind::Timeout,
        _ => RetransmitKind::TailProbe,
    };
    Some(Retransmit { peer: Ipv6Addr::from(address).to_canonical(), kind, netns: at(KEY_NAMESPACE) })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::MetadataExt as _;
    use std::process::Command;

    use super::*;
    use crate::netns;

    fn sh(line: &str) {
        let output = Command::new("sh").args(["-ec", line]).output().unwrap();
        assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Loses every second segment with data; connects to a port without an answer; reads what arrives.
    fn lose() {
        sh("ip link set lo up
            nft add table inet x; nft 'add chain inet x c { type filter hook input priority 0; }'
            nft add rule inet x c tcp dport 9 drop
            nft add rule inet x c meta length gt 500 tcp dport 5000 numgen inc mod 2 == 1 drop");
        let listener = TcpListener::bind("127.0.0.1:5000").unwrap();
        let reader = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            all.len()
        });
        let mut stream = TcpStream::connect("127.0.0.1:5000").unwrap();
        stream.write_all(&vec![7; 400_000]).unwrap();
        drop(stream);
        assert_eq!(reader.join().unwrap(), 400_000);
        let nowhere = "127.0.0.1:9".parse().unwrap();
        TcpStream::connect_timeout(&nowhere, std::time::Duration::from_millis(1500)).unwrap_err();
    }

    #[test]
    fn segments_are_counted_by_peer_and_kind() {
        const TEST: &str = "segments_are_counted_by_peer_and_kind";
        let is_there =
            Command::new("nft").arg("--version").output().is_ok_and(|output| output.status.success());
        let counted = match (Retransmits::begin(), netns::create()) {
            (Ok(counted), Ok(namespace)) if is_there => (counted, namespace),
            (Ok(_), _) => return println!("SKIPPED {TEST}: needs namespaces and nft"),
            (Err(why), _) => return println!("SKIPPED {TEST}: {why}"),
        };
        let (counted, namespace) = counted;
        // Without offloads a segment is a packet.
        netns::run_in(&namespace, lose).unwrap();
        let number = namespace.metadata().unwrap().ino();
        let read = counted.read().unwrap();
        let own: Vec<_> = read.iter().filter(|(one, _)| u64::from(one.netns) == number).collect();
        assert!(own.iter().all(|(one, _)| one.peer == IpAddr::from([127, 0, 0, 1])), "{own:?}");
        let of = |kind| own.iter().filter(|(one, _)| one.kind == kind).map(|(_, count)| **count).sum::<u64>();
        assert!(of(RetransmitKind::Handshake) >= 1, "{own:?}");
        let data = of(RetransmitKind::Recovery) + of(RetransmitKind::Timeout) + of(RetransmitKind::TailProbe);
        assert!(data >= 1, "{own:?}");
        // As many as the kernel counts itself.
        let snmp = netns::run_in(&namespace, || std::fs::read_to_string("/proc/net/snmp")).unwrap().unwrap();
        let mut lines = snmp.lines().filter(|line| line.starts_with("Tcp:"));
        let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
        let at = names.split(' ').position(|name| name == "RetransSegs").unwrap();
        let kernel: u64 = values.split(' ').nth(at).unwrap().parse().unwrap();
        let ours: u64 = own.iter().map(|(_, count)| **count).sum();
        println!("{own:?}, the kernel counts {kernel} segments");
        assert!(ours <= kernel && ours > 0, "{own:?}, {kernel}");
    }
}
