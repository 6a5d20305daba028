//! Latency of requests to block devices: an eBPF program at two kernel tracepoints counts requests by device,
//! direction and latency.
//!
//! In: device numbers. Out: for each direction the number of requests per latency. The kernel calls the
//! program when a request is issued to the driver (`block_rq_issue`) and when it completes
//! (`block_rq_complete`); time in the I/O scheduler is not included. Devices that pass requests on and have
//! no queue of their own (md, LVM, DRBD, zram) do not reach these tracepoints. Two concurrent requests of one
//! direction at the same sector count once. Everything ends with [`BlockTimes`]: nothing is pinned, mounted
//! or written anywhere.

use std::io;
use std::os::fd::AsFd as _;

use crate::block::Number;
use crate::bpf::{BpfMap, BpfProgram, BpfUnavailable, MapKind, ProgramKind};
use crate::bpf_code::{AccessSize, By, Call, Code, Label, Register, Sum, When};
use crate::tracepoint::{Attached, Tracefs, Tracepoint};

/// What a request does, in the order in which it is counted.
pub const DIRECTIONS: [&str; 4] = ["read", "write", "discard", "flush"];
/// Their numbers in the program.
const READ: i32 = 0;
const WRITE: i32 = 1;
const DISCARD: i32 = 2;
const FLUSH: i32 = 3;

/// Times in a direction: each power of two in four equal parts, in units of 256 ns, up to 2^33 of them (37
/// minutes) and what is longer.
pub const BUCKETS: usize = 128;
const UNIT_BITS: i32 = 8;
const LONGEST_BITS: i32 = 33;
/// Requests in flight, 2.5 MB. When there are more, the oldest ones are not counted.
const UNDER_WAY_MAX: u32 = 32_768;
/// Devices that are counted, 4 KiB each when they come.
const DEVICES_MAX: u32 = 4096;
const VALUE_BYTES: usize = DIRECTIONS.len() * BUCKETS * 8;

/// Smallest and largest time of a bucket, nanoseconds; the last one has all that is longer.
pub fn range_ns(bucket: usize) -> (u64, u64) {
    let low = |bucket: usize| {
        let (octave, part) = ((bucket / 4) as u32, (bucket % 4) as u64);
        let units = if octave == 0 { part } else { (4 + part) << (octave - 1) };
        units << UNIT_BITS
    };
    let last = bucket + 1 >= BUCKETS;
    (low(bucket.min(BUCKETS - 1)), if last { u64::MAX } else { low(bucket + 1) - 1 })
}

/// Where the tracepoints of this kernel have what we need, bytes from the beginning.
#[derive(Debug, Clone, Copy)]
struct Places {
    device: i16,
    sector: i16,
    sectors: i16,
    kind: i16,
}

impl Places {
    fn of(point: &Tracepoint) -> io::Result<Self> {
        let place = |name: &str, fits: fn(u16) -> bool| {
            let field =
                point.field(name).filter(|f| fits(f.bytes)).and_then(|f| i16::try_from(f.offset).ok());
            field.ok_or_else(|| {
                let why = format!("its field `{name}` is not as it is known");
                io::Error::new(io::ErrorKind::Unsupported, why)
            })
        };
        Ok(Self {
            device: place("dev", |bytes| bytes == 4)?,
            sector: place("sector", |bytes| bytes == 8)?,
            sectors: place("nr_sector", |bytes| bytes == 4)?,
            kind: place("rwbs", |bytes| bytes >= 2)?,
        })
    }
}

/// Where the key of a request is on the stack: device, direction, first sector. The device alone is the key
/// of its counts.
const KEY: i16 = -16;
const KEY_DIRECTION: i16 = -12;
const KEY_SECTOR: i16 = -8;
const KEY_BYTES: u32 = 16;
/// Where its start is.
const START: i16 = -24;

