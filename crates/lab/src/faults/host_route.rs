//! Routes of one host that harm: limits on the route to its network, a refusal for one peer, a detour over a
//! slow second NIC by a route or by a policy rule, and the reverse-path filter that drops what such a detour
//! answers to.

use std::fmt::Write as _;

use linerate_model::finding::Direction;

use super::fault::{Fault, FaultInfo, FaultTarget};
use crate::damage::{ClusterMachine, Damage};
use crate::error::Result;
use crate::topology::HostPlan;

/// Number of the table that a policy rule names.
const TABLE: u32 = 100;

/// A limit on the route to the network of the machines.
pub(super) struct RouteLimit {
    about: FaultInfo,
    limit: &'static str,
}

/// The receive window of each connection is limited.
pub(super) static WINDOW: RouteLimit = RouteLimit {
    about: FaultInfo::host(
        "route-window",
        "route-window-limit",
        "the route of one host to its network limits the TCP window to 32 kB",
        &[Direction::Rx, Direction::Both],
    ),
    limit: "window 32768",
};

/// The host sends small packets.
pub(super) static SMALL_MTU: RouteLimit = RouteLimit {
    about: FaultInfo::host(
        "route-mtu",
        "route-mtu-limit",
        "the route of one host to its network is locked to an MTU of 400 bytes",
        &[Direction::Tx, Direction::Both],
    ),
    limit: "mtu lock 400",
};

impl Fault for RouteLimit {
    fn about(&self) -> &FaultInfo {
        &self.about
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (plan, machine) = damage.host(target.host()?)?;
        let route =
            format!("route replace 10.77.0.0/24 dev eth0 proto kernel scope link src {}", plan.underlay());
        damage.ip(machine, &format!("{route} {}\n", self.limit), format!("{route}\n"))
    }
}

/// Both hosts of a pair; the first one is broken.
fn pair(damage: &Damage<'_>, target: &FaultTarget) -> Result<(HostPlan, ClusterMachine, HostPlan)> {
    let (a, b) = target.pair()?;
    let (plan, machine) = damage.host(a)?;
    Ok((plan, machine, damage.host(b)?.0))
}

/// One host refuses to send to one other.
pub(super) struct Refused;

impl Fault for Refused {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::pair(
            "route-blackhole",
            "route-blackhole",
            "a blackhole route on one host swallows everything to another one",
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let (_, machine, peer) = pair(damage, target)?;
        let kind = ["blackhole", "unreachable", "prohibit"][(strength * 2.99) as usize % 3];
        let route = format!("{kind} {}/32\n", peer.underlay());
        damage.ip(machine, &format!("route add {route}"), format!("route del {route}"))
    }
}

/// Gives a host a second NIC in the bridge of its hypervisor, without an address, that knows all peers.
fn second_nic(damage: &mut Damage<'_>, plan: &HostPlan, machine: ClusterMachine) -> Result<()> {
    let port = format!("d-{}", plan.name);
    let inside = damage.cluster.hosts[plan.number as usize - 1].1.path();
    let make = format!(
        "link add {port} type veth peer name eth1 address 02:4c:79:00:00:{:02x} netns {}\nlink set {port} up master br0\n",
        plan.number,
        inside.display(),
    );
    damage.ip(ClusterMachine::Hypervisor(plan.hypervisor), &make, format!("link del {port}\n"))?;
    let peers = damage.cluster.hosts.iter().map(|(peer, _)| peer).filter(|peer| peer.number != plan.number);
    let mut known = String::new();
    for peer in peers {
        let _ = writeln!(
            known,
            "neigh add {} lladdr {} dev eth1 nud permanent",
            peer.underlay(),
            peer.underlay_mac()
        );
    }
    // What is on the device goes with it.
    damage.ip(machine, &format!("link set eth1 up\n{known}"), String::new())
}

/// The same with 15 to 25 % of the rate of the first one.
fn slow_second_nic(
    damage: &mut Damage<'_>,
    plan: &HostPlan,
    machine: ClusterMachine,
    strength: f64,
) -> Result<()> {
    let rate_kbit = f64::from(damage.cluster.topology.uplink.rate_mbit) * 1000.0 * (0.15 + 0.1 * strength);
    second_nic(damage, plan, machine)?;
    let slow = format!("qdisc add dev eth1 root tbf rate {rate_kbit:.0}kbit burst 128kb latency 20ms\n");
    damage.tc(machine, &slow, String::new())
}

/// One host sends over the wrong NIC.
pub(super) struct Detour;

impl Fault for Detour {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "route-detour",
            "route-detour",
            "a route sends what one host sends through a second NIC with 15-25 % of the rate",
            &[Direction::Tx],
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let (plan, machine) = damage.host(target.host()?)?;
        slow_second_nic(damage, &plan, machine, strength)?;
        let route = format!("route add 10.77.0.0/25 dev eth1 src {}\n", plan.underlay());
        damage.ip(machine, &route, String::new())
    }
}

/// A policy rule, whose own table leads over the wrong NIC, comes before the routes of the main table.
pub(super) struct PolicyDetour;

impl Fault for PolicyDetour {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "policy-route",
            "policy-route-detour",
            "a policy rule sends what one host sends through a second NIC with 15-25 % of the rate",
            &[Direction::Tx],
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, strength: f64) -> Result<()> {
        let (plan, machine) = damage.host(target.host()?)?;
        slow_second_nic(damage, &plan, machine, strength)?;
        let route = format!("route add default dev eth1 src {} table {TABLE}\n", plan.underlay());
        damage.ip(machine, &route, String::new())?;
        let rule = format!("from {} lookup {TABLE} priority 100\n", plan.underlay());
        damage.ip(machine, &format!("rule add {rule}"), format!("rule del {rule}"))
    }
}

/// Incoming packets are dropped because the reverse path uses another device.
pub(super) struct ReversePath;

impl Fault for ReversePath {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::host(
            "reverse-path-filter",
            "reverse-path-filter",
            "one host sends through a second NIC and drops, by its strict reverse-path filter, what comes back through the first",
            &[],
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (plan, machine) = damage.host(target.host()?)?;
        second_nic(damage, &plan, machine)?;
        let route = format!("route add 10.77.0.0/25 dev eth1 src {}\n", plan.underlay());
        damage.ip(machine, &route, String::new())?;
        damage.sysctl(machine, "net.ipv4.conf.all.rp_filter", "1")
    }
}

/// A wrong static hardware address.
pub(super) struct WrongNeighbour;

impl Fault for WrongNeighbour {
    fn about(&self) -> &FaultInfo {
        static ABOUT: FaultInfo = FaultInfo::pair(
            "wrong-neighbour",
            "neighbour-entry-wrong",
            "a permanent neighbour entry of one host has a hardware address that another one had before its NIC was changed",
        );
        &ABOUT
    }

    fn inject(&self, damage: &mut Damage<'_>, target: &FaultTarget, _strength: f64) -> Result<()> {
        let (_, machine, peer) = pair(damage, target)?;
        let entry =
            |mac: &str| format!("neigh replace {} lladdr {mac} dev eth0 nud permanent\n", peer.underlay());
        damage.ip(
            machine,
            &entry(&format!("02:4c:66:00:00:{:02x}", peer.number)),
            entry(&peer.underlay_mac()),
        )
    }
}
