//! What guests boot: the distribution's own kernel, and a first disk in memory made of its own programs.
//!
//! In: packages of the distribution that this runs on, and the lists of `contents.rs`. Out: a kernel and an
//! initramfs in a folder that is kept for the next time. Everything is unpacked into that folder; nothing is
//! installed and nothing on the host is changed.

mod contents;
mod cpio;
mod packages;
mod tree;

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use self::contents::{FILES, MODULES, PACKAGES, PROGRAMS};
use crate::error::{LabError, Result};

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
    /// The image of the lists: the one that was made before, or a new one. Long steps go to `progress`.
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