/// Puts the key on the stack and the direction into `R8`; requests that are neither of the four go on at
/// `none`, and so does the end of an empty write, which stands for a flush that ended before it.
///
/// `rwbs` begins with `R`, `W` or `D`; with `F` where a flush comes first: `FF` is one by itself, `FW` a
/// write behind one (`blk_fill_rwbs` in kernel/trace/blktrace.c).
fn key(code: &mut Code, places: Places, none: Label) {
    let (known, keyed) = (code.label(), code.label());
    code.copy(Register::R6, Register::R1);
    code.load(AccessSize::Word, Register::R7, Register::R6, places.device);
    code.store(AccessSize::Word, Register::Stack, KEY, Register::R7);
    code.load(AccessSize::Double, Register::R7, Register::R6, places.sector);
    code.store(AccessSize::Double, Register::Stack, KEY_SECTOR, Register::R7);
    code.load(AccessSize::Byte, Register::R7, Register::R6, places.kind);
    for (letter, direction) in [(b'R', READ), (b'W', WRITE), (b'D', DISCARD)] {
        code.set(Register::R8, direction);
        code.jump_when(Register::R7, When::Equal, letter.into(), known);
    }
    code.jump_when(Register::R7, When::Different, b'F'.into(), none);
    code.load(AccessSize::Byte, Register::R7, Register::R6, places.kind + 1);
    code.set(Register::R8, WRITE);
    code.jump_when(Register::R7, When::Equal, b'W'.into(), known);
    // A flush has no sector, and reports another one at its end than at its beginning.
    code.set(Register::R7, 0);
    code.store(AccessSize::Double, Register::Stack, KEY_SECTOR, Register::R7);
    code.set(Register::R8, FLUSH);
    code.jump(keyed);
    code.here(known);
    code.load(AccessSize::Word, Register::R7, Register::R6, places.sectors);
    code.jump_when(Register::R7, When::Equal, 0, none);
    code.here(keyed);
    code.store(AccessSize::Word, Register::Stack, KEY_DIRECTION, Register::R8);
}

/// Nothing more to do.
fn end(code: &mut Code, here: Label) {
    code.here(here);
    code.set(Register::R0, 0);
    code.exit();
}

/// Writes down when a request was handed over.
fn at_issue(places: Places, starts: &BpfMap) -> Code {
    let mut code = Code::default();
    let none = code.label();
    key(&mut code, places, none);
    code.call(Call::Now);
    code.store(AccessSize::Double, Register::Stack, START, Register::R0);
    code.map(Register::R1, starts.as_fd());
    code.on_stack(Register::R2, KEY);
    code.on_stack(Register::R3, START);
    code.set(Register::R4, 0);
    code.call(Call::Insert);
    end(&mut code, none);
    code
}

/// `R0` becomes the bucket of the nanoseconds in `R1`; changes `R1` to `R3`. The verifier of older kernels
/// knows no loops.
fn bucket(code: &mut Code) {
    let (small, fits, done) = (code.label(), code.label(), code.label());
    code.sum(Sum::Right, Register::R1, By::Value(UNIT_BITS));
    code.copy(Register::R2, Register::R1);
    code.sum(Sum::Right, Register::R2, By::Value(LONGEST_BITS));
    code.jump_when(Register::R2, When::Equal, 0, fits);
    code.set(Register::R1, -1);
    code.sum(Sum::Right, Register::R1, By::Value(64 - LONGEST_BITS));
    code.here(fits);
    let large = code.label();
    code.jump_when(Register::R1, When::Above, 3, large);
    code.jump(small);
    code.here(large);
    // The highest bit, by halves.
    code.set(Register::R0, 0);
    code.copy(Register::R2, Register::R1);
    for bits in [32, 16, 8, 4, 2, 1] {
        let lower = code.label();
        code.copy(Register::R3, Register::R2);
        code.sum(Sum::Right, Register::R3, By::Value(bits));
        code.jump_when(Register::R3, When::Equal, 0, lower);
        code.copy(Register::R2, Register::R3);
        code.sum(Sum::Add, Register::R0, By::Value(bits));
        code.here(lower);
    }
    // The two bits below it.
    code.copy(Register::R3, Register::R0);
    code.sum(Sum::Subtract, Register::R3, By::Value(2));
    code.sum(Sum::Right, Register::R1, By::Register(Register::R3));
    code.sum(Sum::And, Register::R1, By::Value(3));
    code.sum(Sum::Subtract, Register::R0, By::Value(1));
    code.sum(Sum::Left, Register::R0, By::Value(2));
    code.sum(Sum::Add, Register::R0, By::Register(Register::R1));
    code.jump(done);
    code.here(small);
    code.copy(Register::R0, Register::R1);
    code.here(done);
    // The verifier wants to see that it stays within the value.
    code.sum(Sum::And, Register::R0, By::Value(BUCKETS as i32 - 1));
}

/// Counts a request that ended.
fn at_end(places: Places, starts: &BpfMap, counts: &BpfMap) -> Code {
    let mut code = Code::default();
    let none = code.label();
    key(&mut code, places, none);
    code.map(Register::R1, starts.as_fd());
    code.on_stack(Register::R2, KEY);
    code.call(Call::Find);
    code.jump_when(Register::R0, When::Equal, 0, none);
    code.load(AccessSize::Double, Register::R7, Register::R0, 0);
    code.call(Call::Now);
    code.sum(Sum::Subtract, Register::R0, By::Register(Register::R7));
    code.copy(Register::R7, Register::R0);
    code.map(Register::R1, starts.as_fd());
    code.on_stack(Register::R2, KEY);
    code.call(Call::Remove);
    code.map(Register::R1, counts.as_fd());
    code.on_stack(Register::R2, KEY);
    code.call(Call::Find);
    code.jump_when(Register::R0, When::Equal, 0, none);
    code.copy(Register::R9, Register::R0);
    code.copy(Register::R1, Register::R7);
    bucket(&mut code);
    code.sum(Sum::And, Register::R8, By::Value(DIRECTIONS.len() as i32 - 1));
    code.sum(Sum::Left, Register::R8, By::Value(BUCKETS.ilog2() as i32));
    code.sum(Sum::Add, Register::R8, By::Register(Register::R0));
    code.sum(Sum::Left, Register::R8, By::Value(3));
    code.sum(Sum::Add, Register::R9, By::Register(Register::R8));
    code.set(Register::R1, 1);
    code.add_in_memory(Register::R9, Register::R1);
    end(&mut code, none);
    code
}

