//! A virtual cluster, built and running: namespaces for hosts, hypervisors and core, bridges, wires, overlay.
//!
//! In: a topology and a folder. Out: a cluster that carries traffic, with an inventory for `linerate`.
//! Everything of it except the folder vanishes with the process; the folder goes when the cluster is dropped.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use linerate_sys::offload::OffloadSwitch;
use linerate_sys::tap::Tap;

use crate::device_watch::DeviceWatch;
use crate::error::{LabError, Result};
use crate::namespace::Namespace;
use crate::readiness;
use crate::topology::{HostPlan, Topology, UPLINK};
use crate::wire::Wire;
use crate::wire::disturbance::Disturbances;
use crate::wire::settings::Settings;

/// Timeout until a fresh cluster carries traffic. Bridges forward within a second unless the machine is
/// overloaded.
const READY_WITHIN: Duration = Duration::from_secs(120);

/// A running virtual cluster.
#[derive(Debug)]
pub struct Cluster {
    /// What it was built from.
    pub topology: Topology,
    /// Hosts in the order of the inventory.
    pub hosts: Vec<(HostPlan, Namespace)>,
    /// Hypervisors in the order of the topology.
    pub hypervisors: Vec<Namespace>,
    /// Wire of each hypervisor.
    pub wires: Vec<Wire>,
    /// Folder of the lab: inventory, disturbances, state of the nodes.
    pub folder: PathBuf,
    /// The switch between the hypervisors; the wire of each ends at the port of its number.
    pub core: Namespace,
    _watch: DeviceWatch,
}

impl Cluster {
    /// Builds the cluster and waits until traffic flows.
    pub fn build(topology: Topology, folder: &Path) -> Result<Self> {
        let disturbances = Disturbances::open(&disturbances_path(folder))
            .map_err(LabError::at(format!("opening the disturbances file in {}", folder.display())))?;
        let disturbances = Arc::new(disturbances);
        let core = Namespace::create("core")?;
        let mut hypervisors = Vec::new();
        let mut wires = Vec::new();
        make_bridge(&core)?;
        for (number, hypervisor) in topology.hypervisors.iter().enumerate() {
            let namespace = Namespace::create(&hypervisor.name)?;
            make_bridge(&namespace)?;
            wires.push(plug_wire(&topology, number, &namespace, &core, &disturbances)?);
            hypervisors.push(namespace);
        }
        let plans = topology.hosts();
        let mut hosts = Vec::new();
        for plan in &plans {
            hosts.push((plan.clone(), make_host(&topology, plan, &plans, &hypervisors[plan.hypervisor])?));
        }
        let watch = DeviceWatch::start(&hypervisors, &wires, &hosts, topology.overlay.mtu)?;
        let cluster =
            Self { topology, hosts, hypervisors, wires, folder: folder.into(), core, _watch: watch };
        readiness::wait(cluster.switches(), &cluster.hosts, READY_WITHIN)?;
        cluster.write_inventory()?;
        Ok(cluster)
    }

    /// The host of this name with its namespace.
    pub fn host(&self, name: &str) -> Result<&(HostPlan, Namespace)> {
        self.hosts.iter().find(|(plan, _)| plan.name == name).ok_or_else(|| {
            LabError::Unknown(format!(
                "no host {name:?} in lab {}\nhint: linerate-lab status lists them",
                self.topology.name
            ))
        })
    }

    /// Makes all hosts forget path MTUs and TCP metrics: what they learned while something was broken would
    /// outlive it.
    pub fn forget_what_hosts_learned(&self) -> Result<()> {
        for (_, host) in &self.hosts {
            host.ip("route flush cache\n")?;
            // Refused in a user namespace. Connections that end with a reset, as those of linerate do, leave
            // no metrics.
            host.ip("tcp_metrics flush\n").ok();
        }
        Ok(())
    }

    /// All namespaces that switch frames.
    pub fn switches(&self) -> impl Iterator<Item = &Namespace> {
        self.hypervisors.iter().chain(std::iter::once(&self.core))
    }

