//! Arrays of md: RAID10 with two copies beside each other, RAID5 and RAID6. One device for the array, and the
//! right geometry by itself. An array takes its drives whole: a volume of a given size is one of LVM on it.

use linerate_model::step::{LvmKind, LvmStep, MdLevel, MdStep, Step};

use super::layout::{Layout, LayoutTool, chunk_kib, filesystem};
use super::levels::Level;
use super::lvm::{self, DATA_BEGINS, EXTENT_BYTES};
use super::spec::VolumeSpec;

/// The layout of a level.
pub(super) struct Md(pub(super) Level);

/// Space that mdadm 3.3 and later leave before the data for a later change of shape: halved until it is below
/// a thousandth of the drive (`super1.c`), bytes.
const HEADROOM_BYTES: u64 = 128 << 20;
/// Superblock and bitmap before it, bytes.
const SUPER_BYTES: u64 = 1 << 20;
/// What one entry of the stripe cache takes of each drive, bytes; entries that serve a busy array better than
/// the kernel's 256.
const CACHE_BYTES: u64 = 4096;
const CACHE_ENTRIES: u64 = 4096;

impl Md {
    fn array(&self, spec: &VolumeSpec) -> MdStep {
        let level = match self.0 {
            Level::Raid10 => MdLevel::Raid10,
            Level::Raid5 => MdLevel::Raid5,
            Level::Raid6 => MdLevel::Raid6,
        };
        MdStep { name: spec.name.clone(), level, chunk_kib: chunk_kib(spec), devices: self.order(spec) }
    }

    fn array_bytes(&self, spec: &VolumeSpec) -> u64 {
        self.shape(spec).data_drives() * self.usable_bytes(spec.drive_bytes, spec.chunk_bytes)
    }

    /// A row of chunks, to which what lies on the array is aligned.
    fn row_bytes(&self, spec: &VolumeSpec) -> u64 {
        self.shape(spec).data_drives() * spec.chunk_bytes
    }

    fn parity_remarks(&self, spec: &VolumeSpec) -> Vec<String> {
        if self.0 == Level::Raid10 {
            return Vec::new();
        }
        let cache = CACHE_ENTRIES * CACHE_BYTES * spec.drives();
        let hole = "after a power cut the rows that were being written are compared again; a drive that fails before that has ended damages them (the write hole)";
        let closed = match self.0 {
            Level::Raid5 => {
                "`--write-journal DRIVE` or, without another drive, `--consistency-policy=ppl` instead of \
                 the bitmap closes it (mdadm(8))"
            }
            _ => "`--write-journal DRIVE` instead of the bitmap closes it (mdadm(8))",
        };
        vec![
            format!("{hole}; {closed}"),
            format!(
                "small writes wait for the stripe cache: {CACHE_ENTRIES} in /sys/block/mdN/md/stripe_cache_size take {} MiB of memory and hold more rows than the kernel's 256",
                cache >> 20
            ),
        ]
    }
}

impl Layout for Md {
    fn name(&self) -> &'static str {
        match self.0 {
            Level::Raid10 => "md",
            Level::Raid5 => "md-raid5",
            Level::Raid6 => "md-raid6",
        }
    }

    fn tool(&self) -> LayoutTool {
        LayoutTool::Md
    }

    fn level(&self) -> Level {
        self.0
    }

    fn title(&self) -> &'static str {
        match self.0 {
            Level::Raid10 => "md RAID10 (near 2)",
            Level::Raid5 => "md RAID5",
            Level::Raid6 => "md RAID6",
        }
    }

    fn usable_bytes(&self, drive_bytes: u64, chunk_bytes: u64) -> u64 {
        let mut headroom = HEADROOM_BYTES;
        while headroom << 10 > drive_bytes {
            headroom >>= 1;
        }
        // The data begin at a whole MiB.
        let begins = (headroom + SUPER_BYTES) >> 20 << 20;
        (drive_bytes - begins) / chunk_bytes * chunk_bytes
    }

    // Extents of a group on the array begin at a whole row.
    fn bytes_max(&self, spec: &VolumeSpec) -> u64 {
        let array = self.array_bytes(spec);
        if spec.volume_bytes.is_none() {
            return array;
        }
        let begins = DATA_BEGINS.next_multiple_of(self.row_bytes(spec));
        array.saturating_sub(begins) / EXTENT_BYTES * EXTENT_BYTES
    }

    fn grain_bytes(&self, _spec: &VolumeSpec) -> u64 {
        EXTENT_BYTES
    }

    fn synced_bytes(&self, spec: &VolumeSpec, _bytes: u64) -> u64 {
        self.array_bytes(spec)
    }

    fn remarks(&self, spec: &VolumeSpec) -> Vec<String> {
        let mut remarks = vec![
            "the geometry of the filesystem is given here too, so that it is the same on every layout"
                .to_owned(),
            format!(
                "a spare is added by `mdadm /dev/md/{} --add DRIVE`; write the line of `mdadm --detail --scan` into mdadm.conf",
                spec.name
            ),
        ];
        remarks.extend(self.parity_remarks(spec));
        if spec.volume_bytes.is_some() {
            remarks.push(format!(
                "an array takes its drives whole, so that the volume of the given size is one of LVM on it; the rest of the group {} stays free for another volume (`vgs {}`)",
                spec.group, spec.group
            ));
        }
        remarks
    }

    fn device(&self, spec: &VolumeSpec) -> String {
        if spec.volume_bytes.is_some() { lvm::path(spec) } else { self.array(spec).path() }
    }

    fn steps(&self, spec: &VolumeSpec, bytes: u64) -> Vec<Step> {
        let array = self.array(spec);
        let on_it = vec![array.path()];
        let mut steps = vec![Step::Md(array)];
        if spec.volume_bytes.is_some() {
            let align_kib = u32::try_from(self.row_bytes(spec) >> 10).ok();
            steps.push(Step::Lvm(LvmStep::Drives { devices: on_it.clone(), align_kib }));
            steps.push(Step::Lvm(LvmStep::Group { name: spec.group.clone(), devices: on_it.clone() }));
            steps.push(Step::Lvm(LvmStep::Volume {
                group: spec.group.clone(),
                name: spec.name.clone(),
                kind: LvmKind::Linear,
                chunk_kib: chunk_kib(spec),
                devices: on_it,
                extents: lvm::extents(spec, bytes),
            }));
        }
        steps.push(filesystem(spec, self.shape(spec), self.device(spec), bytes));
        steps
    }
}
