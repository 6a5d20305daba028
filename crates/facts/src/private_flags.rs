//! Facts and settings `nic.*.private.*`: private flags of a driver. Only those may be written that
//! `linerate_model::writable` names: what the others do is known to their drivers alone.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::ethtool;
use linerate_sys::root::{ReadError, Root};

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, fact, flag_of, settings};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct PrivateFlags;

pub(super) fn is_setting(key: &str) -> bool {
    split(key).is_some()
}

fn split(key: &str) -> Option<(String, &str)> {
    let (nic, field) = split_key(key)?;
    Some((nic, field.strip_prefix("private.").filter(|flag| !flag.is_empty())?))
}

/// Drivers put spaces into these names, keys have none.
fn shown(flag: &str) -> String {
    flag.replace(' ', "-")
}

impl Fact for PrivateFlags {
    fn declarations(&self) -> Vec<FactDecl> {
        let all =
            fact("nic.*.private.*", "flag", "Private flag of the driver, as by `ethtool --show-priv-flags`.");
        settings("nic.*.private.", "flag").chain([all]).collect()
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for (name, nic) in view.nics() {
            for (flag, on) in &nic.private {
                out.flag(format!("nic.{}.private.{}", key_name(name), shown(flag)), *on);
            }
            if let Some(reason) = nic.missing.get("private") {
                out.gap_of("nic.*.private.*", reason, name);
            }
        }
    }
}

/// The driver's own name of a flag, and whether it is on.
fn find(root: &Root, nic: &str, name: &str) -> Result<(String, bool), SettingError> {
    let flags = if root.is_live() {
        ethtool::read_private(nic)?
    } else {
        let view = View::new(root, None, &[]);
        let known = view.nics().get(nic).map(|n| n.private.clone());
        known.ok_or_else(|| SettingError::NoDevice(nic.to_owned()))?
    };
    let lacks =
        || SettingError::Lacks { device: format!("the driver of {nic}"), what: format!("flag {name}") };
    flags.into_iter().find(|(flag, _)| shown(flag) == name).ok_or_else(lacks)
}

impl Setting for PrivateFlags {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (nic, name) = split(key).ok_or(SettingError::NotAKey("not a key of a private flag"))?;
        Ok(FactValue::Flag(find(root, &nic, name)?.1))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (nic, name) = split(key).ok_or(SettingError::NotAKey("not a key of a private flag"))?;
        let wanted = flag_of(value)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        let (flag, now) = find(root, &nic, name)?;
        if now == wanted { Ok(()) } else { Ok(ethtool::set_private(&nic, &flag, wanted)?) }
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        match split(key) {
            Some((nic, name)) if is_plain(&nic) && is_plain(name) => unit(
                &format!("{nic}-{name}"),
                &format!("{name} of {nic}"),
                format!("/usr/sbin/ethtool --set-priv-flags {nic} {name} {value}"),
            ),
            _ => Persist::Impossible { reason: "not a name that can stand in a command".to_owned() },
        }
    }
}
