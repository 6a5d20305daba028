//! The speeds of links as they are known before anything is measured: of each host, and of the uplink of each
//! group. A snapshot with its facts comes in; what is not known has no entry.

use std::collections::BTreeMap;

use linerate_model::inventory::{HostName, Layer};
use linerate_model::snapshot::Snapshot;

use crate::evidence::Facts;
use crate::rules::Rules;

/// Known speeds, bit/s.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinkSpeeds {
    /// Of the link of each host; one without a NIC of its own has that of the machine around it.
    pub hosts: BTreeMap<HostName, f64>,
    /// Of the uplink of each group.
    pub uplinks: BTreeMap<String, f64>,
}

/// The speeds that inventory and facts give.
#[must_use]
pub fn link_speeds(snapshot: &Snapshot) -> LinkSpeeds {
    let facts = Facts::new(snapshot, &Rules::DEFAULT);
    let inventory = &snapshot.inventory;
    let uplinks: BTreeMap<String, f64> = inventory
        .groups
        .iter()
        .filter_map(|group| {
            let machine = || facts.fastest_nic(group.machine.as_ref()?).map(|(_, bps)| bps);
            Some((group.name.clone(), group.uplink_bps.or_else(machine)?))
        })
        .collect();
    let layers = [Layer::Underlay, Layer::Overlay];
    let hosts = inventory.hosts.iter().filter_map(|host| {
        let declared = host.endpoints.iter().filter_map(|endpoint| endpoint.link_bps).reduce(f64::min);
        let read = || {
            let nic = layers.into_iter().find_map(|layer| facts.nic(&host.name, layer))?;
            let bps = facts.number(&host.name, &format!("nic.{nic}.speed_mbit"))? * 1e6;
            (bps > 0.0 && !facts.is_virtual(&host.name, nic)).then_some(bps)
        };
        let machine = || {
            let groups = inventory.groups_of(&host.name);
            groups.iter().filter(|g| g.machine.is_some()).find_map(|g| uplinks.get(&g.name)).copied()
        };
        Some((host.name.clone(), declared.or_else(read).or_else(machine)?))
    });
    LinkSpeeds { hosts: hosts.collect(), uplinks: uplinks.clone() }
}
