//! What to do about the words with which `ssh` fails.
//!
//! What comes in: its last lines. What goes out: a hint for people, with commands that run as printed;
//! nothing depends on it. A name out of those lines gets into a command only if it is made of nothing that a
//! shell takes for more than a letter.

use std::borrow::Cow;

use linerate_model::inventory::SshSpec;

use crate::pipes::escaped;

/// The command by which a person reaches the host.
pub(super) fn by_hand(spec: &SshSpec) -> String {
    let port = spec.port.map(|port| format!("-p {port} ")).unwrap_or_default();
    let user = spec.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
    format!("ssh {port}{}", word(&format!("{user}{}", spec.host)))
}

/// A word of a command line. What the shell would take apart stands in quotes.
fn word(text: &str) -> Cow<'_, str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into();
    }
    format!("'{}'", text.replace('\'', r"'\''")).into()
}

/// A part of what `ssh` said that may be copied into a command.
fn harmless(text: &str) -> Option<&str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+:,./_-[]~".contains(c);
    let text = text.trim();
    (!text.is_empty() && !text.starts_with('-') && text.len() <= 512 && text.chars().all(plain))
        .then_some(text)
}

/// What to do about it.
pub(super) fn hint(spec: &SshSpec, shown: &str) -> Option<String> {
    let host = by_hand(spec);
    let has = |text: &str| shown.contains(text);
    let words = if has("IDENTIFICATION HAS CHANGED") {
        format!(
            "its host key is not the known one: the host was installed anew, or something in between poses as it; compare the \
             fingerprint on its console, then `{}` and log in once by hand with `{host}`",
            forget(spec, shown)
        )
    } else if has("Host key verification failed") {
        format!("its host key is not known: log in once by hand with `{host}` and compare the fingerprint")
    } else if has("Permission denied") {
        format!("`{host} true` must work without a question: load a key with ssh-add, or name the user")
    } else if has("Could not resolve hostname") {
        "the name is neither known to DNS nor in ~/.ssh/config".to_owned()
    } else if has("Connection refused") {
        "no sshd listens there; is the port right?".to_owned()
    } else if has("banner exchange") || has("waiting for the server's version") {
        "the host takes TCP connections, but no sshd sends its handshake: it is overloaded or out of memory, its sshd hangs, or \
         the port belongs to another service; look at it on its console"
            .to_owned()
    } else if has("timed out") {
        "the host is off, or a firewall drops the packets".to_owned()
    } else {
        return None;
    };
    Some(words)
}

/// The command that makes ssh forget a host key: with the name and the file that ssh itself named, which
/// differ from the host's with a port, an alias or a file of the configuration.
fn forget(spec: &SshSpec, shown: &str) -> String {
    let between = |start: &str, end: &str| {
        let line = shown.lines().find_map(|line| line.trim().strip_prefix(start))?;
        harmless(&line[..line.rfind(end)?])
    };
    let named = between("Host key for ", " has changed and you have requested strict checking");
    let name = named.map_or_else(
        || match spec.port.filter(|port| *port != 22) {
            Some(port) => format!("[{}]:{port}", spec.host),
            None => spec.host.clone(),
        },
        str::to_owned,
    );
    // `Offending ED25519 key in /home/ops/.ssh/known_hosts:7`
    let offending = shown.lines().find(|line| line.trim().starts_with("Offending "));
    let file = offending.and_then(|line| harmless(line.split_once(" key in ")?.1.rsplit_once(':')?.0));
    let file = file.map(|file| format!("-f {} ", word(file))).unwrap_or_default();
    format!("ssh-keygen {file}-R {}", word(&name))
}

/// What `ssh` warns of although the session works.
pub(super) fn warning(shown: &str) -> Option<String> {
    shown.lines().find(|l| l.contains("Permanently added") || l.contains("HAS CHANGED")).map(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(host: &str, shown: &str) -> String {
        hint(&SshSpec::parse(host).unwrap(), shown).unwrap_or_default()
    }

    const CHANGED: &str = "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n\
        Offending ED25519 key in /home/ops/.ssh/known_hosts:7\n\
        Host key for [127.0.0.1]:2204 has changed and you have requested strict checking.\n\
        Host key verification failed.\n";

    #[test]
    fn a_changed_key_is_forgotten_under_the_name_that_ssh_has() {
        let shown = of("wrongkey", CHANGED);
        let command = "`ssh-keygen -f /home/ops/.ssh/known_hosts -R '[127.0.0.1]:2204'`";
        assert!(shown.contains(command) && shown.contains("`ssh wrongkey`"), "{shown}");
        let bare = "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!";
        assert!(of("arc-1", bare).contains("`ssh-keygen -R arc-1`"), "{}", of("arc-1", bare));
        assert!(of("arc-1:2222", bare).contains("`ssh-keygen -R '[arc-1]:2222'`"));
    }

    #[test]
    fn nothing_that_was_said_becomes_a_command() {
        for bad in ["x; reboot", "$(reboot)", "`reboot`", "-oProxyCommand=reboot", "a\u{1b}[2J", ""] {
            let shown = CHANGED.replace("[127.0.0.1]:2204", bad).replace("/home/ops/.ssh/known_hosts", bad);
            let hint = of("arc-1", &shown);
            assert!(hint.contains("`ssh-keygen -R arc-1`") && !hint.contains("reboot"), "{bad}: {hint}");
        }
    }

    #[test]
    fn a_silent_sshd_is_not_a_host_that_is_off() {
        let silent =
            of("a", "Connection timed out during banner exchange\nConnection to 10.0.0.1 port 22 timed out");
        assert!(silent.contains("takes TCP connections") && !silent.contains("is off"), "{silent}");
        let off = of("a", "ssh: connect to host a port 22: Connection timed out");
        assert!(off.contains("the host is off"), "{off}");
        assert!(of("a", "Permission denied (publickey).").contains("ssh-add"));
        assert_eq!(of("a", "something else"), "");
    }

    #[test]
    fn the_command_by_hand_reaches_the_same_host() {
        let by = |host: &str| by_hand(&SshSpec::parse(host).unwrap());
        assert_eq!(by("ops@arc-1:2222"), "ssh -p 2222 ops@arc-1");
        assert_eq!(by("2001:db8::1"), "ssh 2001:db8::1");
        assert_eq!(word("it's [1]"), r"'it'\''s [1]'");
    }
}
