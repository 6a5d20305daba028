//! Facts `nic.*.rss.*`: which fields of a packet choose its receive queue.

use linerate_model::fact::FactDecl;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct HashFields;

impl Fact for HashFields {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![fact(
            "nic.*.rss.*",
            "text",
            "Fields that choose the receive queue of tcp4, udp4, sctp4, tcp6, udp6, sctp6: s and d addresses, \
             f and n ports, as by `ethtool -n NIC rx-flow-hash FLOW`; none when there are none.",
        )]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for (name, nic) in view.nics() {
            for (flow, fields) in &nic.rss {
                let fields = if fields.is_empty() { "none" } else { fields };
                out.text(format!("nic.{}.rss.{flow}", key_name(name)), fields);
            }
            if let Some(reason) = nic.missing.get("rss") {
                out.gap_of("nic.*.rss.*", reason, name);
            }
        }
    }
}
