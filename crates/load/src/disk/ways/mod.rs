//! Ways of making requests. To add one: one file here, one line in [`WAYS`].
//!
//! What comes in: an open file and memory cut into slots. What goes out: a queue that takes a request per
//! slot and tells when it ended. Nothing here knows what is measured.

mod calls;
pub(super) mod queue;
mod uring;

use std::fs::File;

use linerate_sys::pages::Buffer;

use self::queue::Way;
use crate::job::LoadError;

/// All ways, the best first.
pub(super) static WAYS: &[&dyn Way] = &[&uring::Uring, &calls::Calls];

/// The way of that name, or the first that this host allows, with the reason why it is not the first of all.
pub(super) fn choose(
    name: Option<&str>,
    file: &File,
) -> Result<(&'static dyn Way, Option<String>), LoadError> {
    const SLOT: usize = 4096;
    let refused =
        |reason| LoadError::Option { what: "way", value: name.unwrap_or_default().to_owned(), reason };
    if let Some(name) = name {
        let known = || WAYS.iter().map(|w| w.name()).collect::<Vec<_>>().join(", ");
        let way = WAYS.iter().find(|w| w.name() == name);
        return way.map(|way| (*way, None)).ok_or_else(|| refused(format!("known are: {}", known())));
    }
    let mut why = None;
    for way in WAYS {
        let opened = Buffer::new(SLOT)
            .and_then(|room| file.try_clone().map(|file| (room, file)))
            .and_then(|(room, file)| way.open(file, room, SLOT));
        match opened {
            Ok(_) => return Ok((*way, why)),
            Err(error) => why = Some(format!("{} cannot be had: {error}", way.name())),
        }
    }
    Err(refused(why.unwrap_or_else(|| "there is no way".to_owned())))
}

#[cfg(test)]
mod tests {
    use linerate_sys::uring::Ask;

    use super::queue::Queue;
    use super::*;

    const SLOT: usize = 4096;

    fn all(queue: &mut dyn Queue) -> Vec<(usize, u32)> {
        let mut ends = Vec::new();
        while queue.under_way() > 0 {
            queue.wait(1).unwrap();
            queue.ended(&mut ends);
        }
        let mut ends: Vec<(usize, u32)> = ends.into_iter().map(|(slot, end)| (slot, end.unwrap())).collect();
        ends.sort_unstable();
        ends
    }

    /// Every way does the same: writes, flushes, reads back, and tells what failed.
    #[test]
    fn every_way_keeps_its_promises() {
        for way in WAYS {
            let file = tempfile::tempfile().unwrap();
            file.set_len(8 * SLOT as u64).unwrap();
            let open = || way.open(file.try_clone().unwrap(), Buffer::new(4 * SLOT).unwrap(), SLOT);
            let mut queue = match open() {
                Ok(queue) => queue,
                Err(error) => {
                    assert!(linerate_sys::uring::is_forbidden(&error), "{}: {error}", way.name());
                    println!("SKIPPED {}: {error}", way.name());
                    continue;
                }
            };
            for slot in 0..4 {
                queue.slot(slot).unwrap().fill(slot as u8 + 1);
                queue.ask(slot, Ask::Write, (slot * SLOT) as u64).unwrap();
            }
            assert_eq!(all(&mut *queue), [(0, 4096), (1, 4096), (2, 4096), (3, 4096)], "{}", way.name());
            queue.ask(0, Ask::FlushData, 0).unwrap();
            queue.ask(1, Ask::Flush, 0).unwrap();
            assert_eq!(all(&mut *queue), [(0, 0), (1, 0)], "{}", way.name());
            queue.ask(0, Ask::Read, 2 * SLOT as u64).unwrap();
            assert_eq!(all(&mut *queue), [(0, 4096)], "{}", way.name());
            assert!(queue.slot(0).unwrap().iter().all(|b| *b == 3), "{}", way.name());
            // Behind the end there is nothing.
            queue.ask(3, Ask::Read, 8 * SLOT as u64).unwrap();
            assert_eq!(all(&mut *queue), [(3, 0)], "{}", way.name());
            assert!(queue.slot(4).is_none() && queue.ask(4, Ask::Read, 0).is_err(), "{}", way.name());
        }
    }

    #[test]
    fn ways_are_chosen_by_name() {
        let file = tempfile::tempfile().unwrap();
        assert!(choose(None, &file).is_ok());
        assert_eq!(choose(Some("calls"), &file).unwrap().0.name(), "calls");
        let unknown = choose(Some("fast"), &file).err().unwrap().to_string();
        assert_eq!(unknown, "cannot use the way `fast`: known are: io_uring, calls");
    }
}
