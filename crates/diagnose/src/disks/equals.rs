//! Which drives may be compared with each other, and what a drive should do by the measure of its equals.

use std::collections::BTreeMap;

use linerate_model::disk::{Disk, DiskKind};
use linerate_model::names::natural;

use super::RULES;
use super::tree::Layout;
use crate::rules::DiskRules;
use crate::stats::median;

/// Groups of drives of one kind and size below one device: legs of an array or a volume. A drive is in the
/// largest group that it fits.
pub(super) fn groups(layout: &Layout) -> Vec<(&Disk, Vec<&str>)> {
    let mut groups: Vec<(&Disk, Vec<&str>)> = Vec::new();
    for above in layout.disks() {
        let mut alike: BTreeMap<(u64, bool), Vec<&str>> = BTreeMap::new();
        let mut drives: Vec<&str> = layout.drives_of(&above.device).into_iter().collect();
        drives.sort_by(|a, b| natural(a, b));
        for drive in drives {
            let Some(disk) = layout.get(drive).filter(|d| d.device != above.device) else { continue };
            alike.entry((disk.size_bytes, disk.kind == DiskKind::Rotating)).or_default().push(drive);
        }
        groups
            .extend(alike.into_values().filter(|g| g.len() >= RULES.equals_min).map(|group| (above, group)));
    }
    // Of the same drives below several devices the ones below the device with the shortest name people know.
    groups.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.inner.cmp(&b.0.inner)));
    let mut taken: Vec<&str> = Vec::new();
    groups.retain(|(_, group)| {
        let new = group.iter().all(|drive| !taken.contains(drive));
        if new {
            taken.extend(group);
        }
        new
    });
    groups
}

/// What the others of a group would wait at this rate of requests: a line through their waits over their
/// rates by the median of all slopes (Theil and Sen), which a few odd ones cannot turn; the median where they
/// all have the same rate.
pub(crate) fn expected(others: &[(f64, f64)], rate: f64, rules: &DiskRules) -> Option<f64> {
    let middle = |values: Vec<f64>| median(&values);
    let slopes: Vec<f64> = others
        .iter()
        .enumerate()
        .flat_map(|(i, a)| others[..i].iter().map(move |b| (a, b)))
        .filter(|((ra, _), (rb, _))| (ra - rb).abs() > rules.equal_rate * ra.max(*rb))
        .map(|((ra, wa), (rb, wb))| (wa - wb) / (ra - rb))
        .collect();
    let slope = if slopes.len() < others.len() { 0.0 } else { middle(slopes).unwrap_or(0.0) };
    let level = middle(others.iter().map(|(r, w)| w - slope * r).collect())?;
    let typical = middle(others.iter().map(|(_, w)| *w).collect())?;
    // Far away from where the others are a line says nothing.
    Some((level + slope * rate).clamp(typical / rules.expected_range, typical * rules.expected_range))
}
