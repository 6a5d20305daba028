//! Frequencies and idle states of an emulated CPU, as the firmware of a server offers them: a table of ACPI
//! in its byte code, which qemu hands to the kernel.
//!
//! In: nothing. Out: the table without its head. Nothing of it changes how fast the CPU is: frequencies are
//! written to a port that nothing reads, and both idle states halt. What a kernel makes of it, the governor
//! and the states that can be forbidden, is real. Names and codes are those of the ACPI specification, 6.5,
//! sections 6.4.3.7 (registers), 8.4.1.1 (`_CST`), 8.4.5 (`_PCT`, `_PSS`), 20.2 (byte code).

/// Spaces in which a register may be.
const SYSTEM_IO: u8 = 1;
const FIXED_HARDWARE: u8 = 0x7f;
/// A port that no device of the machine has.
const PORT: u64 = 0xb200;
/// Frequencies, MHz.
const FREQUENCIES_MHZ: [u32; 2] = [2000, 1000];
/// How long the idle states take to wake up, µs.
const WAKE_UP_US: [u32; 2] = [2, 200];
/// What the kernel rates states and frequencies by: mW, and µs of a change.
const POWER_MW: u32 = 1000;
const CHANGE_US: u32 = 10_000;
/// Path of the only CPU: `\_SB.CPUS.C000`.
const CPU: &[u8] = b"\\\x2f\x03_SB_CPUSC000";

/// The table.
pub(super) fn table() -> Vec<u8> {
    let port = register(SYSTEM_IO, 8, PORT);
    let frequency = |(number, mhz): (u32, u32)| {
        package(&[mhz, POWER_MW, CHANGE_US, CHANGE_US, number, number].map(integer))
    };
    let frequencies: Vec<_> = (0..).zip(FREQUENCIES_MHZ).map(frequency).collect();
    // By a register of fixed hardware that is none, a state of the first type is a halt.
    let state = |us: u32| package(&[register(FIXED_HARDWARE, 0, 0), integer(1), integer(us), integer(1)]);
    let states: Vec<_> = [integer(2)].into_iter().chain(WAKE_UP_US.map(state)).collect();
    let body = [
        CPU.to_vec(),
        named(*b"_PCT", &package(&[port.clone(), port])),
        named(*b"_PSS", &package(&frequencies)),
        named(*b"_CST", &package(&states)),
    ];
    [vec![0x10], with_length(&body.concat())].concat()
}

/// A name with its value.
fn named(name: [u8; 4], value: &[u8]) -> Vec<u8> {
    [&[0x08], &name[..], value].concat()
}

/// A list of values.
fn package(values: &[Vec<u8>]) -> Vec<u8> {
    let count = u8::try_from(values.len()).unwrap_or(u8::MAX);
    [vec![0x12], with_length(&[&[count], &values.concat()[..]].concat())].concat()
}

/// A register as a list of resources, which an end without a checksum closes.
fn register(space: u8, bits: u8, address: u64) -> Vec<u8> {
    let head = [0x82, 12, 0, space, bits, 0, 0];
    let list = [&head[..], &address.to_le_bytes(), &[0x79, 0]].concat();
    let size = integer(u32::try_from(list.len()).unwrap_or(u32::MAX));
    [vec![0x11], with_length(&[size, list].concat())].concat()
}

/// A number in the shortest form.
fn integer(number: u32) -> Vec<u8> {
    let bytes = number.to_le_bytes();
    match number {
        0 | 1 => bytes[..1].to_vec(),
        2..=0xff => vec![0x0a, bytes[0]],
        0x100..=0xffff => vec![0x0b, bytes[0], bytes[1]],
        _ => [&[0x0c], &bytes[..]].concat(),
    }
}

/// What follows, behind its length; the bytes of the length count.
fn with_length(body: &[u8]) -> Vec<u8> {
    let short = body.len() + 1;
    if short < 0x40 {
        return [&[short.to_le_bytes()[0]], body].concat();
    }
    let [low, high, ..] = (body.len() + 2).to_le_bytes();
    // Four bits in the first byte with the number of those that follow, and eight in that one.
    [&[0x40 | (low & 0xf), (low >> 4) | (high << 4)], body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_numbers_are_as_short_as_they_can_be() {
        assert_eq!(with_length(&[7; 62])[..2], [63, 7]);
        assert_eq!(with_length(&[7; 63])[..3], [0x41, 0x04, 7], "65 bytes");
        assert_eq!(integer(1), [1]);
        assert_eq!(integer(200), [0x0a, 200]);
        assert_eq!(integer(10_000), [0x0b, 0x10, 0x27]);
    }

    #[test]
    fn the_table_is_one_scope_of_its_length() {
        let table = table();
        let length = usize::from(table[1] & 0xf) | usize::from(table[2]) << 4;
        assert_eq!((table[0], length + 1), (0x10, table.len()));
        for name in ["_PCT", "_PSS", "_CST"] {
            assert!(table.windows(5).any(|bytes| bytes[0] == 8 && &bytes[1..] == name.as_bytes()), "{name}");
        }
    }
}
