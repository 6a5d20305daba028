//! eBPF maps and programs (`bpf(2)`).
//!
//! In: instructions (see [`crate::bpf_code`]), keys and values as bytes. Out: descriptors and values. Nothing
//! is pinned: closing the last descriptor frees everything, also when the process is killed. It decides
//! nothing.

use std::ffi::CStr;
use std::fmt::Write as _;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use crate::bpf_code::Instruction;

/// Commands of `enum bpf_cmd` in linux/bpf.h.
const MAP_CREATE: libc::c_int = 0;
const MAP_FIND: libc::c_int = 1;
const MAP_UPDATE: libc::c_int = 2;
const MAP_NEXT: libc::c_int = 4;
const PROGRAM_LOAD: libc::c_int = 5;
const PROGRAM_ATTACH: libc::c_int = 8;
const PROGRAM_DETACH: libc::c_int = 9;
const PROGRAM_BY_ID: libc::c_int = 13;
const INFO: libc::c_int = 15;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const PROGRAM_QUERY: libc::c_int = 16;
const LINK_CREATE: libc::c_int = 28;
const ENABLE_STATS: libc::c_int = 32;
/// `BPF_CGROUP_SYSCTL` of `enum bpf_attach_type`.
const AT_SYSCTL: u32 = 18;
/// `BPF_NOEXIST`: only where there is none yet.
const NEW_ONLY: u64 = 1;
/// `BPF_F_NO_PREALLOC`: memory for an entry when it comes.
const NO_PREALLOCATION: u32 = 1;
/// Large enough for the last messages of the verifier.
const LOG_BYTES: usize = 256 << 10;
/// Helpers such as the clock are for programs under a licence that goes with the GPL (linux/license rules,
/// `license_is_gpl_compatible`). Programs that are loaded through here are offered under both.
const LICENCE: &CStr = c"Dual MIT/GPL";

/// Why a program cannot be had: which step failed, the kernel's words, and what is missing.
#[derive(Debug, thiserror::Error)]
#[error("{step}: {why}{hint}")]
pub struct BpfUnavailable {
    step: &'static str,
    why: String,
    hint: String,
}

impl BpfUnavailable {
    /// The error of a step.
    pub fn at(step: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| {
            let denied = error.kind() == io::ErrorKind::PermissionDenied;
            let hint = if denied { no_right_words() } else { String::new() };
            let why = error.to_string();
            Self { step, why: why.split(" (os error").next().unwrap_or(&why).to_lowercase(), hint }
        }
    }
}

/// What is missing when the kernel refuses.
fn no_right_words() -> String {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        return " (the kernel is locked down, /sys/kernel/security/lockdown)".to_owned();
    }
    " (needs root of the machine, with CAP_SYS_ADMIN or CAP_BPF and CAP_PERFMON)".to_owned()
}

/// Kind of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapKind {
    /// Entries that are made from outside, as many as needed at a time.
    Table,
    /// Entries that a program makes; when it is full the oldest ones are evicted.
    Recent,
    /// Entries that a program makes, with a value for each CPU.
    PerCpu,
    /// As many entries as it was made for, with a value for each CPU; keys are numbers of four bytes.
    PerCpuArray,
    /// Records that a program hands over, for [`crate::bpf_ring`]: no keys and values, and instead of
    /// entries its bytes, a power of two of whole pages (Linux 5.8).
    Ring,
}

/// Keys and values that programs and we share.
#[derive(Debug)]
pub struct BpfMap {
    descriptor: OwnedFd,
    key_bytes: usize,
    value_bytes: usize,
}

#[repr(C)]
struct CreateMap {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries_max: u32,
    flags: u32,
}

