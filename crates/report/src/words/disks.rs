//! What is wrong with a drive or a volume, in a sentence with its figures.

use linerate_model::disk::{DiskEpisodes, DiskEvidence, DiskFinding, DiskLeg, DiskRepair, FilledLegs};
use linerate_model::units::{percent, short};

/// What goes with a leg that is being filled.
const LESS: &str = "and until that ends there is one copy less; its legs are uneven because of it";
/// After an unclean stop, and when the device is new: no copy is missing, and none is known to be the right
/// one.
const IN_LINE: &str = "its copies are being brought in line with each other, \
     and are not proven equal until that ends";
/// Several legs: beside a spare that waits it cannot be told which of the two it is.
const EITHER: &str = "of its legs are being filled or brought in line with each other, \
     and until that ends a copy is missing or not proven equal; its legs may be uneven because of it";

/// A finding of a watch with its text.
#[must_use]
pub fn written(all: &DiskEpisodes) -> DiskEpisodes {
    let finding = DiskFinding { sentence: sentence(&all.finding), ..all.finding.clone() };
    DiskEpisodes { finding, ..all.clone() }
}

/// What is wrong, with figures.
#[must_use]
pub fn sentence(finding: &DiskFinding) -> String {
    let Some(evidence) = &finding.evidence else { return finding.sentence.clone() };
    match evidence {
        DiskEvidence::Degraded { volume, leg, repair } => format!(
            "{volume} is degraded: it goes on without {}, and what that drive held has one copy less; {}",
            called(leg),
            remedy(repair)
        ),
        DiskEvidence::Rebuilding { volume, filled } => format!("{volume} is being {}", being(filled)),
        DiskEvidence::Slow { drive, of, others, writes, wait_ms, p99_ms, intervals } => {
            let tail = p99_ms.map_or(String::new(), |(own, others)| {
                let (own, others) = (short(own), short(others));
                format!("; inside the drive 99 of 100 take at most {own} ms, of the others {others} ms")
            });
            format!(
                "{drive} is slow among its equals: a {} takes {} ms, one of the {others} others of {of} {} \
                 ms under the same load (in {} of {} intervals){tail}",
                if *writes { "write" } else { "read" },
                short(wait_ms.0),
                short(wait_ms.1),
                intervals.0,
                intervals.1
            )
        }
        DiskEvidence::Saturated { drive, busy, reads_per_s, writes_per_s, merged_per_s } => {
            let after = if *merged_per_s >= 1.0 {
                format!(" after merging {}", short(*merged_per_s))
            } else {
                String::new()
            };
            let (reads, writes) = (short(*reads_per_s), short(*writes_per_s));
            let busy = percent(*busy);
            format!(
                "{drive} has no time left: {busy} busy with {reads} reads and {writes} writes a second{after}"
            )
        }
        DiskEvidence::Uneven { drive, of, writes_per_s: (own, usual) } => format!(
            "{drive} gets {} writes a second, the others of {of} {}: they do not carry the same",
            short(*own),
            short(*usual)
        ),
        DiskEvidence::Merged { volume, drives, asked_per_s, reached_per_s, merged_per_s } => format!(
            "{volume} is asked {} times a second; {} reach its {}, for {} are merged into others on the way",
            short(*asked_per_s),
            short(*reached_per_s),
            counted(*drives as f64),
            short(*merged_per_s)
        ),
    }
}

fn called(leg: &DiskLeg) -> String {
    match leg {
        DiskLeg::Drive(drive) => drive.clone(),
        // `1 of 4`: how many is known, but not which.
        DiskLeg::Number(number) if number.contains(" of ") => format!("{number} legs"),
        DiskLeg::Number(number) => format!("its leg number {number}, counted from 0"),
    }
}

fn remedy(repair: &DiskRepair) -> String {
    match repair {
        DiskRepair::Mdadm(device) => format!("replace it: `mdadm /dev/{device} --add NEW-DRIVE`"),
        DiskRepair::Lvm(volume) => format!(
            "replace it: `vgextend` with a new drive, then `lvconvert --repair {volume}`; a drive that only \
             was away: `lvchange --refresh {volume}`"
        ),
    }
}

fn being(filled: &FilledLegs) -> String {
    match filled {
        FilledLegs::Side => format!("rebuilt: what its peer has is being copied to this side, {LESS}"),
        FilledLegs::One(leg) => format!("rebuilt: {} is being filled, {LESS}", called(leg)),
        FilledLegs::All => format!("synchronised: {IN_LINE}"),
        FilledLegs::Several(legs) => format!("rebuilt: {legs} {EITHER}"),
    }
}

/// How many drives.
pub(super) fn counted(drives: f64) -> String {
    if (drives - 1.0).abs() < 1e-9 { "1 drive".to_owned() } else { format!("{} drives", short(drives)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_older_version_printed_keeps_its_text() {
        let old = r#"{"host":"store","device":"sdh","what":"slow-among-equals","sentence":"s"}"#;
        assert_eq!(sentence(&serde_json::from_str(old).unwrap()), "s");
    }
}
