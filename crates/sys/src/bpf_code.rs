//! eBPF assembler (`Documentation/bpf/standardization/instruction-set.rst`).
//!
//! In: operations and their registers. Out: instructions with resolved jump offsets. It covers only what our
//! programs use, runs nothing, and leaves verification to the kernel.

use std::os::fd::{AsRawFd, BorrowedFd};

/// An instruction as the kernel reads it: eight bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    code: u8,
    registers: u8,
    offset: i16,
    value: i32,
}

/// A register. Calls take their arguments from `R1` on, answer in `R0`, and leave only `R6` to `R9` as they
/// were; `Stack` is the end of 512 bytes below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Register {
    /// Answers of calls and of the program.
    R0 = 0,
    /// First argument; at the beginning what the program is about.
    R1,
    /// Second argument.
    R2,
    /// Third argument.
    R3,
    /// Fourth argument.
    R4,
    /// Fifth argument.
    R5,
    /// Kept by calls.
    R6,
    /// Kept by calls.
    R7,
    /// Kept by calls.
    R8,
    /// Kept by calls.
    R9,
    /// Read only.
    Stack,
}

/// How much is moved between memory and a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessSize {
    /// One byte.
    Byte = 0x10,
    /// Two bytes.
    Half = 0x08,
    /// Four bytes.
    Word = 0x00,
    /// Eight bytes.
    Double = 0x18,
}

/// Arithmetic of 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// `to + by`
    Add = 0x00,
    /// `to - by`
    Subtract = 0x10,
    /// `to & by`
    And = 0x50,
    /// `to << by`
    Left = 0x60,
    /// `to >> by`, filled with zeros
    Right = 0x70,
    /// `by`
    Set = 0xb0,
}

/// When a jump is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// The register is the value.
    Equal = 0x10,
    /// The register is larger, both without sign.
    Above = 0x20,
    /// The register is not the value.
    Different = 0x50,
}

/// What a program may call; numbers of `enum bpf_func_id` in linux/bpf.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    /// Map, key: the address of the value, or nothing.
    Find = 1,
    /// Map, key, value, flags.
    Insert = 2,
    /// Map, key.
    Remove = 3,
    /// Monotonic clock, nanoseconds.
    Now = 5,
    /// 32 bits by chance.
    Random = 7,
    /// Number of the process, in the upper half, and of its thread.
    Process = 14,
    /// Memory, its bytes: the name of the thread.
    ThreadName = 16,
    /// `struct task_struct` of the thread.
    Task = 35,
    /// Context, memory, its bytes, flags: return addresses of the kernel's stack, the innermost first.
    Stack = 67,
    /// Context, memory, its bytes, flags: the path of the sysctl below `/proc/sys`.
    SysctlName = 101,
    /// Context, memory, its bytes: the value of the sysctl.
    SysctlValue = 102,
    /// Context, memory, its bytes: what is written to the sysctl.
    SysctlWritten = 103,
    /// Memory, its bytes, an address of the kernel: a copy.
    ReadKernel = 113,
    /// Ring, bytes, flags: memory for a record, or nothing.
    Reserve = 131,
    /// Memory of [`Self::Reserve`], flags: hands the record over.
    Submit = 132,
}

/// The second operand of arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A number.
    Value(i32),
    /// A register.
    Register(Register),
}

/// Opcodes without a choice.
const LOAD_MAP: u8 = 0x18;
const LOAD: u8 = 0x61;
const STORE: u8 = 0x63;
const ADD_IN_MEMORY: u8 = 0xdb;
const ARITHMETIC: u8 = 0x07;
const JUMP: u8 = 0x05;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;
/// The second operand is a register.
const BY_REGISTER: u8 = 0x08;
/// The number is the descriptor of a map (`BPF_PSEUDO_MAP_FD`).
const MAP: u8 = 1;

/// A jump target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// What is wrong with a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Wrong {
    /// A jump to a label that stands nowhere.
    #[error("a jump of the program leads nowhere")]
    Nowhere,
    /// A jump backwards (older kernels refuse it), or over more than 32767 instructions.
    #[error("a jump of the program goes back or too far")]
    Distance,
}

/// A program that is being written.
#[derive(Debug, Default)]
pub struct Code {
    instructions: Vec<Instruction>,
    jumps: Vec<(usize, Label)>,
    places: Vec<Option<usize>>,
}

/// Both registers in a byte: the kernel's bit fields are in the order of the machine.
const fn pair(to: u8, from: u8) -> u8 {
    if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from }
}

impl Code {
    fn push(&mut self, code: u8, (to, from): (u8, u8), offset: i16, value: i32) {
        self.instructions.push(Instruction { code, registers: pair(to, from), offset, value });
    }

    /// `to` becomes the result of `to` and `by`.
    pub fn sum(&mut self, what: Sum, to: Register, by: By) {
        match by {
            By::Value(value) => self.push(ARITHMETIC | what as u8, (to as u8, 0), 0, value),
            By::Register(from) => {
                self.push(ARITHMETIC | BY_REGISTER | what as u8, (to as u8, from as u8), 0, 0);
            }
        }
    }

    /// `to` becomes a number.
    pub fn set(&mut self, to: Register, value: i32) {
        self.sum(Sum::Set, to, By::Value(value));
    }

    /// `to` becomes what `from` is.
    pub fn copy(&mut self, to: Register, from: Register) {
        self.sum(Sum::Set, to, By::Register(from));
    }

