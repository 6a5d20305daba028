//! What intervals say about the devices of a host: a leg that failed or is being filled, one slow among its
//! equals, none with time left, uneven legs, merged requests.
//!
//! Latency is compared between drives under like load, after the fail-slow studies (Perseus, FAST'23): a
//! fixed limit would call every busy drive slow. Being busy all the time is held against drives with one set
//! of heads alone.

use std::collections::BTreeSet;

use linerate_model::disk::{DiskEvidence, DiskFinding, DiskInterval, DiskKind, DiskRates, DiskTraffic};

use super::RULES;
use super::degraded::{Found, degraded, drives_of_rebuilding, rebuilding};
use super::equals;
use super::tree::Layout;
use crate::stats::median;

/// What is wrong with the devices of one host, the worst kind first.
#[must_use]
pub fn findings(layout: &Layout, intervals: &[DiskInterval]) -> Vec<DiskFinding> {
    findings_of(layout, &intervals.iter().collect::<Vec<_>>())
}

/// The same for intervals that stand apart.
pub(super) fn findings_of(layout: &Layout, intervals: &[&DiskInterval]) -> Vec<DiskFinding> {
    let Some(host) = intervals.first().map(|i| i.host.clone()) else { return Vec::new() };
    let seen = Seen { layout, intervals, filled: drives_of_rebuilding(layout) };
    // A failed drive has no rates that could be compared.
    let mut found = degraded(layout);
    found.extend(rebuilding(layout));
    let failed: BTreeSet<String> = found.iter().map(|(device, _)| device.clone()).collect();
    found.extend(seen.slow().into_iter().filter(|(device, _)| !failed.contains(device)));
    let slow: BTreeSet<String> = found.iter().map(|(device, _)| device.clone()).collect();
    // A slow drive is busy all the time and gets less to do because it is slow: one thing to say. A failed
    // one gets nothing to do.
    let others = seen.saturated().into_iter().chain(seen.uneven());
    found.extend(others.filter(|(device, _)| !slow.contains(device)));
    found.extend(seen.merged());
    let finding = |(device, evidence): (String, DiskEvidence)| DiskFinding {
        host: host.clone(),
        device,
        what: evidence.trouble(),
        evidence: Some(evidence),
        sentence: String::new(),
    };
    found.into_iter().map(finding).collect()
}

/// One direction through a device, and whether it is that of writes.
type DirectionOf = (bool, fn(&DiskRates) -> &DiskTraffic);
const DIRECTIONS: [DirectionOf; 2] = [(true, |d| &d.write), (false, |d| &d.read)];

struct Seen<'a> {
    layout: &'a Layout,
    intervals: &'a [&'a DiskInterval],
    /// Drives below what is being rebuilt, those that are read for it too. They are called neither slow, full
    /// nor uneven: one that is filled is written from end to end, one that it is filled from is read so, as
    /// fast as they can. That is no like load, and being busy with it is what they are for; it is said of the
    /// volume already. A slow drive among them is found when the rebuild has ended.
    filled: BTreeSet<&'a str>,
}

fn of<'a>(interval: &'a DiskInterval, device: &str) -> Option<&'a DiskRates> {
    interval.disks.iter().find(|d| d.device == device)
}

/// An interval in which a drive was slow, all in ms.
struct Slow {
    /// Mean of its requests.
    wait: f64,
    /// What the mean should have been by those of its equals.
    usual: f64,
    /// Its p99, where it is known.
    p99: Option<f64>,
    /// The median of those of its equals.
    usual_p99: Option<f64>,
}

/// How a drive compares with its equals over all intervals.
#[derive(Default)]
struct Compared {
    slow: Vec<Slow>,
    seen: usize,
}

impl Compared {
    /// The median of a figure over the intervals that have it.
    fn usually(&self, figure: fn(&Slow) -> Option<f64>) -> Option<f64> {
        median(&self.slow.iter().filter_map(figure).collect::<Vec<_>>())
    }
}

