//! Facts about which device stands on which: bridges, bonds, vlan and vxlan devices.

use linerate_model::fact::{FactDecl, FactValue};

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Topology;

/// Names of the modes of a bond.
const BOND_MODES: [&str; 7] =
    ["balance-rr", "active-backup", "balance-xor", "broadcast", "802.3ad", "balance-tlb", "balance-alb"];

impl Fact for Topology {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact("nic.*.kind", "text", "Kind of a virtual device: veth, vxlan, bridge, bond, vlan, tun."),
            fact("nic.*.master", "text", "Bridge or bond that the device belongs to."),
            fact(
                "nic.*.lower",
                "text",
                "Device below a vlan or macvlan, or the other end of a veth in this namespace.",
            ),
            fact("nic.*.ports", "list", "Devices that belong to this bridge or bond."),
            fact("nic.*.vxlan.id", "number", "Network identifier of a vxlan device."),
            fact("nic.*.vxlan.port", "number", "UDP port of a vxlan device."),
            fact("nic.*.vxlan.lower", "text", "Device that a vxlan device is bound to."),
            fact("nic.*.vlan.id", "number", "VLAN of a vlan device."),
            fact("nic.*.bond.mode", "text", "Mode of a bond."),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        for link in view.links() {
            let nic = format!("nic.{}", key_name(&link.name));
            let name = |index: Option<u32>| index.and_then(|i| view.name_of(i)).unwrap_or_default();
            out.text(format!("{nic}.kind"), link.kind.as_deref().unwrap_or_default());
            out.text(format!("{nic}.master"), name(link.master));
            out.text(format!("{nic}.lower"), name(link.lower));
            let ports: Vec<String> = view
                .links()
                .iter()
                .filter(|l| l.master == Some(link.index))
                .map(|l| l.name.clone())
                .collect();
            if !ports.is_empty() {
                out.put(format!("{nic}.ports"), FactValue::List(ports));
            }
            if let Some(vxlan) = &link.vxlan {
                out.int(format!("{nic}.vxlan.id"), vxlan.id);
                out.int(format!("{nic}.vxlan.port"), vxlan.port);
                out.text(format!("{nic}.vxlan.lower"), name(vxlan.lower));
            }
            if let Some(id) = link.vlan_id {
                out.int(format!("{nic}.vlan.id"), id);
            }
            if let Some(mode) = link.bond_mode {
                out.text(
                    format!("{nic}.bond.mode"),
                    *BOND_MODES.get(usize::from(mode)).unwrap_or(&"unknown"),
                );
            }
        }
    }
}
