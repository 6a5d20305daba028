//! Filesystems of a planned volume: the step that makes one, and the limits of its program, which are checked
//! before a drive is touched.

use linerate_model::step::{FilesystemStep, Step};

/// Which filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filesystem {
    /// XFS.
    Xfs,
    /// ext4.
    Ext4,
}

/// All of them, the one that is made unless another is asked for first.
pub const FILESYSTEMS: [Filesystem; 2] = [Filesystem::Xfs, Filesystem::Ext4];

const MIB: u64 = 1 << 20;
/// Smallest filesystem that `mkfs.xfs` makes (`validate_supported()` of xfsprogs 5.19 and later).
const XFS_BYTES_MIN: u64 = 300 * MIB;
/// Below this size `mkfs.xfs` does not trust the stripes that a device reports. With stripes it makes eight
/// groups where it makes four without, and the log has to lie in one of them and to have 64 MiB at least:
/// that needs 512.4 MiB with eight and 293 MiB with four.
const XFS_SMALL_BYTES: u64 = 1024 * MIB;
/// Groups of a small one, as without stripes.
const XFS_SMALL_GROUPS: u32 = 4;
/// Largest unit of the log, and what `mkfs.xfs` takes instead of a larger one (`calc_stripe_factors()`), KiB.
const XFS_LOG_UNIT_KIB_MAX: u32 = 256;
const XFS_LOG_UNIT_KIB: u32 = 32;
/// Smallest ext4 with a journal: 2,048 blocks of 4 KiB (`ext2fs_default_journal_size()` of e2fsprogs).
const EXT4_BYTES_MIN: u64 = 8 * MIB;

impl Filesystem {
    /// As it is given on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Xfs => "xfs",
            Self::Ext4 => "ext4",
        }
    }

    /// For people.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Xfs => "XFS",
            Self::Ext4 => "ext4",
        }
    }

    /// Smallest volume that its program accepts.
    #[must_use]
    pub fn bytes_min(self) -> u64 {
        match self {
            Self::Xfs => XFS_BYTES_MIN,
            Self::Ext4 => EXT4_BYTES_MIN,
        }
    }

    /// The step that makes it on a volume of so many bytes.
    #[must_use]
    pub fn step(self, device: String, bytes: u64, (chunk_kib, stripes): (u32, u32)) -> Step {
        Step::Filesystem(match self {
            Self::Xfs => FilesystemStep::Xfs {
                device,
                chunk_kib,
                stripes,
                groups: (bytes < XFS_SMALL_BYTES).then_some(XFS_SMALL_GROUPS),
                log_unit_kib: (chunk_kib > XFS_LOG_UNIT_KIB_MAX).then_some(XFS_LOG_UNIT_KIB),
            },
            Self::Ext4 => FilesystemStep::Ext4 { device, chunk_kib, stripes },
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;
    use std::process::{Command, Output};

    use linerate_model::step::Act;

    use super::*;

    /// Does the step to a sparse file of this size.
    fn make(filesystem: Filesystem, path: &Path, bytes: u64, geometry: (u32, u32)) -> Output {
        File::create(path).unwrap().set_len(bytes).unwrap();
        let step = filesystem.step(path.to_str().unwrap().to_owned(), bytes, geometry);
        let Act::Run(argv) = step.operation().act() else { panic!("it runs a program") };
        Command::new(&argv[0]).args(&argv[1..]).stdin(std::process::Stdio::null()).output().unwrap()
    }

    /// Chunks in KiB and drives with different data, and sizes around every limit of the programs.
    fn grid(least: u64) -> impl Iterator<Item = (u64, (u32, u32))> {
        let sizes = [least, least + 4096, 316 * MIB, 432 * MIB, 512 * MIB, 524 * MIB, 1023 * MIB];
        let larger = [XFS_SMALL_BYTES, XFS_SMALL_BYTES + 4 * MIB, 3 << 30];
        let geometries = [4, 64, 256, 512, 4096]
            .into_iter()
            .flat_map(|chunk| [1, 2, 5, 18, 126, 250].map(|stripes| (chunk, stripes)));
        geometries
            .flat_map(move |geometry| sizes.into_iter().chain(larger).map(move |bytes| (bytes, geometry)))
    }

    #[test]
    fn the_real_tool_makes_xfs_of_every_size_and_geometry_that_is_planned() {
        let test = "the_real_tool_makes_xfs_of_every_size_and_geometry_that_is_planned";
        if !linerate_testkit::has(test, "mkfs.xfs", "xfsprogs") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let least = Filesystem::Xfs.bytes_min();
        for (bytes, geometry) in grid(least) {
            let made = make(Filesystem::Xfs, &path, bytes, geometry);
            assert!(made.status.success(), "{bytes} {geometry:?}: {made:?}");
        }
        assert!(!make(Filesystem::Xfs, &path, least - 4096, (64, 18)).status.success());
    }

    #[test]
    fn the_real_tool_makes_ext4_of_every_size_and_geometry_that_is_planned() {
        let test = "the_real_tool_makes_ext4_of_every_size_and_geometry_that_is_planned";
        if !linerate_testkit::has(test, "mkfs.ext4", "e2fsprogs") {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("volume");
        let least = Filesystem::Ext4.bytes_min();
        let lacks = |made: &Output| String::from_utf8_lossy(&made.stderr).contains("too small for a journal");
        // It takes any geometry, and a tenth of a second for each.
        for (bytes, geometry) in grid(least).step_by(7) {
            let made = make(Filesystem::Ext4, &path, bytes, geometry);
            assert!(made.status.success() && !lacks(&made), "{bytes} {geometry:?}: {made:?}");
        }
        assert!(lacks(&make(Filesystem::Ext4, &path, least - 4096, (64, 18))));
    }
}
