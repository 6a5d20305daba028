//! Drops of known reasons in a network namespace are counted with the names of this kernel.

use std::net::UdpSocket;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::Command;

use super::*;
use crate::netns;

/// Packets of a reason in a namespace.
fn packets(drops: &PacketDrops, namespace: u64, reason: &str) -> u64 {
    let read = drops.read().unwrap();
    let of = |kind: &&DropKind| u64::from(kind.netns) == namespace && kind.reason.as_deref() == Some(reason);
    read.keys().filter(of).map(|kind| read[kind].packets).sum()
}

fn sh(line: &str) {
    let output = Command::new("sh").args(["-ec", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// To a port that nothing has (discard): dropped for `NO_SOCKET`.
fn to_a_closed_port(count: usize) {
    for _ in 0..count {
        // A socket of its own each: the answer of the last packet is an error of the next.
        UdpSocket::bind("127.0.0.1:0").unwrap().send_to(&[0; 100], "127.0.0.1:9").unwrap();
    }
}

/// More than a socket holds that is not read: dropped for `SOCKET_RCVBUFF`. Gives how many it did not hold.
fn to_a_full_socket(count: usize) -> u64 {
    let full = UdpSocket::bind("127.0.0.1:0").unwrap();
    let bytes: libc::c_int = 4096;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    let value = (&raw const bytes).cast();
    // SAFETY: the socket is open, and the value lives as long as the call.
    let set = unsafe { libc::setsockopt(full.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, value, size) };
    assert_eq!(set, 0);
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..count {
        sender.send_to(&[0; 1000], full.local_addr().unwrap()).unwrap();
    }
    full.set_nonblocking(true).unwrap();
    let held = std::iter::from_fn(|| full.recv(&mut [0; 1500]).ok()).count();
    (count - held) as u64
}

/// A frame of an EtherType that nothing handles, from one end of a pair of devices to the other: dropped for
/// `UNHANDLED_PROTO`.
fn of_an_unknown_protocol(count: usize) {
    // `ETH_P_ALL` and the local experimental EtherType 0x88b5.
    // SAFETY: plain system call; the result is checked.
    let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, 0) };
    assert!(socket >= 0);
    // The end that came up last sends at once; the queue of the other one waits for a worker of the kernel.
    // SAFETY: a name that ends with zero.
    let index = unsafe { libc::if_nametoindex(c"d1".as_ptr()) };
    // SAFETY: all-zero is a valid value of this plain struct.
    let mut to: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    (to.sll_family, to.sll_ifindex) = (libc::AF_PACKET as u16, index.cast_signed());
    let mut frame = [0_u8; 60];
    frame[..6].fill(0xff);
    frame[12..14].copy_from_slice(&0x88b5_u16.to_be_bytes());
    for _ in 0..count {
        let address = (&raw const to).cast();
        let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the frame and the address live as long as the call.
        let sent = unsafe { libc::sendto(socket, frame.as_ptr().cast(), frame.len(), 0, address, size) };
        assert_eq!(sent, 60);
    }
    // SAFETY: our own descriptor, not used after.
    unsafe { libc::close(socket) };
}

#[test]
fn drops_are_counted_by_the_reasons_of_this_kernel() {
    const TEST: &str = "drops_are_counted_by_the_reasons_of_this_kernel";
    let drops = match PacketDrops::begin() {
        Ok(drops) => drops,
        Err(why) => return println!("SKIPPED {TEST}: {why}"),
    };
    let namespace = match netns::create() {
        Ok(namespace) => namespace,
        Err(why) => return println!("SKIPPED {TEST}: {why}"),
    };
    let number = namespace.metadata().unwrap().ino();
    let inside = |work: fn()| netns::run_in(&namespace, work).unwrap();
    inside(|| {
        sh("ip link set lo up; ip link add d0 type veth peer name d1; ip link set d0 up; ip link set d1 up");
    });
    let count = |reason: &str| packets(&drops, number, reason);
    inside(|| to_a_closed_port(7));
    assert_eq!(count("NO_SOCKET"), 7);
    let lost = netns::run_in(&namespace, || to_a_full_socket(50)).unwrap();
    assert!(lost > 0);
    assert_eq!(count("SOCKET_RCVBUFF"), lost);
    inside(|| of_an_unknown_protocol(5));
    let unknown = drops.read().unwrap();
    let by_device: Vec<_> = unknown.iter().filter(|(kind, _)| kind.protocol == 0x88b5).collect();
    assert_eq!(by_device.len(), 1, "{unknown:?}");
    assert_eq!(by_device[0].1.packets, 5);
    assert!(by_device[0].0.device > 1 && by_device[0].0.reason.as_deref() == Some("UNHANDLED_PROTO"));
    if Command::new("nft").arg("--version").output().is_ok_and(|output| output.status.success()) {
        inside(|| {
            sh("nft add table inet x; nft 'add chain inet x c { type filter hook input priority 0; }'
                nft add rule inet x c udp length gt 108 drop");
            let to = UdpSocket::bind("127.0.0.1:0").unwrap();
            let from = UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..9 {
                from.send_to(&[0; 300], to.local_addr().unwrap()).unwrap();
            }
        });
        assert_eq!(count("NETFILTER_DROP"), 9);
    }
    // Very many are sampled; after a reading the next ones are counted in full.
    let unknown = || -> u64 {
        let read = drops.read().unwrap();
        read.iter().filter(|(kind, _)| kind.protocol == 0x88b5).map(|(_, count)| count.packets).sum()
    };
    inside(|| of_an_unknown_protocol(20_000));
    let many = unknown();
    assert!((19_000..=20_100).contains(&many), "{many}");
    inside(|| of_an_unknown_protocol(3));
    assert_eq!(unknown(), many + 3);
    let cost = drops.cost().unwrap_or_default();
    println!("{} runs of {} ns", cost.runs, cost.ns / cost.runs.max(1));
    assert!(cost.runs == 0 || cost.runs >= 7 + lost + 5);
}