    /// `to` becomes what is in memory at `from` and `offset`; the upper bits zero.
    pub fn load(&mut self, size: AccessSize, to: Register, from: Register, offset: i16) {
        self.push(LOAD | size as u8, (to as u8, from as u8), offset, 0);
    }

    /// What is in memory at `to` and `offset` becomes the lower part of `from`.
    pub fn store(&mut self, size: AccessSize, to: Register, offset: i16, from: Register) {
        self.push(STORE | size as u8, (to as u8, from as u8), offset, 0);
    }

    /// Atomic 64-bit add of `from` to memory at `to`.
    pub fn add_in_memory(&mut self, to: Register, from: Register) {
        self.push(ADD_IN_MEMORY, (to as u8, from as u8), 0, 0);
    }

    /// `to` becomes a map.
    pub fn map(&mut self, to: Register, map: BorrowedFd<'_>) {
        self.push(LOAD_MAP, (to as u8, MAP), 0, map.as_raw_fd());
        self.push(0, (0, 0), 0, 0);
    }

    /// `to` becomes an address on the stack.
    pub fn on_stack(&mut self, to: Register, offset: i16) {
        self.copy(to, Register::Stack);
        self.sum(Sum::Add, to, By::Value(offset.into()));
    }

    /// Calls a function of the kernel.
    pub fn call(&mut self, what: Call) {
        self.push(CALL, (0, 0), 0, what as i32);
    }

    /// Copies so many bytes of the kernel's memory at `R3` onto the stack; zeros where the address leads
    /// nowhere.
    pub fn read_kernel(&mut self, to: i16, bytes: i32) {
        self.on_stack(Register::R1, to);
        self.set(Register::R2, bytes);
        self.call(Call::ReadKernel);
    }

    /// Ends; the answer of the program is in `R0`.
    pub fn exit(&mut self) {
        self.push(EXIT, (0, 0), 0, 0);
    }

    /// A label that is not bound yet.
    pub fn label(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() - 1)
    }

    /// The label stands here.
    pub fn here(&mut self, label: Label) {
        if let Some(place) = self.places.get_mut(label.0) {
            *place = Some(self.instructions.len());
        }
    }

    /// Goes on at the label.
    pub fn jump(&mut self, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP, (0, 0), 0, 0);
    }

    /// Goes on at the label when it is so.
    pub fn jump_when(&mut self, register: Register, when: When, value: i32, to: Label) {
        self.jumps.push((self.instructions.len(), to));
        self.push(JUMP | when as u8, (register as u8, 0), 0, value);
    }

    /// The whole program.
    ///
    /// # Errors
    /// A jump leads nowhere, back or too far.
    pub fn finish(mut self) -> Result<Vec<Instruction>, Wrong> {
        for (at, label) in self.jumps {
            let place = self.places.get(label.0).copied().flatten().ok_or(Wrong::Nowhere)?;
            // Counted from the instruction behind the jump.
            let distance = place.checked_sub(at + 1).and_then(|d| i16::try_from(d).ok());
            self.instructions[at].offset = distance.ok_or(Wrong::Distance)?;
        }
        Ok(self.instructions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as a disassembler reads them on a machine of this byte order.
    fn bytes(write: impl FnOnce(&mut Code)) -> Vec<(u8, u8, i16, i32)> {
        let mut code = Code::default();
        write(&mut code);
        code.finish().unwrap().iter().map(|i| (i.code, i.registers, i.offset, i.value)).collect()
    }

    #[test]
    fn instructions_are_those_of_the_standard() {
        let got = bytes(|c| {
            c.set(Register::R0, -1);
            c.copy(Register::R6, Register::R1);
            c.sum(Sum::Right, Register::R1, By::Value(8));
            c.sum(Sum::Right, Register::R1, By::Register(Register::R3));
            c.load(AccessSize::Word, Register::R7, Register::R6, 8);
            c.load(AccessSize::Byte, Register::R7, Register::R6, 34);
            c.store(AccessSize::Double, Register::Stack, -8, Register::R7);
            c.add_in_memory(Register::R9, Register::R1);
            c.call(Call::Now);
            c.exit();
        });
        let expected = [
            (0xb7, pair(0, 0), 0, -1),
            (0xbf, pair(6, 1), 0, 0),
            (0x77, pair(1, 0), 0, 8),
            (0x7f, pair(1, 3), 0, 0),
            (0x61, pair(7, 6), 8, 0),
            (0x71, pair(7, 6), 34, 0),
            (0x7b, pair(10, 7), -8, 0),
            (0xdb, pair(9, 1), 0, 0),
            (0x85, 0, 0, 5),
            (0x95, 0, 0, 0),
        ];
        assert_eq!(got, expected);
        assert_eq!(size_of::<Instruction>(), 8);
    }

    #[test]
    fn jumps_know_their_distance_and_wrong_ones_are_refused() {
        let got = bytes(|c| {
            let (end, middle) = (c.label(), c.label());
            c.jump_when(Register::R7, When::Equal, 0x52, middle);
            c.jump(end);
            c.here(middle);
            c.set(Register::R0, 1);
            c.here(end);
            c.exit();
        });
        assert_eq!((got[0], got[1]), ((0x15, pair(7, 0), 1, 0x52), (0x05, 0, 1, 0)));
        let mut nowhere = Code::default();
        let label = nowhere.label();
        nowhere.jump(label);
        assert_eq!(nowhere.finish(), Err(Wrong::Nowhere));
        let mut back = Code::default();
        let label = back.label();
        back.here(label);
        back.jump(label);
        assert_eq!(back.finish(), Err(Wrong::Distance));
    }
}
