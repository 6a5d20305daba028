//! Groups that can be seen: which virtual machines are on which hypervisor, which hosts at which switch,
//! which in which subnet.
//!
//! Facts come in, groups with their members go out. Pure: no I/O. Each virtual machine whose hypervisor is
//! unknown gets a remark.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::{Group, GroupName, HostName};

use super::draft::{ListRemark, Understood, name_fits};

/// Facts that are needed: beginnings of their keys.
pub const NEEDED: [&str; 3] = ["machine.", "nic.", "lldp."];

/// What was seen.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct InventoryEntry {
    /// Groups with their members and the fact that proves it, in the order of their names.
    pub groups: Vec<(Group, Vec<(HostName, String)>)>,
    /// Virtual machines without a known hypervisor.
    pub untold: Vec<ListRemark>,
}

/// Members by group, each with its evidence.
type Members = BTreeMap<GroupName, Vec<(HostName, String)>>;

/// All groups that the facts show.
pub fn groups(facts: &BTreeMap<HostName, HostFacts>) -> InventoryEntry {
    let mut seen = InventoryEntry::default();
    hypervisors(facts, &mut seen);
    switches(facts, &mut seen);
    subnets(facts, &mut seen);
    seen
}

fn text<'a>(facts: &'a HostFacts, key: &str) -> Option<&'a str> {
    match facts.readings.get(key) {
        Some(FactValue::Text(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// Values of `<head><device><tail>` with the device.
fn of_devices<'a>(
    facts: &'a HostFacts,
    head: &'a str,
    tail: &'a str,
) -> impl Iterator<Item = (&'a str, &'a FactValue)> {
    let all = facts.readings.beginning_with(head);
    all.filter_map(move |(key, value)| Some((key.strip_prefix(head)?.strip_suffix(tail)?, value)))
}

/// Hardware addresses of a host in small letters.
fn macs(facts: &HostFacts) -> BTreeSet<String> {
    of_devices(facts, "nic.", ".mac").map(|(_, mac)| mac.to_string().to_ascii_lowercase()).collect()
}

/// Guests of a host: each a list of words, the identifier first.
fn guests(facts: &HostFacts) -> Vec<Vec<String>> {
    let Some(FactValue::List(list)) = facts.readings.get("machine.guests") else { return Vec::new() };
    list.iter().map(|guest| guest.to_ascii_lowercase().split(' ').map(str::to_owned).collect()).collect()
}

/// Firmware writes the first three parts of an identifier in either byte order (SMBIOS 2.6, 7.2.1).
fn same_uuid(a: &str, b: &str) -> bool {
    let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_hexdigit).collect() };
    let (a, b) = (digits(a).to_ascii_lowercase(), digits(b).to_ascii_lowercase());
    let swapped = |text: &str| -> Option<String> {
        let bytes: Vec<&str> = (0..16).map(|i| text.get(2 * i..2 * i + 2)).collect::<Option<_>>()?;
        let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
        Some(order.iter().map(|i| bytes[*i]).collect())
    };
    a.len() == 32 && (a == b || swapped(&a).is_some_and(|a| a == b))
}

/// Why a virtual machine must be on a host, if it must.
fn evidence(guest: &HostFacts, own: &BTreeSet<String>, host: &HostFacts) -> Option<String> {
    for words in guests(host) {
        if let (Some(theirs), Some(uuid)) = (words.first(), text(guest, "machine.uuid"))
            && same_uuid(uuid, theirs)
        {
            return Some("libvirt there runs a machine of this identifier".to_owned());
        }
        if let Some(mac) = words.iter().skip(1).find(|mac| own.contains(*mac)) {
            return Some(format!("libvirt there runs a machine with {mac}"));
        }
    }
    // libvirt gives the host's end of a guest's device the guest's address with `fe` in front.
    let taps = macs(host);
    let tap = own.iter().find(|mac| {
        let tap = mac.get(2..).map(|rest| format!("fe{rest}"));
        !mac.starts_with("fe") && tap.is_some_and(|tap| taps.contains(&tap))
    });
    tap.map(|mac| format!("a tap device there belongs to {mac}"))
}

fn hypervisors(facts: &BTreeMap<HostName, HostFacts>, seen: &mut InventoryEntry) {
    let mut members = Members::new();
    for (name, guest) in facts {
        let own = macs(guest);
        let machine = facts.iter().filter(|(other, _)| *other != name);
        let mut found = machine.filter_map(|(other, host)| Some((other, evidence(guest, &own, host)?)));
        if let Some((host, why)) = found.next() {
            members.entry(host.clone()).or_default().push((name.clone(), why));
        } else if let Some(host) = text(guest, "machine.host") {
            let known = facts.keys().find(|other| other.eq_ignore_ascii_case(host));
            let group = known.map_or(host, String::as_str).to_owned();
            members
                .entry(group)
                .or_default()
                .push((name.clone(), "its hypervisor reports its name".to_owned()));
        } else if guest.readings.get("machine.virtual") == Some(&FactValue::Flag(true)) {
            let product = text(guest, "machine.product").unwrap_or("of an unknown kind");
            let why = "its hypervisor is unknown: survey the hypervisors too, or write the groups by hand";
            seen.untold.push(ListRemark {
                line: 0,
                what: format!("{name}, a virtual machine ({product})"),
                why: why.to_owned(),
            });
        }
    }
    for (name, hosts) in members {
        let machine = facts.contains_key(&name).then(|| name.clone());
        push(seen, Group { kind: "hypervisor".to_owned(), machine, name, ..Group::default() }, hosts);
    }
}

