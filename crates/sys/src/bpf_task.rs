//! The beginning of records of eBPF programs that name a process: its number, its network namespace, its
//! name.
//!
//! In: a program that is being written, and later its records. Out: instructions, and the process of a
//! record. Decides nothing.

use std::io;

use crate::bpf::BpfUnavailable;
use crate::bpf_code::{AccessSize, By, Call, Code, Register, Sum};
use crate::btf::Btf;

/// Where a record has what; it begins with the number of the process.
const NAMESPACE: i16 = 4;
const NAME: i16 = 8;
/// `TASK_COMM_LEN`.
const NAME_BYTES: i16 = 16;
/// What is of the process: the rest of a record begins here.
pub(crate) const BYTES: i16 = NAME + NAME_BYTES;

/// The types of the running kernel.
pub(crate) fn types() -> Result<Btf, BpfUnavailable> {
    Btf::of_kernel()
        .map_err(BpfUnavailable::at("the types of the kernel (/sys/kernel/btf/vmlinux) cannot be read"))
}

/// Where members of the kernel's structs are that lead from a thread to its network namespace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamespacePath {
    proxy: i32,
    net: i32,
    number: i32,
}

impl NamespacePath {
    pub(crate) fn of(types: &Btf) -> Result<Self, BpfUnavailable> {
        let path = || {
            Some(Self {
                proxy: types.offset("task_struct", "nsproxy")?,
                net: types.offset("nsproxy", "net_ns")?,
                number: types.offset("net", "ns")? + types.offset("ns_common", "inum")?,
            })
        };
        path()
            .ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))
            .map_err(BpfUnavailable::at("the kernel's structs of namespaces are not as they are known"))
    }
}

/// Puts the process into the record at `R9`.
pub(crate) fn record(code: &mut Code, namespace: NamespacePath) {
    code.call(Call::Process);
    code.sum(Sum::Right, Register::R0, By::Value(32));
    code.store(AccessSize::Word, Register::R9, 0, Register::R0);
    namespace_number(code, namespace);
    code.copy(Register::R1, Register::R9);
    code.sum(Sum::Add, Register::R1, By::Value(NAME.into()));
    code.set(Register::R2, NAME_BYTES.into());
    code.call(Call::ThreadName);
}

/// Puts the number of the network namespace of the thread into the record at `R9`. A pointer that leads
/// nowhere gives zero.
fn namespace_number(code: &mut Code, namespace: NamespacePath) {
    code.call(Call::Task);
    code.copy(Register::R3, Register::R0);
    for offset in [namespace.proxy, namespace.net] {
        code.sum(Sum::Add, Register::R3, By::Value(offset));
        code.read_kernel(-8, 8);
        code.load(AccessSize::Double, Register::R3, Register::Stack, -8);
    }
    code.sum(Sum::Add, Register::R3, By::Value(namespace.number));
    code.copy(Register::R1, Register::R9);
    code.sum(Sum::Add, Register::R1, By::Value(NAMESPACE.into()));
    code.set(Register::R2, 4);
    code.call(Call::ReadKernel);
}

/// The process of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordedTask {
    /// By its number in the first namespace of processes.
    pub(crate) pid: i32,
    /// Its name, or that of the thread.
    pub(crate) name: String,
    /// Its network namespace: the inode of `/proc/PID/ns/net`.
    pub(crate) netns: u32,
}

impl RecordedTask {
    pub(crate) fn of(record: &[u8]) -> Self {
        Self {
            pid: number(record, 0).cast_signed(),
            name: text(record, NAME, NAME_BYTES),
            netns: number(record, NAMESPACE),
        }
    }
}

/// A number of 32 bits; zero behind the end.
pub(crate) fn number(record: &[u8], at: i16) -> u32 {
    let bytes = record.get(at as usize..).and_then(|rest| rest.first_chunk());
    bytes.map_or(0, |bytes| u32::from_ne_bytes(*bytes))
}

/// A text that ends with zero, or with its field.
pub(crate) fn text(record: &[u8], at: i16, bytes: i16) -> String {
    let field = record.get(at as usize..(at + bytes) as usize).unwrap_or_default();
    String::from_utf8_lossy(field.split(|byte| *byte == 0).next().unwrap_or_default()).into_owned()
}
