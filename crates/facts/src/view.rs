//! What several topics look at: devices, addresses, drivers, the folder of a device in `/sys`. Asked once for
//! each reading.
//!
//! In: a root. Out: plain lists, empty where the kernel did not answer (the reason then becomes one gap).

use std::cell::OnceCell;
use std::collections::BTreeMap;

use linerate_sys::ethtool::{self, Nic};
use linerate_sys::fdb::{self, ForwardingEntry};
use linerate_sys::filter::{self, Filter};
use linerate_sys::packet_program::{self, PacketPrograms};
use linerate_sys::qdisc::{self, Qdisc};
use linerate_sys::root::{ReadError, Root};
use linerate_sys::rtnetlink::{self, Address, Neighbour, NetDevice, Route};
use linerate_sys::rule::{self, PolicyRule};

use super::readings::Readings;

type Asked<T> = OnceCell<Result<T, ReadError>>;

/// One reading of one network namespace.
pub(super) struct View<'a> {
    /// Where from.
    pub(super) root: &'a Root,
    /// Key prefixes that are wanted; all when empty.
    pub(super) prefixes: &'a [String],
    sysfs_gap: Option<String>,
    links: Asked<Vec<NetDevice>>,
    addresses: Asked<Vec<Address>>,
    routes: Asked<Vec<Route>>,
    rules: Asked<Vec<PolicyRule>>,
    neighbours: Asked<Vec<Neighbour>>,
    forwarding: Asked<Vec<ForwardingEntry>>,
    qdiscs: Asked<Vec<Qdisc>>,
    filters: Asked<Vec<Filter>>,
    packet_programs: Asked<PacketPrograms>,
    nics: Asked<BTreeMap<String, Nic>>,
}

impl<'a> View<'a> {
    pub(super) fn new(root: &'a Root, sysfs_gap: Option<String>, prefixes: &'a [String]) -> Self {
        Self {
            root,
            prefixes,
            sysfs_gap,
            links: OnceCell::new(),
            addresses: OnceCell::new(),
            routes: OnceCell::new(),
            rules: OnceCell::new(),
            neighbours: OnceCell::new(),
            forwarding: OnceCell::new(),
            qdiscs: OnceCell::new(),
            filters: OnceCell::new(),
            packet_programs: OnceCell::new(),
            nics: OnceCell::new(),
        }
    }

    /// Devices.
    pub(super) fn links(&self) -> &[NetDevice] {
        ask(&self.links, || self.root.answer("links", || Ok(rtnetlink::links()?)))
    }

    /// Addresses.
    pub(super) fn addresses(&self) -> &[Address] {
        ask(&self.addresses, || self.root.answer("addresses", || Ok(rtnetlink::addresses()?)))
    }

    /// Policy rules, in the order in which they are tried.
    pub(super) fn rules(&self) -> &[PolicyRule] {
        ask(&self.rules, || self.root.answer("rules", || Ok(rule::rules()?)))
    }

    /// Routes of all tables.
    pub(super) fn routes(&self) -> &[Route] {
        ask(&self.routes, || self.root.answer("routes", || Ok(rtnetlink::routes()?)))
    }

    /// Neighbours that are there for good.
    pub(super) fn neighbours(&self) -> &[Neighbour] {
        ask(&self.neighbours, || self.root.answer("neighbours", || Ok(rtnetlink::neighbours()?)))
    }

    /// Permanent forwarding entries.
    pub(super) fn forwarding(&self) -> &[ForwardingEntry] {
        ask(&self.forwarding, || self.root.answer("forwarding", || Ok(fdb::entries()?)))
    }

    /// Queueing disciplines.
    pub(super) fn qdiscs(&self) -> &[Qdisc] {
        ask(&self.qdiscs, || self.root.answer("qdiscs", || Ok(qdisc::qdiscs()?)))
    }

    /// Filters of `tc`.
    pub(super) fn filters(&self) -> &[Filter] {
        let asked = || self.root.answer("filters", || Ok(filter::filters(self.qdiscs())?));
        ask(&self.filters, asked)
    }

    /// Programs that packets meet outside of filters; `None` where they are not known.
    pub(super) fn packet_programs(&self) -> Option<&PacketPrograms> {
        let asked = || self.root.answer("packet_programs", || Ok(packet_program::attached(self.links())));
        self.packet_programs.get_or_init(asked).as_ref().ok()
    }

