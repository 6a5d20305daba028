//! Requests to change links or settings of drivers, by every process of the machine: who asks, and by which
//! interface of the kernel. Needs root of the machine.
//!
//! In: nothing. Out: a record for each request, made when the kernel finds that the process may ask for it:
//! what changes comes after. The kernel's own notices of links name no process. An eBPF program at the
//! tracepoint of capability checks (`capability/cap_capable`, Linux 6.14) makes the records, with the
//! kernel's stack: a receiver of requests checks by itself only before a change, what it calls to read checks
//! elsewhere. It only watches, is held by descriptors and gone with them; nothing is pinned.

use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd};

use crate::bounded;
use crate::bpf::{BpfProgram, BpfUnavailable, ProgramKind};
use crate::bpf_code::{AccessSize, By, Call, Code, Register, Sum, When};
use crate::bpf_ring::BpfRing;
use crate::bpf_task::{self, NamespacePath, RecordedTask};
use crate::tracepoint::{Attached, Tracefs, Tracepoint};

/// Records that wait to be read: some 700.
const RING_BYTES: u32 = 128 << 10;
/// Where a record has its stack; it begins with the process.
const STACK: i16 = bpf_task::BYTES;
const STACK_BYTES: i16 = FRAMES as i16 * 8;
const RECORD_BYTES: i16 = STACK + STACK_BYTES;
/// From the check up to the receivers of requests there are four to eight.
const FRAMES: usize = 16;
/// `CAP_NET_ADMIN` of linux/capability.h.
const NET_ADMIN: i32 = 12;
const POINT: &str = "capability/cap_capable";
const SYMBOLS: &str = "/proc/kallsyms";
/// A kernel of today has some ten million bytes of names.
const SYMBOLS_BYTES_MAX: usize = 64 << 20;

/// The interface that a request came by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequestInterface {
    /// rtnetlink, or an ioctl of a device: links, addresses, routes.
    Link,
    /// ethtool, over netlink or an ioctl: settings of drivers. Other families of generic netlink count as it.
    Driver,
}

/// Functions of the kernel that receive requests, and check before a change.
const RECEIVERS: [(&str, RequestInterface); 4] = [
    ("dev_ethtool", RequestInterface::Driver),
    ("genl_rcv_msg", RequestInterface::Driver),
    ("dev_ioctl", RequestInterface::Link),
    ("rtnetlink_rcv_msg", RequestInterface::Link),
];

/// Part of the names of all functions that check a capability.
const CHECK: &str = "capable";

/// A function of the kernel that is known by its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It checks a capability.
    Check,
    Receiver(RequestInterface),
}

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeRequest {
    /// The process, by its number in the first namespace of processes.
    pub pid: i32,
    /// Its name, or that of the thread.
    pub name: String,
    /// The network namespace it is in: the inode of `/proc/PID/ns/net`.
    pub netns: u32,
    /// What it came by.
    pub by: RequestInterface,
}

/// Requests are recorded until this is dropped.
#[derive(Debug)]
pub struct ChangeRequests {
    ring: BpfRing,
    functions: Vec<(Range<u64>, Known)>,
    _attached: Attached,
}

/// Where the record of the tracepoint has capability and result.
#[derive(Debug, Clone, Copy)]
struct Fields {
    capability: i16,
    result: i16,
}

impl Fields {
    fn of(point: &Tracepoint) -> Option<Self> {
        Some(Self { capability: point.offset("cap", 4)?, result: point.offset("ret", 4)? })
    }
}

/// The record of a check that was passed.
fn program(ring: &BpfRing, namespace: NamespacePath, fields: Fields) -> Code {
    let mut code = Code::default();
    let end = code.label();
    code.copy(Register::R6, Register::R1);
    code.load(AccessSize::Word, Register::R7, Register::R6, fields.capability);
    code.jump_when(Register::R7, When::Different, NET_ADMIN, end);
    code.load(AccessSize::Word, Register::R7, Register::R6, fields.result);
    code.jump_when(Register::R7, When::Different, 0, end);
    code.map(Register::R1, ring.map());
    code.set(Register::R2, RECORD_BYTES.into());
    code.set(Register::R3, 0);
    code.call(Call::Reserve);
    // Without memory for it the request has no name, and what it changes is seen all the same.
    code.jump_when(Register::R0, When::Equal, 0, end);
    code.copy(Register::R9, Register::R0);
    bpf_task::record(&mut code, namespace);
    // Memory of the ring holds what was there before.
    code.set(Register::R7, 0);
    for frame in 0..FRAMES as i16 {
        code.store(AccessSize::Double, Register::R9, STACK + frame * 8, Register::R7);
    }
    code.copy(Register::R1, Register::R6);
    code.copy(Register::R2, Register::R9);
    code.sum(Sum::Add, Register::R2, By::Value(STACK.into()));
    code.set(Register::R3, STACK_BYTES.into());
    code.set(Register::R4, 0);
    code.call(Call::Stack);
    code.copy(Register::R1, Register::R9);
    code.set(Register::R2, 0);
    code.call(Call::Submit);
    code.here(end);
    code.set(Register::R0, 0);
    code.exit();
    code
}

