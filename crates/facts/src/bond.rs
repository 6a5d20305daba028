//! Facts `nic.*.bond.*` beside the mode, and the setting `nic.*.bond.xmit_hash_policy`: how a bond spreads
//! what it sends, and how many of its ports take part.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::root::{ReadError, Root};

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, fact, flawed, setting, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Bonds;

/// Fields by which a bond can choose.
const POLICIES: [&str; 6] = ["layer2", "layer2+3", "layer3+4", "encap2+3", "encap3+4", "vlan+srcmac"];

pub(super) fn is_setting(key: &str) -> bool {
    file_of(key).is_some()
}

/// `nic.bond0.bond.xmit_hash_policy` -> the device and its file.
fn file_of(key: &str) -> Option<(String, String)> {
    let (nic, field) = split_key(key)?;
    let file = format!("/sys/class/net/{nic}/bonding/xmit_hash_policy");
    (field == "bond.xmit_hash_policy" && !nic.contains('/')).then_some((nic, file))
}

/// The file holds the name and the number of a value (`layer3+4 1`).
fn policy(root: &Root, file: &str) -> Result<String, ReadError> {
    Ok(root.line(file)?.split_ascii_whitespace().next().unwrap_or_default().to_owned())
}

impl Fact for Bonds {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            setting(
                "nic.*.bond.xmit_hash_policy",
                "text",
                "What a bond looks at to choose the port for a packet: layer2, layer2+3, layer3+4, encap2+3, encap3+4.",
            ),
            fact("nic.*.bond.slaves", "count", "Ports that belong to the bond."),
            fact(
                "nic.*.bond.active_ports",
                "count",
                "Ports in the active aggregator of an 802.3ad bond; fewer than there are when legs do not fit together.",
            ),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for link in view.links().iter().filter(|l| l.bond_mode.is_some()) {
            let Some(folder) = view.sys_folder(link) else { continue };
            let nic = format!("nic.{}.bond", key_name(&link.name));
            if let Ok(policy) = policy(view.root, &format!("{folder}/bonding/xmit_hash_policy")) {
                out.text(format!("{nic}.xmit_hash_policy"), policy);
            }
            if let Ok(ports) = view.root.line(&format!("{folder}/bonding/slaves")) {
                out.int(format!("{nic}.slaves"), ports.split_ascii_whitespace().count() as i64);
            }
            // Empty for other modes.
            if let Ok(active) = view.root.number(&format!("{folder}/bonding/ad_num_ports")) {
                out.int(format!("{nic}.active_ports"), active);
            }
        }
    }
}

impl Setting for Bonds {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (_, file) = file_of(key).ok_or(SettingError::NotAKey("not a key of a bond"))?;
        Ok(FactValue::Text(policy(root, &file)?))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (_, file) = file_of(key).ok_or(SettingError::NotAKey("not a key of a bond"))?;
        let wanted = text_of(value)?;
        if !POLICIES.contains(&wanted.as_str()) {
            return Err(flawed(&wanted, "not a policy such as layer3+4"));
        }
        Ok(root.write(&file, &wanted)?)
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let wanted = value.to_string();
        match file_of(key).filter(|(nic, _)| is_plain(nic) && POLICIES.contains(&wanted.as_str())) {
            Some((nic, file)) => unit(
                &format!("{nic}-xmit_hash_policy"),
                &format!("transmit policy of {nic}"),
                format!("/bin/sh -c 'echo {wanted} > {file}'"),
            ),
            None => Persist::Impossible { reason: format!("'{wanted}' is no policy of a bond") },
        }
    }
}