fn switches(facts: &BTreeMap<HostName, HostFacts>, seen: &mut InventoryEntry) {
    let mut members = Members::new();
    for (name, host) in facts {
        for (nic, chassis) in of_devices(host, "lldp.", ".chassis") {
            let system = text(host, &format!("lldp.{nic}.system")).map_or(chassis.to_string(), str::to_owned);
            let port = text(host, &format!("lldp.{nic}.port")).unwrap_or("?");
            let why = format!("LLDP on {nic}: port {port}");
            let list = members.entry(system).or_default();
            // Two cables to one switch are one membership.
            if list.iter().all(|(known, _)| known != name) {
                list.push((name.clone(), why));
            }
        }
    }
    for (name, hosts) in members {
        push(seen, Group { kind: "switch".to_owned(), name, ..Group::default() }, hosts);
    }
}

fn subnets(facts: &BTreeMap<HostName, HostFacts>, seen: &mut InventoryEntry) {
    let mut members: BTreeMap<(IpAddr, u8), BTreeMap<HostName, (IpAddr, String)>> = BTreeMap::new();
    for (name, host) in facts {
        for (nic, list) in of_devices(host, "nic.", ".addresses") {
            let FactValue::List(list) = list else { continue };
            for (address, bits) in list.iter().filter_map(|text| address_and_bits(text)) {
                if let Some(network) = network(address, bits) {
                    let entry = members.entry((network, bits)).or_default();
                    entry.insert(name.clone(), (address, format!("{address} on {nic}")));
                }
            }
        }
    }
    for ((network, bits), hosts) in members {
        // A subnet of all hosts distinguishes nothing; one in which hosts share an address is each host's own
        // (docker0).
        let addresses: BTreeSet<IpAddr> = hosts.values().map(|(address, _)| *address).collect();
        if hosts.len() < 2 || hosts.len() == facts.len() || addresses.len() < hosts.len() {
            continue;
        }
        let group =
            Group { name: format!("net-{network}-{bits}"), kind: "subnet".to_owned(), ..Group::default() };
        push(seen, group, hosts.into_iter().map(|(name, (_, why))| (name, why)).collect());
    }
}

fn address_and_bits(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let bits: u8 = bits.parse().ok()?;
    (super::draft::unfit(address).is_none()).then_some((address, bits))
}

/// The network of an address; none for one that has no neighbours.
fn network(address: IpAddr, bits: u8) -> Option<IpAddr> {
    match address {
        IpAddr::V4(v4) if (1..32).contains(&bits) => {
            Some(IpAddr::V4((u32::from(v4) & (u32::MAX << (32 - bits))).into()))
        }
        IpAddr::V6(v6) if (1..128).contains(&bits) => {
            Some(IpAddr::V6((u128::from(v6) & (u128::MAX << (128 - bits))).into()))
        }
        _ => None,
    }
}

fn push(seen: &mut InventoryEntry, mut group: Group, hosts: Vec<(HostName, String)>) {
    if name_fits("group", &group.name).is_err() {
        // Switches call themselves anything.
        let fit = |c: char| if c.is_alphanumeric() || "-_.:@".contains(c) { c } else { '-' };
        let name: String = group.name.chars().map(fit).take(60).collect();
        group.name = if name.is_empty() { "unnamed".to_owned() } else { name };
        while group.name.len() > 64 {
            group.name.pop();
        }
    }
    seen.groups.push((group, hosts));
}

