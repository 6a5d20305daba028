//! What a volume is made of, as far as it decides how fast it can be: drives of a class, copies, parity,
//! pieces.
//!
//! What comes in: the facts of a host and the name of a device, or a plan. What goes out: a [`Volume`]. It
//! follows the stack down through partitions, LVM, md, DRBD and multipath to the drives, and takes those of
//! one volume for equal.

use linerate_model::disk::DiskKind;
use linerate_model::fact::HostFacts;
use schemars::JsonSchema;
use serde::Serialize;

use super::link::{self, DriveLink};
use super::readings::{number, text};
use super::tree::Layout;

/// What kind of drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// With rotating discs and one set of heads.
    Rotating,
    /// Without moving parts, behind SATA or SAS.
    Solid,
    /// Without moving parts, on PCI Express.
    Nvme,
    /// What a hypervisor shows: nobody knows from inside what stands behind it.
    Virtual,
    /// What a RAID controller or a storage array shows: any number of drives and a memory of its own.
    Controller,
    /// A file or memory as a device.
    Made,
}

/// What a volume is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeMembers {
    /// Class of its drives.
    pub class: Class,
    /// Drives.
    pub drives: u32,
    /// How often each block is kept.
    pub copies: u32,
    /// Whether only the first copy answers reads, as of the older mirror of LVM (`choose_mirror()` of
    /// drivers/md/dm-raid1.c).
    pub reads_one: bool,
    /// Drives' worth of parity in a row of pieces: 1 for RAID 5, 2 for RAID 6.
    pub parity: u32,
    /// Bytes that go to one drive before the next one has its turn; `None` where nothing is striped.
    pub chunk_bytes: Option<u64>,
    /// Whether the drives have a write cache that a flush has to empty; `None` where nobody says.
    pub write_back: Option<bool>,
    /// The wire to each drive, of the slowest; `None` where nobody says.
    pub link: Option<DriveLink>,
    /// File system on it: `xfs`; empty for a device.
    pub filesystem: String,
    /// What stands between, from the top: `LVM`, `DRBD`, `md raid10`, `partition`, `encryption`.
    pub layers: Vec<String>,
}

impl VolumeMembers {
    /// A single drive.
    #[must_use]
    pub fn drive(class: Class) -> Self {
        Self {
            class,
            drives: 1,
            copies: 1,
            reads_one: false,
            parity: 0,
            chunk_bytes: None,
            write_back: None,
            link: None,
            filesystem: String::new(),
            layers: Vec::new(),
        }
    }

    /// The same with a file system on it.
    #[must_use]
    pub fn under(self, filesystem: &str) -> Self {
        Self { filesystem: filesystem.to_owned(), ..self }
    }

    /// Drives whose content is not a copy or parity of others: what writes in a row are spread over.
    #[must_use]
    pub fn data_drives(&self) -> u32 {
        (self.drives / self.copies.max(1)).saturating_sub(self.parity).max(1)
    }

    /// As far as its rates go: one whose reads all go to the first copy is no faster than that copy, whatever
    /// is written to the others meanwhile.
    #[must_use]
    pub fn at_work(&self) -> Self {
        let copies = self.copies.max(1);
        if self.reads_one {
            Self { drives: self.drives / copies, copies: 1, reads_one: false, ..self.clone() }
        } else {
            self.clone()
        }
    }
}

/// Stacks are a handful of layers deep.
const DEPTH_MAX: usize = 16;

/// The volume that a device is; `None` for a device that the facts do not know.
#[must_use]
pub fn volume(layout: &Layout, facts: &HostFacts, device: &str) -> Option<VolumeMembers> {
    below(layout, facts, device, 0)
}

/// Models that hypervisors give to their drives, by their beginning: QEMU, VirtualBox, VMware and Hyper-V,
/// Amazon, Google.
const OF_HYPERVISORS: [&str; 7] = [
    "QEMU",
    "VBOX",
    "Virtual disk",
    "Virtual Disk",
    "Amazon Elastic Block Store",
    "nvme_card",
    "PersistentDisk",
];
/// Models that RAID controllers and storage arrays show in the place of their drives, by their beginning
/// (hardware table of multipath-tools; PERC is Dell's, LOGICAL VOLUME that of HP's Smart Array, MR9 and
/// MegaRAID are of LSI and its heirs, LUN is NetApp's).
const OF_CONTROLLERS: [&str; 10] = [
    "PERC",
    "LOGICAL VOLUME",
    "Logical Volume",
    "ServeRAID",
    "MegaRAID",
    "MR9",
    "LUN",
    "SYMMETRIX",
    "VRAID",
    "OPEN-",
];

fn class(layout: &Layout, facts: &HostFacts, device: &str) -> Class {
    let starts = |names: &[&str]| names.iter().any(|name| device.starts_with(name));
    let model = text(facts, device, "model").unwrap_or_default();
    let is_of = |models: &[&str]| models.iter().any(|start| model.starts_with(start));
    match layout.get(device).map(|d| d.kind) {
        _ if starts(&["vd", "xvd"]) || is_of(&OF_HYPERVISORS) => Class::Virtual,
        _ if is_of(&OF_CONTROLLERS) => Class::Controller,
        _ if starts(&["nvme"]) => Class::Nvme,
        Some(DiskKind::Rotating) => Class::Rotating,
        Some(DiskKind::Made) => Class::Made,
        _ if starts(&["sd"]) => Class::Solid,
        _ => Class::Virtual,
    }
}

