//! Access of people, tests and `linerate` to guests: a key made for the lab, known hosts, an ssh
//! configuration, an inventory.
//!
//! In: the keys and ports of ready guests. Out: files in the lab's folder. Nothing of the user's own ssh is
//! read or written.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::access::ssh::key_pair;
use crate::error::{LabError, Result};

/// Where a guest is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listener {
    pub(super) name: String,
    /// Base64 of its public ed25519 key.
    pub(super) key: String,
    /// On 127.0.0.1.
    pub(super) port: u16,
}

/// The files.
#[derive(Debug)]
pub(super) struct Reach {
    folder: PathBuf,
    /// Base64 of the public key that may log in everywhere.
    pub(super) key: String,
}

impl Reach {
    /// Makes the key and what does not depend on guests.
    pub(super) fn create(folder: PathBuf) -> Result<Self> {
        std::fs::create_dir_all(&folder).map_err(LabError::at(format!("making {}", folder.display())))?;
        let public = key_pair(&folder.join("user_key"))?;
        let key = public.split_ascii_whitespace().nth(1).map(str::to_owned);
        let key =
            key.ok_or_else(|| LabError::Unknown(format!("ssh-keygen made no public key: {public:?}")))?;
        let reach = Self { folder, key };
        let config = reach.path("config");
        let script = format!("#!/bin/sh\nexec ssh -F '{}' \"$@\"\n", config.display());
        reach.write("ssh", &script, 0o700)?;
        Ok(reach)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Atomically: another process may be reading it.
    fn write(&self, name: &str, text: &str, mode: u32) -> Result<()> {
        let (path, new) = (self.path(name), self.path(&format!("{name}.new")));
        let written = std::fs::write(&new, text)
            .and_then(|()| std::fs::set_permissions(&new, std::fs::Permissions::from_mode(mode)))
            .and_then(|()| std::fs::rename(&new, &path));
        written.map_err(LabError::at(format!("writing {}", path.display())))
    }

    /// Writes what depends on the guests that are up.
    pub(super) fn describe(
        &self,
        lab: &str,
        listeners: &[Listener],
        addresses: &[(String, String)],
    ) -> Result<()> {
        let here = self.folder.display();
        let mut config = format!(
            "Host *\nUser root\nHostName 127.0.0.1\nIdentityFile \"{here}/user_key\"\nIdentitiesOnly yes\nIdentityAgent none\n\
             UserKnownHostsFile \"{here}/known_hosts\"\nGlobalKnownHostsFile none\nStrictHostKeyChecking yes\n\
             ControlPath \"{here}/%p.sock\"\n"
        );
        let mut known = String::new();
        for Listener { name, key, port } in listeners {
            // Writing into a `String` cannot fail.
            let _ = write!(config, "Host {name}\nHostKeyAlias {name}\nPort {port}\n");
            let _ = writeln!(known, "{name} ssh-ed25519 {key}");
        }
        self.write("known_hosts", &known, 0o600)?;
        self.write("config", &config, 0o600)?;
        let hosts = addresses.iter().map(|(name, address)| {
            format!(
                "\n[[host]]\nname = \"{name}\"\ntransport = \"ssh\"\n[[host.endpoint]]\naddress = \"{address}\"\nlayer = \"underlay\"\n"
            )
        });
        let text = format!("name = {lab:?}\n{}", hosts.collect::<String>());
        self.write("inventory.toml", &text, 0o600)
    }

    /// For `linerate -i`.
    pub(super) fn inventory(&self) -> PathBuf {
        self.path("inventory.toml")
    }

    /// Environment variables of `linerate`.
    pub(super) fn environment(&self) -> (&'static str, OsString) {
        ("LINERATE_SSH", self.path("ssh").into())
    }
}

/// How `ssh` behaves: commands share a connection, because opening one costs an emulated CPU more than most
/// of them; those of `linerate` use it where it is open. The port of a guest changes when it is powered on
/// again, and its connection ends with its power.
const OPTIONS: &str = "-T -o BatchMode=yes -o ConnectTimeout=60 -o ControlMaster=auto -o ControlPersist=yes";

/// Exit code of `ssh` where the connection failed or was lost.
pub(super) const CONNECTION_LOST: i32 = 255;

/// The command that runs an argument vector in a guest of the lab in a folder.
pub(super) fn command(lab: &Path, guest: &str, arguments: &[OsString]) -> Command {
    let mut command = Command::new("ssh");
    command.arg("-F").arg(lab.join("ssh/config")).args(OPTIONS.split_ascii_whitespace());
    command.args(["--", guest]);
    // ssh joins its arguments to one line for the shell of the guest: each becomes one word there.
    command.args(arguments.iter().map(|a| quoted(&a.to_string_lossy())));
    command
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn arguments_stay_one_word_each() {
        let word = "it's $HOME; `x` \"y\"";
        let printed =
            Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(word))).output().unwrap();
        assert_eq!(String::from_utf8(printed.stdout).unwrap(), word);
    }
}
