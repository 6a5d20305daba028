//! What has to be true of devices before a step may touch them, looked at in the moment before.
//!
//! In: needs of a step. Out: nothing, or the first device that is in the way.

use std::path::Path;

use linerate_load::guard;
use linerate_model::step::{Need, Refused};

use super::contents;

/// So many devices are looked at side by side: one with rotating discs takes seconds; more would leave a small host no time for anything else.
const AT_ONCE: usize = 8;

/// Says what is in the way.
pub(super) fn check(needs: &[Need]) -> Result<(), Refused> {
    let empty = needs.iter().filter_map(|need| match need {
        Need::Empty { device } => Some(device.clone()),
        Need::Shrunk { .. } | Need::NoOtherFile { .. } => None,
    });
    if let Some(refused) = not_empty(&empty.collect::<Vec<_>>()).into_iter().next() {
        return Err(refused);
    }
    needs.iter().try_for_each(|need| match need {
        Need::Empty { .. } => Ok(()),
        Need::Shrunk { device, filesystem_max_bytes } => {
            contents::ends_before(Path::new(device), *filesystem_max_bytes)
                .map_err(|why| Refused { device: device.clone(), why })
        }
        Need::NoOtherFile { path, text } => {
            no_other_file(Path::new(path), text).map_err(|why| Refused { device: path.clone(), why })
        }
    })
}

/// Says when a file is there that is not ours.
fn no_other_file(path: &Path, ours: &str) -> Result<(), String> {
    match std::fs::read(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(content) if content == ours.as_bytes() => Ok(()),
        Ok(_) => Err("is there already with another content; remove it, or take another name".to_owned()),
        Err(error) => Err(format!("cannot be read: {error}")),
    }
}

/// All devices that may not be given away, with the reason.
pub(super) fn not_empty(devices: &[String]) -> Vec<Refused> {
    let look = |device: &String| {
        let why = guard::empty(Path::new(device)).err()?;
        Some(Refused { device: device.clone(), why })
    };
    let some = |devices: &[String]| -> Vec<Refused> {
        std::thread::scope(|scope| {
            let begin =
                |device| (device, std::thread::Builder::new().spawn_scoped(scope, move || look(device)));
            let running: Vec<_> = devices.iter().map(begin).collect();
            let end = |(device, thread): (&String, std::io::Result<std::thread::ScopedJoinHandle<'_, _>>)| {
                let seen = thread.ok().and_then(|thread| thread.join().ok());
                let unseen =
                    || Some(Refused { device: device.clone(), why: "it cannot be looked at".to_owned() });
                seen.unwrap_or_else(unseen)
            };
            running.into_iter().filter_map(end).collect()
        })
    };
    devices.chunks(AT_ONCE).flat_map(some).collect()
}
