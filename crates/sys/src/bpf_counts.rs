//! Counts of events by a key, kept by an eBPF program in the kernel: bounded, without locks. And how such a
//! program comes to its tracepoint.
//!
//! In: where the program has its key on the stack. Out: how often each key was counted, and a sum beside it.
//! Keys are bounded; what does not fit is counted together under [`is_others`].

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io;
use std::os::fd::AsFd as _;

use crate::bpf::{BpfMap, BpfProgram, BpfUnavailable, MapKind, ProgramKind};
use crate::bpf_code::{AccessSize, By, Call, Code, Label, Register, Sum, When};
use crate::btf::Btf;
use crate::tracepoint::{Attached, Tracefs, Tracepoint};

/// Combinations that have a count of their own: some hundred are usual. For keys of 16 bytes that is 64 KiB,
/// and 16 bytes each for each CPU.
const KEYS_MAX: u32 = 4096;
const VALUE_BYTES: usize = 16;

/// How many of a number each CPU counts in full between two readings.
const EXACT: i32 = 4096;
/// Behind these one in two to this power is counted, for all of them.
const SAMPLED: i32 = 6;
/// Numbers that are kept apart by that; others share.
const NUMBERS: u32 = 256;

/// How often something was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) events: u64,
    /// What was added with each event.
    pub(crate) sum: u64,
}

/// The counts of one program.
#[derive(Debug)]
pub(crate) struct BpfCounts {
    map: BpfMap,
    key_bytes: usize,
    /// How many of each number there were since the last reading, where not all are counted.
    recent: Option<BpfMap>,
}

/// Whether a key is that of all that did not fit.
pub(crate) fn is_others(key: &[u8]) -> bool {
    key.iter().all(|byte| *byte == 0xff)
}

