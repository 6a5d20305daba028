//! What a volume of pairs should reach, from what one drive does: the one formula of the plan.

use serde::Serialize;

use super::super::reach::{ROTATING_BYTES_PER_S, ROTATING_PER_S};

/// What one drive does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DriveClass {
    /// Name: `hdd`, `sas`, `ssd`, `nvme`.
    pub name: &'static str,
    /// Random requests per second.
    pub requests_per_s: f64,
    /// Bytes per second in a row.
    pub bytes_per_s: f64,
    /// Share of such drives that fail in a year.
    pub fail_per_year: f64,
}

/// Classes of drives. Figures are for planning: a round value of the class, to be replaced by what `linerate disk bench` measures.
///
/// `hdd`: the same figures with which `reach` judges what was measured. `sas`: 10,000 revolutions, 3 ms for half of one and 4 ms of seek. `ssd`: what a port of 6 Gbit/s carries behind
/// its 8b/10b code. `nvme`: four lanes of PCIe 3 less its framing; a middling data-centre drive. Failures per year: Backblaze drive statistics 2024 (1.6 % of hard drives, 1 % of SSDs).
pub const CLASSES: &[DriveClass] = &[
    DriveClass {
        name: "hdd",
        requests_per_s: ROTATING_PER_S,
        bytes_per_s: ROTATING_BYTES_PER_S,
        fail_per_year: 0.016,
    },
    DriveClass { name: "sas", requests_per_s: 140.0, bytes_per_s: 180e6, fail_per_year: 0.016 },
    DriveClass { name: "ssd", requests_per_s: 50_000.0, bytes_per_s: 500e6, fail_per_year: 0.01 },
    DriveClass { name: "nvme", requests_per_s: 300_000.0, bytes_per_s: 3e9, fail_per_year: 0.01 },
];

/// What a volume should reach.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rates {
    /// Random reads per second: any drive may answer, where the layout reads from both copies.
    pub random_reads_per_s: f64,
    /// Random writes per second: each goes to two drives.
    pub random_writes_per_s: f64,
    /// Reading in a row, bytes per second. Each copy alone is read in a row; both at once skip over the other's part.
    pub read_bytes_per_s: f64,
    /// Writing in a row, bytes per second.
    pub write_bytes_per_s: f64,
}

impl Rates {
    /// Of one drive, by its class.
    #[must_use]
    pub fn of_one(class: DriveClass) -> Self {
        Self {
            random_reads_per_s: class.requests_per_s,
            random_writes_per_s: class.requests_per_s,
            read_bytes_per_s: class.bytes_per_s,
            write_bytes_per_s: class.bytes_per_s,
        }
    }

    /// Of pairs of such drives, where these are the rates of one, by its class or as it was measured. Requests that are merged on the way
    /// down come on top. `reads_one` is whether only the first copy answers reads.
    #[must_use]
    pub fn over(self, drives: u64, reads_one: bool) -> Self {
        let (all, half) = (drives as f64, drives as f64 / 2.0);
        Self {
            random_reads_per_s: if reads_one { half } else { all } * self.random_reads_per_s,
            random_writes_per_s: half * self.random_writes_per_s,
            read_bytes_per_s: half * self.read_bytes_per_s,
            write_bytes_per_s: half * self.write_bytes_per_s,
        }
    }
}
