//! The child process of a session: its pipes, what it said on stderr, and its end.
//!
//! What comes in: a command line, or a stream that somebody else opened. What goes out: bytes both ways, and
//! in words why it ended. What a child says on stderr is never part of the protocol: its last lines are
//! quoted, escaped, in the reason of a gap.

use linerate_model::printable::is_control;
use std::ffi::OsString;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::process::{Child, ChildStderr, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Bytes of a child's stderr that are kept for the reason of its end.
const STDERR_KEPT_BYTES: usize = 4096;
/// How long its last words are waited for after its end.
const STDERR_WAIT: Duration = Duration::from_millis(200);
/// Lines of it that are quoted, and the longest quotation in characters.
const LINES_QUOTED: usize = 3;
const QUOTED_CHARS_MAX: usize = 400;

/// What a node says arrives here.
pub(super) type FromNode = Box<dyn AsyncRead + Send + Unpin>;
/// What is said to a node goes here.
pub(super) type ToNode = Box<dyn AsyncWrite + Send + Unpin>;

/// Why a child was not started: the end of a sentence about its host.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the texts say what the fields are")]
pub enum StartError {
    #[error("empty command line")]
    Empty,
    #[error("cannot start {}: {source}", program.display())]
    Spawn { program: OsString, source: std::io::Error },
    #[error("the child has no pipes")]
    NoPipes,
}

/// A child and its pipes.
pub(super) struct Pipes {
    /// The process behind the stream, when there is one of our own.
    child: Option<Child>,
    /// `None` when it is closed.
    pub(super) stdin: Option<ToNode>,
    pub(super) stdout: FromNode,
    shown: Arc<Mutex<Vec<u8>>>,
    stderr: Option<JoinHandle<()>>,
}

/// Streams have no words of their own.
impl std::fmt::Debug for Pipes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipes").field("child", &self.child).field("said", &self.shown).finish_non_exhaustive()
    }
}

impl Pipes {
    /// Starts a child.
    pub(super) fn start(argv: &[OsString]) -> Result<Self, StartError> {
        let (program, arguments) = argv.split_first().ok_or(StartError::Empty)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A Ctrl-C at the terminal must reach only the operator, who then ends the sessions in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| StartError::Spawn { program: program.clone(), source })?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(StartError::NoPipes);
        };
        let shown = Arc::new(Mutex::new(Vec::new()));
        let stderr = tokio::spawn(keep_stderr(stderr, Arc::clone(&shown)));
        Ok(Self {
            child: Some(child),
            stdin: Some(Box::new(stdin)),
            stdout: Box::new(stdout),
            shown,
            stderr: Some(stderr),
        })
    }

    /// A stream without a child.
    #[cfg(any(test, feature = "testing"))]
    pub(super) fn without_child(stdout: FromNode, stdin: ToNode) -> Self {
        Self::over(stdout, stdin, Arc::default())
    }

    /// A stream whose process somebody else started, who also keeps what is said about it.
    pub(super) fn over(stdout: FromNode, stdin: ToNode, shown: Arc<Mutex<Vec<u8>>>) -> Self {
        Self { child: None, stdin: Some(stdin), stdout, shown, stderr: None }
    }

    /// Process id of the child.
    #[cfg(test)]
    pub(super) fn pid(&self) -> u32 {
        self.child.as_ref().and_then(Child::id).unwrap_or_default()
    }

    /// What the child said on stderr so far: the last few KiB.
    pub(super) fn shown(&self) -> String {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&shown).into_owned()
    }

    /// What was said until now explains nothing that comes later.
    pub(super) fn forget_said(&self) {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Closes stdin, reaps the child, which has `patience` to end by itself, and words the reason.
    pub(super) async fn end(&mut self, reason: String, patience: Duration) -> String {
        self.stdin = None;
        let status = match &mut self.child {
            None => None,
            Some(child) => {
                if let Ok(status) = timeout(patience, child.wait()).await {
                    status.ok()
                } else {
                    // Our own child, by its handle: what its node had not undone is undone by its guardian.
                    let _ = child.kill().await;
                    None
                }
            }
        };
        // What it said last may still be in the pipe; somebody else may hold the pipe open.
        if let Some(stderr) = &mut self.stderr {
            let _ = timeout(STDERR_WAIT, stderr).await;
        }
        if self.child.is_none() && self.shown.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            // Whoever started the process hears of its end a little later than its stream does.
            tokio::time::sleep(STDERR_WAIT).await;
        }
        let mut words = reason;
        if let Some(status) = status.filter(|s| !s.success()) {
            words = format!("{words} ({status})");
        }
        let shown = quoted(&self.shown());
        if !shown.is_empty() {
            words = format!("{words}; it said: {shown}");
        }
        words
    }
}

async fn keep_stderr(mut stderr: ChildStderr, shown: Arc<Mutex<Vec<u8>>>) {
    let mut buffer = [0; 1024];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        keep(&shown, &buffer[..count]);
    }
}

/// Keeps words, the last few KiB.
pub(super) fn keep(shown: &Mutex<Vec<u8>>, words: &[u8]) {
    let mut shown = shown.lock().unwrap_or_else(PoisonError::into_inner);
    shown.extend_from_slice(words);
    let surplus = shown.len().saturating_sub(STDERR_KEPT_BYTES);
    shown.drain(..surplus);
}

/// The last lines, on one line, with everything escaped that a terminal could take for a command. Lines of
/// nothing but decoration are left out.
pub(super) fn quoted(text: &str) -> String {
    let telling = |line: &&str| line.chars().any(char::is_alphanumeric);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(telling).collect();
    let last = lines[lines.len().saturating_sub(LINES_QUOTED)..].join(" / ");
    escaped(&last)
}

/// Text of a host on one line, bounded, without control characters.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.trim().chars().take(QUOTED_CHARS_MAX) {
        if is_control(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_is_quoted_on_one_line_and_escaped() {
        assert_eq!(quoted("@@@@@@\n  @\r\none\n\ntwo\nthree\nfour\n"), "two / three / four");
        assert_eq!(quoted("\u{1b}[2Jgone\n"), "\\u{1b}[2Jgone");
        assert_eq!(quoted("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(quoted("\n"), "");
        assert_eq!(quoted(&"x".repeat(10_000)).len(), QUOTED_CHARS_MAX);
    }
}
