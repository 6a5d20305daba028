//! Each host and hypervisor is a machine with OpenSSH: `linerate` comes in with keys, known hosts and the
//! real `ssh`.
//!
//! The sshd of a host runs in its network namespace, with a home, users, `/run` and `/sys` of its own. It is
//! started for one connection at a time, by `ssh` itself (`ProxyCommand`): so nothing listens on the networks
//! that are measured, no fault can cut the access to a host, and no daemon has to be ended. Keys and homes
//! lie in the lab's folder. Needs root, as every sshd with more than its own user does.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::transport::{LabAccess, LabTransport};
use crate::cluster::Cluster;
use crate::error::{LabError, Result};
use crate::namespace::Namespace;

/// `sshd` insists on being started by its full path.
const SSHD: &str = "/usr/sbin/sshd";

/// See the file's head.
#[derive(Debug)]
pub(super) struct Ssh;

impl LabTransport for Ssh {
    fn name(&self) -> &'static str {
        "ssh"
    }

    fn prepare(&self, cluster: &Cluster) -> Result<LabAccess> {
        if !has_users() {
            return Err(LabError::Unknown("--via ssh needs root: sshd has a user of its own".into()));
        }
        for (program, package) in [(SSHD, "openssh-server"), ("/usr/bin/ssh", "openssh-client")] {
            if !Path::new(program).exists() {
                return Err(LabError::MissingProgram { program: program.into(), package });
            }
        }
        let site = Site { folder: cluster.folder.join("ssh") };
        site.folder_of("")?;
        site.client()?;
        for namespace in cluster.hosts.iter().map(|(_, n)| n).chain(&cluster.hypervisors) {
            site.host(namespace)?;
        }
        let inventory = site.folder.join("inventory.toml");
        let text = cluster.inventory(|_| "transport = \"ssh\"\n".to_owned());
        site.write("inventory.toml", &text, 0o600)?;
        let environment = vec![("LINERATE_SSH", site.folder.join("ssh").into())];
        Ok(LabAccess { inventory, environment, running: None })
    }
}

/// Whether there are users beside this one: in a user namespace of our own there are none.
fn has_users() -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    let count = map.split_ascii_whitespace().nth(2).and_then(|count| count.parse::<u64>().ok());
    count.is_some_and(|count| count > 1)
}

/// A new key pair at a path, without a password; gives the public half as a line.
pub(crate) fn key_pair(path: &Path) -> Result<String> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-q", "-t", "ed25519", "-N", "", "-C", "lab", "-f"]).arg(path);
    let made = command.output().map_err(LabError::at("running ssh-keygen"))?;
    if !made.status.success() {
        let message = String::from_utf8_lossy(&made.stderr).trim().to_owned();
        return Err(LabError::Command { command: "ssh-keygen".into(), message });
    }
    let public = path.with_extension("pub");
    std::fs::read_to_string(&public).map_err(LabError::at(format!("reading {}", public.display())))
}

/// The folder with everything of ssh.
struct Site {
    folder: PathBuf,
}

impl Site {
    fn folder_of(&self, name: &str) -> Result<PathBuf> {
        let path = self.folder.join(name);
        let step = format!("making the folder {}", path.display());
        std::fs::create_dir_all(&path).map_err(LabError::at(step))?;
        Ok(path)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> Result<()> {
        let path = self.folder.join(name);
        let written = std::fs::write(&path, text)
            .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)));
        written.map_err(LabError::at(format!("writing {}", path.display())))
    }

    fn append(&self, name: &str, more: &str) -> Result<()> {
        let path = self.folder.join(name);
        let step = format!("writing {}", path.display());
        let text = std::fs::read_to_string(&path).map_err(LabError::at(step))?;
        self.write(name, &(text + more), 0o600)
    }

    /// A new key pair; gives the public half.
    fn key(&self, name: &str) -> Result<String> {
        key_pair(&self.folder.join(name))
    }

    /// What a user has: a key, a configuration, known hosts. Nothing of the machine's own user is read.
    fn client(&self) -> Result<()> {
        let here = self.folder.display();
        let public = self.key("user_key")?;
        self.write("authorized", &public, 0o644)?;
        self.write("known_hosts", "", 0o600)?;
        // Of the users of the machine none is there: only these may log in.
        self.write(
            "passwd",
            "root:x:0:0:root:/root:/bin/sh\nsshd:x:61235:65534::/run/sshd:/usr/sbin/nologin\n\
             nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n",
            0o644,
        )?;
        self.write("shadow", "root:*:19000:0:99999:7:::\nsshd:*:19000:0:99999:7:::\n", 0o600)?;
        self.write("host.sh", include_str!("ssh/host.sh"), 0o700)?;
        self.write("ssh", &format!("#!/bin/sh\nexec ssh -F '{here}/config' \"$@\"\n"), 0o700)?;
        let all = format!(
            "Host *\nUser root\nIdentityFile \"{here}/user_key\"\nIdentitiesOnly yes\nIdentityAgent none\n\
             UserKnownHostsFile \"{here}/known_hosts\"\nGlobalKnownHostsFile none\nStrictHostKeyChecking yes\n"
        );
        self.write("config", &all, 0o600)
    }

    /// One machine: its key, its sshd, its entry in the client configuration.
    fn host(&self, namespace: &Namespace) -> Result<()> {
        let (here, name) = (self.folder.display(), &namespace.name);
        self.folder_of(&format!("{name}/home"))?;
        let public = self.key(&format!("{name}/key"))?;
        self.append("known_hosts", &format!("{name} {public}"))?;
        let mut server = String::new();
        for line in [
            &format!("HostKey \"{here}/{name}/key\""),
            &format!("AuthorizedKeysFile \"{here}/authorized\""),
            "PermitRootLogin yes",
            "PasswordAuthentication no",
            "StrictModes no",
            "UsePAM no",
            "PidFile none",
        ] {
            let _ = writeln!(server, "{line}");
        }
        self.write(&format!("{name}/sshd_config"), &server, 0o600)?;
        let entry = format!(
            "Host {name}\nProxyCommand nsenter --net={} unshare --mount --uts --propagation private sh '{here}/host.sh' '{here}' {name}\n",
            namespace.path().display()
        );
        self.append("config", &entry)
    }
}
