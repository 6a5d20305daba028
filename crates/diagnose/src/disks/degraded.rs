//! Arrays and volumes that go on without a leg, and those of which legs are being filled: which drive it is,
//! and what to do.
//!
//! In: what stands on what, with the legs that failed or are being filled. Out: the drive where that can be
//! known, else the volume, and a sentence, with the remedy where there is something to do.

use std::collections::BTreeSet;

use linerate_model::disk::{Disk, DiskKind, DiskTrouble};

use super::tree::Layout;

/// Device, what is wrong with it, and a sentence.
type Told = (String, DiskTrouble, String);

/// What goes with a leg that is being filled.
const LESS: &str = "and until that ends there is one copy less; its legs are uneven because of it";
/// After an unclean stop, and when the device is new: no copy is missing, and none is known to be the right
/// one.
const IN_LINE: &str = "its copies are being brought in line with each other, \
     and are not proven equal until that ends";
/// Several legs: beside a spare that waits it cannot be told which of the two it is.
const EITHER: &str = "of its legs are being filled or brought in line with each other, \
     and until that ends a copy is missing or not proven equal; its legs may be uneven because of it";

/// All legs that failed.
pub(super) fn degraded(layout: &Layout) -> Vec<Told> {
    let mut found = Vec::new();
    for disk in layout.disks() {
        for leg in &disk.failed {
            let (device, which) = named(layout, disk, leg);
            let sentence = format!(
                "{} is degraded: it goes on without {which}, and what that drive held has one copy less; {}",
                layout.called(&disk.device),
                remedy(disk)
            );
            found.push((device.to_owned(), DiskTrouble::Degraded, sentence));
        }
    }
    found
}

/// All devices of which legs are being filled, one finding for each.
pub(super) fn rebuilding(layout: &Layout) -> Vec<Told> {
    layout.disks().filter_map(|disk| rebuilt(layout, disk)).collect()
}

fn rebuilt(layout: &Layout, disk: &Disk) -> Option<Told> {
    let (first, more) = disk.rebuilding.split_first()?;
    let whole = disk.device.as_str();
    let (device, filled) = match disk.kind {
        DiskKind::Replicated => {
            (whole, format!("rebuilt: what its peer has is being copied to this side, {LESS}"))
        }
        _ if more.is_empty() => {
            let (device, which) = named(layout, disk, first);
            (device, format!("rebuilt: {which} is being filled, {LESS}"))
        }
        _ if are_all(layout, disk) => (whole, format!("synchronised: {IN_LINE}")),
        _ => (whole, format!("rebuilt: {} {EITHER}", disk.rebuilding.len())),
    };
    let sentence = format!("{} is being {filled}", layout.called(whole));
    Some((device.to_owned(), DiskTrouble::Rebuilding, sentence))
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

/// The drive of a leg, or else the device that has it; and what the leg is called.
fn named<'a>(layout: &'a Layout, disk: &'a Disk, leg: &'a str) -> (&'a str, String) {
    let device = leg_of(layout, disk, leg).unwrap_or(&disk.device);
    let which = if device == disk.device {
        format!("its leg number {leg}, counted from 0")
    } else {
        layout.called(device)
    };
    (device, which)
}

fn remedy(disk: &Disk) -> String {
    if disk.kind == DiskKind::Array {
        format!("replace it: `mdadm /dev/{} --add NEW-DRIVE`", disk.device)
    } else {
        format!(
            "replace it: `vgextend` with a new drive, then `lvconvert --repair {0}`; a drive that only was away: `lvchange --refresh {0}`",
            disk.name
        )
    }
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
