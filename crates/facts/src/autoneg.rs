//! Setting `nic.*.autoneg`: whether a link negotiates its speed. One that does not has a speed and a duplex
//! of its own: `nic.*.link_exact` holds the three, journalled and restored beside it. It is no fact, because
//! each of the three is one.

use std::collections::BTreeMap;

use linerate_model::fact::FactValue;
use linerate_sys::ethtool::{self, EthtoolFamily};
use linerate_sys::root::{ReadError, Root};

use super::boot::link_file;
use super::readings::{flag_of, flawed, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The setting.
pub(super) struct Autoneg;

pub(super) fn is_setting(key: &str) -> bool {
    split_key(key).is_some_and(|(_, field)| field == "autoneg" || field == "link_exact")
}

fn numbers(root: &Root, nic: &str) -> Result<BTreeMap<String, u64>, SettingError> {
    if root.is_live() {
        return Ok(ethtool::read_family(nic, EthtoolFamily::Link)?);
    }
    let view = View::new(root, None, &[]);
    let known = view.nics().get(nic).and_then(|n| n.numbers.get(&EthtoolFamily::Link)).cloned();
    Ok(known.ok_or(ReadError::NotRecorded)?)
}

fn is_on(numbers: &BTreeMap<String, u64>, nic: &str) -> Result<bool, SettingError> {
    let lacks = || SettingError::Lacks { device: nic.to_owned(), what: "negotiation of a speed".to_owned() };
    numbers.get("autoneg").map(|number| *number != 0).ok_or_else(lacks)
}

/// Speed in Mbit/s and whether both directions send at once; `None` while there is no link.
fn fixed(numbers: &BTreeMap<String, u64>) -> Option<(u32, bool)> {
    let speed = u32::try_from(*numbers.get("speed")?).ok().filter(|mbit| (1..u32::MAX).contains(mbit))?;
    Some((speed, *numbers.get("duplex")? == 1))
}

/// `on`, or speed and duplex.
fn exact(numbers: &BTreeMap<String, u64>, nic: &str) -> Result<String, SettingError> {
    if is_on(numbers, nic)? {
        return Ok("on".to_owned());
    }
    let text = |(mbit, full): (u32, bool)| format!("{mbit} {}", if full { "full" } else { "half" });
    Ok(fixed(numbers).map_or_else(|| "off".to_owned(), text))
}

impl Setting for Autoneg {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (nic, field) = split_key(key).ok_or(SettingError::NotAKey("not a key of a device"))?;
        let numbers = numbers(root, &nic)?;
        match field {
            "autoneg" => Ok(FactValue::Flag(is_on(&numbers, &nic)?)),
            "link_exact" => Ok(FactValue::Text(exact(&numbers, &nic)?)),
            _ => Err(SettingError::NotAKey("not a key of a link")),
        }
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (nic, field) = split_key(key).ok_or(SettingError::NotAKey("not a key of a device"))?;
        let wanted = match field {
            "autoneg" => flag_of(value)?,
            _ => text_of(value)? == "on",
        };
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        let now = numbers(root, &nic)?;
        if field == "autoneg" {
            // A write takes the link down, also one that changes nothing.
            let speed = if wanted { None } else { fixed(&now) };
            return if is_on(&now, &nic)? == wanted {
                Ok(())
            } else {
                Ok(ethtool::set_link(&nic, wanted, speed)?)
            };
        }
        let text = text_of(value)?;
        if exact(&now, &nic)? == text {
            return Ok(());
        }
        let flaw = || flawed(&text, "neither on nor a speed with full or half");
        let speed = match text.split_once(' ') {
            Some((mbit, duplex)) => Some((
                mbit.parse().map_err(|_| flaw())?,
                ["half", "full"].iter().position(|d| *d == duplex) == Some(1),
            )),
            None if ["on", "off"].contains(&text.as_str()) => None,
            None => return Err(flaw()),
        };
        Ok(ethtool::set_link(&nic, wanted, speed)?)
    }

    fn related(&self, key: &str) -> Vec<String> {
        match split_key(key) {
            Some((nic, "autoneg")) => vec![format!("nic.{}.link_exact", key_name(&nic))],
            _ => Vec::new(),
        }
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        match (split_key(key), flag_of(value)) {
            (Some((nic, "autoneg")), Ok(on)) => {
                link_file(&nic, "AutoNegotiation", if on { "yes" } else { "no" })
            }
            _ => Persist::Impossible { reason: "only negotiation on or off can be made to stay".to_owned() },
        }
    }
}
