//! Kernel tracepoints: their numbers, the offsets of their fields, and eBPF programs attached to them.
//!
//! In: names such as `block/block_rq_issue`. Out: numbers and field offsets as this kernel has them (tracefs,
//! `events/*/*/format`), and a descriptor for each attached program: closing it detaches the program. Tracing
//! is not enabled for other users, and nothing is mounted visibly.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt as _;

use crate::bpf::BpfProgram;
use crate::filesystem::{self, descriptor};

/// Where tracefs is on a machine of today, and on older ones. Accessing the second may have the kernel mount
/// it there.
const MOUNTED: &str = "/sys/kernel/tracing";
const MOUNTED_BEFORE: &str = "/sys/kernel/debug/tracing";
/// A format has some thousand bytes.
const TEXT_BYTES_MAX: u64 = 64 << 10;
/// `PERF_TYPE_TRACEPOINT` of linux/perf_event.h.
const TRACEPOINT: u32 = 2;
/// `PERF_FLAG_FD_CLOEXEC`.
const PERF_CLOSE_ON_EXEC: libc::c_ulong = 8;
/// `PERF_EVENT_IOC_SET_BPF`, `_IOW('$', 8, __u32)`.
const SET_PROGRAM: libc::c_ulong = 0x4004_2408;
/// `PERF_EVENT_IOC_ENABLE`, `_IO('$', 0)`.
const ENABLE: libc::c_ulong = 0x2400;

/// A folder of tracefs.
#[derive(Debug)]
pub struct Tracefs {
    folder: OwnedFd,
}

/// A field of a tracepoint's record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name, without the suffix of an array.
    pub name: String,
    /// Where it begins, bytes.
    pub offset: u16,
    /// How long it is, bytes.
    pub bytes: u16,
}

/// A tracepoint of this kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tracepoint {
    /// Its number since the machine was started.
    pub number: u64,
    /// Fields of its record.
    pub fields: Vec<Field>,
}

impl Tracefs {
    /// Opens it: where it is mounted, else without a mount point.
    ///
    /// # Errors
    /// No right, or a kernel without tracepoints.
    pub fn open() -> io::Result<Self> {
        let at = |path: &str| {
            let folder = File::options().read(true).custom_flags(libc::O_DIRECTORY).open(path).ok()?;
            Some(Self { folder: folder.into() }).filter(|found| found.text("events/header_page").is_ok())
        };
        if let Some(found) = at(MOUNTED) {
            return Ok(found);
        }
        match filesystem::detached(c"tracefs") {
            Ok(folder) => Ok(Self { folder }),
            Err(error) => at(MOUNTED_BEFORE).ok_or(error),
        }
    }

    /// A file of it.
    fn text(&self, path: &str) -> io::Result<String> {
        let name = CString::new(path).map_err(|_| io::ErrorKind::InvalidInput)?;
        let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the folder is open and the name ends with zero.
        let opened = unsafe { libc::openat(self.folder.as_raw_fd(), name.as_ptr(), flags) };
        let file = File::from(descriptor(opened.into())?);
        let mut text = String::new();
        file.take(TEXT_BYTES_MAX).read_to_string(&mut text)?;
        Ok(text)
    }

    /// Names of the values of a field, as this kernel prints them.
    ///
    /// # Errors
    /// This kernel does not have it, or prints the field as a number.
    pub fn symbols(&self, name: &str, field: &str) -> io::Result<BTreeMap<u32, String>> {
        let found = symbols(&self.text(&format!("events/{name}/format"))?, field);
        if found.is_empty() { Err(io::ErrorKind::Unsupported.into()) } else { Ok(found) }
    }

    /// A tracepoint by its name: `block/block_rq_issue`.
    ///
    /// # Errors
    /// This kernel does not have it, or its format file cannot be parsed.
    pub fn find(&self, name: &str) -> io::Result<Tracepoint> {
        let number = self.text(&format!("events/{name}/id"))?.trim().parse().map_err(io::Error::other)?;
        Ok(Tracepoint { number, fields: fields(&self.text(&format!("events/{name}/format"))?) })
    }
}

/// Names of the values of a field in the format for people: `__print_symbolic(REC->reason, { 2, "NO_SOCKET"
/// }, …)`; a value may be written in hexadecimal.
fn symbols(format: &str, field: &str) -> BTreeMap<u32, String> {
    let start = format!("__print_symbolic(REC->{field},");
    let Some((_, list)) = format.split_once(&start) else { return BTreeMap::new() };
    let list = list.split(')').next().unwrap_or_default();
    let pair = |pair: &str| {
        let (value, name) = pair.split('}').next()?.split_once(',')?;
        let value = value.trim();
        let hexadecimal = value.strip_prefix("0x").map(|digits| u32::from_str_radix(digits, 16));
        let value = hexadecimal.unwrap_or_else(|| value.parse()).ok()?;
        Some((value, name.trim().trim_matches('"').to_owned()))
    };
    list.split('{').skip(1).filter_map(pair).collect()
}

