//! The talk with a script on the host before the session: lines both ways.
//!
//! What comes in: what the host prints. What goes out: the lines that begin with our word; everything else
//! (what start-up files of a login shell print) is passed over, within bounds.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linerate_model::inventory::SshSpec;
use linerate_model::printable::{HINT, without_hint};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::hints::hint;
use crate::clock;
use crate::pipes::{Pipes, StartError, escaped};
use crate::programs::ProgramError;

/// Bytes that are passed over before and between our lines, and the longest line of ours.
const NOISE_BYTES_MAX: usize = 64 << 10;
/// Bytes that are read at once.
const CHUNK_BYTES: usize = 16 << 10;

/// Why a host did not get as far as it should: the end of a sentence about it.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum TalkError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Machine(#[from] ProgramError),
    #[error(transparent)]
    Program(#[from] Arc<ProgramError>),
    #[error("has a cache_dir with a line break in it")]
    CacheDir,
    #[error("no random word: {0}")]
    Random(std::io::Error),
    #[error(
        "its shell printed more than {NOISE_BYTES_MAX} bytes before linerate's first word; the last: {0}"
    )]
    Noise(String),
    #[error("the session ended")]
    Ended,
    #[error("the session ended; its shell printed: {0}")]
    EndedAfter(String),
    #[error("{what} within {} s", wait.as_secs())]
    Late { what: &'static str, wait: Duration },
    #[error("said `{0} {1}` where it should speak of itself")]
    Odd(String, String),
    #[error("said `{0} {1}`")]
    NotCleaned(String, String),
    #[error("said {0} lines and did not start the node program")]
    Lines(usize),
    #[error("names more than {0} files")]
    Files(usize),
    #[error("cannot store the node program ({megabytes} MiB){of}: {why}\nhint: {hint}")]
    NotStored { megabytes: usize, of: &'static str, why: String, hint: String },
    #[error("the node program did not arrive whole in {0}\nhint: try again")]
    Cut(String),
    #[error("has no program `{0}`, which checks what was copied\nhint: install coreutils there")]
    NoTool(String),
    #[error("the node program does not run there (exit status: {code}): {words}\nhint: {hint}")]
    NotRun { code: String, words: String, hint: String },
    #[error("failed: {0} {1}")]
    Failed(String, String),
}

/// The same when the session has ended, with what `ssh` said and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{}{end}{}{}", head(error), if hint.is_some() { HINT } else { "" }, hint.as_deref().unwrap_or_default())]
pub struct SshError {
    error: TalkError,
    /// How `ssh` ended, and its last words.
    end: String,
    hint: Option<String>,
}

/// An error without its hint.
fn head(error: &TalkError) -> String {
    without_hint(&error.to_string()).0.to_owned()
}

impl From<StartError> for SshError {
    fn from(error: StartError) -> Self {
        Self { error: error.into(), end: String::new(), hint: None }
    }
}

impl SshError {
    /// Ends the session of a talk that failed.
    pub(super) async fn end(error: TalkError, pipes: &mut Pipes, spec: &SshSpec, wait: Duration) -> Self {
        let end = pipes.end(String::new(), wait).await;
        let own = without_hint(&error.to_string()).1.map(str::to_owned);
        let hint = own.or_else(|| hint(spec, &pipes.shown()));
        Self { error, end, hint }
    }
}

/// One talk.
#[derive(Debug)]
pub(super) struct Talk<'a> {
    pub(super) pipes: &'a mut Pipes,
    word: String,
    buffer: Vec<u8>,
    passed_bytes: usize,
}

impl<'a> Talk<'a> {
    /// Begins a talk with a fresh word. `old` is the process id of a node program that has to go first, or 0;
    /// `cache_dir` the only folder that may be used.
    pub(super) async fn begin(
        pipes: &'a mut Pipes,
        old: u32,
        cache_dir: Option<&Path>,
    ) -> Result<Self, TalkError> {
        let folder = cache_dir.map_or(&b""[..], |folder| folder.as_os_str().as_bytes());
        // An inventory is checked, a stored run may have been written by another program.
        if folder.contains(&b'\n') {
            return Err(TalkError::CacheDir);
        }
        let random = clock::random::<8>().map_err(TalkError::Random)?;
        let word = format!("linerate-{:016x}", u64::from_le_bytes(random));
        let mut talk = Self { pipes, word, buffer: Vec::new(), passed_bytes: 0 };
        let first = [format!("{} {old}\n", talk.word).as_bytes(), folder, b"\n"].concat();
        talk.send(&first).await;
        Ok(talk)
    }

    /// Writes. A host that takes nothing has ended; the next line says so.
    pub(super) async fn send(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.pipes.stdin
            && stdin.write_all(bytes).await.and(stdin.flush().await).is_err()
        {
            self.pipes.stdin = None;
        }
    }

    /// Writes a lot while the host may already say that it cannot take it; gives the next line.
    pub(super) async fn send_and_listen(&mut self, bytes: &[u8]) -> Result<(String, String), TalkError> {
        let mut stdin = self.pipes.stdin.take();
        let sending = async {
            if let Some(stdin) = &mut stdin {
                let _ = stdin.write_all(bytes).await.and(stdin.flush().await);
            }
            // Whether or not it was taken: the host has the word.
            std::future::pending().await
        };
        let line = tokio::select! {
            line = self.line() => line,
            never = sending => never,
        };
        self.pipes.stdin = stdin;
        line
    }

    /// The next line of ours: its first word and the rest.
    pub(super) async fn line(&mut self) -> Result<(String, String), TalkError> {
        loop {
            if let Some(line) = self.cut() {
                return Ok(line);
            }
            if self.passed_bytes + self.buffer.len() > NOISE_BYTES_MAX {
                return Err(TalkError::Noise(self.noise()));
            }
            let mut chunk = vec![0; CHUNK_BYTES];
            match self.pipes.stdout.read(&mut chunk).await {
                Ok(count @ 1..) => self.buffer.extend_from_slice(&chunk[..count]),
                _ if self.buffer.is_empty() => return Err(TalkError::Ended),
                _ => return Err(TalkError::EndedAfter(self.noise())),
            }
        }
    }

    /// Takes a whole line of ours out of the buffer, with the noise before it. A banner may lack its line
    /// break.
    fn cut(&mut self) -> Option<(String, String)> {
        let word = self.word.as_bytes();
        let at = self.buffer.windows(word.len()).position(|w| w == word)?;
        let end = at + self.buffer[at..].iter().position(|b| *b == b'\n')?;
        let line = String::from_utf8_lossy(&self.buffer[at + word.len()..end]).trim().to_owned();
        self.buffer.drain(..=end);
        self.passed_bytes += at;
        let (first, rest) = line.split_once(' ').unwrap_or((&line, ""));
        Some((first.to_owned(), rest.to_owned()))
    }

    fn noise(&self) -> String {
        let text = String::from_utf8_lossy(&self.buffer).into_owned();
        let from = text.char_indices().rev().nth(200).map_or(0, |(at, _)| at);
        escaped(&text[from..])
    }

    /// What was read behind the last line: the beginning of the session.
    pub(super) fn rest(self) -> Vec<u8> {
        self.buffer
    }
}
