//! Requests of `linerate-lab break` and its like to the lab that `linerate-lab up` keeps running: one line of
//! JSON in each direction over a unix socket in the lab's private folder.
//!
//! In: requests. Out: answers. It never acts itself; the supervisor does.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};

/// Name of the socket in the folder of the lab.
pub const SOCKET: &str = "control.sock";
const LINE_BYTES_MAX: u64 = 64 * 1024;
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A request to a running lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LabRequest {
    /// Inject a fault.
    Break {
        /// Name of the fault.
        fault: String,
        /// Target; random when absent.
        at: Option<String>,
        /// Seed of random choices.
        seed: u64,
    },
    /// Undo all faults.
    Heal,
    /// Report the state.
    Status,
    /// End the lab.
    Down,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlAnswer {
    /// Whether it was done.
    pub done: bool,
    /// Text for the user.
    pub text: String,
}

/// Sends a request to the lab in `folder` and waits for the answer.
pub fn ask(folder: &Path, request: &LabRequest) -> Result<ControlAnswer> {
    ask_at(&folder.join(SOCKET), request, ANSWER_WITHIN)
}

/// The same with requests of another kind, at the socket where they are understood.
pub fn ask_at(path: &Path, request: &impl Serialize, within: Duration) -> Result<ControlAnswer> {
    let step = || format!("asking the lab at {}", path.display());
    let mut stream = UnixStream::connect(path).map_err(LabError::at(step()))?;
    let exchange = |stream: &mut UnixStream| {
        stream.set_read_timeout(Some(within))?;
        send(stream, request)?;
        receive(stream)
    };
    exchange(&mut stream).map_err(LabError::at(step()))
}

/// Takes one request from the listener, lets `act` answer it, and returns it. A connection without a valid
/// request is dropped.
pub fn serve_one<R: for<'a> Deserialize<'a>>(
    listener: &UnixListener,
    act: impl FnOnce(&R) -> ControlAnswer,
) -> io::Result<Option<R>> {
    let (mut stream, _) = listener.accept()?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let Ok(request) = receive::<R>(&mut stream) else { return Ok(None) };
    let answer = act(&request);
    // The client may be gone; the request is done all the same.
    let _ = send(&mut stream, &answer);
    Ok(Some(request))
}

fn send(stream: &mut UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn receive<T: for<'a> Deserialize<'a>>(stream: &mut UnixStream) -> io::Result<T> {
    let mut line = String::new();
    BufReader::new(stream.take(LINE_BYTES_MAX)).read_line(&mut line)?;
    Ok(serde_json::from_str(&line)?)
}
