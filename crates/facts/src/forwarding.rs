//! Facts `nic.<if>.fdb.<hardware address>`: where a tunnel sends a frame, and through which port a bridge
//! does, where it is a permanent entry. What was learned is left out: it changes by itself.

use std::collections::BTreeMap;

use linerate_model::fact::FactDecl;
use linerate_sys::fdb::ENTRIES_MAX;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Forwarding;

/// Value of an entry of a bridge: the device of its key is the port.
const PORT: &str = "port";

impl Fact for Forwarding {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![fact(
            "nic.*.fdb.*",
            "text",
            "Where frames for a hardware address go for good: addresses of the other ends of a tunnel, or `port` for this port of a bridge; all zeros stand for addresses without an entry.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for entry in view.forwarding() {
            let Some(nic) = view.name_of(entry.link) else { continue };
            let vlan = entry.vlan.map(|tag| format!("@{tag}")).unwrap_or_default();
            let remote = entry.remote.map_or_else(|| PORT.to_owned(), |address| address.to_string());
            let key = format!("nic.{}.fdb.{}{vlan}", key_name(nic), entry.hardware);
            values.entry(key).or_default().push(remote);
        }
        for (key, remotes) in values {
            out.text(key, remotes.join(" "));
        }
        if view.forwarding().len() >= ENTRIES_MAX {
            out.gap("nic.*.fdb.*", &format!("only the first {ENTRIES_MAX} entries are kept"));
        }
    }
}