/// Fields of a format: `field:sector_t sector; offset:16; size:8; signed:0;`, with tabs between.
fn fields(format: &str) -> Vec<Field> {
    let lines = format.lines().filter_map(|line| line.trim().strip_prefix("field:"));
    let field = |line: &str| {
        let mut parts = line.split(';').map(str::trim);
        let declared = parts.next()?.split('[').next()?;
        let name = declared.rsplit([' ', '*']).next()?.to_owned();
        let offset = parts.next()?.strip_prefix("offset:")?.parse().ok()?;
        Some(Field { name, offset, bytes: parts.next()?.strip_prefix("size:")?.parse().ok()? })
    };
    lines.filter_map(field).collect()
}

/// The beginning of `struct perf_event_attr`, as far as every kernel has it (`PERF_ATTR_SIZE_VER0`).
#[repr(C)]
#[derive(Default)]
struct PerfEvent {
    kind: u32,
    bytes: u32,
    number: u64,
    rest: [u64; 6],
}

/// A program at a tracepoint, until this is dropped.
#[derive(Debug)]
pub struct Attached {
    _event: OwnedFd,
}

impl From<OwnedFd> for Attached {
    fn from(event: OwnedFd) -> Self {
        Self { _event: event }
    }
}

impl Tracepoint {
    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// Where the field of this name and length begins, for a program.
    pub(crate) fn offset(&self, name: &str, bytes: u16) -> Option<i16> {
        let field = self.field(name).filter(|field| field.bytes == bytes)?;
        i16::try_from(field.offset).ok()
    }

    /// Has a program called whenever the kernel passes here, on whatever CPU: it hangs at the tracepoint, the
    /// event only holds it.
    ///
    /// # Errors
    /// No right.
    pub fn attach(&self, program: &BpfProgram) -> io::Result<Attached> {
        let event = PerfEvent {
            kind: TRACEPOINT,
            bytes: size_of::<PerfEvent>() as u32,
            number: self.number,
            ..PerfEvent::default()
        };
        // SAFETY: no arguments. A kernel that cannot say it has a first CPU.
        let cpu = unsafe { libc::sched_getcpu() }.max(0);
        let everybody: libc::pid_t = -1;
        let no_group: libc::c_int = -1;
        // SAFETY: a plain struct that lives as long as the call and says how long it is; the rest are
        // numbers.
        let event = descriptor(unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const event,
                everybody,
                cpu,
                no_group,
                PERF_CLOSE_ON_EXEC,
            )
        })?;
        for (command, value) in [(SET_PROGRAM, program.as_fd().as_raw_fd() as libc::c_ulong), (ENABLE, 0)] {
            // SAFETY: the descriptor is open; the arguments are numbers.
            if unsafe { libc::ioctl(event.as_raw_fd(), command as _, value) } != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Attached { _event: event })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_tells_where_its_fields_are() {
        let format = "name: block_rq_issue\nID: 2104\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
            \tfield:void *rq;\toffset:48;\tsize:8;\tsigned:0;\n\tfield:torn;\toffset:x;\n\tfield:\n\nprint fmt: \"%d\", REC->dev\n";
        let point = Tracepoint { number: 2104, fields: fields(format) };
        let place = |name: &str| point.field(name).map(|f| (f.offset, f.bytes));
        assert_eq!((place("dev"), place("rwbs"), place("rq")), (Some((8, 4)), Some((34, 10)), Some((48, 8))));
        assert_eq!((place("torn"), point.fields.len()), (None, 4));
    }

    #[test]
    fn values_of_a_field_have_the_names_of_their_kernel() {
        let format = "print fmt: \"%p reason: %s\", REC->skbaddr, __print_symbolic(REC->reason, \
            { 2, \"NOT_SPECIFIED\" }, { 0x3, \"NO_SOCKET\" }, { x, \"TORN\" }, {), REC->other";
        let found: Vec<_> = symbols(format, "reason").into_iter().collect();
        assert_eq!(found, [(2, "NOT_SPECIFIED".to_owned()), (3, "NO_SOCKET".to_owned())]);
        assert!(symbols(format, "protocol").is_empty());
    }

    #[test]
    fn tracefs_is_seen_and_nothing_stays_mounted() {
        let mounts = || std::fs::read_to_string("/proc/self/mounts").unwrap();
        let before = mounts();
        match Tracefs::open() {
            Ok(tracefs) => {
                assert!(tracefs.find("no/such_tracepoint").is_err());
                assert!(tracefs.find("sched/sched_switch").unwrap().field("next_pid").is_some());
                assert_eq!(mounts(), before);
            }
            Err(error) => println!("SKIPPED tracefs_is_seen_and_nothing_stays_mounted: {error}"),
        }
    }
}
