//! What this host reports about itself: settings and properties ([`read`]), counters ([`counters()`]), and
//! how those that are settings are changed ([`setting_for`]), undone and kept ([`change`]).
//!
//! In: a root (the running machine or a recorded tree) and the keys that are wanted. Out: values by key, and
//! a gap with its reason for everything that this kernel, driver or right does not give. It never judges a
//! value, starts no program but that of DRBD for keys that were asked for and that of the old iptables where
//! the kernel has its tables, and never fails as a whole.
//!
//! Adding a fact: one file with a `Fact`, one line in `FACTS`; a setting also one line in `SETTINGS`
//! and its keys in `linerate_model::writable`.

mod autoneg;
mod bond;
mod boot;
pub mod boot_files;
pub mod change;
mod channels;
mod coalesce;
mod counters;
mod cpu;
mod disk;
mod disk_counters;
mod disk_health;
mod disk_legs;
mod disk_limit;
mod disk_setting;
mod disk_wire;
mod drbd;
mod eee;
mod fact;
mod family;
mod feature;
mod filter;
mod firewall;
mod firewall_legacy;
mod forwarding;
mod idle;
mod ipoib;
mod irq;
mod irqbalance;
mod kernel;
mod link;
mod lldp;
mod machine;
mod mount;
mod mtu;
mod namespace;
mod neighbour;
mod nfs;
mod numa;
mod pause;
mod pcie;
pub mod private;
mod private_flags;
mod process_io;
mod qdisc;
mod readings;
mod ring;
mod route;
mod rps_xps;
mod rss;
mod rule;
pub mod run;
mod sysctl;
mod topology;
mod view;

#[cfg(test)]
mod conformance_tests;
#[cfg(test)]
mod entry_tests;
#[cfg(test)]
mod garbage_tests;
#[cfg(test)]
mod storage_tests;
#[cfg(test)]
mod tree_tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_model::disk_user::PROCESS_IO;
use linerate_model::fact::{FactDecl, FactKey, Gap, HostFacts};
use linerate_model::writable::writable;
use linerate_sys::place;
use linerate_sys::root::{RecordError, Root};

use crate::change::setting::Setting;
use fact::Fact;
pub use mount::holds_data;
use namespace::InNamespace;
use readings::Readings;
pub use sysctl::value_of as sysctl_value;
use view::View;

/// All topics.
const FACTS: &[&dyn Fact] = &[
    &sysctl::Sysctls,
    &link::Links,
    &topology::Topology,
    &bond::Bonds,
    &feature::Features,
    &ring::RINGS,
    &coalesce::COALESCE,
    &channels::CHANNELS,
    &pause::PAUSE,
    &eee::EEE,
    &private_flags::PrivateFlags,
    &rss::HashFields,
    &qdisc::Qdiscs,
    &filter::Filters,
    &pcie::Pcie,
    &numa::Numa,
    &ipoib::Ipoib,
    &irq::Interrupts,
    &irqbalance::Irqbalance,
    &rps_xps::Steering,
    &cpu::Cpu,
    &idle::Idle,
    &kernel::Kernel,
    &route::Routes,
    &rule::PolicyRules,
    &neighbour::Neighbours,
    &forwarding::Forwarding,
    &firewall::Firewall,
    &mount::Mounts,
    &disk::Disks,
    &disk_health::DiskHealth,
    &disk_limit::DiskLimits,
    &nfs::Nfs,
    &machine::Machine,
    &lldp::Lldp,
    &drbd::Drbd,
];

/// Counters of disks are read only where somebody asks for keys that begin so.
const DISKS: &str = "disk.";

/// Settings inside network namespaces of this host are those of the host.
static IN_NAMESPACE: InNamespace = InNamespace { setting_for };

/// A setting with the keys that it serves.
type SettingEntry = (fn(&str) -> bool, &'static dyn Setting);

/// All settings.
static SETTINGS: &[SettingEntry] = &[
    (sysctl::is_setting, &sysctl::Sysctls),
    (mtu::is_setting, &mtu::Mtu),
    (feature::is_setting, &feature::Features),
    (ring::is_setting, &ring::RINGS),
    (coalesce::is_setting, &coalesce::COALESCE),
    (channels::is_setting, &channels::CHANNELS),
    (qdisc::is_setting, &qdisc::Qdiscs),
    (irq::is_setting, &irq::Interrupts),
    (rps_xps::is_setting, &rps_xps::Steering),
    (irqbalance::is_setting, &irqbalance::Irqbalance),
    (cpu::is_setting, &cpu::Cpu),
    (disk_setting::is_setting, &disk_setting::DiskSettings),
    (idle::is_setting, &idle::Idle),
    (pause::is_setting, &pause::PAUSE),
    (eee::is_setting, &eee::EEE),
    (autoneg::is_setting, &autoneg::Autoneg),
    (bond::is_setting, &bond::Bonds),
    (ipoib::is_setting, &ipoib::Ipoib),
    (private_flags::is_setting, &private_flags::PrivateFlags),
    (rss::is_setting, &rss::HashFields),
    (route::is_setting, &route::Routes),
    (rule::is_setting, &rule::PolicyRules),
    (neighbour::is_setting, &neighbour::Neighbours),
    (forwarding::is_setting, &forwarding::Forwarding),
    (firewall::is_setting, &firewall::Firewall),
    (|key| IN_NAMESPACE.serves(key), &IN_NAMESPACE),
    (drbd::is_setting, &drbd::Drbd),
];

/// Everything that can be read here, counters included.
pub fn declarations() -> Vec<FactDecl> {
    FACTS
        .iter()
        .flat_map(|f| f.declarations())
        .chain(boot_files::declarations())
        .chain(counters::declarations())
        .chain(disk_counters::declarations())
        .chain(process_io::declarations())
        .collect()
}

/// The setting that serves a key; none for keys that may not be written.
pub fn setting_for(key: &str) -> Option<&'static dyn Setting> {
    writable(key)?;
    SETTINGS.iter().find(|(serves, _)| serves(key)).map(|(_, setting)| *setting)
}

