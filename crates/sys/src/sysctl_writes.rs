//! Writes to sysctls by every process of the machine, in whatever namespace: who, the value before, what was
//! written. Needs root of the machine.
//!
//! In: nothing. Out: a record for each write, made before the kernel takes the value: it may refuse it. An
//! eBPF program (`BPF_PROG_TYPE_CGROUP_SYSCTL`) at the root of cgroup v2 makes them; it only watches. It is
//! held by a descriptor and gone with it, nothing is pinned or mounted. The number of the process is to be
//! had by such programs since Linux 6.1, the network namespace needs the kernel's types (BTF).

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use crate::bpf::{BpfMap, BpfProgram, BpfUnavailable, MapKind, ProgramKind};
use crate::bpf_code::{AccessSize, By, Call, Code, Register, Sum, When};
use crate::bpf_ring::BpfRing;
use crate::bpf_task::{self, NamespacePath, RecordedTask};
use crate::filesystem;

/// Records that wait to be read: some 700.
const RING_BYTES: u32 = 512 << 10;

/// Where a record has what; it begins with the process.
const PATH: i16 = bpf_task::BYTES;
const BEFORE: i16 = PATH + PATH_BYTES;
const WRITTEN: i16 = BEFORE + VALUE_BYTES;
const RECORD_BYTES: i16 = WRITTEN + VALUE_BYTES;
/// `net/ipv6/conf/`, a device and the longest name need 70.
const PATH_BYTES: i16 = 128;
/// Values are at most some lists of ports long; a longer one is not known.
const VALUE_BYTES: i16 = 256;

/// A write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SysctlWrite {
    /// Below `/proc/sys`, such as `net/ipv4/tcp_rmem`.
    pub path: String,
    /// The process, by its number in the first namespace of processes.
    pub pid: i32,
    /// Its name, or that of the thread.
    pub name: String,
    /// The network namespace it is in: the inode of `/proc/PID/ns/net`.
    pub netns: u32,
    /// The value that was in force, fields separated by one space; `None` where it is longer than 254 bytes
    /// or cannot be read.
    pub before: Option<String>,
    /// What was written, in the same form.
    pub written: Option<String>,
}

/// Writes are recorded until this is dropped.
#[derive(Debug)]
pub struct SysctlWrites {
    ring: BpfRing,
    lost: BpfMap,
    lost_before: u64,
    _link: OwnedFd,
}

/// The root of cgroup v2 as far as this process sees it. A hierarchy that is not in use is not begun.
fn cgroup_root() -> io::Result<OwnedFd> {
    let own = fs::read_to_string("/proc/self/cgroup")?;
    if !own.lines().any(|line| line.starts_with("0::")) {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "cgroup v2 is not mounted on this host"));
    }
    filesystem::detached(c"cgroup2").or_else(|error| {
        fs::File::open("/sys/fs/cgroup/cgroup.controllers").map_err(|_| error)?;
        Ok(fs::File::open("/sys/fs/cgroup")?.into())
    })
}

/// The record of a write; reads are passed over. The answer is always that it may go on.
fn program(ring: &BpfRing, lost: &BpfMap, namespace: NamespacePath) -> Code {
    let mut code = Code::default();
    let (end, full) = (code.label(), code.label());
    code.copy(Register::R6, Register::R1);
    // `struct bpf_sysctl` begins with whether it is a write.
    code.load(AccessSize::Word, Register::R7, Register::R6, 0);
    code.jump_when(Register::R7, When::Equal, 0, end);
    code.map(Register::R1, ring.map());
    code.set(Register::R2, RECORD_BYTES.into());
    code.set(Register::R3, 0);
    code.call(Call::Reserve);
    code.jump_when(Register::R0, When::Equal, 0, full);
    code.copy(Register::R9, Register::R0);
    bpf_task::record(&mut code, namespace);
    for (what, at, bytes) in [
        (Call::SysctlName, PATH, PATH_BYTES),
        (Call::SysctlValue, BEFORE, VALUE_BYTES),
        (Call::SysctlWritten, WRITTEN, VALUE_BYTES),
    ] {
        code.copy(Register::R1, Register::R6);
        code.copy(Register::R2, Register::R9);
        code.sum(Sum::Add, Register::R2, By::Value(at.into()));
        code.set(Register::R3, bytes.into());
        code.set(Register::R4, 0);
        code.call(what);
    }
    code.copy(Register::R1, Register::R9);
    code.set(Register::R2, 0);
    code.call(Call::Submit);
    code.jump(end);
    code.here(full);
    code.set(Register::R1, 0);
    code.store(AccessSize::Word, Register::Stack, -4, Register::R1);
    code.map(Register::R1, lost.as_fd());
    code.on_stack(Register::R2, -4);
    code.call(Call::Find);
    code.jump_when(Register::R0, When::Equal, 0, end);
    code.set(Register::R1, 1);
    code.add_in_memory(Register::R0, Register::R1);
    code.here(end);
    code.set(Register::R0, 1);
    code.exit();
    code
}

