//! Facts and settings `nic.*.feature.*`: offloads, by the names that `ethtool -k` prints.
//!
//! The kernel knows single features only; `ethtool` also has names for groups of them
//! (`tcp-segmentation-offload`). A group is on when one of its features is, and switching it switches all
//! that can be switched.

use std::collections::BTreeMap;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::ethtool::{self, Feature};
use linerate_sys::root::{ReadError, Root};

use super::boot::{is_plain, link_file, unit};
use super::fact::Fact;
use super::readings::{Readings, fact, flag_of, settings};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Features;

/// Printed name and the kernel's name.
const RENAMED: [(&str, &str); 8] = [
    ("rx-checksumming", "rx-checksum"),
    ("generic-segmentation-offload", "tx-generic-segmentation"),
    ("generic-receive-offload", "rx-gro"),
    ("large-receive-offload", "rx-lro"),
    ("rx-vlan-offload", "rx-vlan-hw-parse"),
    ("tx-vlan-offload", "tx-vlan-hw-insert"),
    ("ntuple-filters", "rx-ntuple-filter"),
    ("receive-hashing", "rx-hashing"),
];

/// Printed name and the kernel's names of its members.
const GROUPS: [(&str, &[&str]); 3] = [
    (
        "tx-checksumming",
        &[
            "tx-checksum-ipv4",
            "tx-checksum-ip-generic",
            "tx-checksum-ipv6",
            "tx-checksum-fcoe-crc",
            "tx-checksum-sctp",
        ],
    ),
    ("scatter-gather", &["tx-scatter-gather", "tx-scatter-gather-fraglist"]),
    (
        "tcp-segmentation-offload",
        &[
            "tx-tcp-segmentation",
            "tx-tcp-ecn-segmentation",
            "tx-tcp-mangleid-segmentation",
            "tx-tcp6-segmentation",
        ],
    ),
];

/// Send features that take each other along (`tx-checksumming off` switches TSO off, and `on` does not switch
/// it on), in the order in which they can be switched on again.
const SEND: [&str; 17] = [
    "tx-checksum-ipv4",
    "tx-checksum-ip-generic",
    "tx-checksum-ipv6",
    "tx-scatter-gather",
    "tx-scatter-gather-fraglist",
    "generic-segmentation-offload",
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-tcp-mangleid-segmentation",
    "tx-tcp6-segmentation",
    "tx-gso-robust",
    "tx-gre-segmentation",
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-gso-partial",
    "tx-gso-list",
    "tx-udp-segmentation",
];
/// The same for receiving.
const RECEIVE: [&str; 6] = [
    "rx-checksumming",
    "generic-receive-offload",
    "rx-gro-hw",
    "large-receive-offload",
    "rx-gro-list",
    "rx-udp-gro-forwarding",
];

/// Keys of systemd `.link` files.
const LINK_KEYS: [(&str, &str); 11] = [
    ("rx-checksumming", "ReceiveChecksumOffload"),
    ("tx-checksumming", "TransmitChecksumOffload"),
    ("tcp-segmentation-offload", "TCPSegmentationOffload"),
    ("tx-tcp-segmentation", "TCPSegmentationOffload"),
    ("tx-tcp6-segmentation", "TCP6SegmentationOffload"),
    ("generic-segmentation-offload", "GenericSegmentationOffload"),
    ("generic-receive-offload", "GenericReceiveOffload"),
    ("rx-gro-hw", "GenericReceiveOffloadHardware"),
    ("large-receive-offload", "LargeReceiveOffload"),
    ("rx-vlan-offload", "ReceiveVLANCTAGHardwareAcceleration"),
    ("tx-vlan-offload", "TransmitVLANCTAGHardwareAcceleration"),
];

pub(super) fn is_setting(key: &str) -> bool {
    split(key).is_some()
}

fn split(key: &str) -> Option<(String, &str)> {
    let (nic, field) = split_key(key)?;
    Some((nic, field.strip_prefix("feature.").filter(|f| !f.is_empty())?))
}

fn printed(kernel: &str) -> &str {
    RENAMED.iter().find(|(_, k)| *k == kernel).map_or(kernel, |(p, _)| p)
}

