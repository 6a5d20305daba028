//! The health of an NVMe drive: log page "SMART / Health Information" (NVM Express base specification,
//! figure 207 of release 2.0), asked for by an admin command. It needs root and changes nothing.
//!
//! In: the name of a controller. Out: its counts, as the drive gives them.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use serde::{Deserialize, Serialize};

/// `NVME_IOCTL_ADMIN_CMD`: `_IOWR('N', 0x41, struct nvme_admin_cmd)` of linux/nvme_ioctl.h.
const ADMIN_COMMAND: libc::c_ulong = 0xc048_4e41;
/// Get Log Page.
const GET_LOG_PAGE: u8 = 0x02;
/// SMART / Health Information.
const HEALTH: u32 = 0x02;
/// All namespaces.
const ALL: u32 = 0xffff_ffff;
/// Length of the page, bytes.
const PAGE: usize = 512;
/// A drive that does not answer for so long is left, ms.
const WAIT_MS: u32 = 2_000;
/// 0 °C in kelvin, as the specification rounds it.
const ZERO_C: i64 = 273;

/// `struct nvme_passthru_cmd` of linux/nvme_ioctl.h.
#[repr(C)]
#[derive(Default)]
struct Command {
    opcode: u8,
    flags: u8,
    reserved: u16,
    namespace: u32,
    words_2_3: [u32; 2],
    metadata: u64,
    address: u64,
    metadata_bytes: u32,
    data_bytes: u32,
    words_10_15: [u32; 6],
    timeout_ms: u32,
    result: u32,
}

/// What a drive counts about itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NvmeHealth {
    /// Bits of the critical warning.
    pub warnings: u8,
    /// Temperature of the drive, °C.
    pub temperature_c: i64,
    /// Spare blocks that are left, percent.
    pub spare_percent: u8,
    /// Below which share of them the drive warns, percent.
    pub spare_min_percent: u8,
    /// How much of its life is used by its maker's estimate, percent; more than 100 is possible.
    pub used_percent: u8,
    /// Hours with power.
    pub power_on_hours: i64,
    /// Losses of power without a word before.
    pub unsafe_shutdowns: i64,
    /// Data that could not be read or verified.
    pub media_errors: i64,
    /// Minutes above the temperature at which the drive warns, and above the one at which it is in danger.
    pub hot_minutes: [u32; 2],
    /// Seconds in which the drive slowed itself, lightly and heavily, to become cooler.
    pub throttled_s: [u32; 2],
}

/// The health of the controller `nvme0` and its like.
pub fn health(controller: &str) -> io::Result<NvmeHealth> {
    let path = format!("/dev/{controller}");
    let device = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let mut page = [0_u64; PAGE / 8];
    let words = (PAGE / 4 - 1) as u32;
    let mut command = Command {
        opcode: GET_LOG_PAGE,
        namespace: ALL,
        address: page.as_mut_ptr() as u64,
        data_bytes: PAGE as u32,
        words_10_15: [(words << 16) | HEALTH, 0, 0, 0, 0, 0],
        timeout_ms: WAIT_MS,
        ..Command::default()
    };
    // SAFETY: the structure has the layout of the kernel; the page is aligned, of the length in `data_bytes`,
    // and lives until the call is over.
    match unsafe { libc::ioctl(device.as_raw_fd(), ADMIN_COMMAND as _, &raw mut command) } {
        0 => {}
        status if status > 0 => return Err(io::Error::other(format!("NVMe status {status:#x}"))),
        _ => return Err(io::Error::last_os_error()),
    }
    let bytes: Vec<u8> = page.iter().flat_map(|word| word.to_ne_bytes()).collect();
    understood(&bytes).ok_or_else(|| io::Error::other("the drive's health page is not understood"))
}

fn understood(page: &[u8]) -> Option<NvmeHealth> {
    let page: &[u8; PAGE] = page.try_into().ok()?;
    let word = |at: usize| u32::from_le_bytes([page[at], page[at + 1], page[at + 2], page[at + 3]]);
    // Counts have 16 bytes; what does not fit is as good as the largest number.
    let count = |at: usize| {
        let low = u64::from(word(at)) | (u64::from(word(at + 4)) << 32);
        let high = word(at + 8) | word(at + 12);
        if high == 0 { i64::try_from(low).unwrap_or(i64::MAX) } else { i64::MAX }
    };
    Some(NvmeHealth {
        warnings: page[0],
        temperature_c: i64::from(u16::from_le_bytes([page[1], page[2]])) - ZERO_C,
        spare_percent: page[3],
        spare_min_percent: page[4],
        used_percent: page[5],
        power_on_hours: count(128),
        unsafe_shutdowns: count(144),
        media_errors: count(160),
        hot_minutes: [word(192), word(196)],
        throttled_s: [word(224), word(228)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_where_the_specification_puts_its_numbers() {
        let mut page = vec![0_u8; PAGE];
        page[0] = 0b0000_0110;
        page[1..3].copy_from_slice(&351_u16.to_le_bytes());
        page[3..6].copy_from_slice(&[90, 10, 101]);
        page[128..132].copy_from_slice(&8760_u32.to_le_bytes());
        page[160..164].copy_from_slice(&7_u32.to_le_bytes());
        page[196..200].copy_from_slice(&3_u32.to_le_bytes());
        page[224..228].copy_from_slice(&60_u32.to_le_bytes());
        let health = understood(&page).unwrap();
        assert_eq!((health.warnings, health.temperature_c, health.used_percent), (6, 78, 101));
        assert_eq!((health.spare_percent, health.spare_min_percent), (90, 10));
        assert_eq!((health.power_on_hours, health.media_errors, health.unsafe_shutdowns), (8760, 7, 0));
        assert_eq!((health.hot_minutes, health.throttled_s), ([0, 3], [60, 0]));
        page[170] = 1;
        assert_eq!(understood(&page).unwrap().media_errors, i64::MAX);
        assert_eq!(understood(&page[1..]), None);
        assert_eq!(std::mem::size_of::<Command>(), 72, "the size that the request of the kernel names");
    }

    #[test]
    fn what_is_no_controller_gives_no_health() {
        assert!(health("null").is_err());
        assert!(health("no-such-drive").is_err());
    }
}