impl SysctlWrites {
    /// Begins to record.
    ///
    /// # Errors
    /// No right, no cgroup v2, or a kernel that has not what it takes; in words for a person.
    pub fn begin() -> Result<Self, BpfUnavailable> {
        let root = cgroup_root().map_err(BpfUnavailable::at("the root of cgroup v2 cannot be opened"))?;
        let namespace = NamespacePath::of(&bpf_task::types()?)?;
        let maps = || Ok((BpfRing::new(RING_BYTES)?, BpfMap::new(MapKind::Table, 4, 8, 1)?));
        let (ring, lost) =
            maps().map_err(BpfUnavailable::at("the kernel gives no memory for records (bpf)"))?;
        let program = program(&ring, &lost, namespace)
            .finish()
            .map_err(io::Error::other)
            .and_then(|code| BpfProgram::load_named(ProgramKind::Sysctl, &code, "linerate_sysctl"))
            .map_err(BpfUnavailable::at("the kernel does not take the program (bpf; Linux 6.1 or later)"))?;
        let attached = lost.begin(&[0; 4], &[0; 8]).and_then(|()| program.attach_to_sysctls(root.as_fd()));
        let link = attached.map_err(BpfUnavailable::at("no program may be at the root of cgroup v2"))?;
        Ok(Self { ring, lost, lost_before: 0, _link: link })
    }

    /// Writes since the last call. `false`: there were more than are kept.
    pub fn drain(&mut self, mut each: impl FnMut(SysctlWrite)) -> bool {
        self.ring.drain(|record| each(parse(record)));
        let mut lost = [0; 8];
        // A map of one entry that is always there.
        let _ = self.lost.read(&[0; 4], &mut lost);
        let lost = u64::from_ne_bytes(lost);
        let is_whole = lost == self.lost_before;
        self.lost_before = lost;
        is_whole
    }
}