#[repr(C)]
struct Entry {
    map: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct LoadProgram {
    kind: u32,
    instructions: u32,
    code: u64,
    licence: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel: u32,
    flags: u32,
    name: [u8; NAME_BYTES],
}

/// Programs at a hook of a device; `struct { … } query` of `union bpf_attr`.
#[repr(C)]
#[derive(Default)]
struct Query {
    device: u32,
    hook: u32,
    flags: u32,
    attached: u32,
    programs: u64,
    count: u32,
    padding: u32,
    more: [u64; 4],
}

/// A program to attach at a hook of a device, or to detach there.
#[repr(C)]
#[derive(Default)]
struct AttachProgram {
    device: u32,
    program: u32,
    hook: u32,
    flags: u32,
    more: [u32; 4],
}

#[repr(C)]
struct Info {
    program: u32,
    bytes: u32,
    to: u64,
}

/// `BPF_OBJ_NAME_LEN`, with the final zero.
const NAME_BYTES: usize = 16;
/// Most CPUs of a kernel on any machine (`NR_CPUS`).
const CPUS_MAX: usize = 8192;
/// Most programs of a hook that are listed; the kernel takes 64 (`BPF_MPROG_MAX`).
const PROGRAMS_MAX: usize = 64;
/// Bytes of `struct bpf_prog_info` up to its name, and up to its times (Linux 5.1).
const INFO_BYTES: usize = 80;
const TIMES_BYTES: usize = 208;

fn address<T: ?Sized>(of: *const T) -> u64 {
    of.cast::<u8>() as usize as u64
}

/// The call. `T` has to be the arguments of this command, and what they point to has to live as long as the
/// call.
fn bpf<T>(command: libc::c_int, arguments: &mut T) -> io::Result<libc::c_int> {
    // SAFETY: the callers, all in this file, pass plain numbers and addresses of memory that outlives the
    // call; the size is that of `T`.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(arguments), size_of::<T>() as libc::c_uint)
    };
    // A descriptor or zero.
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as libc::c_int) }
}

fn owned(descriptor: libc::c_int) -> OwnedFd {
    // SAFETY: the kernel has just made it for us.
    unsafe { OwnedFd::from_raw_fd(descriptor) }
}

/// Kernels before 5.11 count maps as locked memory, of which a process may have 64 KiB: our own limit is
/// raised. Later ones do not ask.
fn raise_locked_memory() {
    let limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: a plain struct that lives as long as the call. Who may not do it meets the refusal again.
    unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const limit) };
}

impl BpfMap {
    /// Makes one. Keys and values have these sizes in bytes.
    ///
    /// # Errors
    /// No right, or a kernel that does not know it.
    pub fn new(kind: MapKind, key_bytes: u32, value_bytes: u32, entries_max: u32) -> io::Result<Self> {
        // BPF_MAP_TYPE_HASH, BPF_MAP_TYPE_LRU_HASH,
        // BPF_MAP_TYPE_PERCPU_HASH, BPF_MAP_TYPE_PERCPU_ARRAY, BPF_MAP_TYPE_RINGBUF.
        let (kind, flags) = match kind {
            MapKind::Table => (1, NO_PREALLOCATION),
            MapKind::Recent => (9, 0),
            MapKind::PerCpu => (5, 0),
            MapKind::PerCpuArray => (6, 0),
            MapKind::Ring => (27, 0),
        };
        let mut arguments = CreateMap { kind, key_bytes, value_bytes, entries_max, flags };
        let made = match bpf(MAP_CREATE, &mut arguments) {
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => {
                raise_locked_memory();
                bpf(MAP_CREATE, &mut arguments)?
            }
            made => made?,
        };
        Ok(Self { descriptor: owned(made), key_bytes: key_bytes as usize, value_bytes: value_bytes as usize })
    }

    fn entry(&self, key: &[u8], value: *const [u8], flags: u64) -> io::Result<Entry> {
        // The kernel reads and writes as much as the map was made for.
        if key.len() != self.key_bytes || value.len() != self.value_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let map = self.descriptor.as_raw_fd() as u32;
        Ok(Entry { map, key: address(key), value: address(value), flags })
    }

    /// Makes an entry where there is none yet; leaves the one that is there.
    ///
    /// # Errors
    /// The map is full, or the sizes are not those of the map.
    pub fn begin(&self, key: &[u8], value: &[u8]) -> io::Result<()> {
        match bpf(MAP_UPDATE, &mut self.entry(key, value, NEW_ONLY)?) {
            Err(error) if error.raw_os_error() == Some(libc::EEXIST) => Ok(()),
            done => done.map(drop),
        }
    }

    /// Reads an entry; `false` when there is none.
    ///
    /// # Errors
    /// The sizes are not those of the map.
    pub fn read(&self, key: &[u8], value: &mut [u8]) -> io::Result<bool> {
        let value: *mut [u8] = value;
        match bpf(MAP_FIND, &mut self.entry(key, value, 0)?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            done => done.map(|_| true),
        }
    }
}

