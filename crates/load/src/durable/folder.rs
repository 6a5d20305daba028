//! The folder that records are written into: made, known again, removed. Nothing in it is touched that was
//! not made here.
//!
//! In: a path and a plan. Out: what it lies on, or why it is refused.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use linerate_model::durability::{FolderLocation, PatternRule, WritePlan};
use linerate_sys::root::Root;
use linerate_sys::{filesystem, procfs};
use serde_json::{Value, json};

use super::error::DurabilityError;
use super::methods::{Calls, Target, Tried, new_file};
use super::record::{Key, content, length};

/// Names the owner of the folder.
const MARKER: &str = "linerate-durability.json";
/// A marker is a line.
const MARKER_BYTES_MAX: usize = 4096;
/// An empty ext file system has this folder.
const LOST_AND_FOUND: &str = "lost+found";
/// Share of the free space that records may take: writes to a full file system fail for other reasons than
/// durability.
const FREE_SHARE: u64 = 2;
/// Strange files that are named.
const LEFT_MAX: usize = 10;

/// Where a file of a pattern is.
pub(super) fn target(folder: &Path, tried: Tried, slot: u32) -> Target {
    let folder = folder.join(tried.name());
    let file = folder.join(format!("{slot:08}"));
    Target { temporary: folder.join(format!("{slot:08}.tmp")), file, folder }
}

/// A path that means the same in every request.
pub(super) fn absolute(folder: &Path) -> Result<(), DurabilityError> {
    if folder.is_absolute() { Ok(()) } else { Err(DurabilityError::Relative(folder.to_owned())) }
}

/// Whose the folder is, and whether we made it.
fn marker(folder: &Path) -> Option<(String, bool)> {
    let text = fs::read_to_string(folder.join(MARKER)).ok().filter(|t| t.len() <= MARKER_BYTES_MAX)?;
    let value: Value = serde_json::from_str(&text).ok()?;
    Some((value.get("durability")?.as_str()?.to_owned(), value.get("made")?.as_bool()?))
}

/// The folder must be that of this run, so that nothing is ever written into another.
pub(super) fn ours(folder: &Path, run: &str) -> Result<(), DurabilityError> {
    match marker(folder) {
        Some((its, _)) if its == run => Ok(()),
        seen => Err(DurabilityError::NotOurs {
            folder: folder.to_owned(),
            run: run.to_owned(),
            seen: seen.map(|(run, _)| run),
        }),
    }
}

/// What a folder lies on. Of one that is gone it is what it would lie on, without a run: a power cut may take
/// a folder too.
pub(super) fn location(folder: &Path) -> Result<FolderLocation, DurabilityError> {
    let io = |source| DurabilityError::Io { what: "look at", path: folder.to_owned(), source };
    let is_gone =
        |path: &Path| path.symlink_metadata().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    let there = folder.ancestors().find(|path| !is_gone(path)).unwrap_or(folder);
    let real = there.canonicalize().map_err(io)?;
    let free_bytes = filesystem::free_bytes(&real).map_err(io)?;
    let root = Root::live();
    let mounts = procfs::mounts(&root.read("/proc/self/mountinfo").unwrap_or_default());
    // Of several mounts on the same mount point the last one is visible.
    let mount = mounts
        .into_iter()
        .filter(|m| real.starts_with(&m.point))
        .max_by_key(|m| Path::new(&m.point).components().count());
    let mut location = FolderLocation {
        free_bytes,
        boot: root.line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
        device: device(&real).unwrap_or_default(),
        run: marker(folder).map(|(run, _)| run),
        ..FolderLocation::default()
    };
    if let Some(mount) = mount {
        let options = format!("{},{}", mount.options, mount.super_options);
        options.trim_end_matches(',').clone_into(&mut location.options);
        (location.filesystem, location.source, location.mount) = (mount.kind, mount.source, mount.point);
    }
    Ok(location)
}

fn device(path: &Path) -> io::Result<String> {
    use std::os::unix::fs::MetadataExt as _;
    let number = fs::metadata(path)?.dev();
    // As the kernel's `new_decode_dev` does.
    let major = (number >> 8) & 0xfff;
    let minor = (number & 0xff) | ((number >> 12) & 0xfff_ff00);
    Ok(format!("{major}:{minor}"))
}

/// Most bytes that the plan's files take.
fn needed_bytes(plan: &WritePlan, tried: &[Tried], run: u64) -> u64 {
    let shape = |pattern: usize| tried[pattern].method.shape;
    let records = (0..plan.records).filter_map(|number| plan.spot(number, shape)).map(|spot| {
        let (tried, key) = (tried[spot.pattern], Key::new(run, &plan.patterns[spot.pattern], spot.slot));
        match tried.method.shape {
            PatternRule::Fresh | PatternRule::Grown => length(tried.method.shape, key, spot.version) as u64,
            PatternRule::Truncated | PatternRule::InPlace | PatternRule::Replaced => 0,
        }
    });
    let rewritten = tried.iter().filter(|t| t.method.shape != PatternRule::Fresh).count() as u64;
    // Twice the largest: a file and the one that replaces it.
    records.sum::<u64>() + rewritten * u64::from(plan.files) * 2 * (64 << 10)
}

