//! Topology of a virtual cluster: `labs/*.toml` read and checked.
//!
//! In: TOML. Out: hypervisors with their hosts, addresses and wires, all names checked. It builds nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use linerate_model::names::natural;
use serde::Deserialize;

use crate::error::{LabError, Result};
use crate::lab_file::{self, LabFile, check_name};

/// Addresses are 10.77.0.x and 10.78.0.x: enough for what two cores can carry, and never routed anywhere.
const HOSTS_MAX: usize = 60;

/// The uplink of a hypervisor: the end of its wire.
pub const UPLINK: &str = "up0";
/// Name of the overlay device of every host.
pub const OVERLAY: &str = "vx0";

/// The labs that come with the program, by name.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("casebook-a", include_str!("../../../labs/casebook-a.toml")),
    ("three", include_str!("../../../labs/three.toml")),
    ("twelve", include_str!("../../../labs/twelve.toml")),
    ("two", include_str!("../../../labs/two.toml")),
    ("twenty-four", include_str!("../../../labs/twenty-four.toml")),
    ("mixed", include_str!("../../../labs/mixed.toml")),
    ("far", include_str!("../../../labs/far.toml")),
];

/// A virtual cluster.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Its name.
    pub name: String,
    /// The wires between hypervisors and core.
    pub uplink: Uplink,
    /// The overlay inside the hosts.
    pub overlay: Overlay,
    /// sysctls of every host, such as `net.ipv4.tcp_rmem`.
    #[serde(default)]
    pub host_sysctl: BTreeMap<String, String>,
    /// Machines that carry hosts.
    #[serde(rename = "hypervisor")]
    pub hypervisors: Vec<Hypervisor>,
}

/// The wire between a hypervisor and the core.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uplink {
    /// Rate in each direction, all headers counted.
    pub rate_mbit: u32,
    /// One-way delay of each wire.
    pub delay_ms: f64,
    /// Queue, as the time it takes to drain at the full rate.
    pub queue_ms: f64,
}

impl Uplink {
    /// Rate in bit/s.
    pub fn rate_bps(&self) -> u64 {
        u64::from(self.rate_mbit) * 1_000_000
    }

    /// Queue in bytes.
    pub fn queue_bytes(&self) -> u64 {
        (self.rate_bps() as f64 / 8.0 * self.queue_ms / 1000.0) as u64
    }

    /// One-way delay of one wire.
    pub fn delay_ns(&self) -> u64 {
        (self.delay_ms * 1e6) as u64
    }
}

/// The vxlan that every host is part of.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// Network identifier.
    pub id: u32,
    /// MTU inside.
    pub mtu: u32,
}

/// A machine with one uplink and some hosts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hypervisor {
    /// Its name; also that of the group of its hosts.
    pub name: String,
    /// The hosts on it.
    pub hosts: Vec<String>,
    /// Rate of its uplink and of all that hangs on it, where it differs from the others.
    #[serde(default)]
    pub rate_mbit: Option<u32>,
    /// Whether the NICs of its hosts are of a kind that leaves the cutting of large sends to the kernel's
    /// generic code and joins what they receive: other offload defaults, nothing wrong.
    #[serde(default)]
    pub other_driver: bool,
}

/// A host with what follows from its index in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPlan {
    /// Name.
    pub name: String,
    /// Index of its hypervisor.
    pub hypervisor: usize,
    /// 1 for the first host.
    pub number: u8,
}

impl HostPlan {
    /// Address in the network of the machines.
    pub fn underlay(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 77, 0, self.number)
    }

    /// Address in the overlay.
    pub fn overlay(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 78, 0, self.number)
    }

    /// Line for `ip` that sets the route into the overlay, with an MTU that nothing learned can lower, or
    /// without.
    pub fn overlay_route(&self, locked_mtu: Option<u32>) -> String {
        let lock = locked_mtu.map(|mtu| format!(" mtu lock {mtu}")).unwrap_or_default();
        format!("route replace 10.78.0.0/24 dev vx0 proto kernel scope link src {}{lock}\n", self.overlay())
    }

    /// MAC address of `eth0`: locally administered.
    pub fn underlay_mac(&self) -> String {
        format!("02:4c:77:00:00:{:02x}", self.number)
    }

    /// MAC address of `vx0`.
    pub fn overlay_mac(&self) -> String {
        format!("02:4c:78:00:00:{:02x}", self.number)
    }

    /// The port of its hypervisor that it is plugged into.
    pub fn port(&self) -> String {
        format!("p-{}", self.name)
    }
}

impl Topology {
    /// Reads a lab: a file, or the name of one that comes with the program.
    pub fn load(lab: &str) -> Result<Self> {
        lab_file::load(lab)
    }

