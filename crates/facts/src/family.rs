//! Numbers of a driver that ethtool reads and writes in families: rings, coalescing, channels, flow control,
//! EEE. One shape for all; each family has a file of its own with its words.

use std::collections::BTreeMap;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::ethtool::{self, EthtoolFamily, is_flag, label};
use linerate_sys::root::{ReadError, Root};

use super::boot::{is_plain, link_file, unit};
use super::fact::Fact;
use super::readings::{Readings, flag_of, number_of};
use super::rps_xps;
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// One family.
pub(super) struct Numbers {
    /// Which.
    pub(super) family: EthtoolFamily,
    /// What it offers.
    pub(super) declare: fn() -> Vec<FactDecl>,
    /// Names that can be written; none for families that are only read.
    pub(super) writable: fn(&str) -> bool,
    /// Names that move when one is written.
    pub(super) moves: &'static [&'static str],
    /// Key of systemd `.link` files for a name, and the form of its value.
    pub(super) link_key: fn(&str) -> Option<LinkKey>,
    /// Option of ethtool(8) that writes it.
    pub(super) option: &'static str,
}

/// How a number stands in a `.link` file.
pub(super) enum LinkKey {
    /// As it is.
    Plain(&'static str),
    /// With `us` behind it.
    Micros(&'static str),
    /// `yes` or `no`.
    YesNo(&'static str),
}

impl Numbers {
    /// Whether a key is one that this family can write.
    pub(super) fn serves(&self, key: &str) -> bool {
        self.split(key).is_some_and(|(_, name)| (self.writable)(name))
    }

    fn split<'k>(&self, key: &'k str) -> Option<(String, &'k str)> {
        let (nic, field) = split_key(key)?;
        Some((nic, field.strip_prefix(label(self.family))?.strip_prefix('.')?))
    }

    fn value(&self, name: &str, number: u64) -> FactValue {
        if is_flag(self.family, name) {
            FactValue::Flag(number != 0)
        } else {
            FactValue::Int(i64::try_from(number).unwrap_or(i64::MAX))
        }
    }

    fn numbers(&self, root: &Root, nic: &str) -> Result<BTreeMap<String, u64>, SettingError> {
        if root.is_live() {
            return Ok(ethtool::read_family(nic, self.family)?);
        }
        let view = View::new(root, None, &[]);
        let known = view.nics().get(nic).and_then(|n| n.numbers.get(&self.family)).cloned();
        Ok(known.ok_or(ReadError::NotRecorded)?)
    }
}

impl Fact for Numbers {
    fn declarations(&self) -> Vec<FactDecl> {
        (self.declare)()
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let label = label(self.family);
        for (name, nic) in view.nics() {
            for (field, number) in nic.numbers.get(&self.family).into_iter().flatten() {
                out.put(format!("nic.{}.{label}.{field}", key_name(name)), self.value(field, *number));
            }
            if let Some(reason) = nic.missing.get(label) {
                out.gap_of(&format!("nic.*.{label}.*"), reason, name);
            }
        }
    }
}

/// Name of a number on the command line of ethtool(8).
fn option_name(name: &str) -> String {
    match name {
        "enabled" => "eee".to_owned(),
        "tx_lpi_enabled" => "tx-lpi".to_owned(),
        "tx_lpi_timer" => "tx-timer".to_owned(),
        other => other.replace('_', "-"),
    }
}

fn lacks(nic: &str, name: &str) -> SettingError {
    SettingError::Lacks { device: format!("the driver of {nic}"), what: name.to_owned() }
}

impl Setting for Numbers {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (nic, name) = self.split(key).ok_or(SettingError::NotAKey("not a key of this family"))?;
        let numbers = self.numbers(root, &nic)?;
        let number = numbers.get(name).ok_or_else(|| lacks(&nic, name))?;
        Ok(self.value(name, *number))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (nic, name) =
            self.split(key).filter(|(_, n)| (self.writable)(n)).ok_or(SettingError::ReadOnly)?;
        let number = if is_flag(self.family, name) { u32::from(flag_of(value)?) } else { number_of(value)? };
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        let now = self.numbers(root, &nic)?;
        let now = now.get(name).ok_or_else(|| lacks(&nic, name))?;
        // Rings and channels are made anew by a write, which interrupts the link even when nothing changes.
        if *now == u64::from(number) {
            return Ok(());
        }
        Ok(ethtool::set_number(&nic, self.family, name, number)?)
    }

    fn related(&self, key: &str) -> Vec<String> {
        let Some((nic, name)) = self.split(key) else { return Vec::new() };
        let head = format!("nic.{}.{}", key_name(&nic), label(self.family));
        let others = self.moves.iter().filter(|m| **m != name).map(|m| format!("{head}.{m}"));
        // A queue that goes takes the CPUs that work for it along.
        let queues =
            if self.family == EthtoolFamily::Channels { rps_xps::keys(&Root::live(), &nic) } else { vec![] };
        others.chain(queues).collect()
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let Some((nic, name)) = self.split(key).filter(|(_, n)| (self.writable)(n)) else {
            return Persist::Impossible { reason: "it cannot be written".to_string() };
        };
        if !is_plain(&nic) {
            return Persist::Impossible { reason: format!("'{nic}' cannot stand in a command") };
        }
        match (self.link_key)(name) {
            Some(LinkKey::Plain(field)) => link_file(&nic, field, &value.to_string()),
            Some(LinkKey::Micros(field)) => link_file(&nic, field, &format!("{value}us")),
            Some(LinkKey::YesNo(field)) => {
                link_file(&nic, field, if matches!(flag_of(value), Ok(true)) { "yes" } else { "no" })
            }
            None => unit(
                &format!("{nic}-{}-{name}", label(self.family)),
                &format!("{name} of {nic}"),
                format!("/usr/sbin/ethtool {} {nic} {} {value}", self.option, option_name(name)),
            ),
        }
    }
}
