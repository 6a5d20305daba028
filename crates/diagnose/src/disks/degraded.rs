//! Arrays and volumes that go on without a leg: which drive it was, and what to do.
//!
//! In: what stands on what, with the legs that failed. Out: the drive where that can be known, else the volume, and a sentence with the remedy.

use linerate_model::disk::{Disk, DiskKind, DiskTrouble};

use super::tree::Layout;

/// All of them.
pub(super) fn degraded(layout: &Layout) -> Vec<(String, DiskTrouble, String)> {
    let mut found = Vec::new();
    for disk in layout.disks() {
        for leg in &disk.failed {
            let device = leg_of(layout, disk, leg).unwrap_or(&disk.device);
            let called = layout.called(&disk.device);
            let which = if device == disk.device {
                format!("its leg number {leg}, counted from 0")
            } else {
                layout.called(device)
            };
            let sentence = format!(
                "{called} is degraded: it goes on without {which}, and what that drive held has one copy less; {}",
                remedy(disk)
            );
            found.push((device.to_owned(), DiskTrouble::Degraded, sentence));
        }
    }
    found
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

/// The drive of a leg: by its own name, or by the place in the name of the image that stands on it (`vg0/home_rimage_7`).
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
