//! One slow drive among its equals, by figures that other tools took: means over some time, without what the
//! drives belong to.
//!
//! In: figures of devices, as `linerate diagnose` reads them. Out: the drives. The comparison is that of
//! `linerate disk watch` (`findings.rs`), which knows kinds and sizes of the drives and many intervals, and
//! so can be surer.

use std::collections::BTreeMap;

use linerate_model::names::natural;
use linerate_model::snapshot::{StorageFigure, StoragePattern, StorageSubject};

use super::equals;
use crate::rules::DiskRules;

/// A drive whose requests take much longer than its equals'.
pub(crate) struct SlowDrive<'a> {
    /// Host, empty where nobody told.
    pub host: &'a str,
    /// Name that the kernel has for it.
    pub device: &'a str,
    /// What it does: `read`, `write`.
    pub pattern: StoragePattern,
    /// Of a request, and of one of its equals at its rate, ms.
    pub waits_ms: [f64; 2],
    /// How many others.
    pub others: usize,
}

/// A figure with its requests per second, and milliseconds that each takes.
type Seen<'a> = (&'a StorageFigure, f64, f64);

/// What drives are called that can be equals: `sd` of `sdk`, `nvme` of `nvme3n1`. Nothing for partitions and
/// volumes.
fn family(device: &str) -> Option<&'static str> {
    let letters = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_lowercase());
    let whole = |rest: &str| {
        rest.split_once('n').is_some_and(|(controller, space)| {
            [controller, space]
                .iter()
                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        })
    };
    let lettered = ["sd", "hd", "vd", "xvd"];
    let lettered = lettered.into_iter().find(|name| device.strip_prefix(name).is_some_and(letters));
    lettered.or_else(|| device.strip_prefix("nvme").is_some_and(whole).then_some("nvme"))
}

/// Drives that are slow among their equals, by host and name.
pub(crate) fn slow<'a>(figures: &'a [StorageFigure], rules: &DiskRules) -> Vec<SlowDrive<'a>> {
    let mut groups: BTreeMap<(&str, &str, StoragePattern), Vec<Seen<'_>>> = BTreeMap::new();
    for figure in figures.iter().filter(|f| f.what == StorageSubject::Device) {
        let rate = figure.requests_per_s.filter(|rate| *rate >= rules.figure_rate_min);
        if let (Some(family), Some(rate), Some(wait)) = (family(&figure.variant), rate, figure.wait_ms) {
            let group = groups.entry((&figure.host, family, figure.pattern)).or_default();
            group.push((figure, rate, wait));
        }
    }
    let mut found: Vec<SlowDrive<'_>> = Vec::new();
    for ((host, _, pattern), group) in &groups {
        for drive in slow_of(group, *pattern, rules) {
            if !found.iter().any(|known| (known.host, known.device) == (*host, drive.device)) {
                found.push(drive);
            }
        }
    }
    found.sort_by(|a, b| a.host.cmp(b.host).then_with(|| natural(a.device, b.device)));
    found
}

/// The slow ones of one group, by what they do and wait.
fn slow_of<'a>(group: &[Seen<'a>], pattern: StoragePattern, rules: &DiskRules) -> Vec<SlowDrive<'a>> {
    if group.len() < rules.equals_min {
        return Vec::new();
    }
    let compared = group.iter().enumerate().filter_map(|(at, (figure, rate, wait))| {
        let others: Vec<(f64, f64)> = group
            .iter()
            .enumerate()
            .filter(|(other, _)| *other != at)
            .map(|(_, (_, rate, wait))| (*rate, *wait))
            .collect();
        let usual = equals::expected(&others, *rate, rules)?;
        let is_slow = *wait >= rules.slow_ratio * usual && wait - usual >= rules.slow_ms;
        is_slow.then(|| SlowDrive {
            host: &figure.host,
            device: &figure.variant,
            pattern,
            waits_ms: [*wait, usual],
            others: others.len(),
        })
    });
    let slow: Vec<SlowDrive<'_>> = compared.collect();
    if slow.len() as f64 > rules.slow_share_max * group.len() as f64 { Vec::new() } else { slow }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(figures: &[StorageFigure]) -> Vec<SlowDrive<'_>> {
        super::slow(figures, &crate::rules::Rules::DEFAULT.disks)
    }

    fn figure(device: &str, pattern: StoragePattern, rate: f64, wait_ms: f64) -> StorageFigure {
        StorageFigure {
            host: "store".into(),
            what: StorageSubject::Device,
            variant: device.into(),
            pattern,
            requests_per_s: Some(rate),
            wait_ms: Some(wait_ms),
            ..StorageFigure::default()
        }
    }

    fn twelve(slow: &[usize]) -> Vec<StorageFigure> {
        let name = |number: usize| format!("sd{}", char::from(b'a' + number as u8));
        let rate = |number: usize| 40.0 + 10.0 * (number % 5) as f64;
        let wait = |number: usize| 0.2 * rate(number) * if slow.contains(&number) { 6.0 } else { 1.0 };
        (0..12).map(|n| figure(&name(n), StoragePattern::Read, rate(n), wait(n))).collect()
    }

    #[test]
    fn one_slow_drive_of_twelve_is_named() {
        let mut figures = twelve(&[7]);
        // Neither a volume, nor a partition, nor a drive that nobody asks.
        figures.extend([
            figure("md0", StoragePattern::Read, 500.0, 900.0),
            figure("sda1", StoragePattern::Read, 40.0, 900.0),
        ]);
        figures.push(figure("sdz", StoragePattern::Read, 0.1, 900.0));
        let found = slow(&figures);
        let [one] = &found[..] else { panic!("{}", found.len()) };
        assert_eq!((one.host, one.device), ("store", "sdh"));
        assert_eq!((one.pattern, one.others), (StoragePattern::Read, 11));
        assert!((one.waits_ms[0] - 72.0).abs() < 1.0, "{:?}", one.waits_ms);
    }

    #[test]
    fn what_many_have_is_of_no_drive_and_so_is_what_few_can_tell() {
        assert!(slow(&twelve(&[])).is_empty());
        assert!(slow(&twelve(&[1, 3, 5, 7])).is_empty(), "a third of them");
        assert!(slow(&twelve(&[0])[..3]).is_empty(), "three have no majority");
        // Twice the requests, twice the wait: that is the load.
        let busy: Vec<StorageFigure> = (1..=8)
            .map(|n| {
                figure(&format!("nvme{n}n1"), StoragePattern::Write, 100.0 * f64::from(n), 3.0 * f64::from(n))
            })
            .collect();
        assert!(slow(&busy).is_empty());
    }
}
