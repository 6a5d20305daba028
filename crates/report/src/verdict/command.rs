//! Commands that are pasted where the operator is: a command for a host with the transport in front, the one
//! that reads a fact, and those of this program, with the inventory where it is not found unnamed.

use std::path::Path;

use linerate_knowledge::placeholder;
use linerate_model::imported::NAMELESS;
use linerate_model::inventory::TransportSpec;
use linerate_model::shell;
use linerate_model::snapshot::Snapshot;
use linerate_model::verdict::HostCommand;

/// Which command of a host reads the keys below a prefix; `*` in the prefix is a device, `{}` in the command
/// stands for it, and `{rest}` for what follows.
const READERS: &[(&str, &str)] = &[
    ("nic.*.feature.", "ethtool -k {} | grep {rest}"),
    ("nic.*.ring.", "ethtool -g {}"),
    ("nic.*.coalesce.", "ethtool -c {}"),
    ("nic.*.channels.", "ethtool -l {}"),
    ("nic.*.pause.", "ethtool -a {}"),
    ("nic.*.eee.", "ethtool --show-eee {}"),
    ("nic.*.private.", "ethtool --show-priv-flags {}"),
    ("nic.*.stat.", "ethtool -S {} | grep {rest}"),
    ("nic.*.speed", "ethtool {}"),
    ("nic.*.duplex", "ethtool {}"),
    ("nic.*.autoneg", "ethtool {}"),
    ("nic.*.driver", "ethtool -i {}"),
    ("nic.*.qdisc", "tc qdisc show dev {}"),
    ("nic.*.neighbour.", "ip neigh show dev {}"),
    ("nic.*.fdb.", "bridge fdb show dev {}"),
    ("nic.*.bond.", "cat /proc/net/bonding/{}"),
    ("nic.*.", "ip -d link show {}"),
    ("sysctl.", "sysctl {rest}"),
    ("route.", "ip route show"),
    ("table.", "ip route show table all"),
    ("rule.", "ip rule"),
    ("firewall.", "nft -a list ruleset"),
    ("mount.", "findmnt"),
    ("drbd.", "drbdsetup show"),
];

/// How commands of a run reach its hosts.
#[derive(Debug)]
pub(super) struct Shell<'a> {
    snapshot: &'a Snapshot,
    /// Hosts with this transport are where the operator is.
    has_one_local: bool,
}

/// A command of this program that is not about hosts, or finds those of the run by itself.
pub(super) fn own(words: &[&str]) -> HostCommand {
    let words = words.iter().map(|word| shell::word(word)).collect::<Vec<_>>().join(" ");
    HostCommand { host: None, command: format!("linerate {words}") }
}

/// A command of this program about hosts of an inventory.
pub(super) fn about(words: &[&str], typed: Option<&Path>) -> HostCommand {
    with_inventory(&own(words).command, typed)
}

/// The same, of a command that is text already.
fn with_inventory(command: &str, typed: Option<&Path>) -> HostCommand {
    // Behind a pipe or a remark it would belong to something else.
    let typed = typed.filter(|_| !command.contains(['|', '#', ';', '&']));
    let file = typed.map_or(String::new(), |file| format!(" -i {}", shell::path(file)));
    HostCommand { host: None, command: format!("{command}{file}") }
}

/// A text in which the commands of this program, between backticks, name the inventory.
pub(crate) fn named_in(text: &str, typed: Option<&Path>) -> String {
    let part = |(at, part): (usize, &str)| {
        let is_command = at % 2 == 1 && part.starts_with("linerate ") && !part.ends_with("--help");
        if is_command { with_inventory(part, typed).command } else { part.to_owned() }
    };
    text.split('`').enumerate().map(part).collect::<Vec<_>>().join("`")
}

impl<'a> Shell<'a> {
    /// Of this run.
    pub(super) fn of(snapshot: &'a Snapshot) -> Self {
        let is_local = |host: &&linerate_model::inventory::Host| host.transport == TransportSpec::Local;
        let locals = snapshot.inventory.hosts.iter().filter(is_local).count();
        // Recorded and imported evidence has no transport; there local means nothing.
        Self { snapshot, has_one_local: locals == 1 && snapshot.inventory.hosts.len() > 1 }
    }

    /// A command of this program about hosts of the run.
    pub(super) fn own(&self, words: &[&str]) -> HostCommand {
        about(words, self.snapshot.inventory.typed.as_deref())
    }

    /// A command on a host.
    pub(super) fn on(&self, host: &str, command: &str) -> HostCommand {
        if command.starts_with("linerate ") {
            return with_inventory(command, self.snapshot.inventory.typed.as_deref());
        }
        // No transport reaches a host without a name.
        let command = if host == NAMELESS { command.to_owned() } else { self.reached(host, command) };
        HostCommand { host: Some(host.to_owned()), command }
    }

