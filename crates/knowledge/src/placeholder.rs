//! What the texts of a remedy may leave to be filled in: one closed list. A text and what is known of a
//! location come in, the text for this location goes out.

use linerate_model::shell;

/// A hole of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placeholder {
    /// The host that the cause was found on.
    Host,
    /// All hosts that have the resource of DRBD, else that host.
    Hosts,
    /// Its NIC.
    Nic,
    /// Its block device.
    Disk,
    /// The resource of DRBD.
    Resource,
    /// The address of another host that it exchanges traffic with.
    Address,
    /// The folder of a mounted file system.
    Folder,
    /// The number of a routing table.
    Table,
    /// The unit of systemd whose control group has limits.
    Unit,
    /// The properties of that unit that take its limits off.
    Limits,
    /// The value to write: what its equals have.
    Value,
}

impl Placeholder {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Host,
        Self::Hosts,
        Self::Nic,
        Self::Disk,
        Self::Resource,
        Self::Address,
        Self::Folder,
        Self::Table,
        Self::Unit,
        Self::Limits,
        Self::Value,
    ];

    /// As it stands in a text.
    #[must_use]
    pub fn hole(self) -> &'static str {
        match self {
            Self::Host => "{host}",
            Self::Hosts => "{hosts}",
            Self::Nic => "{nic}",
            Self::Disk => "{disk}",
            Self::Resource => "{resource}",
            Self::Address => "{address}",
            Self::Folder => "{folder}",
            Self::Table => "{table}",
            Self::Unit => "{unit}",
            Self::Limits => "{limits}",
            Self::Value => "{value}",
        }
    }

    /// What stands for it in prose where it is not known.
    #[must_use]
    pub fn unknown(self) -> &'static str {
        match self {
            Self::Host | Self::Hosts => "the host",
            Self::Nic => "NIC",
            Self::Disk => "DRIVE",
            Self::Resource => "RESOURCE",
            Self::Address => "PEER",
            Self::Folder => "FOLDER",
            Self::Table => "TABLE",
            Self::Unit => "UNIT",
            Self::Limits => "LIMITS",
            Self::Value => "(the value of the other hosts)",
        }
    }
}

/// Programs with which a command of a fix begins.
const PROGRAMS: [&str; 14] = [
    "cpupower",
    "drbdadm",
    "echo",
    "ethtool",
    "gluster",
    "hdparm",
    "ip",
    "iw",
    "linerate",
    "mount",
    "sysctl",
    "systemctl",
    "tc",
    "umount",
];

/// Whether a fix is a command to type, and not words.
#[must_use]
pub fn is_command(text: &str) -> bool {
    text.split(' ').next().is_some_and(|word| PROGRAMS.contains(&word))
}

/// A text for people; what is not known becomes a word.
pub fn prose(text: &str, known: impl Fn(Placeholder) -> Option<String>) -> String {
    Placeholder::ALL
        .into_iter()
        .filter(|p| text.contains(p.hole()))
        .fold(text.to_owned(), |text, p| text.replace(p.hole(), known(p).as_deref().unwrap_or(p.unknown())))
}

/// A text to be pasted, each value a word of a shell; `None` where something in it is not known.
pub fn command(text: &str, known: impl Fn(Placeholder) -> Option<String>) -> Option<String> {
    let words = |value: &str| value.split_whitespace().map(shell::word).collect::<Vec<_>>().join(" ");
    let text = if known(Placeholder::Nic).is_some_and(|nic| is_pci_address(&nic)) {
        of_pci_address(text)?
    } else {
        text.to_owned()
    };
    Placeholder::ALL.into_iter().filter(|p| text.contains(p.hole())).try_fold(text.clone(), |text, p| {
        let value = known(p).filter(|value| !value.trim().is_empty())?;
        // A value of several words is one word; a list is several.
        let is_list = matches!(p, Placeholder::Hosts | Placeholder::Limits);
        let value = if is_list { words(&value) } else { shell::word(&value) };
        Some(text.replace(p.hole(), &value))
    })
}

/// Whether a NIC is only known by its address on the bus, as `lspci` prints it: `0000:3b:00.1`.
#[must_use]
pub fn is_pci_address(nic: &str) -> bool {
    let plain = nic.bytes().all(|b| b.is_ascii_hexdigit() || b == b':' || b == b'.');
    plain && nic.contains(':') && nic.split('.').count() == 2
}

/// A command for a NIC that is only known by its address on the bus; none that needs an interface.
fn of_pci_address(text: &str) -> Option<String> {
    let path = "/sys/bus/pci/devices/{nic}/";
    let text = text.replace("/sys/class/net/{nic}/device/", path);
    (!text.replace(path, "").contains("{nic}")).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_no_holes_and_no_second_command() {
        let known = |p: Placeholder| match p {
            Placeholder::Host => Some("n1; reboot".to_owned()),
            Placeholder::Hosts => Some("n1 n2".to_owned()),
            _ => None,
        };
        assert_eq!(command("a {host} {hosts}", known).as_deref(), Some("a 'n1; reboot' n1 n2"));
        assert_eq!(command("ethtool {nic}", known), None);
        let on_bus = |_| Some("0000:3b:00.1".to_owned());
        let link = command("grep . /sys/class/net/{nic}/device/current_link_width", on_bus);
        assert_eq!(link.as_deref(), Some("grep . /sys/bus/pci/devices/0000:3b:00.1/current_link_width"));
        assert_eq!(command("ethtool {nic}", on_bus), None);
        assert_eq!(prose("ethtool {nic} on {hosts}", known), "ethtool NIC on n1 n2");
    }
}
