//! I/O methods. To add one: one file here, one line in [`METHODS`].
//!
//! What comes in: an open file and memory cut into slots. What goes out: a queue that takes a request per
//! slot and reports when it ended. Nothing here knows what is measured.

mod calls;
pub(super) mod queue;
mod uring;

use std::fs::File;

use linerate_sys::pages::Buffer;

use self::queue::Method;
use crate::job::LoadError;

/// All methods, the best first.
pub(super) static METHODS: &[&dyn Method] = &[&uring::Uring, &calls::Calls];

/// The method of that name, or the first that this host allows, with the reason why it is not the first of
/// all.
pub(super) fn choose(
    name: Option<&str>,
    file: &File,
) -> Result<(&'static dyn Method, Option<String>), LoadError> {
    const SLOT: usize = 4096;
    let refused =
        |reason| LoadError::Option { what: "I/O method", value: name.unwrap_or_default().to_owned(), reason };
    if let Some(name) = name {
        let known = || METHODS.iter().map(|w| w.name()).collect::<Vec<_>>().join(", ");
        let method = METHODS.iter().find(|w| w.name() == name);
        return method
            .map(|method| (*method, None))
            .ok_or_else(|| refused(format!("known are: {}", known())));
    }
    let mut why = None;
    for method in METHODS {
        let opened = Buffer::new(SLOT)
            .and_then(|buffer| file.try_clone().map(|file| (buffer, file)))
            .and_then(|(buffer, file)| method.open(file, buffer, SLOT));
        match opened {
            Ok(_) => return Ok((*method, why)),
            Err(error) => why = Some(format!("{} cannot be had: {error}", method.name())),
        }
    }
    Err(refused(why.unwrap_or_else(|| "there is no method".to_owned())))
}

#[cfg(test)]
mod tests {
    use linerate_sys::uring::Ask;

    use super::queue::Queue;
    use super::*;

    const SLOT: usize = 4096;

    fn all(queue: &mut dyn Queue) -> Vec<(usize, u32)> {
        let mut ends = Vec::new();
        while queue.in_flight() > 0 {
            queue.wait(1).unwrap();
            queue.ended(&mut ends);
        }
        let mut ends: Vec<(usize, u32)> = ends.into_iter().map(|(slot, end)| (slot, end.unwrap())).collect();
        ends.sort_unstable();
        ends
    }

    /// Every method does the same: writes, flushes, reads back, and reports failures.
    #[test]
    fn every_method_keeps_its_promises() {
        for method in METHODS {
            let file = tempfile::tempfile().unwrap();
            file.set_len(8 * SLOT as u64).unwrap();
            let open = || method.open(file.try_clone().unwrap(), Buffer::new(4 * SLOT).unwrap(), SLOT);
            let mut queue = match open() {
                Ok(queue) => queue,
                Err(error) => {
                    assert!(linerate_sys::uring::is_forbidden(&error), "{}: {error}", method.name());
                    println!("SKIPPED {}: {error}", method.name());
                    continue;
                }
            };
            for slot in 0..4 {
                queue.slot(slot).unwrap().fill(slot as u8 + 1);
                queue.ask(slot, Ask::Write, (slot * SLOT) as u64).unwrap();
            }
            assert_eq!(all(&mut *queue), [(0, 4096), (1, 4096), (2, 4096), (3, 4096)], "{}", method.name());
            queue.ask(0, Ask::FlushData, 0).unwrap();
            queue.ask(1, Ask::Flush, 0).unwrap();
            assert_eq!(all(&mut *queue), [(0, 0), (1, 0)], "{}", method.name());
            queue.ask(0, Ask::Read, 2 * SLOT as u64).unwrap();
            assert_eq!(all(&mut *queue), [(0, 4096)], "{}", method.name());
            assert!(queue.slot(0).unwrap().iter().all(|b| *b == 3), "{}", method.name());
            // Behind the end there is nothing.
            queue.ask(3, Ask::Read, 8 * SLOT as u64).unwrap();
            assert_eq!(all(&mut *queue), [(3, 0)], "{}", method.name());
            assert!(queue.slot(4).is_none() && queue.ask(4, Ask::Read, 0).is_err(), "{}", method.name());
        }
    }

    #[test]
    fn methods_are_chosen_by_name() {
        let file = tempfile::tempfile().unwrap();
        assert!(choose(None, &file).is_ok());
        assert_eq!(choose(Some("calls"), &file).unwrap().0.name(), "calls");
        let unknown = choose(Some("fast"), &file).err().unwrap().to_string();
        assert_eq!(unknown, "cannot use the I/O method `fast`: known are: io_uring, calls");
    }
}