/// A number of a key or value.
pub(crate) fn number(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

/// A short number of a key.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

impl BpfCounts {
    /// Of keys of so many bytes, a multiple of eight; sampled where there are very many.
    fn new(key_bytes: usize, is_sampled: bool) -> io::Result<Self> {
        let map = BpfMap::new(MapKind::PerCpu, key_bytes as u32, VALUE_BYTES as u32, KEYS_MAX)?;
        map.begin_per_cpu(&vec![0xff; key_bytes])?;
        let recent = is_sampled.then(|| BpfMap::new(MapKind::PerCpuArray, 4, 8, NUMBERS)).transpose()?;
        Ok(Self { map, key_bytes, recent })
    }

    /// Goes on at `skip` where an event with the number in `R8` is left out, else has the exponent of its
    /// weight in `R9`. Uses eight bytes of the stack at `slot`; `R8` is not kept.
    pub(crate) fn sample(&self, code: &mut Code, slot: i16, skip: Label) {
        let (many, end) = (code.label(), code.label());
        code.set(Register::R9, 0);
        let Some(recent) = &self.recent else { return };
        code.sum(Sum::And, Register::R8, By::Value(NUMBERS as i32 - 1));
        code.store(AccessSize::Word, Register::Stack, slot, Register::R8);
        code.map(Register::R1, recent.as_fd());
        code.on_stack(Register::R2, slot);
        code.call(Call::Find);
        code.jump_when(Register::R0, When::Equal, 0, end);
        // An interrupt in between may be lost here: that changes which event is sampled.
        code.load(AccessSize::Double, Register::R8, Register::R0, 0);
        code.sum(Sum::Add, Register::R8, By::Value(1));
        code.store(AccessSize::Double, Register::R0, 0, Register::R8);
        code.jump_when(Register::R8, When::Above, EXACT, many);
        code.jump(end);
        code.here(many);
        code.sum(Sum::And, Register::R8, By::Value((1 << SAMPLED) - 1));
        code.jump_when(Register::R8, When::Different, 0, skip);
        code.set(Register::R9, SAMPLED);
        code.here(end);
    }

    /// Events with these numbers were read: the next ones are counted in full again.
    ///
    /// # Errors
    /// The kernel's answer.
    pub(crate) fn begin_again(&self, numbers: impl IntoIterator<Item = u32>) -> io::Result<()> {
        let Some(recent) = &self.recent else { return Ok(()) };
        let slots: BTreeSet<u32> = numbers.into_iter().map(|number| number % NUMBERS).collect();
        slots.into_iter().try_for_each(|slot| recent.begin_per_cpu(&slot.to_ne_bytes()))
    }

    /// `R0` becomes the count of the key at this offset of the stack, or nothing.
    fn find(&self, code: &mut Code, key: i16) {
        code.map(Register::R1, self.map.as_fd());
        code.on_stack(Register::R2, key);
        code.call(Call::Find);
    }

    /// Counts the key at this offset of the stack, and adds what is in eight bytes at `sum`; with a `weight`
    /// two to the power of that register times. Uses sixteen bytes of the stack at `zeros`, and `R8`; the
    /// key is not kept.
    pub(crate) fn count(
        &self,
        code: &mut Code,
        key: i16,
        zeros: i16,
        sum: Option<i16>,
        weight: Option<Register>,
    ) {
        let (known, end) = (code.label(), code.label());
        self.find(code, key);
        code.jump_when(Register::R0, When::Different, 0, known);
        code.set(Register::R8, 0);
        code.store(AccessSize::Double, Register::Stack, zeros, Register::R8);
        code.store(AccessSize::Double, Register::Stack, zeros + 8, Register::R8);
        code.map(Register::R1, self.map.as_fd());
        code.on_stack(Register::R2, key);
        code.on_stack(Register::R3, zeros);
        // Only where there is none yet: another CPU may be faster.
        code.set(Register::R4, 1);
        code.call(Call::Insert);
        self.find(code, key);
        code.jump_when(Register::R0, When::Different, 0, known);
        code.set(Register::R8, -1);
        for at in (0..self.key_bytes as i16).step_by(8) {
            code.store(AccessSize::Double, Register::Stack, key + at, Register::R8);
        }
        self.find(code, key);
        code.jump_when(Register::R0, When::Equal, 0, end);
        code.here(known);
        // An interrupt may come in between on the same CPU.
        let weigh = |code: &mut Code| {
            if let Some(weight) = weight {
                code.sum(Sum::Left, Register::R1, By::Register(weight));
            }
        };
        code.set(Register::R1, 1);
        weigh(code);
        code.add_in_memory(Register::R0, Register::R1);
        if let Some(sum) = sum {
            code.load(AccessSize::Double, Register::R1, Register::Stack, sum);
            weigh(code);
            code.sum(Sum::Add, Register::R0, By::Value(8));
            code.add_in_memory(Register::R0, Register::R1);
        }
        code.here(end);
    }

    /// Each key that was counted, over all CPUs.
    ///
    /// # Errors
    /// The kernel's answer.
    pub(crate) fn each(&self, mut each: impl FnMut(&[u8], Counted)) -> io::Result<()> {
        self.map.each_per_cpu(|key, values| {
            let mut all = Counted::default();
            for value in values.chunks(VALUE_BYTES) {
                all.events = all.events.wrapping_add(number(value, 0));
                all.sum = all.sum.wrapping_add(number(value, 8));
            }
            if all.events > 0 {
                each(key, all);
            }
        })
    }
}

/// A tracepoint whose events a program of ours counts. `L` is where its record and the kernel's structs have
/// what the program reads.
pub(crate) struct CountedPoint<L> {
    pub(crate) tracepoint: &'static str,
    /// Its name without the folder where the program reads what the kernel hands to it, and not the record;
    /// then events are sampled where there are very many.
    pub(crate) raw: Option<&'static CStr>,
    /// Name of the program.
    pub(crate) program: &'static str,
    pub(crate) key_bytes: usize,
    /// The step that failed where the tracepoint cannot be read.
    pub(crate) unread: &'static str,
    /// The same where there is no layout.
    pub(crate) unknown: &'static str,
    pub(crate) layout: fn(&Tracepoint, &Btf) -> Option<L>,
    pub(crate) code: fn(L, &BpfCounts) -> Code,
}

/// It counts until it is dropped.
#[derive(Debug)]
pub(crate) struct CountingProgram {
    pub(crate) counts: BpfCounts,
    pub(crate) program: BpfProgram,
    _attached: Attached,
}

impl<L> CountedPoint<L> {
    /// Begins to count.
    ///
    /// # Errors
    /// No right, or a kernel that has not what it takes; in words for a person.
    pub(crate) fn begin(&self, tracefs: &Tracefs) -> Result<CountingProgram, BpfUnavailable> {
        let point = tracefs.find(self.tracepoint).map_err(BpfUnavailable::at(self.unread))?;
        let types = Btf::of_kernel().map_err(BpfUnavailable::at(
            "the types of the kernel (/sys/kernel/btf/vmlinux) cannot be read",
        ))?;
        let layout = (self.layout)(&point, &types)
            .ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
            .map_err(BpfUnavailable::at(self.unknown))?;
        let counts = BpfCounts::new(self.key_bytes, self.raw.is_some())
            .map_err(BpfUnavailable::at("the kernel gives no memory for counts (bpf)"))?;
        let kind = if self.raw.is_some() { ProgramKind::RawTracepoint } else { ProgramKind::Tracepoint };
        let program = (self.code)(layout, &counts)
            .finish()
            .map_err(io::Error::other)
            .and_then(|code| BpfProgram::load_named(kind, &code, self.program))
            .map_err(BpfUnavailable::at("the kernel does not take the program (bpf)"))?;
        let attached = match self.raw {
            Some(name) => program
                .attach_to_tracepoint(name)
                .map(Attached::from)
                .map_err(BpfUnavailable::at("no program may be at a tracepoint (bpf)"))?,
            None => point
                .attach(&program)
                .map_err(BpfUnavailable::at("no program may be at a tracepoint (perf_event_open)"))?,
        };
        Ok(CountingProgram { counts, program, _attached: attached })
    }
}

/// The tracepoints of the kernel.
pub(crate) fn tracefs() -> Result<Tracefs, BpfUnavailable> {
    Tracefs::open().map_err(BpfUnavailable::at("the tracepoints of the kernel (tracefs) cannot be seen"))
}
