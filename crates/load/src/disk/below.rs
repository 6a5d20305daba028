//! What the kernel counts below a load: at the device, and of this program.
//!
//! What comes in: the number of a device, `/sys/dev/block`, `/proc/self/io`. What goes out: differences
//! between two samples.

use std::time::Instant;

use linerate_model::disk::SECTOR_BYTES;
use linerate_model::disk_load::DeviceShare;
use linerate_sys::block::Number;
use linerate_sys::root::Root;

/// Counters at a moment.
#[derive(Debug)]
pub(super) struct Sample {
    at: Instant,
    device: Option<Vec<u64>>,
    read_bytes: Option<u64>,
}

/// Takes a sample.
pub(super) fn sample(root: &Root, device: Option<Number>) -> Sample {
    let numbers = |text: String| text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let stat = device.and_then(|number| root.read(&format!("/sys/dev/block/{number}/stat")).ok());
    let io = root.read("/proc/self/io").ok();
    let read = io.and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
        line.trim().parse().ok()
    });
    Sample { at: Instant::now(), device: stat.map(numbers), read_bytes: read }
}

impl Sample {
    /// Bytes that came from storage for this program since an earlier sample.
    pub(super) fn storage_read(&self, before: &Self) -> Option<u64> {
        Some(self.read_bytes?.saturating_sub(before.read_bytes?))
    }

    /// What the device did since an earlier sample. Fields are those of `Documentation/block/stat.rst`.
    pub(super) fn device(&self, before: &Self) -> Option<DeviceShare> {
        let (new, old) = (self.device.as_ref()?, before.device.as_ref()?);
        // Old kernels have 11 fields; what they do not count did not happen.
        let grown = |index: usize| {
            let value = |all: &[u64]| all.get(index).copied().unwrap_or(0);
            value(new).saturating_sub(value(old))
        };
        if new.len() < 11 || old.len() < 11 {
            return None;
        }
        let seconds = self.at.saturating_duration_since(before.at).as_secs_f64();
        let busy = if seconds > 0.0 { (grown(9) as f64 / 1e3 / seconds).min(1.0) } else { 0.0 };
        Some(DeviceShare {
            requests: grown(0) + grown(4),
            merged: grown(1) + grown(5),
            bytes: (grown(2) + grown(6)) * u64::from(SECTOR_BYTES),
            write_bytes: grown(6) * u64::from(SECTOR_BYTES),
            flushes: grown(15),
            busy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_what_happened() {
        let sample = |device: &[u64], read_bytes| Sample {
            at: Instant::now(),
            device: Some(device.to_vec()),
            read_bytes: Some(read_bytes),
        };
        let mut new = vec![0; 17];
        (new[0], new[2], new[4], new[5], new[6], new[15]) = (10, 40, 20, 5, 120, 3);
        let share = sample(&new, 900).device(&sample(&[0; 17], 0)).unwrap();
        assert_eq!((share.requests, share.merged, share.bytes, share.flushes), (30, 5, 81_920, 3));
        assert_eq!(sample(&new, 900).storage_read(&sample(&new, 400)), Some(500));
        assert_eq!(share.write_bytes, 61_440);
        assert!(sample(&[1], 0).device(&sample(&new, 0)).is_none());
    }
}
