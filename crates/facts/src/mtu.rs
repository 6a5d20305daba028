//! Settings `nic.*.mtu`, `nic.*.txqueuelen` and `nic.*.gso_max_segs`.

use linerate_model::fact::FactValue;
use linerate_sys::root::{ReadError, Root};
use linerate_sys::rtnetlink::{self, NetDevice};

use super::boot::link_file;
use super::readings::number_of;
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// Smallest MTU of a device with IPv6 (RFC 8200).
const IPV6_MTU_MIN: u32 = 1280;

/// The settings.
pub(super) struct Mtu;

pub(super) fn is_setting(key: &str) -> bool {
    split_key(key).is_some_and(|(_, field)| ["mtu", "txqueuelen", "gso_max_segs"].contains(&field))
}

fn find(root: &Root, nic: &str) -> Result<NetDevice, SettingError> {
    let view = View::new(root, None, &[]);
    view.links().iter().find(|l| l.name == nic).cloned().ok_or_else(|| SettingError::NoDevice(nic.to_owned()))
}

/// Devices above a device that get this MTU, with the largest that they could then have. They follow it down
/// but not up again (vxlan, vlan, macvlan), and a bridge follows its ports.
fn followers<'v>(view: &'v View<'_>, link: &'v NetDevice, mtu: u32) -> Vec<(&'v NetDevice, u32)> {
    let mut all = vec![(link, mtu)];
    let mut done = 0;
    while let Some(&(below, mtu)) = all.get(done) {
        for above in view.links() {
            let vxlan = above.vxlan.as_ref().and_then(|v| v.lower) == Some(below.index);
            let stacked = above.lower == Some(below.index) && above.kind.as_deref() != Some("veth");
            let follows = vxlan || stacked || below.master == Some(above.index);
            if !follows || all.iter().any(|(known, _)| known.index == above.index) {
                continue;
            }
            let header =
                if vxlan { below.mtu.unwrap_or(0).saturating_sub(above.mtu.unwrap_or(0)) } else { 0 };
            all.push((above, mtu.saturating_sub(header).min(above.mtu.unwrap_or(u32::MAX))));
        }
        done += 1;
    }
    all.split_off(1)
}

fn lacks(nic: String, field: &str) -> SettingError {
    SettingError::Lacks { device: nic, what: field.to_owned() }
}

impl Setting for Mtu {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (nic, field) = split_key(key).ok_or(SettingError::NotAKey("not a key of a device"))?;
        let link = find(root, &nic)?;
        let value = match field {
            "mtu" => link.mtu,
            "txqueuelen" => link.txqueuelen,
            "gso_max_segs" => link.gso_max_segs,
            _ => None,
        };
        value.map(|v| FactValue::Int(i64::from(v))).ok_or_else(|| lacks(nic, field))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (nic, field) = split_key(key).ok_or(SettingError::NotAKey("not a key of a device"))?;
        let value = number_of(value)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        let link = find(root, &nic)?;
        match field {
            "mtu" => Ok(rtnetlink::set_mtu(link.index, value)?),
            "txqueuelen" => Ok(rtnetlink::set_txqueuelen(link.index, value)?),
            "gso_max_segs" => Ok(rtnetlink::set_gso_max_segs(link.index, value)?),
            _ => Err(lacks(nic, field)),
        }
    }

    /// Below its smallest MTU IPv6 leaves a device, and its addresses and routes with it.
    fn check(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let Some((nic, "mtu")) = split_key(key) else { return Ok(()) };
        let view = View::new(root, None, &[]);
        let Some(link) = view.links().iter().find(|l| l.name == nic) else { return Ok(()) };
        let has_ipv6 =
            |l: &NetDevice| view.addresses().iter().any(|a| a.link == l.index && a.address.is_ipv6());
        let mtu = number_of(value)?;
        for (link, mtu) in std::iter::once((link, mtu)).chain(followers(&view, link, mtu)) {
            if mtu < IPV6_MTU_MIN && has_ipv6(link) {
                return Err(SettingError::LosesIpv6 { device: link.name.clone(), mtu_min: IPV6_MTU_MIN });
            }
        }
        Ok(())
    }

    fn related(&self, key: &str) -> Vec<String> {
        let Some((nic, "mtu")) = split_key(key) else { return Vec::new() };
        let root = Root::live();
        let view = View::new(&root, None, &[]);
        let Some(link) = view.links().iter().find(|l| l.name == nic) else { return Vec::new() };
        followers(&view, link, 0).iter().map(|(l, _)| format!("nic.{}.mtu", key_name(&l.name))).collect()
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        match split_key(key) {
            Some((nic, "mtu")) => link_file(&nic, "MTUBytes", &value.to_string()),
            Some((nic, "gso_max_segs")) => {
                link_file(&nic, "GenericSegmentOffloadMaxSegments", &value.to_string())
            }
            Some((nic, _)) => link_file(&nic, "TransmitQueueLength", &value.to_string()),
            None => Persist::Impossible { reason: "not a key of a device".to_string() },
        }
    }
}
