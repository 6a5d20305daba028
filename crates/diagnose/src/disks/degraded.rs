//! Arrays and volumes that go on without a leg, and those of which legs are being filled: which drive it is.
//!
//! In: what stands on what, with the legs that failed or are being filled. Out: the drive where that can be
//! known, else the volume, with what is known of the leg.

use std::collections::BTreeSet;

use linerate_model::disk::{Disk, DiskEvidence, DiskKind, DiskLeg, DiskRepair, FilledLegs};

use super::tree::Layout;

/// Devices, and what is wrong with them.
pub(super) type Found = Vec<(String, DiskEvidence)>;

/// All legs that failed.
pub(super) fn degraded(layout: &Layout) -> Found {
    let mut found = Found::new();
    for disk in layout.disks() {
        for leg in &disk.failed {
            let (device, leg) = named(layout, disk, leg);
            let repair = match disk.kind {
                DiskKind::Array => DiskRepair::Mdadm(disk.device.clone()),
                _ => DiskRepair::Lvm(disk.name.clone()),
            };
            found.push((device.to_owned(), DiskEvidence::Degraded { volume: disk.called(), leg, repair }));
        }
    }
    found
}

/// All devices of which legs are being filled, one finding for each.
pub(super) fn rebuilding(layout: &Layout) -> Found {
    layout.disks().filter_map(|disk| rebuilt(layout, disk)).collect()
}

fn rebuilt(layout: &Layout, disk: &Disk) -> Option<(String, DiskEvidence)> {
    let (first, more) = disk.rebuilding.split_first()?;
    let whole = disk.device.as_str();
    let (device, filled) = match disk.kind {
        DiskKind::Replicated => (whole, FilledLegs::Side),
        _ if more.is_empty() => {
            let (device, leg) = named(layout, disk, first);
            (device, FilledLegs::One(leg))
        }
        _ if are_all(layout, disk) => (whole, FilledLegs::All),
        _ => (whole, FilledLegs::Several(disk.rebuilding.len())),
    };
    Some((device.to_owned(), DiskEvidence::Rebuilding { volume: disk.called(), filled }))
}

/// Whether all legs that are left are being filled: then there is none that they could be filled from.
fn are_all(layout: &Layout, disk: &Disk) -> bool {
    let below = disk.on.iter().filter_map(|below| layout.get(below));
    let images = below.filter(|b| ["_rimage_", "_mimage_"].iter().any(|part| b.name.contains(part))).count();
    // A volume also stands on the metadata of its legs, and names legs by their places.
    let left = if images > 0 {
        images.saturating_sub(disk.failed.len())
    } else {
        disk.on.iter().filter(|leg| !disk.failed.contains(leg)).count()
    };
    left > 0 && disk.rebuilding.len() >= left
}

/// Drives below devices of which legs are being filled: what they carry is not what programs ask for.
pub(super) fn drives_of_rebuilding(layout: &Layout) -> BTreeSet<&str> {
    let filled = layout.disks().filter(|disk| !disk.rebuilding.is_empty());
    filled.flat_map(|disk| layout.drives_of(&disk.device)).collect()
}

/// The drive of a leg, or else the device that has it; and the leg.
fn named<'a>(layout: &'a Layout, disk: &'a Disk, leg: &'a str) -> (&'a str, DiskLeg) {
    let device = leg_of(layout, disk, leg).unwrap_or(&disk.device);
    let leg = if device == disk.device {
        DiskLeg::Number(leg.to_owned())
    } else {
        DiskLeg::Drive(layout.called(device))
    };
    (device, leg)
}

/// The drive of a leg: by its own name, or by the place in the name of the image that stands on it
/// (`vg0/home_rimage_7`).
fn leg_of<'a>(layout: &'a Layout, disk: &'a Disk, leg: &'a str) -> Option<&'a str> {
    if layout.get(leg).is_some() {
        return Some(leg);
    }
    let ends = [format!("_rimage_{leg}"), format!("_mimage_{leg}")];
    let images = disk.on.iter().filter_map(|below| layout.get(below));
    let image = images.into_iter().find(|image| ends.iter().any(|end| image.name.ends_with(end)))?;
    let drives = layout.drives_of(&image.device);
    // The half of an older mirror has many drives, and nobody says which.
    if drives.len() == 1 { drives.first().copied() } else { Some(&image.device) }
}