    /// The inventory for `linerate survey -i`.
    pub fn inventory_path(&self) -> PathBuf {
        self.folder.join("inventory.toml")
    }

    /// An inventory of this lab without the line that names the log of late wires. Judging the accuracy of
    /// verdicts needs that log, but on a machine with CPU steal it invalidates every test. Tests that only
    /// find, try and fix a plain fault leave it out.
    pub fn without_confessions(&self, inventory: &Path) -> Result<PathBuf> {
        let text = std::fs::read_to_string(inventory)
            .map_err(LabError::at(format!("reading {}", inventory.display())))?;
        let line = format!("{}\n", self.confessions());
        let Some((before, after)) = text.split_once(&line) else {
            return Err(LabError::Unknown(format!("{} has no line {line:?}", inventory.display())));
        };
        let path = inventory.with_extension("plain.toml");
        std::fs::write(&path, [before, after].concat())
            .map_err(LabError::at(format!("writing {}", path.display())))?;
        Ok(path)
    }

    /// The inventory line that names the log of late wires.
    fn confessions(&self) -> String {
        format!("disturbances = {}", quoted(&disturbances_path(&self.folder).to_string_lossy()))
    }

    fn write_inventory(&self) -> Result<()> {
        let path = self.inventory_path();
        let text = self.inventory(|namespace| {
            format!("transport = \"netns\"\nnetns = {}\n", quoted(&namespace.path().to_string_lossy()))
        });
        std::fs::write(&path, text).map_err(LabError::at(format!("writing {}", path.display())))
    }

    /// The inventory; `reach` returns the lines with the transport of a machine.
    pub fn inventory(&self, reach: impl Fn(&Namespace) -> String) -> String {
        let mut text = format!("name = {}\n{}\n", quoted(&self.topology.name), self.confessions());
        for (number, hypervisor) in self.topology.hypervisors.iter().enumerate() {
            let _ = write!(
                text,
                "\n[[group]]\nname = {name}\nkind = \"hypervisor\"\nuplink_mbit = {}\nmachine = {name}\n",
                self.topology.uplink_of(number).rate_mbit,
                name = quoted(&hypervisor.name),
            );
        }
        for (plan, namespace) in &self.hosts {
            self.describe(&mut text, namespace, &reach);
            let group = &self.topology.hypervisors[plan.hypervisor].name;
            let _ = writeln!(text, "groups = [{}]", quoted(group));
            for (address, layer) in [(plan.underlay(), "underlay"), (plan.overlay(), "overlay")] {
                let _ = write!(text, "[[host.endpoint]]\naddress = \"{address}\"\nlayer = \"{layer}\"\n");
            }
        }
        for namespace in &self.hypervisors {
            self.describe(&mut text, namespace, &reach);
        }
        text
    }

    fn describe(&self, text: &mut String, namespace: &Namespace, reach: impl Fn(&Namespace) -> String) {
        let folder = self.folder.join("hosts").join(&namespace.name);
        let _ = write!(
            text,
            "\n[[host]]\nname = {}\n{}state_dir = {}\netc_dir = {}\n",
            quoted(&namespace.name),
            reach(namespace),
            quoted(&folder.join("state").to_string_lossy()),
            quoted(&folder.join("etc").to_string_lossy()),
        );
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // All wires end at the same time instead of one after the other.
        self.wires.iter().for_each(Wire::ask_to_stop);
    }
}

fn disturbances_path(folder: &Path) -> PathBuf {
    folder.join("disturbances.jsonl")
}

/// A TOML string.
fn quoted(text: &str) -> String {
    toml::Value::String(text.into()).to_string()
}

/// The port of the core where the wire of a hypervisor ends.
pub fn core_port(hypervisor: usize) -> String {
    format!("port{hypervisor}")
}