fn load(code: Code) -> io::Result<BpfProgram> {
    BpfProgram::load(ProgramKind::Tracepoint, &code.finish().map_err(io::Error::other)?)
}

/// How many requests of a direction took how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts(Vec<u64>);

impl Counts {
    /// The times of a direction (one of [`DIRECTIONS`]) that had requests: smallest and largest time in
    /// nanoseconds, and how many.
    pub fn of(&self, direction: usize) -> impl Iterator<Item = (u64, u64, u64)> {
        let counts = self.0.chunks(BUCKETS).nth(direction).unwrap_or_default();
        counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(bucket, count)| {
            let (low, high) = range_ns(bucket);
            (low, high, *count)
        })
    }

    /// All requests of a direction.
    pub fn total(&self, direction: usize) -> u64 {
        self.of(direction).map(|(_, _, count)| count).sum()
    }
}

/// Requests are being counted.
#[derive(Debug)]
pub struct BlockTimes {
    counts: BpfMap,
    _attached: [Attached; 2],
}

/// As the tracepoints report it: `MKDEV` of linux/kdev_t.h.
fn key_of(device: Number) -> [u8; 4] {
    (device.major << 20 | device.minor & 0xf_ffff).to_ne_bytes()
}

type Point = (Places, Tracepoint);

/// Where requests are handed over, and where they end.
fn points(tracefs: &Tracefs) -> io::Result<(Point, Point)> {
    let find = |name: &str| -> io::Result<Point> {
        let point = tracefs.find(name)?;
        Ok((Places::of(&point)?, point))
    };
    Ok((find("block/block_rq_issue")?, find("block/block_rq_complete")?))
}

/// Start times of requests in flight, and counts by device.
fn maps() -> io::Result<(BpfMap, BpfMap)> {
    let starts = BpfMap::new(MapKind::Recent, KEY_BYTES, 8, UNDER_WAY_MAX)?;
    Ok((starts, BpfMap::new(MapKind::Table, 4, VALUE_BYTES as u32, DEVICES_MAX)?))
}

impl BlockTimes {
    /// Begins to count, for no device yet.
    ///
    /// # Errors
    /// No right, or a kernel that has not what it takes; in words for a person.
    pub fn begin() -> Result<Self, BpfUnavailable> {
        let tracefs = Tracefs::open()
            .map_err(BpfUnavailable::at("the tracepoints of the kernel (tracefs) cannot be seen"))?;
        let ((issue_places, issue), (end_places, end)) = points(&tracefs)
            .map_err(BpfUnavailable::at("the tracepoints of block requests cannot be read"))?;
        let (starts, counts) =
            maps().map_err(BpfUnavailable::at("the kernel gives no room for counts (bpf)"))?;
        let programs = load(at_end(end_places, &starts, &counts))
            .and_then(|ends| Ok((ends, load(at_issue(issue_places, &starts))?)));
        let (ends, issues) =
            programs.map_err(BpfUnavailable::at("the kernel does not take the program (bpf)"))?;
        // Ends first: what was handed over before is not counted, and no start is left behind.
        let attached = end.attach(&ends).and_then(|ends| Ok([ends, issue.attach(&issues)?]));
        let attached =
            attached.map_err(BpfUnavailable::at("no program may be at a tracepoint (perf_event_open)"))?;
        Ok(Self { counts, _attached: attached })
    }

    /// Counts this device from now on; one that is counted already goes on.
    ///
    /// # Errors
    /// The map of devices is full.
    pub fn watch(&self, device: Number) -> io::Result<()> {
        self.counts.begin(&key_of(device), &[0; VALUE_BYTES])
    }

    /// What was counted of a device since it is watched; `None` when it is not.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn read(&self, device: Number) -> io::Result<Option<Counts>> {
        let mut value = [0; VALUE_BYTES];
        let found = self.counts.read(&key_of(device), &mut value)?;
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_ne_bytes);
        Ok(found.then(|| Counts(value.chunks(8).map(number).collect())))
    }
}

#[cfg(test)]
#[path = "block_times_tests.rs"]
mod tests;