impl AsFd for SysctlWrites {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

fn parse(record: &[u8]) -> SysctlWrite {
    let text = |at: i16, bytes: i16| bpf_task::text(record, at, bytes);
    let value = |at: i16| {
        let text = text(at, VALUE_BYTES);
        // One that fills the field is cut.
        (text.len() + 1 < VALUE_BYTES as usize).then(|| text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let RecordedTask { pid, name, netns } = RecordedTask::of(record);
    SysctlWrite {
        path: text(PATH, PATH_BYTES),
        pid,
        name,
        netns,
        before: value(BEFORE),
        written: value(WRITTEN),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::unix::fs::MetadataExt as _;
    use std::process::{Command, Stdio};
    use std::sync::Mutex;

    use super::*;
    use crate::bpf::tests::sysctl_programs;
    use crate::netns;

    /// One test counts programs.
    static ALONE: Mutex<()> = Mutex::new(());

    /// Writes of this process to a sysctl.
    fn of(writes: &mut SysctlWrites, path: &str) -> Vec<SysctlWrite> {
        let mut found = Vec::new();
        assert!(writes.drain(|write| found.push(write)));
        found.retain(|write| write.path == path && write.pid == std::process::id().cast_signed());
        found
    }

    #[test]
    fn a_write_has_its_process_namespace_and_both_values() {
        const NAME: &str = "net/ipv4/tcp_rmem";
        let _alone = ALONE.lock();
        let begun = SysctlWrites::begin().map_err(|e| e.to_string());
        let namespace = netns::create().map_err(|e| e.to_string());
        let (mut writes, namespace) = match (begun, namespace) {
            (Ok(writes), Ok(namespace)) => (writes, namespace),
            (Err(why), _) | (_, Err(why)) => {
                return println!("SKIPPED a_write_has_its_process_namespace_and_both_values: {why}");
            }
        };
        let path = format!("/proc/sys/{NAME}");
        let write = |text: &str| netns::run_in(&namespace, || fs::write(&path, text)).unwrap();
        let before = netns::run_in(&namespace, || fs::read_to_string(&path)).unwrap().unwrap();
        write("4096 65536\t212992\n").unwrap();
        write("4097 65536 212992").unwrap();
        assert!(write("five\n").is_err());
        let found = of(&mut writes, NAME);
        let values: Vec<_> = found.iter().map(|w| (w.before.as_deref(), w.written.as_deref())).collect();
        let before = before.split_whitespace().collect::<Vec<_>>().join(" ");
        let (first, second) = (Some("4096 65536 212992"), Some("4097 65536 212992"));
        assert_eq!(values, [(Some(before.as_str()), first), (first, second), (second, Some("five"))]);
        let number = namespace.metadata().unwrap().ino();
        assert!(found.iter().all(|write| u64::from(write.netns) == number), "{found:?}");
        assert!(!found[0].name.is_empty());
        // A read is none, and a value that fills its field is not known.
        fs::read_to_string(&path).unwrap();
        write(&format!("4096 {}", "1".repeat(300))).unwrap_err();
        let found = of(&mut writes, NAME);
        assert_eq!((found.len(), found[0].written.as_deref()), (1, None));
    }

    #[test]
    fn more_writes_than_are_kept_are_noticed_and_the_next_ones_are_seen() {
        let _alone = ALONE.lock();
        let (Ok(mut writes), Ok(namespace)) = (SysctlWrites::begin(), netns::create()) else {
            return println!("SKIPPED more_writes_than_are_kept_are_noticed_and_the_next_ones_are_seen");
        };
        let write = || fs::write("/proc/sys/net/ipv4/tcp_sack", "1\n").unwrap();
        let more = RING_BYTES / RECORD_BYTES as u32 + 10;
        netns::run_in(&namespace, || (0..more).for_each(|_| write())).unwrap();
        assert!(!writes.drain(|_| {}));
        netns::run_in(&namespace, write).unwrap();
        assert_eq!(of(&mut writes, "net/ipv4/tcp_sack").len(), 1);
    }

    #[test]
    fn nothing_stays_when_it_is_dropped() {
        let Ok(root) = cgroup_root() else {
            return println!("SKIPPED nothing_stays_when_it_is_dropped: no cgroup v2");
        };
        let _alone = ALONE.lock();
        let mounts = || fs::read_to_string("/proc/self/mounts").unwrap();
        let (mounts_before, before) = (mounts(), sysctl_programs(root.as_fd()));
        match SysctlWrites::begin() {
            Ok(writes) => {
                assert_ne!(sysctl_programs(root.as_fd()), before);
                drop(writes);
            }
            Err(why) => println!("SKIPPED nothing_stays_when_it_is_dropped: {why}"),
        }
        assert_eq!((mounts(), sysctl_programs(root.as_fd())), (mounts_before, before));
    }

    /// Set for the process that is killed.
    const TO_BE_KILLED: &str = "LINERATE_TO_BE_KILLED";

    #[test]
    fn nothing_stays_of_a_process_that_was_killed() {
        const NAME: &str = "sysctl_writes::tests::nothing_stays_of_a_process_that_was_killed";
        if std::env::var_os(TO_BE_KILLED).is_some() {
            let writes = SysctlWrites::begin();
            println!("begun: {}", writes.is_ok());
            std::io::stdout().flush().unwrap();
            loop {
                std::thread::park();
            }
        }
        let _alone = ALONE.lock();
        let Ok(root) = cgroup_root() else { return println!("SKIPPED {NAME}: no cgroup v2") };
        if let Err(why) = SysctlWrites::begin() {
            return println!("SKIPPED {NAME}: {why}");
        }
        let before = sysctl_programs(root.as_fd());
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", NAME, "--nocapture"]).env(TO_BE_KILLED, "1").stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        // Held until the end: a process that cannot print any more ends by itself.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.by_ref().any(|line| line.ends_with("begun: true")));
        assert_eq!(sysctl_programs(root.as_fd()).len(), before.len() + 1);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(sysctl_programs(root.as_fd()), before);
    }
}
