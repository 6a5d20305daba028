//! The health of a SATA drive: whether it expects to fail (SMART RETURN STATUS) and what it counts (SMART
//! READ DATA), by ATA commands through the kernel's SCSI interface (`SG_IO`, ATA PASS-THROUGH (16) of
//! SAT-3). Needs root and changes nothing. A drive that is asleep is asked for its power mode alone, which
//! does not wake it.
//!
//! In: the name of a whole drive. Out: its counts, as the drive gives them. Sources: ACS-3 (commands),
//! SFF-8035i (table of attributes), smartmontools (which part of a count is the count).

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use serde::{Deserialize, Serialize};

/// `SG_IO` of scsi/sg.h.
const SG_IO: libc::c_ulong = 0x2285;
/// Interface of version 3 of the driver, and directions of its data.
const INTERFACE: libc::c_int = 'S' as libc::c_int;
const NO_DATA: libc::c_int = -1;
const FROM_DRIVE: libc::c_int = -3;
/// A drive that does not answer for so long is left, ms.
const WAIT_MS: libc::c_uint = 2_000;
/// Length of a page of data, bytes, and of the kernel's sense data.
const PAGE: usize = 512;
const SENSE: usize = 64;
/// The command was carried out; the command was, and there is sense data.
const GOOD: u8 = 0;
const CHECK_CONDITION: u8 = 2;

/// ATA PASS-THROUGH (16).
const PASS_THROUGH: u8 = 0x85;
/// Protocols, shifted as the command has them.
const WITHOUT_DATA: u8 = 3 << 1;
const DATA_IN: u8 = 4 << 1;
/// The registers come back as sense data.
const REGISTERS_BACK: u8 = 0x20;
/// Blocks of 512 bytes from the drive, as many as the count has.
const BLOCKS_IN: u8 = 0x0e;

/// Commands of ATA.
const CHECK_POWER_MODE: u8 = 0xe5;
const SMART: u8 = 0xb0;
/// Features of SMART.
const READ_DATA: u8 = 0xd0;
const RETURN_STATUS: u8 = 0xda;
/// What the middle and high byte of the address have to be for SMART, and what a drive makes of them that
/// expects to fail.
const KEY: [u8; 2] = [0x4f, 0xc2];
const FAILING: [u8; 2] = [0xf4, 0x2c];
/// Power modes in which the platters stand.
const ASLEEP: [u8; 2] = [0x00, 0x01];

/// Entries of the table of attributes, where they begin and how long each is, bytes.
const ENTRIES: usize = 30;
const FIRST: usize = 2;
const ENTRY: usize = 12;

/// `struct sg_io_hdr` of scsi/sg.h.
#[repr(C)]
struct Request {
    interface: libc::c_int,
    direction: libc::c_int,
    command_bytes: u8,
    sense_bytes: u8,
    pieces: u16,
    data_bytes: libc::c_uint,
    data: *mut u8,
    command: *const u8,
    sense: *mut u8,
    timeout_ms: libc::c_uint,
    flags: libc::c_uint,
    pack: libc::c_int,
    user: *mut libc::c_void,
    status: u8,
    masked_status: u8,
    message_status: u8,
    sense_written: u8,
    host_status: u16,
    driver_status: u16,
    left_bytes: libc::c_int,
    duration_ms: libc::c_uint,
    info: libc::c_uint,
}

/// What a drive counts about itself; `None` for what it has no attribute for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtaHealth {
    /// Whether it expects to fail by its own limits.
    pub failing: Option<bool>,
    /// Attribute 5: sectors that were replaced by spare ones.
    pub reallocated: Option<i64>,
    /// Attribute 197: sectors that could not be read and wait to be written.
    pub pending: Option<i64>,
    /// Attribute 198: sectors that its own scan could not read.
    pub uncorrectable: Option<i64>,
    /// Attribute 199: blocks that the cable damaged.
    pub crc_errors: Option<i64>,
    /// Attribute 194: temperature, °C.
    pub temperature_c: Option<i64>,
}

/// The registers that a command leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Registers {
    count: u8,
    middle: u8,
    high: u8,
}

/// The health of the drive `sda` and its like.
///
/// # Errors
/// The device cannot be opened, is no ATA drive, is asleep, or does not answer.
pub fn health(name: &str) -> io::Result<AtaHealth> {
    let path = format!("/dev/{name}");
    let device = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let fd = device.as_raw_fd();
    let power = run(fd, &command(CHECK_POWER_MODE, 0, [0, 0], false), None)?;
    if power.is_some_and(|registers| ASLEEP.contains(&registers.count)) {
        return Err(io::Error::other("the drive is asleep and was not woken"));
    }
    let mut page = [0_u8; PAGE];
    run(fd, &command(SMART, READ_DATA, KEY, true), Some(&mut page))?;
    let health = understood(&page).ok_or_else(|| io::Error::other("the drive's SMART data is damaged"))?;
    // Some bridges carry data and give no registers back: then the counts have to do.
    let registers = run(fd, &command(SMART, RETURN_STATUS, KEY, false), None).ok().flatten();
    Ok(AtaHealth { failing: registers.and_then(failing), ..health })
}