impl ChangeRequests {
    /// Begins to record.
    ///
    /// # Errors
    /// No right, or a kernel that has not what it takes; in words for a person.
    pub fn begin() -> Result<Self, BpfUnavailable> {
        let unknown = || io::Error::from(io::ErrorKind::Unsupported);
        let point = Tracefs::open().and_then(|tracefs| tracefs.find(POINT)).map_err(BpfUnavailable::at(
            "the tracepoint of capability checks cannot be read (tracefs; Linux 6.14 or later)",
        ))?;
        let fields = Fields::of(&point)
            .ok_or_else(unknown)
            .map_err(BpfUnavailable::at("the tracepoint of capability checks is not as it is known"))?;
        let functions = bounded::read(SYMBOLS.as_ref(), SYMBOLS_BYTES_MAX)
            .map(|text| ranges(&String::from_utf8_lossy(&text)))
            .and_then(|found| if found.is_empty() { Err(unknown()) } else { Ok(found) })
            .map_err(BpfUnavailable::at(
                "the addresses of the kernel's functions cannot be read (/proc/kallsyms, kernel.kptr_restrict)",
            ))?;
        let namespace = NamespacePath::of(&bpf_task::types()?)?;
        let ring = BpfRing::new(RING_BYTES)
            .map_err(BpfUnavailable::at("the kernel gives no memory for records (bpf)"))?;
        let attached = program(&ring, namespace, fields)
            .finish()
            .map_err(io::Error::other)
            .and_then(|code| BpfProgram::load_named(ProgramKind::Tracepoint, &code, "linerate_change"))
            .and_then(|program| point.attach(&program))
            .map_err(BpfUnavailable::at("the kernel does not take the program (bpf)"))?;
        Ok(Self { ring, functions, _attached: attached })
    }

    /// Requests since the last call.
    pub fn drain(&mut self, mut each: impl FnMut(ChangeRequest)) {
        let functions = &self.functions;
        self.ring.drain(|record| {
            if let Some(by) = interface(record, functions) {
                let RecordedTask { pid, name, netns } = RecordedTask::of(record);
                each(ChangeRequest { pid, name, netns, by });
            }
        });
    }
}

impl AsFd for ChangeRequests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// The addresses of known functions in the kernel's list of names, `ADDRESS TYPE NAME [MODULE]`: each reaches
/// up to the next name. The compiler may have made several parts of one (`NAME.cold`).
fn ranges(list: &str) -> Vec<(Range<u64>, Known)> {
    let mut addresses = Vec::new();
    let mut starts = Vec::new();
    for line in list.lines() {
        let mut words = line.split_whitespace();
        let (Some(address), _, Some(name)) = (words.next(), words.next(), words.next()) else { continue };
        // Zero for who may not know it.
        let Some(address) = u64::from_str_radix(address, 16).ok().filter(|address| *address != 0) else {
            continue;
        };
        addresses.push(address);
        let whole = name.split('.').next().unwrap_or_default();
        let receiver =
            RECEIVERS.iter().find(|(known, _)| *known == whole).map(|(_, by)| Known::Receiver(*by));
        starts
            .extend(receiver.or(whole.contains(CHECK).then_some(Known::Check)).map(|known| (address, known)));
    }
    addresses.sort_unstable();
    addresses.dedup();
    let range = |(start, known): (u64, Known)| {
        let next = addresses.partition_point(|address| *address <= start);
        Some((start..*addresses.get(next)?, known))
    };
    starts.into_iter().filter_map(range).collect()
}

