//! A real sshd for the conformance of the transport: one process per connection (`sshd -i`), started by `ssh`
//! as its proxy command, so that nothing listens. It lets the current user in with a key made for the test,
//! and keeps what is copied in the folder of the test.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const SSHD: &str = "/usr/sbin/sshd";

thread_local! {
    static PROGRAM: RefCell<Option<OsString>> = const { RefCell::new(None) };
}

/// What stands for `ssh` in this thread.
pub(super) fn program() -> Option<OsString> {
    PROGRAM.with_borrow(Clone::clone)
}

/// Makes keys and configurations in the folder and lets this thread use them. The error says why it is
/// impossible here.
pub(crate) fn use_in_this_thread(folder: &Path) -> Result<(), String> {
    if !Path::new(SSHD).exists() {
        return Err(format!("no {SSHD} here (install the package openssh-server)"));
    }
    let root = output("id", &["-u"])? == "0";
    let here = folder.display();
    for key in ["host_key", "user_key"] {
        if !folder.join(key).exists() {
            output(
                "ssh-keygen",
                &["-q", "-t", "ed25519", "-N", "", "-f", &folder.join(key).to_string_lossy()],
            )?;
        }
    }
    let mut server = String::new();
    for line in [
        &format!("HostKey {here}/host_key"),
        &format!("AuthorizedKeysFile {here}/user_key.pub"),
        &format!("SetEnv XDG_CACHE_HOME={here}/cache"),
        "UsePAM no",
        "StrictModes no",
        "PidFile none",
        "PermitRootLogin yes",
    ] {
        let _ = writeln!(server, "{line}");
    }
    write(&folder.join("sshd_config"), &server, 0o600)?;
    // As root sshd wants a folder of its own under /run, which is made in a mount namespace.
    let inner = format!(
        "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec {SSHD} -i -f {here}/sshd_config"
    );
    let proxy = if root {
        output("unshare", &["-m", "true"])?;
        write(&folder.join("proxy"), &format!("#!/bin/sh\n{inner}\n"), 0o700)?;
        format!("unshare -m {here}/proxy")
    } else {
        format!("{SSHD} -i -f {here}/sshd_config")
    };
    let known = std::fs::read_to_string(folder.join("host_key.pub")).map_err(|e| e.to_string())?;
    write(&folder.join("known_hosts"), &format!("lab {known}"), 0o600)?;
    let client = format!(
        "Host *\nProxyCommand {proxy}\nIdentityFile {here}/user_key\nIdentitiesOnly yes\nIdentityAgent none\n\
         UserKnownHostsFile {here}/known_hosts\nGlobalKnownHostsFile none\nStrictHostKeyChecking yes\n"
    );
    write(&folder.join("ssh_config"), &client, 0o600)?;
    let program = folder.join("ssh");
    write(&program, &format!("#!/bin/sh\nexec ssh -F {here}/ssh_config \"$@\"\n"), 0o700)?;
    PROGRAM.set(Some(program.into()));
    Ok(())
}

fn write(path: &Path, text: &str, mode: u32) -> Result<(), String> {
    let done = std::fs::write(path, text)
        .and_then(|()| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)));
    done.map_err(|e| format!("{}: {e}", path.display()))
}

fn output(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(arguments).output().map_err(|e| format!("{program}: {e}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim()))
    }
}
