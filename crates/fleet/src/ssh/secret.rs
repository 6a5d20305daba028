//! The password for `sudo`, asked once per command on the terminal.
//!
//! What comes in: names of the hosts whose `sudo` asks. What goes out: the password, or nothing. It is never
//! shown, never written to a file, a log or a command line, and given only to `sudo` on its stdin. The
//! terminal's echo is off before the prompt appears, and on again however the wait ends.

use std::fs::File;
use std::io::{BufRead, BufReader, IsTerminal, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use tokio::sync::{OnceCell, oneshot};

use crate::pipes::escaped;
use crate::remarks::few;

/// Longest wait for a person.
const PERSON_WAIT: Duration = Duration::from_secs(120);
/// Longest password, bytes: a terminal gives no longer line.
const PASSWORD_BYTES_MAX: u64 = 4096;

/// A password. Has no way of being printed.
pub(super) struct Secret(Vec<u8>);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// The line that `sudo -S` reads.
    pub(super) fn line(&self) -> Vec<u8> {
        [&self.0[..], b"\n"].concat()
    }
}

/// The hosts that ask, and the terminal while a prompt stands on it.
#[derive(Debug, Default)]
struct Question {
    hosts: Vec<String>,
    terminal: Option<Arc<Terminal>>,
}

static QUESTION: Mutex<Question> = Mutex::new(Question { hosts: Vec::new(), terminal: None });

fn question() -> MutexGuard<'static, Question> {
    QUESTION.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The password for all hosts that ask for one: asked at the first; for each further one the prompt is
/// written again with its name in it, and the same answer counts. `None` where there is no terminal, or
/// nothing was typed.
pub(super) async fn password(host: &str) -> Option<&'static Secret> {
    static ASKED: OnceCell<Option<Secret>> = OnceCell::const_new();
    {
        let mut question = question();
        question.hosts.push(escaped(host));
        if let Some(terminal) = &question.terminal {
            terminal.write(&format!("\r{}", prompt(&question.hosts)));
        }
    }
    ASKED.get_or_init(ask).await.as_ref()
}

fn prompt(hosts: &[String]) -> String {
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    format!("password for sudo on {} and other hosts that ask (empty: go on without root): ", few(&hosts))
}

async fn ask() -> Option<Secret> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let prompt = Prompt::open().ok()?;
    let input = prompt.terminal.file.try_clone().ok()?;
    let (answer, typed) = oneshot::channel();
    // A thread of its own: a read of a terminal cannot be undone, and nothing waits for it. It reads only
    // what was typed in time: a later line is for others.
    std::thread::spawn(move || {
        if let Some(line) = typed_line(&input, PERSON_WAIT) {
            let _ = answer.send(line);
        }
    });
    let line = typed.await.ok()?;
    drop(prompt);
    usable(line)
}

/// The next line of a terminal, if it is there within this time.
fn typed_line(input: &File, within: Duration) -> Option<Vec<u8>> {
    let until = Instant::now() + within;
    loop {
        let left = Timespec::try_from(until.saturating_duration_since(Instant::now())).ok()?;
        let mut wanted = [PollFd::new(input, PollFlags::IN)];
        match poll(&mut wanted, Some(&left)) {
            Err(Errno::INTR) => {}
            Ok(1..) => break,
            Ok(0) | Err(_) => return None,
        }
    }
    let mut line = Vec::new();
    // A terminal that is read by lines is ready when a whole one is there.
    BufReader::new(input.take(PASSWORD_BYTES_MAX)).read_until(b'\n', &mut line).ok()?;
    Some(line)
}

/// A line break inside would be a second line for sudo, which would be taken for frames.
fn usable(mut line: Vec<u8>) -> Option<Secret> {
    line.pop_if(|byte| *byte == b'\n')?;
    (!line.is_empty() && !line.iter().any(|byte| b"\n\r\0".contains(byte))).then_some(Secret(line))
}

/// The terminal of this program.
#[derive(Debug)]
struct Terminal {
    file: File,
}

impl Terminal {
    fn write(&self, text: &str) {
        // A terminal that is gone is noticed by what reads from it.
        let _ = (&self.file).write_all(text.as_bytes());
    }
}

/// A prompt on a terminal that does not show what is typed. Dropped in any state (answered, too late,
/// interrupted) it gives the terminal back as it was.
struct Prompt {
    terminal: Arc<Terminal>,
    before: Termios,
}

impl Prompt {
    fn open() -> std::io::Result<Self> {
        let file = File::options().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&file)?;
        let mut silent = before.clone();
        silent.local_modes -= LocalModes::ECHO | LocalModes::ECHONL;
        silent.local_modes |= LocalModes::ICANON | LocalModes::ISIG;
        // Stopped and continued, the shell would have turned the echo on again.
        silent.special_codes[SpecialCodeIndex::VSUSP] = 0;
        // What was typed before the question is no answer to it.
        tcsetattr(&file, OptionalActions::Flush, &silent)?;
        let prompt = Self { terminal: Arc::new(Terminal { file }), before };
        crate::progress::terminal_is_taken(true);
        let mut question = question();
        prompt.terminal.write(&format!("\r\x1b[K{}", self::prompt(&question.hosts)));
        question.terminal = Some(Arc::clone(&prompt.terminal));
        Ok(prompt)
    }
}

impl Drop for Prompt {
    fn drop(&mut self) {
        question().terminal = None;
        // The line break that was typed was not shown either.
        self.terminal.write("\n");
        let _ = tcsetattr(&self.terminal.file, OptionalActions::Now, &self.before);
        crate::progress::terminal_is_taken(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line() {
        let line = |typed: &[u8]| usable(typed.to_vec()).map(|secret| secret.line());
        assert_eq!(line(b"correct horse\n"), Some(b"correct horse\n".to_vec()));
        // Not typed to its end, empty, or more than one line for sudo.
        for none in [&b""[..], b"half", b"\n", b"a\rb\n", b"a\0b\n"] {
            assert_eq!(line(none), None, "{none:?}");
        }
    }

    #[test]
    fn a_line_that_comes_too_late_is_left_to_others() {
        use std::os::fd::OwnedFd;

        let (reader, mut writer) = std::io::pipe().unwrap();
        let mut reader = File::from(OwnedFd::from(reader));
        assert_eq!(typed_line(&reader, Duration::ZERO), None);
        writer.write_all(b"yes\n").unwrap();
        let mut line = [0; 4];
        reader.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"yes\n");
        writer.write_all(b"secret\n").unwrap();
        assert_eq!(typed_line(&reader, Duration::from_secs(60)).as_deref(), Some(&b"secret\n"[..]));
    }

    #[test]
    fn the_prompt_names_the_hosts_that_ask() {
        let hosts: Vec<String> = (1..=8).map(|n| format!("arc-{n}")).collect();
        assert_eq!(
            prompt(&hosts[..2]),
            "password for sudo on arc-1, arc-2 and other hosts that ask (empty: go on without root): "
        );
        assert!(prompt(&hosts).contains("arc-6 and 2 more and other hosts"), "{}", prompt(&hosts));
    }
}
