//! `/proc/drbd` of 8.4: the only source for the progress of a comparison and for what a side that stands
//! alone has written since.

use super::reader::word;

/// A device in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcDevice {
    /// Number of the device.
    pub minor: u32,
    /// `Connected`, `SyncSource`, `VerifyS`, …
    pub state: String,
    /// What differs as far as it is known, KiB.
    pub out_of_sync_kib: u64,
    /// What a synchronisation or comparison has to do still and had to do in all, KiB. The kernel's
    /// percentage and remaining time are not taken: the one is rounded to 4 MiB, the other starts up to six
    /// times too long.
    pub left_of_kib: Option<(u64, u64)>,
}

/// All devices.
#[must_use]
pub fn read_proc(text: &str) -> Vec<ProcDevice> {
    let mut devices: Vec<ProcDevice> = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        if let Some((minor, rest)) = line.split_once(": cs:") {
            if let Ok(minor) = minor.parse() {
                let state = rest.split_whitespace().next().unwrap_or_default().to_owned();
                devices.push(ProcDevice { minor, state, ..ProcDevice::default() });
            }
            continue;
        }
        let Some(device) = devices.last_mut() else { continue };
        if let Some(oos) = word(line, "oos") {
            device.out_of_sync_kib = oos.parse().unwrap_or_default();
        } else if line.starts_with('[') {
            device.left_of_kib = amounts(line);
        }
    }
    devices
}

/// `[>....] sync'ed:  1.0% (407720/409548)K`.
fn amounts(line: &str) -> Option<(u64, u64)> {
    let (inside, unit) = line.split_once('(')?.1.split_once(')')?;
    let (left, all) = inside.split_once('/')?;
    // From some TiB on the kernel counts in MiB.
    let scale = if unit.starts_with('M') { 1024 } else { 1 };
    let number = |text: &str| text.parse::<u64>().ok()?.checked_mul(scale);
    Some((number(left)?, number(all)?))
}