/// Makes the folder and the first versions of files that are written again; when it returns they are on the
/// disk.
pub(super) fn prepare(
    folder: &Path,
    plan: &WritePlan,
    tried: &[Tried],
    run: u64,
) -> Result<FolderLocation, DurabilityError> {
    let io = |what| move |source| DurabilityError::Io { what, path: folder.to_owned(), source };
    let made = match fs::create_dir(folder) {
        Ok(()) => true,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
        Err(error) => return Err(io("make")(error)),
    };
    let ready = fill(folder, plan, tried, run, made);
    if ready.is_err() && made {
        // Only a folder that is still empty goes.
        let _ = fs::remove_dir(folder);
    }
    ready
}

fn fill(
    folder: &Path,
    plan: &WritePlan,
    tried: &[Tried],
    run: u64,
    made: bool,
) -> Result<FolderLocation, DurabilityError> {
    let io = |what| move |source| DurabilityError::Io { what, path: folder.to_owned(), source };
    for entry in fs::read_dir(folder).map_err(io("list"))? {
        let name = entry.map_err(io("list"))?.file_name();
        if name != LOST_AND_FOUND {
            let entry = name.to_string_lossy().into_owned();
            return Err(DurabilityError::NotEmpty { folder: folder.to_owned(), entry });
        }
    }
    let free = filesystem::free_bytes(folder).map_err(io("look at"))?;
    let needed = needed_bytes(plan, tried, run);
    if needed > free / FREE_SHARE {
        return Err(DurabilityError::Room { folder: folder.to_owned(), needed, free });
    }
    let text = format!("{}\n", json!({ "durability": plan.run, "made": made }));
    new_file(&folder.join(MARKER), text.as_bytes(), Calls::File).map_err(io("mark"))?;
    for tried in tried {
        first_versions(folder, plan, *tried, run).map_err(io("fill"))?;
    }
    let open = File::open(folder).map_err(io("open"))?;
    filesystem::flush(&open).map_err(io("write everything of"))?;
    location(folder)
}

fn first_versions(folder: &Path, plan: &WritePlan, tried: Tried, run: u64) -> io::Result<()> {
    fs::create_dir(folder.join(tried.name()))?;
    let shape = tried.method.shape;
    if shape == PatternRule::Fresh {
        return Ok(());
    }
    for slot in 0..plan.files {
        let key = Key::new(run, &tried.name(), slot);
        new_file(&target(folder, tried, slot).file, &content(shape, key, 1), Calls::File)?;
    }
    Ok(())
}

/// Whether a name is one that records get.
fn is_record(name: &str) -> bool {
    let digits = name.strip_suffix(".tmp").unwrap_or(name);
    digits.len() == 8 && digits.bytes().all(|b| b.is_ascii_digit())
}

/// Removes what was made here, and nothing else.
pub(super) fn clean(folder: &Path, run: Option<&str>) -> Result<(u64, Vec<String>), DurabilityError> {
    let io = |source| DurabilityError::Io { what: "clean", path: folder.to_owned(), source };
    let made = match (marker(folder), run) {
        (Some((its, made)), Some(run)) if its == run => made,
        (Some((_, made)), None) => made,
        (seen, run) => {
            return Err(DurabilityError::NotOurs {
                folder: folder.to_owned(),
                run: run.unwrap_or("any").to_owned(),
                seen: seen.map(|(run, _)| run),
            });
        }
    };
    let (mut files, mut left) = (0, Vec::new());
    for tried in Tried::all() {
        let inner = folder.join(tried.name());
        let is_folder = fs::symlink_metadata(&inner).is_ok_and(|m| m.is_dir());
        if !is_folder {
            continue;
        }
        for entry in fs::read_dir(&inner).map_err(io)? {
            let entry = entry.map_err(io)?;
            let plain = entry.file_type().map_err(io)?.is_file();
            if plain && entry.file_name().to_str().is_some_and(is_record) {
                fs::remove_file(entry.path()).map_err(io)?;
                files += 1;
            } else if left.len() < LEFT_MAX {
                left.push(format!("{}/{}", tried.name(), entry.file_name().to_string_lossy()));
            }
        }
        // One with strange files in it stays.
        let _ = fs::remove_dir(&inner);
    }
    for entry in fs::read_dir(folder).map_err(io)? {
        let name: PathBuf = entry.map_err(io)?.file_name().into();
        let known = [MARKER, LOST_AND_FOUND].iter().any(|known| name == Path::new(known))
            || name.to_str().is_some_and(|n| Tried::named(n).is_some());
        if !known && left.len() < LEFT_MAX {
            left.push(name.to_string_lossy().into_owned());
        }
    }
    if left.is_empty() {
        fs::remove_file(folder.join(MARKER)).map_err(io)?;
        if made {
            fs::remove_dir(folder).map_err(io)?;
        }
    }
    Ok((files, left))
}