/// Health of one drive (`disk_health.<dev>.…`). Asks the drive itself, which may not answer.
pub fn drive_health(root: &Root, name: &str) -> HostFacts {
    let mut out = Readings::default();
    disk_health::of_drive(root, name, &mut out);
    out.finish()
}

/// Failed legs and those that are being filled, of an array or volume.
pub fn legs(root: &Root, name: &str) -> (Vec<String>, Vec<String>) {
    let legs = disk_legs::of(root, name, &format!("/sys/block/{name}"));
    (legs.failed, legs.rebuilding)
}

/// Counters whose change around a test is kept. Cheap: called before and after every test.
pub fn counters(root: &Root) -> BTreeMap<FactKey, i64> {
    counters::read(root).0
}

/// Counters of what devices, queues, sockets and protocols lose; no facts.
pub fn loss_counters(root: &Root) -> HostFacts {
    let (mut counters, gaps) = counters::read(root);
    counters.retain(|key, _| OF_LOSS.iter().any(|family| key.starts_with(family)));
    HostFacts { counters, gaps, ..HostFacts::default() }
}

/// Families of counters that may be about lost packets.
const OF_LOSS: [&str; 5] = ["nic.", "softnet.", "snmp.", "netstat.", "conntrack."];

/// Facts and counters whose keys start with one of the prefixes (all when there is none), also of network
/// namespaces inside this host, keyed `netns.<path>|<key>`.
pub fn read(root: &Root, prefixes: &[FactKey], netns: &[PathBuf]) -> HostFacts {
    let mut facts = read_here(root, None, prefixes, false);
    for path in netns {
        let label = format!("netns.{}|", path.display());
        let inner: Option<Vec<FactKey>> = prefixes_inside(prefixes, &label);
        let Some(inner) = inner else { continue };
        match place::in_namespace(root, path, |inner_root, sysfs_gap| {
            read_here(inner_root, sysfs_gap, &inner, true)
        }) {
            Ok(inside) => {
                facts.readings.extend(inside.readings.into_iter().map(|(k, v)| (format!("{label}{k}"), v)));
                facts.counters.extend(inside.counters.into_iter().map(|(k, v)| (format!("{label}{k}"), v)));
                facts.gaps.extend(inside.gaps.into_iter().map(|mut gap| {
                    gap.what.name_mut().insert_str(0, &label);
                    gap
                }));
            }
            Err(error) => facts.gaps.push(Gap { what: label.into(), reason: error.to_string() }),
        }
    }
    facts
}

/// Prefixes as they look inside a namespace; `None` when nothing in there is wanted.
fn prefixes_inside(prefixes: &[FactKey], label: &str) -> Option<Vec<FactKey>> {
    if prefixes.is_empty() {
        return Some(Vec::new());
    }
    let mut inside = Vec::new();
    for prefix in prefixes {
        if let Some(rest) = prefix.strip_prefix(label) {
            inside.push(rest.to_string());
        } else if label.starts_with(prefix.as_str()) {
            return Some(Vec::new());
        } else if !prefix.starts_with("netns.") {
            // A key without a namespace is wanted in every namespace.
            inside.push(prefix.clone());
        }
    }
    if inside.is_empty() { None } else { Some(inside) }
}

fn read_here(root: &Root, sysfs_gap: Option<String>, prefixes: &[FactKey], inside: bool) -> HostFacts {
    let wanted = |head: &str| {
        prefixes.is_empty() || prefixes.iter().any(|p| p.starts_with(head) || head.starts_with(p.as_str()))
    };
    let head = |pattern: &str| pattern.split('*').next().unwrap_or_default().to_string();
    let mut out = Readings::default();
    let view = View::new(root, sysfs_gap, prefixes);
    for fact in FACTS.iter().filter(|f| !inside || f.of_namespace()) {
        if fact.declarations().iter().any(|d| wanted(&head(&d.pattern))) {
            fact.read(&view, &mut out);
        }
    }
    view.gaps(&mut out);
    let mut facts = out.finish();
    if counters::declarations().iter().any(|d| wanted(&head(&d.pattern))) {
        let (counters, gaps) = counters::read(root);
        facts.counters = counters;
        facts.gaps.extend(gaps);
    }
    if !inside && prefixes.iter().any(|p| p.starts_with(DISKS)) {
        disk_counters::read(root, &mut facts.counters, &mut facts.gaps);
    }
    if !inside && prefixes.iter().any(|p| p.starts_with(PROCESS_IO)) {
        process_io::read(root, &mut facts);
    }
    let starts = |key: &str| prefixes.is_empty() || prefixes.iter().any(|p| key.starts_with(p.as_str()));
    facts.readings.retain(|key, _| starts(key));
    facts.counters.retain(|key, _| starts(key));
    facts
}

/// Writes everything that [`read`] and [`counters()`] look at into a folder, from which `Root::recorded`
/// answers the same. Names of the host are replaced.
pub fn record(dir: &Path, netns: &[PathBuf]) -> Result<(), RecordError> {
    let root = Root::recording(dir);
    // Only the files that the readers touch on the way are wanted.
    drop(read(&root, &[], netns));
    for name in ["hostname", "domainname"] {
        root.replace(&format!("/proc/sys/kernel/{name}"), "recorded\n");
    }
    root.replace("/sys/class/dmi/id/product_uuid", "recorded\n");
    root.finish()
}