impl Seen<'_> {
    /// Mean of a value over the intervals in which a device was seen.
    fn mean(&self, device: &str, value: impl Fn(&DiskRates) -> f64) -> Option<f64> {
        let values: Vec<f64> = self.intervals.iter().filter_map(|i| of(i, device)).map(value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }

    fn slow(&self) -> Found {
        let mut found = Found::new();
        for (above, mut group) in equals::groups(self.layout) {
            group.retain(|drive| !self.filled.contains(drive));
            for (writes, direction) in DIRECTIONS {
                let compared: Vec<Compared> =
                    group.iter().map(|d| self.compared(d, &group, direction)).collect();
                let is_slow =
                    |c: &Compared| c.slow.len() >= RULES.slow_intervals_min && 2 * c.slow.len() >= c.seen;
                let slow = compared.iter().filter(|c| is_slow(c)).count();
                if slow as f64 > RULES.slow_share_max * group.len() as f64 {
                    continue;
                }
                for (device, seen) in group.iter().zip(&compared).filter(|(_, c)| is_slow(c)) {
                    if found.iter().any(|(d, _)| d == device) {
                        continue;
                    }
                    let pick = |f: fn(&Slow) -> Option<f64>| seen.usually(f).unwrap_or_default();
                    let evidence = DiskEvidence::Slow {
                        drive: self.layout.called(device),
                        of: above.called(),
                        others: group.len() - 1,
                        writes,
                        wait_ms: (pick(|s| Some(s.wait)), pick(|s| Some(s.usual))),
                        p99_ms: seen.usually(|s| s.p99).zip(seen.usually(|s| s.usual_p99)),
                        intervals: (seen.slow.len(), seen.seen),
                    };
                    found.push(((*device).to_owned(), evidence));
                }
            }
        }
        found
    }

    /// Waits of a drive that are beyond those of its equals, and theirs.
    fn compared(&self, device: &str, group: &[&str], direction: fn(&DiskRates) -> &DiskTraffic) -> Compared {
        let mut compared = Compared::default();
        for interval in self.intervals {
            let load = |device: &str| {
                let traffic = direction(of(interval, device)?);
                let wait = traffic
                    .wait_ms
                    .filter(|_| traffic.requests_per_s * interval.seconds >= RULES.requests_min)?;
                Some((traffic.requests_per_s, wait))
            };
            let others: Vec<(f64, f64)> =
                group.iter().filter(|d| **d != device).filter_map(|d| load(d)).collect();
            let Some((rate, wait)) = load(device).filter(|_| others.len() + 1 >= RULES.equals_min) else {
                continue;
            };
            let Some(usual) = equals::expected(&others, rate, RULES) else { continue };
            compared.seen += 1;
            if wait > RULES.slow_ratio * usual && wait > usual + RULES.slow_ms {
                let p99 = |device: &str| Some(direction(of(interval, device)?).times?.p99_ms);
                let others: Vec<f64> =
                    group.iter().filter(|d| **d != device).filter_map(|d| p99(d)).collect();
                compared.slow.push(Slow { wait, usual, p99: p99(device), usual_p99: median(&others) });
            }
        }
        compared
    }

    fn saturated(&self) -> Found {
        let drives = self.layout.disks().filter(|d| d.kind == DiskKind::Rotating);
        let drives = drives.filter(|d| !self.filled.contains(d.device.as_str()));
        let full = drives.filter_map(|disk| {
            let busy = self.mean(&disk.device, |d| d.busy).filter(|busy| *busy >= RULES.saturated)?;
            let mean = |value: fn(&DiskRates) -> f64| self.mean(&disk.device, value).unwrap_or_default();
            let evidence = DiskEvidence::Saturated {
                drive: disk.called(),
                busy,
                reads_per_s: mean(|d| d.read.requests_per_s),
                writes_per_s: mean(|d| d.write.requests_per_s),
                merged_per_s: mean(|d| d.read.merged_per_s + d.write.merged_per_s),
            };
            Some((disk.device.clone(), evidence))
        });
        full.collect()
    }

    fn uneven(&self) -> Found {
        let mut found = Found::new();
        for (above, group) in equals::groups(self.layout) {
            // With those left out the usual rate of the others is not known either.
            if group.iter().any(|drive| self.filled.contains(drive)) {
                continue;
            }
            let writes: Vec<(&str, f64)> = group
                .iter()
                .filter_map(|device| Some((*device, self.mean(device, |d| d.write.requests_per_s)?)))
                .collect();
            let Some(usual) = median(&writes.iter().map(|(_, w)| *w).collect::<Vec<_>>()) else { continue };
            for (device, rate) in writes {
                let beyond = rate > usual * RULES.uneven_ratio || rate < usual / RULES.uneven_ratio;
                if beyond && (rate - usual).abs() > RULES.uneven_per_s {
                    let evidence = DiskEvidence::Uneven {
                        drive: self.layout.called(device),
                        of: above.called(),
                        writes_per_s: (rate, usual),
                    };
                    found.push((device.to_owned(), evidence));
                }
            }
        }
        found
    }

    fn merged(&self) -> Found {
        let mut found = Found::new();
        for top in
            self.layout.disks().filter(|d| !d.on.is_empty() && !d.inner && d.kind != DiskKind::Partition)
        {
            let drives = self.layout.drives_of(&top.device);
            let sum = |value: fn(&DiskRates) -> f64| -> f64 {
                drives.iter().filter_map(|d| self.mean(d, value)).sum()
            };
            let reached_per_s = sum(DiskRates::requests_per_s);
            let merged_per_s = sum(|d| d.read.merged_per_s + d.write.merged_per_s);
            let Some(asked_per_s) = self.mean(&top.device, DiskRates::requests_per_s) else { continue };
            if merged_per_s > RULES.merged_share * (merged_per_s + reached_per_s)
                && asked_per_s > RULES.merged_rate_min
                && asked_per_s > reached_per_s
            {
                let (volume, drives) = (top.called(), drives.len());
                let evidence =
                    DiskEvidence::Merged { volume, drives, asked_per_s, reached_per_s, merged_per_s };
                found.push((top.device.clone(), evidence));
            }
        }
        found
    }
}
