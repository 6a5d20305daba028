//! Facts `nic.*.bond.*` beside the mode: how a bond spreads what it sends, and how many of its ports take
//! part.

use linerate_model::fact::FactDecl;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Bonds;

impl Fact for Bonds {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact(
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
            // The files hold the name and the number of a value (`layer3+4 1`).
            if let Ok(text) = view.root.line(&format!("{folder}/bonding/xmit_hash_policy"))
                && let Some(policy) = text.split_ascii_whitespace().next()
            {
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