/// A bridge that forwards at once, and that no rule for routed traffic reaches.
fn make_bridge(namespace: &Namespace) -> Result<()> {
    // The sysctl exists only where the kernel has bridge netfilter at all.
    namespace.write_sysctl("net.bridge.bridge-nf-call-iptables", "0").ok();
    namespace.ip("link add br0 type bridge forward_delay 0 stp_state 0 mcast_snooping 0\nlink set br0 up\n")
}

fn plug_wire(
    topology: &Topology,
    number: usize,
    hypervisor: &Namespace,
    core: &Namespace,
    disturbances: &Arc<Disturbances>,
) -> Result<Wire> {
    let port = core_port(number);
    let create = |namespace: &Namespace, name: &str| {
        namespace
            .run(|| Tap::create(name))?
            .map_err(LabError::at(format!("making the TAP {name} in {}", namespace.name)))
    };
    let ends = (create(hypervisor, UPLINK)?, create(core, &port)?);
    // GRO off is the healthy state here: on, the wire plays the NIC of the casebook.
    hypervisor.set_offload(UPLINK, OffloadSwitch::Gro, false)?;
    // A TAP reports 10 Mbit/s by default, which would be a false fact about the uplink.
    let uplink = topology.uplink_of(number);
    hypervisor.set_speed(UPLINK, uplink.rate_mbit)?;
    // A TAP knows whether its link is there only after that has changed once.
    hypervisor.ip(&format!(
        "link set {UPLINK} up master br0\nlink set {UPLINK} carrier off\nlink set {UPLINK} carrier on\n"
    ))?;
    core.ip(&format!("link set {port} up master br0\n"))?;
    let settings = Settings {
        rate_bps: uplink.rate_bps(),
        delay_ns: uplink.delay_ns(),
        queue_bytes: uplink.queue_bytes(),
        ..Settings::default()
    };
    Wire::start(&hypervisor.name, ends.0, ends.1, settings, disturbances)
        .map_err(LabError::at(format!("starting the wire of {}", hypervisor.name)))
}

/// A host with its NIC in the hypervisor's bridge and its overlay device. Neighbours are static: a lost ARP
/// request would cost a second at random.
fn make_host(
    topology: &Topology,
    plan: &HostPlan,
    all: &[HostPlan],
    hypervisor: &Namespace,
) -> Result<Namespace> {
    let host = Namespace::create(&plan.name)?;
    for (key, value) in &topology.host_sysctl {
        host.write_sysctl(key, value)?;
    }
    hypervisor.ip(&format!(
        "link add {port} type veth peer name eth0 address {mac} netns {netns}\nlink set {port} up master br0\n",
        port = plan.port(),
        mac = plan.underlay_mac(),
        netns = host.path().display(),
    ))?;
    if topology.hypervisors[plan.hypervisor].other_driver {
        host.set_offload("eth0", OffloadSwitch::Gro, true)?;
    }
    // Not bound to eth0: a bound vxlan could not be given an MTU that is too large.
    let mut ip = format!(
        "address add {}/24 dev eth0\nlink set eth0 up\n\
         link add vx0 address {} mtu {} type vxlan id {} dstport 4789 local {} nolearning\n\
         address add {}/24 dev vx0\nlink set vx0 up\n",
        plan.underlay(),
        plan.overlay_mac(),
        topology.overlay.mtu,
        topology.overlay.id,
        plan.underlay(),
        plan.overlay(),
    );
    let mut fdb = String::new();
    for peer in all.iter().filter(|p| p.number != plan.number) {
        let _ = writeln!(
            ip,
            "neigh add {} lladdr {} dev eth0 nud permanent",
            peer.underlay(),
            peer.underlay_mac()
        );
        let _ =
            writeln!(ip, "neigh add {} lladdr {} dev vx0 nud permanent", peer.overlay(), peer.overlay_mac());
        let _ =
            writeln!(fdb, "fdb add {} dev vx0 dst {} self permanent", peer.overlay_mac(), peer.underlay());
    }
    host.ip(&ip)?;
    host.bridge(&fdb)?;
    Ok(host)
}