/// Maps with a value for each CPU.
impl BpfMap {
    /// Values of all CPUs one behind the other, for the largest machine: the kernel does not ask how large
    /// the memory is that it writes to.
    fn values(&self) -> Vec<u8> {
        vec![0; self.value_bytes.next_multiple_of(8) * CPUS_MAX]
    }

    /// Makes an entry of zeros, or sets it to zeros.
    ///
    /// # Errors
    /// The key has not the size of the map.
    pub fn begin_per_cpu(&self, key: &[u8]) -> io::Result<()> {
        let values = self.values();
        let mut entry = self.entry(key, &raw const values[..self.value_bytes], 0)?;
        bpf(MAP_UPDATE, &mut entry).map(drop)
    }

    /// Each key with its values, those of each CPU one behind the other. Entries that programs make
    /// meanwhile may be missing.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn each_per_cpu(&self, mut each: impl FnMut(&[u8], &[u8])) -> io::Result<()> {
        let mut values = self.values();
        let mut key = vec![0; self.key_bytes];
        let mut next = vec![0; self.key_bytes];
        let mut is_first = true;
        loop {
            let map = self.descriptor.as_raw_fd() as u32;
            let from = if is_first { 0 } else { address(key.as_slice()) };
            let to: *mut [u8] = next.as_mut_slice();
            match bpf(MAP_NEXT, &mut Entry { map, key: from, value: address(to), flags: 0 }) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                found => found?,
            };
            is_first = false;
            key.copy_from_slice(&next);
            let to: *mut [u8] = values.as_mut_slice();
            match bpf(
                MAP_FIND,
                &mut Entry { map, key: address(key.as_slice()), value: address(to), flags: 0 },
            ) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                found => {
                    found?;
                    each(&key, &values);
                }
            }
        }
    }
}

/// Has the kernel take the time of programs until the descriptor is closed (Linux 5.8).
///
/// # Errors
/// No right, or an older kernel.
pub fn time_programs() -> io::Result<OwnedFd> {
    // `BPF_STATS_RUN_TIME` is 0.
    bpf(ENABLE_STATS, &mut [0_u32]).map(owned)
}

impl AsFd for BpfMap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// What a program is called for; numbers of `enum bpf_prog_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramKind {
    /// A packet; of all kinds the one that can be tried out on every kernel.
    Packet = 1,
    /// What a device sends or receives, for `tc`.
    Traffic = 3,
    /// A tracepoint, with the record that it makes.
    Tracepoint = 5,
    /// What a device receives, before the network stack.
    Xdp = 6,
    /// A tracepoint, with what the kernel hands it: no record is made.
    RawTracepoint = 17,
    /// Reads and writes of sysctls by the processes of a cgroup.
    Sysctl = 23,
}

/// Hooks of `tc` without a classifier (TCX, since Linux 6.6); numbers of `enum bpf_attach_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrafficHook {
    /// What a device receives.
    Ingress = 46,
    /// What a device sends.
    Egress = 47,
}

/// What is known of a program of this kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramName {
    /// Its name, without letters that are not plain.
    pub name: String,
    /// A hash of its instructions: the same program has the same one on each host.
    pub tag: String,
}

/// Numbers of the programs at a hook of a device.
///
/// # Errors
/// No right, or a kernel without such hooks (`EINVAL`).
pub fn programs_at(device: u32, hook: TrafficHook) -> io::Result<Vec<u32>> {
    programs_of(device, hook as u32)
}

/// The same for the number of a device or a descriptor, by the kind of the hook.
fn programs_of(device: u32, hook: u32) -> io::Result<Vec<u32>> {
    let mut numbers = [0_u32; PROGRAMS_MAX];
    let to: *mut [u32] = numbers.as_mut_slice();
    let count = PROGRAMS_MAX as u32;
    let mut query = Query { device, hook, programs: address(to), count, ..Query::default() };
    bpf(PROGRAM_QUERY, &mut query)?;
    Ok(numbers[..(query.count as usize).min(PROGRAMS_MAX)].to_vec())
}