    /// The uplink of a hypervisor: that of all, with its own rate where it has one.
    pub fn uplink_of(&self, hypervisor: usize) -> Uplink {
        let rate_mbit = self.hypervisors[hypervisor].rate_mbit.unwrap_or(self.uplink.rate_mbit);
        Uplink { rate_mbit, ..self.uplink }
    }

    /// All hosts, in the natural order of their names (`arc-2` before `arc-10`).
    pub fn hosts(&self) -> Vec<HostPlan> {
        let mut hosts: Vec<(usize, &String)> = self
            .hypervisors
            .iter()
            .enumerate()
            .flat_map(|(n, h)| h.hosts.iter().map(move |host| (n, host)))
            .collect();
        hosts.sort_by(|(_, a), (_, b)| natural(a, b));
        (1..)
            .zip(hosts)
            .map(|(number, (hypervisor, name))| HostPlan { name: name.clone(), hypervisor, number })
            .collect()
    }

    /// The host of this name.
    pub fn host(&self, name: &str) -> Result<HostPlan> {
        self.hosts().into_iter().find(|h| h.name == name).ok_or_else(|| {
            LabError::Unknown(format!(
                "no host {name:?} in lab {}\nhint: linerate-lab status lists them",
                self.name
            ))
        })
    }

    /// The index of the hypervisor of this name.
    pub fn hypervisor(&self, name: &str) -> Result<usize> {
        self.hypervisors.iter().position(|h| h.name == name).ok_or_else(|| {
            LabError::Unknown(format!(
                "no hypervisor {name:?} in lab {}\nhint: linerate-lab status lists them",
                self.name
            ))
        })
    }
}

impl LabFile for Topology {
    const BUILT_IN: &'static [(&'static str, &'static str)] = BUILT_IN;

    fn check(&self) -> std::result::Result<(), String> {
        let mut seen = BTreeSet::new();
        let names = self.hypervisors.iter().flat_map(|h| std::iter::once(&h.name).chain(&h.hosts));
        for name in names {
            check_name(name)?;
            if !seen.insert(name) {
                return Err(format!("name {name:?} is used twice"));
            }
        }
        let hosts = self.hypervisors.iter().map(|h| h.hosts.len()).sum::<usize>();
        if !(2..=HOSTS_MAX).contains(&hosts) || self.hypervisors.iter().any(|h| h.hosts.is_empty()) {
            return Err(format!(
                "{hosts} hosts: 2 to {HOSTS_MAX} wanted, and at least one on every hypervisor"
            ));
        }
        if !(1..=10_000).contains(&self.uplink.rate_mbit) {
            return Err(format!("uplink.rate_mbit = {}: 1 to 10000 wanted", self.uplink.rate_mbit));
        }
        for (key, ms) in [("delay_ms", self.uplink.delay_ms), ("queue_ms", self.uplink.queue_ms)] {
            if !(0.0..=10_000.0).contains(&ms) {
                return Err(format!("uplink.{key} = {ms}: 0 to 10000 wanted"));
            }
        }
        if !(1..1 << 24).contains(&self.overlay.id) || !(576..=1500).contains(&self.overlay.mtu) {
            return Err("overlay: id below 16777216 and mtu from 576 to 1500 wanted".into());
        }
        if let Some(wrong) =
            self.hypervisors.iter().find(|h| h.rate_mbit.is_some_and(|r| !(1..=10_000).contains(&r)))
        {
            return Err(format!("rate_mbit of hypervisor {:?}: 1 to 10000 wanted", wrong.name));
        }
        if let Some(key) = self.host_sysctl.keys().find(|k| !k.starts_with("net.") || k.contains('/')) {
            return Err(format!("host_sysctl.{key}: only net.* can differ between hosts"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn every_lab_that_comes_with_the_program_is_good() {
        for (name, _) in BUILT_IN {
            let topology = Topology::load(name).unwrap();
            assert_eq!(&topology.name, name);
        }
        let a = Topology::load("casebook-a").unwrap();
        let hosts = a.hosts();
        assert_eq!((hosts.len(), a.hypervisors.len()), (6, 4));
        assert_eq!((hosts[2].name.as_str(), hosts[2].underlay()), ("arc-3", Ipv4Addr::new(10, 77, 0, 3)));
    }

    #[test]
    fn bad_labs_are_refused_with_the_reason() {
        let good = BUILT_IN[0].1;
        for (from, to, reason) in [
            ("arc-2", "arc-1", "twice"),
            ("arc-2", "a name", "letters"),
            ("rate_mbit", "rate", "unknown field"),
            ("delay_ms = ", "delay_ms = -", "delay_ms"),
        ] {
            let error = lab_file::parse::<Topology>(&good.replacen(from, to, 1), Path::new("x.toml"))
                .unwrap_err()
                .to_string();
            assert!(error.contains("x.toml") && error.contains(reason), "{error}");
        }
    }
}
