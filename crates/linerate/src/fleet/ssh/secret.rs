//! The password for `sudo`, asked once per command on the terminal.
//!
//! It is never shown, never written to a file, a log or a command line, and given only to `sudo` on its stdin.

use std::io::IsTerminal;
use std::process::Command;
use std::time::Duration;

use tokio::sync::{OnceCell, oneshot};
use tokio::time::timeout;

/// A password. Has no way of being printed.
pub(super) struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// The line that `sudo -S` reads.
    pub(super) fn line(&self) -> Vec<u8> {
        let mut line = self.0.clone().into_bytes();
        line.push(b'\n');
        line
    }
}

/// The password for all hosts that ask for one: asked at the first, the others wait for the same answer. `None` where nobody
/// can be asked, or nothing was typed.
pub(super) async fn password() -> Option<&'static Secret> {
    static ASKED: OnceCell<Option<Secret>> = OnceCell::const_new();
    ASKED.get_or_init(ask).await.as_ref()
}

const PROMPT: &str = "password for sudo on the hosts (empty: go on without root): ";
/// Longest wait for a person.
const PERSON_WAIT: Duration = Duration::from_secs(120);

async fn ask() -> Option<Secret> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let mut echo = Echo { is_off: true };
    let (answer, typed) = oneshot::channel();
    // A thread of its own: nobody can wake it from the terminal, and nothing waits for it.
    std::thread::spawn(move || {
        let _ = answer.send(rpassword::prompt_password(PROMPT));
    });
    let typed = timeout(PERSON_WAIT, typed).await.ok()?.ok()?;
    echo.is_off = false;
    // A line break would be a second line for sudo, which would be taken for frames.
    typed.ok().filter(|p| !p.is_empty() && !p.contains(['\n', '\r', '\0'])).map(Secret)
}

/// Gives the terminal its echo back when nobody waits for the answer any more (Ctrl-C, too late).
struct Echo {
    is_off: bool,
}

impl Drop for Echo {
    fn drop(&mut self) {
        if self.is_off
            && let Ok(terminal) = std::fs::File::open("/dev/tty")
        {
            let _ = Command::new("stty").arg("echo").stdin(terminal).status();
        }
    }
}
