//! An agent: dials the operator of a watch for as long as this host runs, and serves it.
//!
//! In: the file of the agent, which root alone may read or write. Out: one sealed session after the
//! other; between them it waits, longer after each that failed. It listens on nothing, and the key is in no
//! argument, environment or error. A session ends with its process: this one runs itself again, so that
//! nothing of a session is left in the next.

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_facts::private::check_unwritable;
use linerate_input::{InputError, private_text};
use linerate_model::retry::Retry;
use linerate_wire::agent::{AGENT_FILE_BYTES_MAX, AgentFile, AgentFileError};
use linerate_wire::sealed::{Sealed, SealedHandshake};
use thiserror::Error;

use crate::dial::{self, DialError};
use crate::serve::Scope;

/// Where its file is.
pub(crate) const CONFIG: &str = "/etc/linerate/agent.toml";

/// What follows `agent` on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentOptions {
    /// The agent's file.
    pub(crate) config: PathBuf,
    /// Sessions that failed before this process: for itself alone.
    pub(crate) failed: u32,
}

/// Why an agent ends.
#[derive(Debug, Error)]
pub(crate) enum AgentError {
    #[error("an agent serves its whole host\nhint: leave --netns out")]
    Netns,
    #[error(transparent)]
    Unread(#[from] InputError),
    #[error("{0}\nhint: such a file could name another operator; let root alone write it and its folder")]
    Writable(String),
    #[error("{}: {source}", path.display())]
    Flaw { path: PathBuf, source: AgentFileError },
    #[error("cannot run the agent again: {0}")]
    Again(io::Error),
}

/// Dials and serves until it is ended.
pub(crate) fn run(options: &AgentOptions) -> Result<Infallible, AgentError> {
    // Hosts that lost the same operator come back at different times.
    let mut retry = Retry::after(RandomState::new().build_hasher().finish(), options.failed);
    let mut file = read(&options.config)?;
    loop {
        let reached = dial(&file);
        let begun = Instant::now();
        let ended = reached.and_then(|(stream, sealed)| {
            log(&format!("a session with the operator at {}", peer(&stream)));
            dial::serve_sealed(stream, sealed, None, Scope::Watch).map_err(|error| error.to_string())
        });
        let lasted = begun.elapsed();
        retry.lasted(lasted.as_millis() as u64);
        let wait = Duration::from_millis(retry.wait_ms());
        let next = format!("next try in {:.1} s", wait.as_secs_f32());
        let has_served = ended.is_ok();
        match ended {
            Ok(()) => log(&format!("the session ended after {} s; {next}", lasted.as_secs())),
            Err(reason) => log(&format!("{reason}; {next}")),
        }
        std::thread::sleep(wait);
        if has_served {
            return again(&options.config, retry.failed());
        }
        // A new key or address counts from the next try on.
        file = read(&options.config)?;
    }
}

/// The checked file.
fn read(path: &Path) -> Result<AgentFile, AgentError> {
    let text = private_text(path, AGENT_FILE_BYTES_MAX)?;
    let named = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    check_unwritable(&named).map_err(AgentError::Writable)?;
    AgentFile::parse(&text).map_err(|source| AgentError::Flaw { path: path.to_owned(), source })
}

/// The first operator that answers, or why none does.
fn dial(file: &AgentFile) -> Result<(TcpStream, Sealed), String> {
    let mut tried = Vec::new();
    for address in &file.operators {
        let handshake = SealedHandshake::dial_as(&file.key, &file.name).map_err(DialError::from);
        match handshake.and_then(|handshake| dial::once(*address, handshake, &file.name)) {
            Ok(connected) => return Ok(connected),
            Err(DialError::Closed) => {
                tried.push(format!(
                    "{address}: it closed the connection: it has another key for this host, or none"
                ));
            }
            Err(error) => tried.push(format!("{address}: {error}")),
        }
    }
    Err(tried.join(", "))
}

fn peer(stream: &TcpStream) -> String {
    stream.peer_addr().map_or_else(|_| "an unknown address".to_owned(), |address| address.to_string())
}

/// Becomes a fresh process of the same program: threads, programs in the kernel and descriptors of the last
/// session are gone.
fn again(config: &Path, failed: u32) -> Result<Infallible, AgentError> {
    let mut command = Command::new("/proc/self/exe");
    // `linerate` has the node in it, and is it by this name.
    command.arg0("linerate-node").args(["agent", "--failed", &failed.to_string(), "--config"]).arg(config);
    Err(AgentError::Again(command.exec()))
}

/// For the journal of the host.
fn log(words: &str) {
    // Nothing is left to do when stderr is closed.
    let _ = writeln!(io::stderr(), "linerate-node: agent: {words}");
}