    /// The command that reads a fact.
    pub(super) fn reads(&self, host: &str, key: &str) -> HostCommand {
        match READERS.iter().find_map(|(head, command)| reader(head, command, key)) {
            Some(command) => self.on(host, &command),
            None => self.own(&["facts", host, key]),
        }
    }

    fn reached(&self, host: &str, command: &str) -> String {
        // Without quotes what follows a pipe runs here, which does as well.
        let over = |head: String| {
            let plain = !command.contains(['\'', '"', '*', ';', '>', '$', '(']) && !command.contains("&&");
            let needs_quotes = !plain && !command.split('|').skip(1).any(|part| part.contains('\''));
            if needs_quotes {
                format!("{head} {}", shell::word(command))
            } else {
                format!("{head} {command}")
            }
        };
        // No name is an option of ssh.
        let name =
            if host.starts_with('-') { format!("-- {}", shell::word(host)) } else { shell::word(host) };
        match self.snapshot.inventory.host(host).map(|host| &host.transport) {
            Some(TransportSpec::Local) if self.has_one_local => command.to_owned(),
            Some(TransportSpec::Netns { path }) => match path
                .file_name()
                .filter(|_| path.parent().is_some_and(|folder| folder.ends_with("run/netns")))
            {
                Some(space) => format!("ip netns exec {} {command}", shell::word(&space.to_string_lossy())),
                None => format!("nsenter --net={} {command}", shell::path(path)),
            },
            Some(TransportSpec::Ssh(spec)) => {
                let port = spec.port.map_or(String::new(), |port| format!("-p {port} "));
                let user = spec.user.as_ref().map_or(String::new(), |user| format!("{user}@"));
                over(format!("ssh {port}{}", shell::word(&format!("{user}{}", spec.host))))
            }
            Some(TransportSpec::Slurm(spec)) => over(format!("ssh {}", shell::word(&spec.node))),
            _ => over(format!("ssh {name}")),
        }
    }
}

/// The command of a line of the table for this key.
fn reader(head: &str, command: &str, key: &str) -> Option<String> {
    let (device, rest) = match head.split_once('*') {
        Some((before, after)) => {
            let (device, rest) = key.strip_prefix(before)?.split_once('.')?;
            (device.replace('/', "."), rest.strip_prefix(&after[1..])?)
        }
        None => (String::new(), key.strip_prefix(head)?),
    };
    let command = if placeholder::is_pci_address(&device) { "lspci -vv -s {}" } else { command };
    Some(command.replace("{rest}", &shell::word(rest)).replace("{}", &shell::word(&device)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fact_has_a_command_that_runs() {
        let snapshot = Snapshot::default();
        let shell = Shell::of(&snapshot);
        for (key, command) in [
            ("nic.bond0/140.feature.rx-gro", "ssh n1 ethtool -k bond0.140 | grep rx-gro"),
            ("nic.em1.mtu", "ssh n1 ip -d link show em1"),
            ("nic.0000:3b:00/1.pcie.width", "ssh n1 lspci -vv -s 0000:3b:00.1"),
            ("sysctl.net.ipv4.tcp_rmem", "ssh n1 sysctl net.ipv4.tcp_rmem"),
            ("cpu.governor", "linerate facts n1 cpu.governor"),
            ("netns./run/x|nic.em1.mtu", "linerate facts n1 'netns./run/x|nic.em1.mtu'"),
        ] {
            assert_eq!(shell.reads("n1", key).command, command);
        }
        assert_eq!(shell.on("n1", "grep . /sys/*/x").command, "ssh n1 'grep . /sys/*/x'");
        assert_eq!(shell.on("n1", "a | grep -A2 'b c'").command, "ssh n1 a | grep -A2 'b c'");
        assert_eq!(shell.on("n 1", "linerate disk watch n1").command, "linerate disk watch n1");
    }

    #[test]
    fn an_inventory_that_is_not_found_unnamed_is_named() {
        let mut snapshot = Snapshot::default();
        snapshot.inventory.typed = Some("my lab.toml".into());
        let shell = Shell::of(&snapshot);
        assert_eq!(
            shell.reads("n1", "cpu.governor").command,
            "linerate facts n1 cpu.governor -i 'my lab.toml'"
        );
        assert_eq!(
            shell.on("n1", "linerate disk watch n1").command,
            "linerate disk watch n1 -i 'my lab.toml'"
        );
        assert_eq!(shell.reads("n1", "nic.em1.mtu").command, "ssh n1 ip -d link show em1");
        assert_eq!(own(&["try", "mtu-low"]).command, "linerate try mtu-low");
        let text = "stop; `linerate drbd status a b`, `ls`, `linerate drbd up --help`";
        assert_eq!(named_in(text, None), text);
        assert_eq!(
            named_in(text, Some(Path::new("c.toml"))),
            "stop; `linerate drbd status a b -i c.toml`, `ls`, `linerate drbd up --help`"
        );
    }
}