impl Understood {
    /// Adds groups that were seen. A group that is there already gets the members that it lacks; its own
    /// words stay.
    pub fn add(&mut self, seen: InventoryEntry) {
        for (group, hosts) in seen.groups {
            for (name, why) in hosts {
                if let Some(host) =
                    self.hosts.iter_mut().find(|h| h.name == name && !h.groups.contains(&group.name))
                {
                    host.groups.push(group.name.clone());
                    self.notes.push(ListRemark {
                        line: 0,
                        what: format!("{name} in {} {}", group.kind, group.name),
                        why,
                    });
                }
            }
            if self.groups.iter().all(|known| known.name != group.name) {
                self.groups.push(group);
            }
        }
        self.notes.extend(seen.untold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(readings: &[(&str, FactValue)]) -> HostFacts {
        let readings = readings.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        HostFacts { readings, ..HostFacts::default() }
    }

    fn word(text: &str) -> FactValue {
        FactValue::Text(text.to_owned())
    }

    fn list(texts: &[&str]) -> FactValue {
        FactValue::List(texts.iter().map(|t| (*t).to_owned()).collect())
    }

    fn seen_groups(hosts: &[(&str, HostFacts)]) -> (Vec<String>, InventoryEntry) {
        let facts = hosts.iter().map(|(name, facts)| ((*name).to_owned(), facts.clone())).collect();
        let seen = groups(&facts);
        let line = |(group, hosts): &(Group, Vec<(HostName, String)>)| {
            let names: Vec<&str> = hosts.iter().map(|(name, _)| name.as_str()).collect();
            format!("{} {}: {}", group.kind, group.name, names.join(" "))
        };
        (seen.groups.iter().map(line).collect(), seen)
    }

    const UUID: &str = "4c4c4544-0042-3510-8053-b4c04f564433";

    #[test]
    fn machines_are_found_on_their_hypervisors() {
        let virtual_machine = ("machine.virtual", FactValue::Flag(true));
        let (lines, seen) = seen_groups(&[
            // By its identifier, in the other byte order.
            (
                "a",
                host(&[
                    ("machine.uuid", word("44454C4C-4200-1035-8053-B4C04F564433")),
                    virtual_machine.clone(),
                ]),
            ),
            // By its address in libvirt's list, and by a tap device.
            ("b", host(&[("nic.eth0.mac", word("52:54:00:AA:BB:CC")), virtual_machine.clone()])),
            ("c", host(&[("nic.eth0.mac", word("52:54:00:00:00:07")), virtual_machine.clone()])),
            ("d", host(&[("machine.host", word("VS-4")), virtual_machine.clone()])),
            ("e", host(&[("machine.product", word("KVM")), virtual_machine])),
            (
                "vs-4",
                host(&[
                    ("machine.guests", list(&[&format!("{UUID} 52:54:00:11:11:11"), "x 52:54:00:aa:bb:cc"])),
                    ("nic.vnet3.mac", word("fe:54:00:00:00:07")),
                ]),
            ),
        ]);
        assert_eq!(lines, ["hypervisor vs-4: a b c d"]);
        assert_eq!(seen.groups[0].0.machine.as_deref(), Some("vs-4"));
        assert_eq!(seen.untold.len(), 1);
        assert!(seen.untold[0].what.contains("e, a virtual machine (KVM)"), "{seen:?}");
    }

    #[test]
    fn switches_and_subnets_are_found() {
        let one = |switch: &str, addresses: &[&str]| {
            host(&[
                ("lldp.eth0.chassis", word("aa:bb")),
                ("lldp.eth0.system", word(switch)),
                ("lldp.eth1.chassis", word("aa:bb")),
                ("lldp.eth1.system", word(switch)),
                ("nic.eth0.addresses", list(addresses)),
            ])
        };
        let (lines, _) = seen_groups(&[
            ("a", one("leaf 1/x", &["10.0.0.1/24", "172.17.0.1/16", "10.9.0.1/16", "10.0.0.1/32"])),
            ("b", one("leaf 1/x", &["10.0.0.2/24", "172.17.0.1/16", "10.9.0.2/16", "fe80::1/64"])),
            ("c", one("leaf2", &["10.0.1.3/24", "172.17.0.1/16", "10.9.0.3/16", "fd00::3/64"])),
            ("d", one("leaf2", &["10.0.1.4/24", "fd00::4/64", "10.9.0.4/16"])),
        ]);
        assert_eq!(
            lines,
            [
                "switch leaf-1-x: a b",
                "switch leaf2: c d",
                "subnet net-10.0.0.0-24: a b",
                "subnet net-10.0.1.0-24: c d",
                "subnet net-fd00::-64: c d",
            ]
        );
    }

    #[test]
    fn what_was_seen_joins_what_was_written() {
        let text = "[[group]]\nname = \"vs-4\"\nkind = \"hypervisor\"\n[[host]]\nname = \"a\"\ngroups = [\"vs-4\"]\n[[host]]\nname = \"b\"\n";
        let source = super::super::reader::SourceText::alone("x.toml", text);
        let mut understood = super::super::readers::understand(&source, None).unwrap();
        let group =
            |name: &str| Group { name: name.to_owned(), kind: "hypervisor".to_owned(), ..Group::default() };
        let members = |names: &[&str]| names.iter().map(|n| ((*n).to_owned(), "seen".to_owned())).collect();
        understood.add(InventoryEntry {
            groups: vec![(group("vs-4"), members(&["a", "b"])), (group("vs-5"), members(&["b", "nobody"]))],
            untold: vec![],
        });
        assert_eq!(understood.groups.len(), 2);
        assert_eq!(understood.hosts[0].groups, ["vs-4"]);
        assert_eq!(understood.hosts[1].groups, ["vs-4", "vs-5"]);
        assert_eq!(understood.notes.len(), 2);
    }
}
