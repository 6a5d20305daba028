//! Facts and settings `nic.*.rss.*`: which fields of a packet choose its receive queue.

use linerate_model::fact::{FactDecl, FactValue};
use linerate_sys::ethtool::{self, FLOWS};
use linerate_sys::root::{ReadError, Root};

use super::boot::{is_plain, unit};
use super::fact::Fact;
use super::readings::{Readings, flawed, setting, text_of};
use super::view::{View, key_name, split_key};
use crate::change::setting::{Persist, Setting, SettingError};

/// The topic.
pub(super) struct HashFields;

/// Value of a flow type for which no field decides.
const NONE: &str = "none";

pub(super) fn is_setting(key: &str) -> bool {
    split(key).is_some()
}

/// `nic.eth0.rss.udp4` -> (`eth0`, `udp4`).
fn split(key: &str) -> Option<(String, &str)> {
    let (nic, field) = split_key(key)?;
    let flow = field.strip_prefix("rss.")?;
    (!flow.is_empty()).then_some((nic, flow))
}

fn shown(fields: &str) -> &str {
    if fields.is_empty() { NONE } else { fields }
}

impl Fact for HashFields {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![setting(
            "nic.*.rss.*",
            "text",
            "Fields that choose the receive queue of tcp4, udp4, sctp4, tcp6, udp6, sctp6: s and d addresses, \
             f and n ports, as by `ethtool -n NIC rx-flow-hash FLOW`; none when there are none.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for (name, nic) in view.nics() {
            for (flow, fields) in &nic.rss {
                out.text(format!("nic.{}.rss.{flow}", key_name(name)), shown(fields));
            }
            if let Some(reason) = nic.missing.get("rss") {
                out.gap_of("nic.*.rss.*", reason, name);
            }
        }
    }
}

impl Setting for HashFields {
    fn read(&self, root: &Root, key: &str) -> Result<FactValue, SettingError> {
        let (nic, flow) = split(key).ok_or(SettingError::NotAKey("not a key of hash fields"))?;
        let fields = if root.is_live() {
            ethtool::read_hash_fields(&nic, flow)?
        } else {
            let view = View::new(root, None, &[]);
            let known = view.nics().get(&nic).and_then(|n| n.rss.get(flow)).cloned();
            known.ok_or(ReadError::NotRecorded)?
        };
        Ok(FactValue::Text(shown(&fields).to_owned()))
    }

    fn write(&self, root: &Root, key: &str, value: &FactValue) -> Result<(), SettingError> {
        let (nic, flow) = split(key).ok_or(SettingError::NotAKey("not a key of hash fields"))?;
        let text = text_of(value)?;
        if !root.is_live() {
            return Err(ReadError::Recorded.into());
        }
        if text.is_empty() || !text.bytes().all(|b| b.is_ascii_lowercase()) {
            return Err(flawed(&text, "neither letters such as sdfn nor none"));
        }
        let letters = if text == NONE { "" } else { &text };
        Ok(ethtool::set_hash_fields(&nic, flow, letters)?)
    }

    fn persist(&self, key: &str, value: &FactValue) -> Persist {
        let text = value.to_string();
        let found = split(key).filter(|(nic, flow)| is_plain(nic) && FLOWS.iter().any(|(_, f)| f == flow));
        match found {
            Some((nic, flow)) if text != NONE && is_plain(&text) => unit(
                &format!("{nic}-rss-{flow}"),
                &format!("receive queues for {flow} of {nic}"),
                format!("/usr/sbin/ethtool -N {nic} rx-flow-hash {flow} {text}"),
            ),
            _ => Persist::Impossible { reason: format!("'{text}' is no choice of fields for ethtool") },
        }
    }
}
