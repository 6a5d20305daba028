//! A periodic task on a thread of its own, until it is dropped.
//!
//! In: a pause and what to do after it. Out: a thread that ends, with the last turn finished, before the drop
//! returns.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{LabError, Result};

/// A running thread.
#[derive(Debug)]
pub struct Periodic {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Periodic {
    /// Does `turn` after every `pause`.
    ///
    /// # Errors
    /// No further thread can be started.
    pub fn start(name: &str, pause: Duration, mut turn: impl FnMut() + Send + 'static) -> Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let again = move || {
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                turn();
            }
        };
        let thread = std::thread::Builder::new().name(name.into()).spawn(again);
        let thread = thread.map_err(LabError::at(format!("starting the thread {name}")))?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Periodic {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked does nothing more, which is what is wanted here.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_on_until_it_is_dropped_and_then_no_more() {
        let (done, turns) = mpsc::channel();
        let periodic = Periodic::start("again", Duration::from_millis(1), move || {
            // The receiver may be gone.
            let _ = done.send(());
        })
        .unwrap();
        turns.recv().unwrap();
        turns.recv().unwrap();
        drop(periodic);
        while turns.try_recv().is_ok() {}
        assert_eq!(turns.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
