//! Facts and settings `nic.<if>.neighbour.<address>`: neighbours that were written down, each with a hardware
//! address. What the kernel learned by itself is left out: it comes and goes.

use std::net::IpAddr;

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::neighbour;
use linerate_sys::root::{ReadError, Root};
use linerate_sys::rtnetlink::NEIGHBOURS_MAX;

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, bytes_of, flawed, setting, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct Neighbours;

/// Value of an address for which nothing is written down.
const NONE: &str = "none";

pub(super) fn is_setting(key: &str) -> bool {
    split(key).is_some()
}

/// `nic.eth0.neighbour.10/9/0/2` -> (`eth0`, 10.9.0.2).
fn split(key: &str) -> Option<(String, IpAddr)> {
    let (nic, field) = split_key(key)?;
    let address = field.strip_prefix("neighbour.")?.replace('/', ".");
    Some((nic, address.parse().ok()?))
}

impl Fact for Neighbours {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![setting(
            "nic.*.neighbour.*",
            "text",
            "Hardware address that is written down for good for a neighbour; `.` in its address is written `/`; \
             none to remove the entry.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for neighbour in view.neighbours() {
            let Some(nic) = view.name_of(neighbour.link) else { continue };
            let address = neighbour.address.to_string().replace('.', "/");
            out.text(format!("nic.{}.neighbour.{address}", key_name(nic)), neighbour.hardware.as_str());
        }
        if view.neighbours().len() >= NEIGHBOURS_MAX {
            out.gap("nic.*.neighbour.*", &format!("only the first {NEIGHBOURS_MAX} are kept"));
        }
    }
}

fn link_of(view: &View<'_>, nic: &str) -> Result<u32, SettingError> {
    let link = view.links().iter().find(|l| l.name == nic);
    Ok(link.ok_or_else(|| SettingError::NoDevice(nic.to_owned()))?.index)
}

impl Setting for Neighbours {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (nic, address) = split(key).ok_or(SettingError::NotAKey("not a key of a neighbour"))?;
        let view = View::new(root, None, &[]);
        let link = link_of(&view, &nic)?;
        let found = view.neighbours().iter().find(|n| n.link == link && n.address == address);
        Ok(FactValue::Text(found.map_or_else(|| NONE.to_owned(), |n| n.hardware.clone())))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (nic, address) = split(key).ok_or(SettingError::NotAKey("not a key of a neighbour"))?;
        let text = text_of(value)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        let link = link_of(&View::new(root, None, &[]), &nic)?;
        // One that the kernel learned is not written down, and not removed.
        if Setting::read(self, root, key)? == FactValue::Text(text.clone()) {
            return Ok(());
        }
        if text == NONE {
            return Ok(neighbour::delete(link, address)?);
        }
        let hardware = bytes_of(&text.replace(':', "")).filter(|bytes| !bytes.is_empty());
        let hardware = hardware.ok_or_else(|| flawed(&text, "neither a hardware address nor none"))?;
        Ok(neighbour::set(link, address, &hardware)?)
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let text = value.to_string();
        let hex = text.bytes().all(|b| b.is_ascii_hexdigit() || b == b':');
        let Some((nic, address)) = split(key).filter(|(nic, _)| is_plain(nic) && (hex || text == NONE))
        else {
            return Persist::Impossible { reason: format!("'{text}' cannot stand in a command") };
        };
        let command = if text == NONE {
            // What writes it down may not have done so this time.
            format!("/bin/sh -c '/usr/sbin/ip neigh del {address} dev {nic} || true'")
        } else {
            format!("/usr/sbin/ip neigh replace {address} lladdr {text} dev {nic} nud permanent")
        };
        unit(&format!("{nic}-neighbour-{address}"), &format!("neighbour {address} of {nic}"), command)
    }
}