    /// What the drivers report, by name of the device. The loopback has no driver.
    pub(super) fn nics(&self) -> &BTreeMap<String, Nic> {
        static NONE: BTreeMap<String, Nic> = BTreeMap::new();
        let asked = self.nics.get_or_init(|| {
            let names: Vec<String> =
                self.links().iter().filter(|l| !l.loopback).map(|l| l.name.clone()).collect();
            self.root.answer("ethtool", || ethtool::read(&names).map_err(|e| ReadError::Other(e.to_string())))
        });
        asked.as_ref().unwrap_or(&NONE)
    }

    /// Name of a device by its index.
    pub(super) fn name_of(&self, index: u32) -> Option<&str> {
        self.links().iter().find(|l| l.index == index).map(|l| l.name.as_str())
    }

    /// Folder of a device in `/sys`, if that is the folder of this very device and not one of another
    /// namespace.
    pub(super) fn sys_folder(&self, link: &NetDevice) -> Option<String> {
        if self.sysfs_gap.is_some() || link.name.contains('/') {
            return None;
        }
        let folder = format!("/sys/class/net/{}", link.name);
        match self.root.number(&format!("{folder}/ifindex")) {
            Ok(index) => (index == i64::from(link.index)).then_some(folder),
            // Trees of old tools lack the file.
            Err(_) => self.root.list(&folder).is_ok().then_some(folder),
        }
    }

    /// Folder of a device's PCI function.
    pub(super) fn pci_folder(&self, link: &NetDevice) -> Option<String> {
        let bus = &self.nics().get(&link.name)?.driver.as_ref()?.bus;
        let plain = !bus.is_empty() && bus.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.');
        (plain && bus.matches(':').count() == 2 && !bus.contains(".."))
            .then(|| format!("/sys/bus/pci/devices/{bus}"))
    }

    /// Reasons why the kernel did not answer.
    pub(super) fn gaps(&self, out: &mut Readings) {
        let mut note = |what: &str, reason: Option<&ReadError>| {
            if let Some(reason) = reason {
                out.gap(what, reason);
            }
        };
        note("nic.*", self.links.get().and_then(|r| r.as_ref().err()));
        note("nic.*.addresses", self.addresses.get().and_then(|r| r.as_ref().err()));
        note("route.*", self.routes.get().and_then(|r| r.as_ref().err()));
        note("rule.*", self.rules.get().and_then(|r| r.as_ref().err()));
        note("nic.*.neighbour.*", self.neighbours.get().and_then(|r| r.as_ref().err()));
        note("nic.*.fdb.*", self.forwarding.get().and_then(|r| r.as_ref().err()));
        note("nic.*.qdisc", self.qdiscs.get().and_then(|r| r.as_ref().err()));
        note("nic.*.filter.*", self.filters.get().and_then(|r| r.as_ref().err()));
        note("nic.*.xdp", self.packet_programs.get().and_then(|r| r.as_ref().err()));
        note("nic.*.feature.*", self.nics.get().and_then(|r| r.as_ref().err()));
        if let Some(reason) = &self.sysfs_gap {
            out.gap("nic.*.queue.*", reason);
        }
    }
}

fn ask<T>(cell: &Asked<Vec<T>>, question: impl FnOnce() -> Result<Vec<T>, ReadError>) -> &[T] {
    cell.get_or_init(question).as_deref().unwrap_or_default()
}

/// Name of a device as it stands in a key: `.` separates the parts of a key and is written `/`, as in sysctl
/// names.
pub(super) fn key_name(nic: &str) -> String {
    nic.replace('.', "/")
}

/// `nic.eth0/100.ring.rx` -> (`eth0.100`, `ring.rx`).
pub(super) fn split_key(key: &str) -> Option<(String, &str)> {
    let (nic, field) = key.strip_prefix("nic.")?.split_once('.')?;
    let plain = !nic.is_empty() && nic.len() < 16 && nic != "/" && nic != "//";
    (plain && !field.is_empty()).then(|| (nic.replace('/', "."), field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_dots_keep_keys_clear() {
        let key = format!("nic.{}.ring.rx", key_name("eth0.100"));
        assert_eq!(key, "nic.eth0/100.ring.rx");
        assert_eq!(split_key(&key), Some(("eth0.100".to_string(), "ring.rx")));
        assert_eq!(split_key("nic..mtu"), None);
        assert_eq!(split_key("nic.eth0"), None);
    }
}