/// What a request came by, where a receiver has called the check; `None` for a check from anywhere else.
fn interface(record: &[u8], functions: &[(Range<u64>, Known)]) -> Option<RequestInterface> {
    let stack = record.get(STACK as usize..)?;
    let mut was_check = false;
    for frame in stack.as_chunks::<8>().0 {
        let address = u64::from_ne_bytes(*frame);
        match functions.iter().find(|(range, _)| range.contains(&address)) {
            Some((_, Known::Check)) => was_check = true,
            Some((_, Known::Receiver(by))) if was_check => return Some(*by),
            _ if was_check => return None,
            // The program at the tracepoint itself stands before the check.
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;
    use std::process::Command;

    use super::*;
    use crate::netns;

    const LIST: &str = "ffffffff81000000 T ns_capable\nffffffff81000100 t rtnetlink_rcv_msg\n\
        ffffffff81000200 T next\n0000000000000000 t dev_ioctl\ntorn\n\
        ffffffff81000300 T dev_ethtool\nffffffff81000380 t dev_ethtool.cold\nffffffff81000400 T last\t[mod]\n";
    const CHECK_AT: u64 = 0xffff_ffff_8100_0050;
    const LINK_AT: u64 = 0xffff_ffff_8100_01ff;
    const OTHER_AT: u64 = 0xffff_ffff_8100_0200;

    fn record(frames: &[u64]) -> Vec<u8> {
        let mut record = vec![0; RECORD_BYTES as usize];
        for (at, frame) in frames.iter().enumerate() {
            record[STACK as usize + at * 8..][..8].copy_from_slice(&frame.to_ne_bytes());
        }
        record
    }

    #[test]
    fn a_stack_shows_what_a_request_came_by() {
        let functions = ranges(LIST);
        assert_eq!(functions.len(), 4, "{functions:?}");
        let of = |frames: &[u64]| interface(&record(frames), &functions);
        let link = Some(RequestInterface::Link);
        assert_eq!((of(&[CHECK_AT, LINK_AT]), of(&[OTHER_AT, CHECK_AT, CHECK_AT, LINK_AT])), (link, link));
        assert_eq!(of(&[CHECK_AT, 0xffff_ffff_8100_0390]), Some(RequestInterface::Driver));
        // What the receiver calls to read checks by itself.
        assert_eq!((of(&[CHECK_AT, OTHER_AT, LINK_AT]), of(&[LINK_AT]), of(&[])), (None, None, None));
        assert_eq!(interface(&record(&[CHECK_AT, LINK_AT])[..10], &functions), None, "torn");
        // Hidden from who may not know them.
        assert_eq!(ranges("0000000000000000 t rtnetlink_rcv_msg\n0000000000000000 T next\n"), []);
    }

    #[test]
    fn a_request_for_a_change_has_its_process_and_a_question_is_none() {
        const NAME: &str = "a_request_for_a_change_has_its_process_and_a_question_is_none";
        let begun = ChangeRequests::begin().map_err(|error| error.to_string());
        let namespace = netns::create().map_err(|error| error.to_string());
        let (mut requests, namespace) = match (begun, namespace) {
            (Ok(requests), Ok(namespace)) => (requests, namespace),
            (Err(why), _) | (_, Err(why)) => return println!("SKIPPED {NAME}: {why}"),
        };
        let number = namespace.metadata().unwrap().ino();
        let mut of = |program: &str, arguments: &[&str]| {
            let run = || {
                let mut child = Command::new(program).args(arguments).spawn().ok()?;
                let pid = child.id().cast_signed();
                assert!(child.wait().unwrap().success(), "{program} {arguments:?}");
                Some(pid)
            };
            let pid = netns::run_in(&namespace, run).unwrap()?;
            let mut found = Vec::new();
            requests.drain(|request| found.push(request));
            found.retain(|request| request.pid == pid);
            assert!(
                found.iter().all(|one| u64::from(one.netns) == number && one.name == program),
                "{found:?}"
            );
            Some(found.into_iter().map(|request| request.by).collect::<Vec<_>>())
        };
        let Some(by_ip) = of("ip", &["link", "set", "lo", "mtu", "9000"]) else {
            return println!("SKIPPED {NAME}: no program `ip` (iproute2)");
        };
        assert!(!by_ip.is_empty() && by_ip.iter().all(|by| *by == RequestInterface::Link), "{by_ip:?}");
        // (`ip link show` begins with a request for a change that is in vain: whether the kernel knows it.)
        assert_eq!(of("ip", &["address", "show", "lo"]).unwrap(), []);
        let Some(by_ethtool) = of("ethtool", &["-K", "lo", "gro", "off"]) else {
            return println!("SKIPPED {NAME} in part: no program `ethtool`");
        };
        assert!(by_ethtool.contains(&RequestInterface::Driver), "{by_ethtool:?}");
        assert_eq!(of("ethtool", &["-k", "lo"]).unwrap(), []);
    }
}
