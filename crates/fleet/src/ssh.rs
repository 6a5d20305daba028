//! Transport `ssh`: the system's `ssh` program with its own configuration, agent, jump hosts and known hosts.
//!
//! What comes in: a host of the inventory. What goes out: one session, in which first a short script of ours
//! talks with the operator (which machine, is the node program there, may it be root) and then becomes the
//! node program. Host keys are checked by `ssh` alone, as its configuration says; nothing here ever loosens
//! that. Nothing from outside reaches a shell as code.

mod clean;
mod handshake;
mod hints;
#[cfg(test)]
mod script_tests;
mod secret;
mod talk;
#[cfg(test)]
pub(super) mod test_sshd;

use std::ffi::OsString;
use std::path::Path;

use linerate_model::inventory::{Host, SshSpec, TransportSpec};

use super::transport::Transport;

pub use clean::{Cleaned, clean};
pub(super) use handshake::handshake;
use hints::{by_hand, warning};
pub use talk::{SshError, TalkError};

/// What runs on a host before the node program.
const HANDSHAKE: &str = concat!(include_str!("ssh/folder.sh"), include_str!("ssh/handshake.sh"));
/// What removes it.
const CLEAN: &str = concat!(include_str!("ssh/folder.sh"), include_str!("ssh/clean.sh"));

/// Longest wait for a connection to the host, seconds; `ssh` gives up then.
const CONNECT_S: u32 = 10;

/// See the file's head.
pub(super) struct Ssh;

impl Transport for Ssh {
    fn argv(&self, host: &Host, _program: &Path) -> Option<Vec<OsString>> {
        match &host.transport {
            TransportSpec::Ssh(spec) => Some(command(spec, HANDSHAKE)),
            TransportSpec::Local
            | TransportSpec::Netns { .. }
            | TransportSpec::Slurm(_)
            | TransportSpec::Iperf3 { .. } => None,
        }
    }
}

/// The program: `LINERATE_SSH`, or `ssh` of the path.
fn program() -> OsString {
    #[cfg(test)]
    if let Some(program) = test_sshd::program() {
        return program;
    }
    std::env::var_os("LINERATE_SSH").filter(|p| !p.is_empty()).unwrap_or_else(|| "ssh".into())
}

/// Whether `ssh` can ask a person although it has no terminal: through the program that `SSH_ASKPASS` names.
fn can_ask() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    set("SSH_ASKPASS") && (set("DISPLAY") || set("WAYLAND_DISPLAY") || set("SSH_ASKPASS_REQUIRE"))
}

/// The command line that runs one of our scripts on a host.
fn command(spec: &SshSpec, script: &str) -> Vec<OsString> {
    let mut argv = vec![program()];
    let mut option = |text: String| argv.extend(["-o".into(), text.into()]);
    // A question on the terminal would be asked by many at once, and by a process that must not read it.
    option(format!("BatchMode={}", if can_ask() { "no" } else { "yes" }));
    option(format!("ConnectTimeout={CONNECT_S}"));
    // A master of the user is used; ours would outlive the command.
    option("ControlMaster=no".to_owned());
    option("ClearAllForwardings=yes".to_owned());
    option("RemoteCommand=none".to_owned());
    option("ForwardAgent=no".to_owned());
    option("ForwardX11=no".to_owned());
    option("RequestTTY=no".to_owned());
    if let Some(port) = spec.port {
        option(format!("Port={port}"));
    }
    if let Some(user) = &spec.user {
        argv.extend(["-l".into(), user.into()]);
    }
    argv.extend(["--".into(), OsString::from(&spec.host), one_line(script).into()]);
    argv
}

/// A script as one word for any login shell.
fn one_line(script: &str) -> String {
    let lines: Vec<&str> =
        script.lines().map(str::trim).filter(|l| !l.is_empty() && !l.starts_with('#')).collect();
    format!("exec sh -c '{}'", lines.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_one_word_for_every_login_shell() {
        for script in [HANDSHAKE, CLEAN] {
            let line = one_line(script);
            let inner = line.strip_prefix("exec sh -c '").and_then(|l| l.strip_suffix('\'')).unwrap();
            assert!(!inner.contains(['\'', '!', '\n']), "{inner}");
            assert!(inner.match_indices('\\').all(|(at, _)| inner[at..].starts_with("\\n")), "{inner}");
            let parsed = std::process::Command::new("sh").args(["-n", "-c", inner]).output().unwrap();
            assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
        }
    }

    #[test]
    fn host_keys_are_left_to_ssh_and_names_are_no_options() {
        let spec = SshSpec::parse("ops@arc-1:2222").unwrap();
        let argv: Vec<String> =
            command(&spec, "true").iter().map(|a| a.to_string_lossy().into_owned()).collect();
        assert!(argv.iter().all(|a| !a.contains("StrictHostKeyChecking") && !a.contains("KnownHosts")));
        assert!(argv.iter().any(|a| a == "Port=2222"));
        assert_eq!(argv[argv.len() - 5..], ["-l", "ops", "--", "arc-1", "exec sh -c 'true'"]);
    }
}
