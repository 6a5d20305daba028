//! Serves drives over a unix socket: one thread for the acceptor, one per connection, as a drive does one
//! thing at a time.
//!
//! In: drives. Out: a socket that qemu connects to. Dropping it ends everything; the connections of a guest
//! that is gone end by [`NbdServer::hang_up`].

use std::collections::BTreeMap;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use linerate_sys::sched;

use super::nbd::{self, Command, Exports};
use super::{Drive, Refused, Work, lock};
use crate::error::{LabError, Result};

const POLL_INTERVAL_NS: u64 = 50_000_000;

/// A running server.
#[derive(Debug)]
pub struct NbdServer {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    talks: Arc<Mutex<Vec<Talk>>>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Talk {
    stream: UnixStream,
    over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

struct Shelf(BTreeMap<String, Arc<Drive>>);

impl Exports for Shelf {
    type Export = Arc<Drive>;

    fn find(&self, name: &str) -> Option<(Arc<Drive>, u64)> {
        self.0.get(name).map(|drive| (Arc::clone(drive), drive.size_bytes))
    }

    fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }
}

impl NbdServer {
    /// Opens the acceptor at a path that must not exist yet; drives are found by their names.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn start(drives: &[Arc<Drive>], path: &Path) -> Result<Self> {
        let step = || format!("listening at {}", path.display());
        let listener = UnixListener::bind(path).map_err(LabError::at(step()))?;
        listener.set_nonblocking(true).map_err(LabError::at(step()))?;
        let shelf = Arc::new(Shelf(drives.iter().map(|d| (d.name.clone(), Arc::clone(d))).collect()));
        let (stop, talks) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
        let (stopped, all) = (Arc::clone(&stop), Arc::clone(&talks));
        let acceptor = std::thread::Builder::new()
            .name("drives".into())
            .spawn(move || stand_at_the_acceptor(&listener, &shelf, &stopped, &all))
            .map_err(LabError::at(step()))?;
        Ok(Self { path: path.to_owned(), stop, talks, acceptor: Some(acceptor) })
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends all connections and waits until none has a request in flight.
    pub fn hang_up(&self) {
        let talks = std::mem::take(&mut *lock(&self.talks));
        for talk in &talks {
            talk.over.store(true, Ordering::Release);
            // It may be closed already.
            let _ = talk.stream.shutdown(Shutdown::Both);
        }
        for talk in talks {
            // A panicked connection has nothing left to clean up.
            let _ = talk.thread.join();
        }
    }
}

impl Drop for NbdServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        self.hang_up();
        let _ = std::fs::remove_file(&self.path);
    }
}

fn stand_at_the_acceptor(
    listener: &UnixListener,
    shelf: &Arc<Shelf>,
    stop: &AtomicBool,
    talks: &Mutex<Vec<Talk>>,
) {
    while !stop.load(Ordering::Acquire) {
        if sched::wait_readable([listener.as_fd()], sched::monotonic_ns() + POLL_INTERVAL_NS).is_err() {
            return;
        }
        let Ok((stream, _)) = listener.accept() else { continue };
        // A connection that cannot be had is one that the client sees closed.
        if let Ok(talk) = begin(stream, Arc::clone(shelf)) {
            let mut talks = lock(talks);
            talks.retain(|talk| !talk.thread.is_finished());
            talks.push(talk);
        }
    }
}

fn begin(stream: UnixStream, shelf: Arc<Shelf>) -> io::Result<Talk> {
    stream.set_nonblocking(false)?;
    let over = Arc::new(AtomicBool::new(false));
    let (mut own, ended) = (stream.try_clone()?, Arc::clone(&over));
    let thread = std::thread::Builder::new().name("drive".into()).spawn(move || {
        // A client that talks nonsense or goes away ends its connection, nothing else.
        if let Ok(Some(drive)) = nbd::handshake(&mut own, &*shelf) {
            let _ = serve(&mut own, &drive, &ended);
        }
        let _ = own.shutdown(Shutdown::Both);
    })?;
    Ok(Talk { stream, over, thread })
}

/// Answers requests until the client goes.
fn serve(stream: &mut UnixStream, drive: &Drive, over: &AtomicBool) -> io::Result<()> {
    let live = || !over.load(Ordering::Acquire);
    let mut buffer = Vec::new();
    while live() {
        let request = nbd::request(stream)?;
        let length = request.length as usize;
        let mut work = match request.command {
            Command::Disconnect => return Ok(()),
            Command::Other => {
                nbd::answer(stream, request.cookie, nbd::EINVAL, &[])?;
                continue;
            }
            Command::Flush => Work::Flush,
            Command::Read => {
                buffer.resize(length, 0);
                Work::Read { offset: request.offset, into: &mut buffer }
            }
            Command::Write { fua } => {
                buffer.resize(length, 0);
                io::Read::read_exact(stream, &mut buffer)?;
                Work::Write { offset: request.offset, data: &buffer, flush: fua }
            }
        };
        let done = drive.serve(&mut work, &live);
        if !live() {
            return Ok(());
        }
        let error = match done {
            Ok(()) => 0,
            Err(Refused::Broken) => nbd::EIO,
            Err(Refused::Nonsense) => nbd::EINVAL,
        };
        let read = request.command == Command::Read && error == 0;
        nbd::answer(stream, request.cookie, error, if read { &buffer } else { &[] })?;
    }
    Ok(())
}
