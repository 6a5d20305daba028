//! Checks by what the kernel has built on a device: holders, partitions, its neighbours on the same drive,
//! loop devices.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use linerate_sys::block::{self, FileKind, How, Number};
use linerate_sys::root::ReadError;

use super::candidate::{Candidate, Check};
use super::error::WriteRefusal;

/// Another block device stands on it: LVM, md, multipath, DRBD, bcache, dm-crypt.
pub(super) struct Held;

impl Check for Held {
    fn name(&self) -> &'static str {
        "held"
    }

    fn run(&self, candidate: &Candidate<'_>) -> Result<(), WriteRefusal> {
        let mut folders = vec![(candidate.name.clone(), candidate.folder.clone())];
        if let Some(whole) = &candidate.whole {
            folders.push((whole.clone(), format!("/sys/block/{whole}")));
        } else {
            let parts = candidate.partitions(&candidate.name)?;
            folders.extend(parts.into_iter().map(|p| (p.clone(), format!("{}/{p}", candidate.folder))));
        }
        for (name, folder) in folders {
            let holders = candidate.seen(&format!("{folder}/holders"), "what stands on it")?;
            if !holders.is_empty() {
                return Err(WriteRefusal::Held { holders, device: name });
            }
        }
        Ok(())
    }
}

/// It has partitions.
pub(super) struct Partitions;

impl Check for Partitions {
    fn name(&self) -> &'static str {
        "partitions"
    }

    fn run(&self, candidate: &Candidate<'_>) -> Result<(), WriteRefusal> {
        if candidate.whole.is_some() {
            return Ok(());
        }
        let parts = candidate.partitions(&candidate.name)?;
        if parts.is_empty() { Ok(()) } else { Err(WriteRefusal::Partitions(parts)) }
    }
}

/// It is a partition, and another one of the same drive is in use: a wrong number away.
pub(super) struct Siblings;

impl Check for Siblings {
    fn name(&self) -> &'static str {
        "drive in use"
    }

    fn run(&self, candidate: &Candidate<'_>) -> Result<(), WriteRefusal> {
        let Some(whole) = &candidate.whole else { return Ok(()) };
        for part in candidate.partitions(whole)?.into_iter().filter(|p| *p != candidate.name) {
            let folder = format!("/sys/block/{whole}/{part}");
            let holders = candidate.seen(&format!("{folder}/holders"), "what stands on its neighbours")?;
            let file = format!("{folder}/dev");
            let number = candidate.root.line(&file).map_err(WriteRefusal::file(&file))?;
            let mounted = super::people::mounted_at(candidate, &number, &part)?;
            let swapped = super::people::is_swap(candidate, &part)?;
            if !holders.is_empty() || mounted.is_some() || swapped {
                return Err(WriteRefusal::Sibling(part));
            }
        }
        Ok(())
    }
}

/// Held while this process has loop devices open to query them: it is no user of them.
pub(super) static QUERIED: Mutex<()> = Mutex::new(());

/// The block device that a loop device stands on, as the kernel knows it: the path of its file is that of the
/// program that made it, which may be in another mount namespace, and outside `/dev`.
fn below_loop(candidate: &Candidate<'_>, name: &str) -> Result<Option<Number>, WriteRefusal> {
    let _queried = QUERIED.lock().unwrap_or_else(PoisonError::into_inner);
    let number = candidate.root.line(&format!("/sys/block/{name}/dev"))?;
    let device = block::open(Path::new(&format!("/dev/{name}")), How::default())?;
    match block::kind_of(&device.metadata()?) {
        FileKind::Device(found) if found.to_string() == number => {}
        _ => return Err(WriteRefusal::OtherDevice(name.to_owned())),
    }
    Ok(block::below_loop(&device)?)
}

/// A loop device stands on it: that is no holder for the kernel.
pub(super) struct BehindLoop;

impl Check for BehindLoop {
    fn name(&self) -> &'static str {
        "behind a loop device"
    }

    fn run(&self, candidate: &Candidate<'_>) -> Result<(), WriteRefusal> {
        let family = candidate.family()?;
        for name in candidate.seen("/sys/block", "loop devices")? {
            if !name.starts_with("loop") {
                continue;
            }
            let path = format!("/sys/block/{name}/loop/backing_file");
            let what = format!("what {name} stands on");
            let file = match candidate.root.line(&path) {
                Ok(file) => file,
                // A loop device without a file has no such entry.
                Err(ReadError::Missing) => continue,
                Err(error) => return Err(WriteRefusal::unseen(what, error)),
            };
            // A recorded tree has its paths alone.
            let below = if candidate.root.is_live() {
                below_loop(candidate, &name).map_err(|why| WriteRefusal::unseen(what, why))?
            } else {
                None
            };
            let is_it = |(number, part): &(String, String)| {
                file == format!("/dev/{part}")
                    || super::people::is_same(candidate, &file, number)
                    || below.is_some_and(|below| below.to_string() == *number)
            };
            if candidate.path.to_str() == Some(file.as_str()) || family.iter().any(is_it) {
                return Err(WriteRefusal::Held { holders: vec![name], device: "it".to_owned() });
            }
        }
        Ok(())
    }
}

/// It cannot be written.
pub(super) struct ReadOnly;

impl Check for ReadOnly {
    fn name(&self) -> &'static str {
        "read-only"
    }

    fn run(&self, candidate: &Candidate<'_>) -> Result<(), WriteRefusal> {
        let path = format!("{}/ro", candidate.folder);
        match candidate.root.number(&path) {
            Ok(0) => Ok(()),
            Ok(_) => Err(WriteRefusal::ReadOnly),
            Err(error) => {
                Err(WriteRefusal::unseen("whether it is read-only", WriteRefusal::file(&path)(error)))
            }
        }
    }
}
