//! What guests boot: the distribution's own kernel, and a first disk in memory made of its own programs.
//!
//! In: packages of the distribution that this runs on, and the lists here. Out: a kernel and an initramfs in a folder that is kept
//! for the next time. Everything is unpacked into that folder; nothing is installed and nothing on the host is changed. Another program
//! in the guests is one word in `PROGRAMS` and its package in `PACKAGES`.

mod cpio;
mod packages;
mod tree;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::error::{LabError, Result};

/// Packages with everything that they need; taken without recommendations.
pub(super) const PACKAGES: &[&str] = &[
    "linux-image-cloud-amd64",
    "bash",
    "btrfs-progs",
    "busybox-static",
    "coreutils",
    "dmsetup",
    "dropbear-bin",
    "drbd-utils",
    "e2fsprogs",
    "fdisk",
    "iproute2",
    "kmod",
    "libgcc-s1",
    "lvm2",
    "mdadm",
    "mount",
    "util-linux",
    "xfsprogs",
];

/// Programs of the guests, beside those of busybox, which stand in for all that is not named here.
pub(super) const PROGRAMS: &[&str] = &[
    "bash",
    "busybox",
    "blkdiscard",
    "blkid",
    "blockdev",
    "btrfs",
    "dd",
    "depmod",
    "dmsetup",
    "drbdadm",
    "drbdmeta",
    "drbdsetup",
    "dropbear",
    "dropbearkey",
    "dumpe2fs",
    "e2fsck",
    "findmnt",
    "fsck",
    "ip",
    "kmod",
    "losetup",
    "lsblk",
    "lsmod",
    "lvm",
    "mdadm",
    "mount",
    "mkfs",
    "mkfs.btrfs",
    "mkfs.ext4",
    "mkfs.xfs",
    "mke2fs",
    "modprobe",
    "mount",
    "resize2fs",
    "rmmod",
    "sfdisk",
    "sha256sum",
    "sort",
    "stat",
    "sync",
    "tc",
    "timeout",
    "truncate",
    "tune2fs",
    "umount",
    "wipefs",
    "xfs_db",
    "xfs_growfs",
    "xfs_info",
    "xfs_io",
    "xfs_repair",
    "fsck.ext4",
    "lvchange",
    "lvconvert",
    "lvcreate",
    "lvextend",
    "lvremove",
    "lvs",
    "pvcreate",
    "pvremove",
    "pvs",
    "vgchange",
    "vgcreate",
    "vgextend",
    "vgreduce",
    "vgremove",
    "vgs",
];

/// Kernel modules of the guests; what they need comes with them. A name may be built into the kernel instead.
pub(super) const MODULES: &[&str] = &[
    "brd",
    "btrfs",
    "crc32c_generic",
    "dm-delay",
    "dm-flakey",
    "dm-log-writes",
    "dm-mirror",
    "dm-mod",
    "dm-raid",
    "dm-snapshot",
    "dm-thin-pool",
    "drbd",
    "ext4",
    "failover",
    "jbd2",
    "loop",
    "null_blk",
    "raid0",
    "raid1",
    "raid10",
    "raid456",
    "sch_fq",
    "sch_netem",
    "sch_tbf",
    "scsi_debug",
    "sd_mod",
    "tcp_bbr",
    "virtio_blk",
    "virtio_net",
    "virtio_pci",
    "virtio_rng",
    "virtio_scsi",
    "xfs",
    "zram",
];

/// Files that are ours: path in the guest, mode, contents.
pub(super) const FILES: &[(&str, u32, &str)] = &[
    ("init", 0o755, include_str!("guest/init.sh")),
    ("root/.bashrc", 0o644, include_str!("guest/bashrc")),
    ("etc/lvm/lvmlocal.conf", 0o644, include_str!("guest/lvmlocal.conf")),
    ("etc/drbd.conf", 0o644, "include \"drbd.d/global_common.conf\";\ninclude \"drbd.d/*.res\";\n"),
    ("etc/drbd.d/global_common.conf", 0o644, "global { usage-count no; }\ncommon { }\n"),
    (
        "etc/passwd",
        0o644,
        "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
    ),
    ("etc/group", 0o644, "root:x:0:\ndisk:x:6:\nnogroup:x:65534:\n"),
    ("etc/shadow", 0o600, "root:*:19000:0:99999:7:::\n"),
    ("etc/shells", 0o644, "/bin/bash\n/bin/sh\n"),
];

/// Names the folder in which images are kept; without it the user's cache.
pub const FOLDER_VARIABLE: &str = "LINERATE_LAB_IMAGES";

/// A kernel and its first disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The kernel, as the distribution packs it.
    pub kernel: PathBuf,
    /// The compressed initramfs.
    pub initramfs: PathBuf,
}

impl Image {
    /// The image of these lists: the one that was made before, or a new one. `progress` is told what takes long.
    ///
    /// # Errors
    /// The packages cannot be had, or lack something.
    pub fn ready(progress: &mut dyn FnMut(&str)) -> Result<Self> {
        let folder = folder()?.join(format!("image-{:016x}", fingerprint()));
        fs::create_dir_all(&folder)
            .map_err(LabError::at(format!("making the folder {}", folder.display())))?;
        // Two labs at once: the second one waits for the image of the first.
        let lock = File::create(folder.join("lock"))
            .map_err(LabError::at(format!("locking {}", folder.display())))?;
        lock.lock().map_err(LabError::at(format!("locking {}", folder.display())))?;
        let image = Self { kernel: folder.join("kernel"), initramfs: folder.join("initramfs.gz") };
        if !(image.kernel.is_file() && image.initramfs.is_file()) {
            image.make(&folder, progress)?;
        }
        Ok(image)
    }

    /// The folder is left with the image alone; what was unpacked goes.
    fn make(&self, folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<()> {
        progress(&format!("getting {} packages with what they need (once, about 90 MB) …", PACKAGES.len()));
        let archives = folder.join("archives");
        packages::download(PACKAGES, &archives)?;
        progress("unpacking them …");
        let unpacked = folder.join("unpacked");
        packages::unpack(&archives, &unpacked)?;
        progress("making the image of the guests …");
        let root = folder.join("root");
        let _ = fs::remove_dir_all(&root);
        let kernel = tree::fill(&unpacked, &root)?;
        let new = folder.join("initramfs.new");
        let step = || format!("packing {}", new.display());
        let file = File::create(&new).map_err(LabError::at(step()))?;
        let packer = GzEncoder::new(std::io::BufWriter::new(file), Compression::fast());
        cpio::write(&root, packer)
            .and_then(|packer| packer.finish().map(drop))
            .map_err(LabError::at(step()))?;
        fs::copy(&kernel, &self.kernel).map_err(LabError::at(format!("copying {}", kernel.display())))?;
        // The initramfs comes last: its name means that all is there.
        fs::rename(&new, &self.initramfs).map_err(LabError::at(step()))?;
        for folder in [archives, unpacked, root] {
            let _ = fs::remove_dir_all(folder);
        }
        Ok(())
    }
}

fn folder() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    variable(FOLDER_VARIABLE).or_else(|| Some(cache()?.join("linerate-lab"))).ok_or_else(|| {
        LabError::Unknown(format!(
            "no folder for the image of the guests\nhint: set HOME or {FOLDER_VARIABLE}"
        ))
    })
}

/// A number that changes with everything that the image is made of, but for the versions of the packages.
fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    (PACKAGES, PROGRAMS, MODULES, FILES).hash(&mut hasher);
    fs::read_to_string("/etc/os-release").unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
