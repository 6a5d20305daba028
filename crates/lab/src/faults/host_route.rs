//! Routes of one host that harm: limits on the route to its network, a refusal for one peer, a detour over a slow second NIC,
//! and the reverse-path filter that drops what such a detour answers to.

use std::fmt::Write as _;

use linerate_model::finding::{Direction, Element};

use super::{Fault, Place, Truth};
use crate::damage::{Damage, Machine};
use crate::error::Result;
use crate::topology::{HostPlan, Topology};

/// A limit on the route to the network of the machines.
pub(super) struct RouteLimit {
    name: &'static str,
    cause: &'static str,
    summary: &'static str,
    limit: &'static str,
    direction: Direction,
}

/// What the host receives in one connection is limited to its window.
pub(super) static WINDOW: RouteLimit = RouteLimit {
    name: "route-window",
    cause: "route-window-limit",
    summary: "the route of one host to its network limits the TCP window to 32 kB",
    limit: "window 32768",
    direction: Direction::Rx,
};

/// What the host sends is cut into small packets.
pub(super) static SMALL_MTU: RouteLimit = RouteLimit {
    name: "route-mtu",
    cause: "route-mtu-limit",
    summary: "the route of one host to its network is locked to an MTU of 400 bytes",
    limit: "mtu lock 400",
    direction: Direction::Tx,
};

impl Fault for RouteLimit {
    fn name(&self) -> &'static str {
        self.name
    }

    fn cause(&self) -> &'static str {
        self.cause
    }

    fn summary(&self) -> &'static str {
        self.summary
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let (plan, machine) = damage.host(place.host()?)?;
        let route =
            format!("route replace 10.77.0.0/24 dev eth0 proto kernel scope link src {}", plan.underlay());
        damage.ip(machine, &format!("{route} {}\n", self.limit), format!("{route}\n"))
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[self.direction, Direction::Both])
    }
}

/// Both hosts of a place that is a pair: the first is the one that is broken.
fn pair(damage: &Damage<'_>, place: &Place) -> Result<(HostPlan, Machine, HostPlan)> {
    let Place::Pair(a, b) = place else { return Err(place.unfit("a pair of hosts such as a:b")) };
    let (plan, machine) = damage.host(a)?;
    Ok((plan, machine, damage.host(b)?.0))
}

fn truth_of_pair(fault: &dyn Fault, place: &Place) -> Truth {
    let accepted = match place {
        Place::Pair(a, b) => vec![(Element::Pair(a.clone(), b.clone()), Vec::new())],
        _ => Vec::new(),
    };
    Truth { cause: fault.cause().into(), accepted }
}

/// One host refuses to send to one other.
pub(super) struct Refused;

impl Fault for Refused {
    fn name(&self) -> &'static str {
        "route-blackhole"
    }

    fn cause(&self) -> &'static str {
        "route-blackhole"
    }

    fn summary(&self) -> &'static str {
        "a blackhole route on one host swallows everything to another one"
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_pairs(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, strength: f64) -> Result<()> {
        let (_, machine, peer) = pair(damage, place)?;
        let kind = ["blackhole", "unreachable", "prohibit"][(strength * 2.99) as usize % 3];
        let route = format!("{kind} {}/32\n", peer.underlay());
        damage.ip(machine, &format!("route add {route}"), format!("route del {route}"))
    }

    fn truth(&self, _topology: &Topology, place: &Place) -> Truth {
        truth_of_pair(self, place)
    }
}

/// Gives a host a second NIC in the bridge of its hypervisor, without an address, that knows all peers.
fn second_nic(damage: &mut Damage<'_>, plan: &HostPlan, machine: Machine) -> Result<()> {
    let port = format!("d-{}", plan.name);
    let inside = damage.cluster.hosts[plan.number as usize - 1].1.path();
    let make = format!(
        "link add {port} type veth peer name eth1 address 02:4c:79:00:00:{:02x} netns {}\nlink set {port} up master br0\n",
        plan.number,
        inside.display(),
    );
    damage.ip(Machine::Hypervisor(plan.hypervisor), &make, format!("link del {port}\n"))?;
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

/// All that one host sends takes the wrong NIC.
pub(super) struct Detour;

impl Fault for Detour {
    fn name(&self) -> &'static str {
        "route-detour"
    }

    fn cause(&self) -> &'static str {
        "route-detour"
    }

    fn summary(&self) -> &'static str {
        "a route sends what one host sends through a second NIC with 15-25 % of the rate"
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, strength: f64) -> Result<()> {
        let (plan, machine) = damage.host(place.host()?)?;
        let rate_kbit =
            f64::from(damage.cluster.topology.uplink.rate_mbit) * 1000.0 * (0.15 + 0.1 * strength);
        second_nic(damage, &plan, machine)?;
        let slow = format!("qdisc add dev eth1 root tbf rate {rate_kbit:.0}kbit burst 128kb latency 20ms\n");
        damage.tc(machine, &slow, String::new())?;
        let route = format!("route add 10.77.0.0/25 dev eth1 src {}\n", plan.underlay());
        damage.ip(machine, &route, String::new())
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[Direction::Tx])
    }
}

/// What comes in is dropped because the way back is another one.
pub(super) struct ReversePath;

impl Fault for ReversePath {
    fn name(&self) -> &'static str {
        "reverse-path-filter"
    }

    fn cause(&self) -> &'static str {
        "reverse-path-filter"
    }

    fn summary(&self) -> &'static str {
        "one host sends through a second NIC and drops, by its strict reverse-path filter, what comes back through the first"
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_hosts(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let (plan, machine) = damage.host(place.host()?)?;
        second_nic(damage, &plan, machine)?;
        let route = format!("route add 10.77.0.0/25 dev eth1 src {}\n", plan.underlay());
        damage.ip(machine, &route, String::new())?;
        damage.sysctl(machine, "net.ipv4.conf.all.rp_filter", "1")
    }

    fn truth(&self, topology: &Topology, place: &Place) -> Truth {
        Truth::host(self, topology, place, &[])
    }
}

/// A hardware address that was written down wrong.
pub(super) struct WrongNeighbour;

impl Fault for WrongNeighbour {
    fn name(&self) -> &'static str {
        "wrong-neighbour"
    }

    fn cause(&self) -> &'static str {
        "neighbour-entry-wrong"
    }

    fn summary(&self) -> &'static str {
        "a permanent neighbour entry of one host has a hardware address that another one had before its NIC was changed"
    }

    fn places(&self, topology: &Topology) -> Vec<Place> {
        Place::all_pairs(topology)
    }

    fn inject(&self, damage: &mut Damage<'_>, place: &Place, _strength: f64) -> Result<()> {
        let (_, machine, peer) = pair(damage, place)?;
        let entry =
            |mac: &str| format!("neigh replace {} lladdr {mac} dev eth0 nud permanent\n", peer.underlay());
        damage.ip(
            machine,
            &entry(&format!("02:4c:66:00:00:{:02x}", peer.number)),
            entry(&peer.underlay_mac()),
        )
    }

    fn truth(&self, _topology: &Topology, place: &Place) -> Truth {
        truth_of_pair(self, place)
    }
}