/// The bytes of a pass-through command.
fn command(command: u8, feature: u8, key: [u8; 2], reads: bool) -> [u8; 16] {
    let (protocol, flags) = if reads { (DATA_IN, BLOCKS_IN) } else { (WITHOUT_DATA, REGISTERS_BACK) };
    let mut bytes = [0; 16];
    (bytes[0], bytes[1], bytes[2]) = (PASS_THROUGH, protocol, flags);
    (bytes[4], bytes[6]) = (feature, u8::from(reads));
    (bytes[10], bytes[12], bytes[14]) = (key[0], key[1], command);
    bytes
}

/// Runs a command; its registers, where they were asked for and came back.
fn run(fd: libc::c_int, command: &[u8; 16], page: Option<&mut [u8; PAGE]>) -> io::Result<Option<Registers>> {
    let mut sense = [0_u8; SENSE];
    let (direction, data, data_bytes) = match page {
        Some(page) => (FROM_DRIVE, page.as_mut_ptr(), PAGE as libc::c_uint),
        None => (NO_DATA, std::ptr::null_mut(), 0),
    };
    let mut request = Request {
        interface: INTERFACE,
        direction,
        command_bytes: command.len() as u8,
        sense_bytes: SENSE as u8,
        pieces: 0,
        data_bytes,
        data,
        command: command.as_ptr(),
        sense: sense.as_mut_ptr(),
        timeout_ms: WAIT_MS,
        flags: 0,
        pack: 0,
        user: std::ptr::null_mut(),
        status: 0,
        masked_status: 0,
        message_status: 0,
        sense_written: 0,
        host_status: 0,
        driver_status: 0,
        left_bytes: 0,
        duration_ms: 0,
        info: 0,
    };
    // SAFETY: the structure has the layout of the kernel; command, sense and data are alive and of the
    // lengths that it names until the call is over.
    if unsafe { libc::ioctl(fd, SG_IO as _, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if request.host_status != 0 {
        return Err(io::Error::other(format!("SCSI host status {:#x}", request.host_status)));
    }
    let wants_registers = command[2] == REGISTERS_BACK;
    match request.status {
        GOOD => Ok(None),
        // Registers come as recovered "errors"; anything else is a refusal.
        CHECK_CONDITION if wants_registers => match registers(&sense) {
            Some(registers) => Ok(Some(registers)),
            None => Err(refused(&sense)),
        },
        CHECK_CONDITION => Err(refused(&sense)),
        other => Err(io::Error::other(format!("SCSI status {other:#x}"))),
    }
}

fn refused(sense: &[u8]) -> io::Error {
    let key = if sense[0] & 0x7f >= 0x72 { sense[1] } else { sense[2] } & 0xf;
    io::Error::other(format!("the drive refused an ATA command (sense key {key:#x})"))
}

/// The registers in sense data: as a descriptor of its own, or in the fixed form.
fn registers(sense: &[u8; SENSE]) -> Option<Registers> {
    match sense[0] & 0x7f {
        // ATA Status Return descriptor: count, addresses in pairs of an extended and a plain byte.
        0x72 if sense[8] == 0x09 && sense[9] >= 0x0c => {
            Some(Registers { count: sense[13], middle: sense[17], high: sense[19] })
        }
        // Error, status, device and count stand for the information, the address for what the command gives.
        // Additional sense 00h/1Dh: "ATA pass through information available".
        0x70 if (sense[12], sense[13]) == (0x00, 0x1d) => {
            Some(Registers { count: sense[6], middle: sense[10], high: sense[11] })
        }
        _ => None,
    }
}

fn failing(registers: Registers) -> Option<bool> {
    match [registers.middle, registers.high] {
        KEY => Some(false),
        FAILING => Some(true),
        // Some bridges leave them empty.
        _ => None,
    }
}

/// The attributes of a page of data. Nothing of one whose bytes do not add up to 0.
fn understood(page: &[u8; PAGE]) -> Option<AtaHealth> {
    if page.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)) != 0 || page.iter().all(|b| *b == 0) {
        return None;
    }
    let mut health = AtaHealth::default();
    for entry in page[FIRST..FIRST + ENTRIES * ENTRY].chunks_exact(ENTRY) {
        // Identifier, flags (2), value, worst value, count (6), reserved.
        let raw = |bytes: usize| {
            entry[5..5 + bytes].iter().rev().fold(0_i64, |number, byte| (number << 8) | i64::from(*byte))
        };
        match entry[0] {
            // Makers keep other things in the bytes above.
            5 => health.reallocated = Some(raw(2)),
            // Behind it the lowest and highest so far.
            194 => health.temperature_c = Some(i64::from(entry[5].cast_signed())),
            197 => health.pending = Some(raw(6)),
            198 => health.uncorrectable = Some(raw(6)),
            199 => health.crc_errors = Some(raw(6)),
            _ => {}
        }
    }
    Some(health)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table as drives have it, by its bytes.
    fn page(attributes: &[[u8; ENTRY]]) -> [u8; PAGE] {
        let mut page = [0_u8; PAGE];
        page[0] = 10;
        for (slot, attribute) in page[FIRST..].chunks_exact_mut(ENTRY).zip(attributes) {
            slot.copy_from_slice(attribute);
        }
        let sum = page.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
        page[PAGE - 1] = sum.wrapping_neg();
        page
    }

    #[test]
    fn attributes_are_read_where_the_table_has_them() {
        let table = [
            [0x01, 0x0f, 0x00, 0x52, 0x40, 0x9a, 0x3c, 0x21, 0x05, 0x00, 0x00, 0x00],
            [0x05, 0x33, 0x00, 0x64, 0x64, 0x10, 0x01, 0x07, 0x00, 0x00, 0x00, 0x00],
            [0xc2, 0x22, 0x00, 0x29, 0x38, 0x29, 0x00, 0x00, 0x00, 0x13, 0x00, 0x00],
            [0xc5, 0x12, 0x00, 0x64, 0x64, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00],
            [0xc6, 0x10, 0x00, 0x64, 0x64, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00],
            [0xc7, 0x3e, 0x00, 0xc8, 0xc8, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00],
        ];
        let health = understood(&page(&table)).unwrap();
        let wanted = AtaHealth {
            failing: None,
            reallocated: Some(272),
            pending: Some(8),
            uncorrectable: Some(65536),
            crc_errors: Some(0),
            temperature_c: Some(41),
        };
        assert_eq!(health, wanted);
        let cold = [0xc2, 0x22, 0, 0x29, 0x38, 0xfb, 0xff, 0, 0, 0, 0, 0];
        assert_eq!(understood(&page(&[cold])).unwrap().temperature_c, Some(-5));
        let mut damaged = page(&table);
        damaged[20] ^= 1;
        assert_eq!(understood(&damaged), None);
        assert_eq!(understood(&[0; PAGE]), None, "a bridge that answers nothing");
    }

    #[test]
    fn registers_come_back_in_both_forms_of_sense_data() {
        let mut sense = [0; SENSE];
        let of_libata = [
            0x72, 0x01, 0x00, 0x1d, 0, 0, 0, 0x0e, 0x09, 0x0c, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
            0x4f, 0x00, 0xc2, 0x00, 0x50,
        ];
        sense[..22].copy_from_slice(&of_libata);
        assert_eq!(registers(&sense).and_then(failing), Some(false));
        (sense[17], sense[19], sense[13]) = (0xf4, 0x2c, 0xff);
        assert_eq!(registers(&sense).map(|r| r.count), Some(0xff));
        assert_eq!(registers(&sense).and_then(failing), Some(true));
        let fixed =
            [0x70, 0x00, 0x01, 0x00, 0x50, 0x40, 0x80, 0x0a, 0x00, 0x00, 0xf4, 0x2c, 0x00, 0x1d, 0, 0, 0, 0];
        sense = [0; SENSE];
        sense[..18].copy_from_slice(&fixed);
        assert_eq!(registers(&sense).map(|r| r.count), Some(0x80));
        assert_eq!(registers(&sense).and_then(failing), Some(true));
        // Illegal request, invalid command: a drive that does not know ATA.
        let refusal = [0x70, 0, 5, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x20, 0, 0, 0, 0, 0];
        sense[..18].copy_from_slice(&refusal);
        assert_eq!(registers(&sense), None);
        assert!(refused(&sense).to_string().contains("sense key 0x5"));
    }

    #[test]
    fn commands_are_those_that_only_read() {
        let read = command(SMART, READ_DATA, KEY, true);
        assert_eq!(read, [0x85, 8, 0x0e, 0, 0xd0, 0, 1, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]);
        let status = command(SMART, RETURN_STATUS, KEY, false);
        assert_eq!(status, [0x85, 6, 0x20, 0, 0xda, 0, 0, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]);
        assert_eq!(command(CHECK_POWER_MODE, 0, [0, 0], false)[14], 0xe5);
        #[cfg(target_pointer_width = "64")]
        assert_eq!(std::mem::size_of::<Request>(), 88, "the size that the kernel reads");
    }

    #[test]
    fn what_is_no_drive_gives_no_health() {
        assert!(health("null").is_err());
        assert!(health("no-such-drive").is_err());
    }
}