/// The kernel's names behind a printed one that this device has.
fn members<'f>(features: &'f BTreeMap<String, Feature>, name: &str) -> Vec<(&'f str, Feature)> {
    let group = GROUPS.iter().find(|(p, _)| *p == name).map(|(_, members)| *members);
    let single = [RENAMED.iter().find(|(p, _)| *p == name).map_or(name, |(_, k)| k)];
    let names = group.unwrap_or(&single);
    features.iter().filter(|(k, _)| names.contains(&k.as_str())).map(|(k, f)| (k.as_str(), *f)).collect()
}

fn features_of(root: &Root, nic: &str) -> Result<BTreeMap<String, Feature>, SettingError> {
    if root.is_live() {
        return Ok(ethtool::read_features(nic)?);
    }
    let view = View::new(root, None, &[]);
    view.nics().get(nic).map(|n| n.features.clone()).ok_or_else(|| SettingError::NoDevice(nic.to_owned()))
}

impl Fact for Features {
    fn declarations(&self) -> Vec<FactDecl> {
        let all =
            fact("nic.*.feature.*", "flag", "Offload by the name that `ethtool -k` prints, for groups too.");
        settings("nic.*.feature.", "flag").chain([all]).collect()
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for (name, nic) in view.nics() {
            let head = format!("nic.{}.feature", key_name(name));
            for (kernel, feature) in &nic.features {
                out.flag(format!("{head}.{}", printed(kernel)), feature.active);
            }
            for (group, _) in GROUPS {
                let members = members(&nic.features, group);
                if !members.is_empty() {
                    out.flag(format!("{head}.{group}"), members.iter().any(|(_, f)| f.active));
                }
            }
            if let Some(reason) = nic.missing.get("feature") {
                out.gap_of("nic.*.feature.*", reason, name);
            }
        }
    }
}

impl Setting for Features {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (nic, name) = split(key).ok_or(SettingError::NotAKey("not a key of a feature"))?;
        let features = features_of(root, &nic)?;
        let members = members(&features, name);
        if members.is_empty() {
            return Err(SettingError::Lacks { device: nic, what: format!("feature {name}") });
        }
        Ok(FactValue::Flag(members.iter().any(|(_, f)| f.active)))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (nic, name) = split(key).ok_or(SettingError::NotAKey("not a key of a feature"))?;
        let wanted = flag_of(value)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        let features = ethtool::read_features(&nic)?;
        let members = members(&features, name);
        if members.is_empty() {
            return Err(SettingError::Lacks { device: nic, what: format!("feature {name}") });
        }
        // A group that is partly on counts as on; writing "on" again must not switch on the rest.
        if members.iter().any(|(_, f)| f.active) == wanted {
            return Ok(());
        }
        let changes: Vec<(String, bool)> =
            members.iter().filter(|(_, f)| f.changeable).map(|(k, _)| (k.to_string(), wanted)).collect();
        if changes.is_empty() {
            return Err(SettingError::Fixed { nic, name: name.to_owned() });
        }
        ethtool::set_features(&nic, &changes)?;
        if Setting::read(self, root, key)? == FactValue::Flag(wanted) {
            return Ok(());
        }
        Err(SettingError::Kept { nic, name: name.to_owned(), state: if wanted { "off" } else { "on" } })
    }

    fn related(&self, key: &str) -> Vec<String> {
        let Some((nic, name)) = split(key) else { return Vec::new() };
        let group = GROUPS.iter().any(|(p, _)| *p == name);
        let family: &[&str] = if group || SEND.contains(&name) {
            &SEND
        } else if RECEIVE.contains(&name) {
            &RECEIVE
        } else {
            &[]
        };
        let nic = key_name(&nic);
        family.iter().filter(|f| **f != name).map(|f| format!("nic.{nic}.feature.{f}")).collect()
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let (Some((nic, name)), Ok(on)) = (split(key), flag_of(value)) else {
            return Persist::Impossible { reason: "not a feature that is on or off".to_string() };
        };
        if !is_plain(&nic) || !is_plain(name) {
            return Persist::Impossible { reason: format!("'{nic}' or '{name}' cannot stand in a command") };
        }
        match LINK_KEYS.iter().find(|(p, _)| *p == name) {
            Some((_, link_key)) => link_file(&nic, link_key, if on { "yes" } else { "no" }),
            None => unit(
                &format!("{nic}-{name}"),
                &format!("{name} of {nic}"),
                format!("/usr/sbin/ethtool -K {nic} {name} {}", if on { "on" } else { "off" }),
            ),
        }
    }
}