fn below(layout: &Layout, facts: &HostFacts, device: &str, depth: usize) -> Option<VolumeMembers> {
    let disk = layout.get(device).filter(|_| depth < DEPTH_MAX)?;
    if disk.on.is_empty() {
        let write_back = text(facts, device, "write_cache").map(|cache| cache.contains("back"));
        let class = class(layout, facts, device);
        return Some(VolumeMembers {
            write_back,
            link: link::of(facts, device),
            ..VolumeMembers::drive(class)
        });
    }
    // Metadata of LVM's arrays stands on the same drives as the images.
    let is_meta = |name: &str| text(facts, name, "dm_name").is_some_and(|n| n.contains("_rmeta_"));
    let members: Vec<&String> = disk.on.iter().filter(|name| !is_meta(name)).collect();
    let mut one = below(layout, facts, members.first()?, depth + 1)?;
    let count = u32::try_from(members.len()).unwrap_or(u32::MAX);
    let (word, shape) = match disk.kind {
        DiskKind::Array => array(facts, device, count),
        DiskKind::Volume => mapped(facts, device, &members, count),
        DiskKind::Replicated => ("DRBD".to_owned(), Shape::One),
        DiskKind::Partition => ("partition".to_owned(), Shape::One),
        // A drive with several ways to it.
        _ => ("multipath".to_owned(), Shape::One),
    };
    match shape {
        Shape::One => {}
        Shape::Many { copies, parity, chunk } => {
            one.drives = one.drives.saturating_mul(count);
            one.copies = one.copies.saturating_mul(copies.max(1));
            one.reads_one |= copies > 1 && word.ends_with(" mirror");
            one.parity = one.parity.max(parity);
            one.chunk_bytes = chunk.or(one.chunk_bytes);
            // All wait for the slowest.
            let others = members.iter().skip(1).filter_map(|m| below(layout, facts, m, depth + 1)?.link);
            one.link =
                one.link.into_iter().chain(others).min_by(|a, b| a.bytes_per_s.total_cmp(&b.bytes_per_s));
        }
    }
    one.layers.insert(0, word);
    Some(one)
}

enum Shape {
    /// It passes everything on to one device below.
    One,
    Many {
        copies: u32,
        parity: u32,
        chunk: Option<u64>,
    },
}

/// An array of md by its level and layout (md(4): near copies in the low byte, far copies in the next).
fn array(facts: &HostFacts, device: &str, count: u32) -> (String, Shape) {
    let level = text(facts, device, "md_level").unwrap_or_default();
    let layout = number(facts, device, "md_layout").unwrap_or(0x102);
    let (copies, parity) = match level {
        "raid1" => (count, 0),
        "raid10" => (((layout & 0xff) * ((layout >> 8) & 0xff)).clamp(1, 255) as u32, 0),
        "raid4" | "raid5" => (1, 1),
        "raid6" => (1, 2),
        _ => (1, 0),
    };
    let chunk = number(facts, device, "md_chunk_bytes").filter(|bytes| *bytes > 0);
    (format!("md {level}").trim_end().to_owned(), Shape::Many { copies, parity, chunk })
}

/// A volume of the device mapper. LVM's arrays do not name their level in `/sys`: images, the size of a piece
/// and that of a row tell it. LVM says of a raid10 that its row is as long as all images together, also of
/// the copies.
fn mapped(facts: &HostFacts, device: &str, members: &[&String], count: u32) -> (String, Shape) {
    let kind = text(facts, device, "dm_kind").unwrap_or_default();
    let word = match kind {
        "LVM" => "LVM",
        "CRYPT" => "encryption",
        "mpath" => return ("multipath".to_owned(), Shape::One),
        _ => "device mapper",
    };
    if count == 1 {
        return (word.to_owned(), Shape::One);
    }
    let has =
        |part: &str| members.iter().any(|m| text(facts, m, "dm_name").is_some_and(|n| n.contains(part)));
    let chunk = number(facts, device, "minimum_io_bytes").filter(|bytes| *bytes > 4096);
    let row = number(facts, device, "optimal_io_bytes").filter(|bytes| *bytes > 0);
    let pieces = row.zip(chunk).map(|(row, chunk)| row / chunk);
    let all = u64::from(count);
    let (level, copies, parity) = match pieces {
        _ if has("_mimage_") => ("mirror", count, 0),
        Some(n) if has("_rimage_") && n == all && count.is_multiple_of(2) => ("raid10", 2, 0),
        Some(n) if has("_rimage_") && n + 1 == all => ("raid5", 1, 1),
        Some(n) if has("_rimage_") && n + 2 == all => ("raid6", 1, 2),
        _ if has("_rimage_") => ("raid1", count, 0),
        Some(_) => ("striped", 1, 0),
        // One part after the other: only one drive works at a time.
        None => return (format!("{word}, one part after the other"), Shape::One),
    };
    (format!("{word} {level}"), Shape::Many { copies, parity, chunk })
}
