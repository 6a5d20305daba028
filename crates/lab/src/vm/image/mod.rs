//! What guests boot: the distribution's own kernel, and a root file system made of its own programs: in
//! memory, or for systemd on a drive that is read as it is needed.
//!
//! In: packages of the distribution that this runs on, and the lists of `contents.rs` or `systemd.rs`. Out: a
//! kernel, an initramfs and perhaps a drive in a folder that is kept for the next time. Everything is
//! unpacked into that folder; nothing is installed and nothing on the host is changed.

mod contents;
mod cpio;
mod packages;
mod systemd;
mod tree;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use self::contents::{FILES, MODULES, PACKAGES, PROGRAMS};
use super::topology::GuestSystem;
use crate::error::{LabError, Result};

/// Names the folder in which images are kept; without it the user's cache.
pub const FOLDER_VARIABLE: &str = "LINERATE_LAB_IMAGES";

/// Raised when images are made in another manner of the same lists.
const FORMAT: u32 = 2;

/// A kernel and its first disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// The kernel, as the distribution packs it.
    pub kernel: PathBuf,
    /// The initramfs.
    pub initramfs: PathBuf,
    /// The drive with the root file system, which no guest may write; without it the initramfs is all.
    pub root: Option<PathBuf>,
}

impl Image {
    /// The image of the lists: the one that was made before, or a new one. Long steps go to `progress`.
    ///
    /// # Errors
    /// The packages cannot be had, or lack something.
    pub fn ready(system: GuestSystem, progress: &mut dyn FnMut(&str)) -> Result<Self> {
        let folder = folder()?.join(format!("image-{:016x}", fingerprint(system)));
        fs::create_dir_all(&folder)
            .map_err(LabError::at(format!("making the folder {}", folder.display())))?;
        // Two labs at once: the second one waits for the image of the first.
        let lock = File::create(folder.join("lock"))
            .map_err(LabError::at(format!("locking {}", folder.display())))?;
        lock.lock().map_err(LabError::at(format!("locking {}", folder.display())))?;
        let root = (system == GuestSystem::Systemd).then(|| folder.join("root.ext4"));
        let image = Self { kernel: folder.join("kernel"), initramfs: folder.join("initramfs.gz"), root };
        if !(image.kernel.is_file() && image.initramfs.is_file()) {
            image.make(system, &folder, progress)?;
        }
        Ok(image)
    }

    /// The folder is left with the image alone; what was unpacked goes.
    fn make(&self, system: GuestSystem, folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<()> {
        let (names, left_out) = match system {
            GuestSystem::Small => (PACKAGES, packages::LEFT_OUT),
            GuestSystem::Systemd => (systemd::PACKAGES, systemd::LEFT_OUT),
        };
        progress(&format!("getting {} packages with what they need (once, about 90 MB) …", names.len()));
        let archives = folder.join("archives");
        packages::download(names, &archives)?;
        progress("unpacking them …");
        let unpacked = folder.join("unpacked");
        packages::unpack(&archives, &unpacked, left_out)?;
        progress("making the image of the guests …");
        let (first, root) = (folder.join("first"), folder.join("root"));
        for folder in [&first, &root] {
            let _ = fs::remove_dir_all(folder);
        }
        let kernel = match &self.root {
            None => tree::fill(&unpacked, &first)?,
            Some(drive) => {
                let kernel = tree::fill_systemd(&unpacked, &first, &root)?;
                tree::file_system(&root, drive)?;
                kernel
            }
        };
        let new = folder.join("initramfs.new");
        let step = || format!("packing {}", new.display());
        let file = File::create(&new).map_err(LabError::at(step()))?;
        // Stored, not packed: an emulated CPU takes seconds at each boot to unpack it.
        let packer = GzEncoder::new(std::io::BufWriter::new(file), Compression::none());
        cpio::write(&first, packer)
            .and_then(|packer| packer.finish().map(drop))
            .map_err(LabError::at(step()))?;
        fs::copy(&kernel, &self.kernel).map_err(LabError::at(format!("copying {}", kernel.display())))?;
        // The initramfs comes last: its name means that all is there.
        fs::rename(&new, &self.initramfs).map_err(LabError::at(step()))?;
        for folder in [archives, unpacked, first, root] {
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
fn fingerprint(system: GuestSystem) -> u64 {
    let mut hasher = DefaultHasher::new();
    FORMAT.hash(&mut hasher);
    match system {
        GuestSystem::Small => (PACKAGES, PROGRAMS, MODULES, FILES).hash(&mut hasher),
        GuestSystem::Systemd => systemd::hash(&mut hasher),
    }
    fs::read_to_string("/etc/os-release").unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