/// What a program is called.
///
/// # Errors
/// No right, or it is gone.
pub fn name_of(program: u32) -> io::Result<ProgramName> {
    let descriptor = owned(bpf(PROGRAM_BY_ID, &mut [program, 0, 0])?);
    let mut info = [0_u8; INFO_BYTES];
    let to: *mut [u8] = info.as_mut_slice();
    let program = descriptor.as_raw_fd() as u32;
    bpf(INFO, &mut Info { program, bytes: INFO_BYTES as u32, to: address(to) })?;
    let plain = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let tag = info[8..16].iter().fold(String::new(), |mut text, byte| {
        // Writing into a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    Ok(ProgramName { name: info[64..].iter().take_while(plain).map(|byte| char::from(*byte)).collect(), tag })
}

/// A program that the kernel took.
#[derive(Debug)]
pub struct BpfProgram {
    descriptor: OwnedFd,
}

impl BpfProgram {
    /// Has the kernel check it and take it.
    ///
    /// # Errors
    /// No right, or the words with which the kernel refuses the program.
    pub fn load(kind: ProgramKind, code: &[Instruction]) -> io::Result<Self> {
        Self::load_named(kind, code, "")
    }

    /// The same with a name of up to 15 letters, digits and `_` (since Linux 4.15).
    ///
    /// # Errors
    /// As of [`Self::load`].
    pub fn load_named(kind: ProgramKind, code: &[Instruction], text: &str) -> io::Result<Self> {
        let mut name = [0; NAME_BYTES];
        name.iter_mut().zip(text.bytes().take(NAME_BYTES - 1)).for_each(|(to, from)| *to = from);
        let mut arguments = LoadProgram {
            kind: kind as u32,
            instructions: u32::try_from(code.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
            code: address(code),
            licence: address(LICENCE.to_bytes_with_nul()),
            log_level: 0,
            log_bytes: 0,
            log: 0,
            kernel: 0,
            flags: 0,
            name,
        };
        let refused = match bpf(PROGRAM_LOAD, &mut arguments) {
            Ok(descriptor) => return Ok(Self { descriptor: owned(descriptor) }),
            Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Err(error),
            Err(error) => error,
        };
        // Once more, to hear why: a log costs more than the check.
        let mut log = vec![0_u8; LOG_BYTES];
        (arguments.log_level, arguments.log_bytes) = (1, LOG_BYTES as u32);
        let room: *mut [u8] = log.as_mut_slice();
        arguments.log = address(room);
        match bpf(PROGRAM_LOAD, &mut arguments) {
            Ok(descriptor) => Ok(Self { descriptor: owned(descriptor) }),
            Err(_) => Err(io::Error::other(because(&refused, &log))),
        }
    }

    /// Nanoseconds that its runs took, and how many they were, while the kernel took the time.
    ///
    /// # Errors
    /// A kernel before 5.1.
    pub fn times(&self) -> io::Result<(u64, u64)> {
        let mut info = [0_u8; TIMES_BYTES];
        let to: *mut [u8] = info.as_mut_slice();
        let program = self.descriptor.as_raw_fd() as u32;
        bpf(INFO, &mut Info { program, bytes: TIMES_BYTES as u32, to: address(to) })?;
        let field = |at: usize| info[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
        Ok((field(192), field(200)))
    }

    /// Has it called for sysctls that processes of a cgroup and of those below read or write, until the
    /// descriptor is closed (a link, Linux 5.7).
    ///
    /// # Errors
    /// No right, a kernel without such links, or another program that does not allow more.
    pub fn attach_to_sysctls(&self, cgroup: BorrowedFd<'_>) -> io::Result<OwnedFd> {
        let (program, to) = (self.descriptor.as_raw_fd() as u32, cgroup.as_raw_fd() as u32);
        bpf(LINK_CREATE, &mut [program, to, AT_SYSCTL, 0]).map(owned)
    }

    /// Has it called whenever the kernel passes a tracepoint, by its name without the folder, until the
    /// descriptor is closed. For [`ProgramKind::RawTracepoint`].
    ///
    /// # Errors
    /// No right, or no such tracepoint.
    pub fn attach_to_tracepoint(&self, name: &CStr) -> io::Result<OwnedFd> {
        let program = u64::from(self.descriptor.as_raw_fd() as u32);
        bpf(RAW_TRACEPOINT_OPEN, &mut [address(name.to_bytes_with_nul()), program]).map(owned)
    }

    /// Has every packet at a hook of a device meet it, until it is detached.
    ///
    /// # Errors
    /// No right, or a kernel without such hooks.
    pub fn attach(&self, device: u32, hook: TrafficHook) -> io::Result<()> {
        self.at_hook(PROGRAM_ATTACH, device, hook)
    }

    /// Undoes [`Self::attach`].
    ///
    /// # Errors
    /// It is not there.
    pub fn detach(&self, device: u32, hook: TrafficHook) -> io::Result<()> {
        self.at_hook(PROGRAM_DETACH, device, hook)
    }

    fn at_hook(&self, command: libc::c_int, device: u32, hook: TrafficHook) -> io::Result<()> {
        let program = self.descriptor.as_raw_fd() as u32;
        let mut arguments = AttachProgram { device, program, hook: hook as u32, ..AttachProgram::default() };
        bpf(command, &mut arguments).map(drop)
    }
}

/// The refusal with the last words of the verifier before its statistics.
fn because(refused: &io::Error, log: &[u8]) -> String {
    let log = String::from_utf8_lossy(log.split(|byte| *byte == 0).next().unwrap_or_default());
    let last = log.lines().map(str::trim).rfind(|l| !l.is_empty() && !l.starts_with("processed "));
    last.map_or_else(|| refused.to_string(), |words| format!("{refused}: {words}"))
}

impl AsFd for BpfProgram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::bpf_code::{Code, Register};

    /// Runs a program on an empty packet (`BPF_PROG_TEST_RUN`); gives its answer.
    pub(crate) fn answer(program: &BpfProgram) -> io::Result<u32> {
        #[repr(C)]
        struct TestRun {
            program: u32,
            answer: u32,
            packet_bytes: u32,
            out_bytes: u32,
            packet: u64,
            out: u64,
            repeat: u32,
            took: u32,
        }
        let packet = [0_u8; 64];
        let mut run = TestRun {
            program: program.descriptor.as_raw_fd() as u32,
            answer: 0,
            packet_bytes: packet.len() as u32,
            out_bytes: 0,
            packet: address(packet.as_slice()),
            out: 0,
            repeat: 1,
            took: 0,
        };
        bpf(10, &mut run)?;
        Ok(run.answer)
    }

    /// Programs that are called for sysctls of a cgroup.
    pub(crate) fn sysctl_programs(cgroup: BorrowedFd<'_>) -> Vec<u32> {
        programs_of(cgroup.as_raw_fd() as u32, AT_SYSCTL).unwrap()
    }

    /// Whether programs may be loaded here; prints a skip when not.
    pub(crate) fn allowed(test: &str) -> bool {
        match BpfMap::new(MapKind::Table, 4, 8, 1) {
            Ok(_) => true,
            Err(error) => {
                println!("SKIPPED {test}: no programs may be given to this kernel: {error}");
                false
            }
        }
    }

    #[test]
    fn a_map_keeps_what_is_first() {
        if !allowed("a_map_keeps_what_is_first") {
            return;
        }
        let map = BpfMap::new(MapKind::Table, 4, 8, 1).unwrap();
        let mut value = [0; 8];
        assert!(!map.read(&[1; 4], &mut value).unwrap());
        map.begin(&[1; 4], &[7; 8]).unwrap();
        map.begin(&[1; 4], &[8; 8]).unwrap();
        assert!(map.read(&[1; 4], &mut value).unwrap());
        assert_eq!(value, [7; 8]);
        assert!(map.begin(&[2; 4], &[7; 8]).is_err(), "there is room for one");
        let sizes = map.read(&[1; 3], &mut value).unwrap_err();
        assert_eq!(sizes.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(map.begin(&[1; 4], &[7; 4]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_program_answers_and_a_bad_one_is_refused_with_the_words_of_the_kernel() {
        if !allowed("a_program_answers_and_a_bad_one_is_refused_with_the_words_of_the_kernel") {
            return;
        }
        let mut good = Code::default();
        good.set(Register::R0, 42);
        good.exit();
        let program = BpfProgram::load(ProgramKind::Packet, &good.finish().unwrap()).unwrap();
        assert_eq!(answer(&program).unwrap(), 42);
        let mut bad = Code::default();
        bad.exit();
        let why = BpfProgram::load(ProgramKind::Packet, &bad.finish().unwrap()).unwrap_err().to_string();
        assert!(why.contains("R0 !read_ok"), "{why}");
    }
}
