//! How the hosts of a fleet were named on the command line, for hints whose commands have to run as printed.
//!
//! In: the inventory file, if one was given, and the inventory. Out: the arguments that name some of its
//! hosts in another command.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_model::inventory::{HostName, Inventory, TransportSpec};

use linerate_model::shell::word;

/// The arguments that name the hosts of a fleet.
#[derive(Debug, Default)]
pub(super) struct Given {
    file: Option<PathBuf>,
    /// What ssh was given, where it is not the name of the host itself.
    ssh: BTreeMap<HostName, String>,
}

impl Given {
    pub(super) fn new(file: Option<&Path>, inventory: &Inventory) -> Self {
        // With a file, names of its hosts are given.
        let hosts = inventory.hosts.iter().filter(|_| file.is_none());
        let ssh = hosts.filter_map(|host| match &host.transport {
            TransportSpec::Ssh(spec) => Some((host.name.clone(), spec.to_string())),
            _ => None,
        });
        Self { file: file.map(Path::to_owned), ssh: ssh.collect() }
    }

    /// The arguments for these hosts, quoted for a shell.
    pub(super) fn arguments(&self, hosts: &[&str]) -> String {
        let file = self.file.iter().flat_map(|file| ["-i".to_owned(), word(&file.to_string_lossy())]);
        let of = |host: &&str| word(self.ssh.get(*host).map_or(host, String::as_str));
        file.chain(hosts.iter().map(of)).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use linerate_inventory::named;

    #[test]
    fn hosts_are_named_as_they_were_given() {
        let inventory = named(&["ops@arc-1:2222".into(), "arc-2".into(), "[2001:db8::1]:22".into()]).unwrap();
        let names: Vec<&str> = inventory.hosts.iter().map(|host| host.name.as_str()).collect();
        assert_eq!(Given::new(None, &inventory).arguments(&names), "ops@arc-1:2222 arc-2 '[2001:db8::1]:22'");
        let file = Given::new(Some(Path::new("my hosts.toml")), &inventory);
        assert_eq!(file.arguments(&["arc-2"]), "-i 'my hosts.toml' arc-2");
    }
}
