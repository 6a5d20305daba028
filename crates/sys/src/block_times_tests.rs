//! Block latencies: the arithmetic, run by the kernel itself, and a loop device with a known number of
//! requests.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::process::Command;

use super::*;
use crate::bpf::tests::{allowed, answer};
use crate::pages::Buffer;

const SIZE: u64 = 4 << 20;
const BLOCK: usize = 4096;

/// Which bucket it is, as anybody would write it down.
fn expected(ns: u64) -> usize {
    (0..BUCKETS).find(|bucket| (range_ns(*bucket).0..=range_ns(*bucket).1).contains(&ns)).unwrap()
}

#[test]
fn buckets_leave_no_gap_and_are_a_quarter_wide_at_most() {
    assert!((0..BUCKETS - 1).all(|b| range_ns(b).1 + 1 == range_ns(b + 1).0));
    assert_eq!((range_ns(0).0, range_ns(BUCKETS - 1).1, range_ns(BUCKETS + 7).1), (0, u64::MAX, u64::MAX));
    // From 1 µs on.
    for (low, high) in (4..BUCKETS - 1).map(range_ns) {
        assert!(high - low < low / 4, "{low} {high}");
    }
}

#[test]
fn the_kernel_finds_the_bucket_of_every_time() {
    if !allowed("the_kernel_finds_the_bucket_of_every_time") {
        return;
    }
    let mut times: Vec<u64> = (0..BUCKETS).flat_map(|b| [range_ns(b).0, range_ns(b).1]).collect();
    times.extend([1, 1000, 123_456_789, 60_000_000_000, 1 << 41, 1 << 63]);
    for ns in times {
        let map = BpfMap::new(MapKind::Table, 4, 8, 1).unwrap();
        map.begin(&[0; 4], &ns.to_ne_bytes()).unwrap();
        let mut code = Code::default();
        let none = code.label();
        code.set(Register::R1, 0);
        code.store(AccessSize::Word, Register::Stack, KEY, Register::R1);
        code.map(Register::R1, map.as_fd());
        code.on_stack(Register::R2, KEY);
        code.call(Call::Find);
        code.jump_when(Register::R0, When::Equal, 0, none);
        code.load(AccessSize::Double, Register::R1, Register::R0, 0);
        bucket(&mut code);
        code.exit();
        code.here(none);
        code.set(Register::R0, -1);
        code.exit();
        let program = BpfProgram::load(ProgramKind::Packet, &code.finish().unwrap()).unwrap();
        assert_eq!(answer(&program).unwrap() as usize, expected(ns), "{ns} ns");
    }
}

#[test]
fn a_tracepoint_that_tells_other_things_is_refused() {
    let field = |name: &str, offset, bytes| crate::tracepoint::Field { name: name.into(), offset, bytes };
    let point = |fields| Tracepoint { number: 1, fields };
    let right =
        vec![field("dev", 8, 4), field("sector", 16, 8), field("nr_sector", 24, 4), field("rwbs", 34, 10)];
    assert!(Places::of(&point(right.clone())).is_ok());
    for wrong in 0..4 {
        let mut fields = right.clone();
        fields[wrong].bytes = 1;
        let why = Places::of(&point(fields)).unwrap_err().to_string();
        assert!(why.contains(&right[wrong].name), "{why}");
    }
    let why = BpfUnavailable::at("it cannot be")(io::Error::from_raw_os_error(libc::EPERM)).to_string();
    assert!(why.starts_with("it cannot be: operation not permitted ("), "{why}");
}

/// A loop device on a file of ours; gone at the end, also after a failure.
struct Loop {
    path: String,
    _folder: tempfile::TempDir,
}

impl Loop {
    fn new(test: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("drive");
        // Content, so that a read is one of the file.
        std::fs::write(&file, vec![7; SIZE as usize]).unwrap();
        let reason = match Command::new("losetup").args(["--find", "--show"]).arg(&file).output() {
            Ok(output) if output.status.success() => {
                let path = String::from_utf8(output.stdout).unwrap().trim().to_owned();
                return Some(Self { path, _folder: folder });
            }
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        println!("SKIPPED {test}: losetup: {reason}");
        None
    }

    fn number(&self) -> Number {
        let device = std::fs::metadata(&self.path).unwrap().rdev();
        Number { major: libc::major(device), minor: libc::minor(device) }
    }

    fn open(&self) -> File {
        let how = crate::block::How { write: true, direct: true, ..crate::block::How::default() };
        crate::block::open(Path::new(&self.path), how).unwrap()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.path]).output();
    }
}

/// `BLKDISCARD` of linux/fs.h.
fn discard(device: &File, from: u64, bytes: u64) {
    let range = [from, bytes];
    // SAFETY: the call reads two numbers.
    let result = unsafe { libc::ioctl(device.as_raw_fd(), 0x1277, range.as_ptr()) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
}

#[test]
fn as_many_requests_are_counted_as_there_were() {
    const NAME: &str = "as_many_requests_are_counted_as_there_were";
    let times = match BlockTimes::begin() {
        Ok(times) => times,
        Err(refused) => return println!("SKIPPED {NAME}: {refused}"),
    };
    let Some(device) = Loop::new(NAME) else { return };
    let number = device.number();
    assert_eq!(times.read(number).unwrap(), None, "it is not watched yet");
    let file = device.open();
    let mut block = Buffer::new(BLOCK).unwrap();
    file.read_at(&mut block, 0).unwrap();
    times.watch(number).unwrap();
    // Others may read a device that has just come (udev), but nobody writes it.
    let all = |counts: &Counts| [1, 2, 3].map(|direction| counts.total(direction));
    assert_eq!(all(&times.read(number).unwrap().unwrap()), [0; 3]);
    let place = |n: u64| n * BLOCK as u64;
    for n in 0..200 {
        assert_eq!(file.read_at(&mut block, place(n)).unwrap(), BLOCK);
    }
    for n in 0..150 {
        assert_eq!(file.write_at(&block, place(n)).unwrap(), BLOCK);
    }
    for _ in 0..9 {
        file.sync_all().unwrap();
    }
    for n in 200..205 {
        discard(&file, place(n), BLOCK as u64);
    }
    // Watching it again begins nothing anew.
    times.watch(number).unwrap();
    let counts = times.read(number).unwrap().unwrap();
    assert_eq!(all(&counts), [150, 5, 9], "{counts:?}");
    assert!(counts.total(0) >= 200, "{counts:?}");
    let longest = counts.of(0).map(|(low, _, _)| low).max().unwrap();
    assert!(longest > 0 && longest < 3_600_000_000_000, "{longest} ns");
    drop(times);
    let again = BlockTimes::begin().unwrap();
    again.watch(number).unwrap();
    assert_eq!(all(&again.read(number).unwrap().unwrap()), [0; 3], "nothing is left of the one before");
}
