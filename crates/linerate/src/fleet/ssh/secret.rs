//! The password for `sudo`, asked once per command on the terminal.
//!
//! It is never shown, never written to a file, a log or a command line, and given only to `sudo` on its stdin.

use std::io::IsTerminal;

use tokio::sync::OnceCell;

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

async fn ask() -> Option<Secret> {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return None;
    }
    let prompt = "password for sudo on the hosts (empty: go on without root): ";
    let typed = tokio::task::spawn_blocking(move || rpassword::prompt_password(prompt)).await;
    // A line break would be a second line for sudo, which would be taken for frames.
    typed.ok()?.ok().filter(|p| !p.is_empty() && !p.contains(['\n', '\r', '\0'])).map(Secret)
}
