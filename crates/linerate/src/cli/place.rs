//! `host!netns` on the command line: an end of a test inside a container, a process's namespace or a named
//! one, without an endpoint in the inventory. Its address is asked of the host.

use std::net::IpAddr;
use std::path::PathBuf;

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::inventory::{Endpoint, Inventory, Layer};

use linerate_fleet::Fleet;
use linerate_inventory::place;
use linerate_operator::observe::run::read_facts;

/// One end: a host, and where inside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// Name of the host.
    pub(super) host: String,
    /// Namespace inside of it.
    pub(super) netns: Option<PathBuf>,
}

impl End {
    /// Reads `host` or `host!netns`.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        match place::host_and_place(text) {
            Ok((host, netns)) => Ok(Self { host: host.to_owned(), netns }),
            Err(flaw) => anyhow::bail!("{}\nhint: {}", flaw.what, flaw.hint),
        }
    }

    /// The beginning of the keys of facts in there.
    pub(super) fn prefix(&self) -> String {
        self.netns.as_ref().map_or(String::new(), |netns| format!("netns.{}|", netns.display()))
    }
}

/// An inventory in which a host has this namespace and nothing else, to read facts there.
pub(super) fn only(inventory: &Inventory, end: &End) -> Inventory {
    let mut inventory = inventory.clone();
    for host in inventory.hosts.iter_mut().filter(|host| host.name == end.host && end.netns.is_some()) {
        host.endpoints = vec![endpoint(IpAddr::from([0, 0, 0, 0]), end.netns.clone())];
    }
    inventory
}

fn endpoint(address: IpAddr, netns: Option<PathBuf>) -> Endpoint {
    Endpoint { address, layer: Layer::Overlay, netns, link_bps: None }
}

/// The inventory in which the ends have endpoints in the overlay: that of the namespace, or the host's.
pub(super) async fn with_endpoints(
    fleet: &Fleet,
    inventory: &Inventory,
    ends: &[End],
) -> anyhow::Result<Inventory> {
    for (at, end) in ends.iter().enumerate() {
        anyhow::ensure!(
            ends[..at].iter().all(|other| other.host != end.host),
            "both ends are on host {0}: {0} was named twice\nhint: the ends of a test are on different hosts",
            end.host
        );
    }
    let mut candidates = Vec::new();
    for end in ends {
        candidates.push(addresses(fleet, inventory, end).await?);
    }
    let Some(chosen) = choose(&candidates) else {
        let known = |(end, all): (&End, &Vec<(IpAddr, u8)>)| {
            let all: Vec<String> = all.iter().map(|(address, _)| address.to_string()).collect();
            format!("{} ({})", end.host, all.join(", "))
        };
        let known: Vec<String> = ends.iter().zip(&candidates).map(known).collect();
        anyhow::bail!(
            "{} have no addresses of one family\nhint: name them in the inventory",
            known.join(" and ")
        );
    };
    let mut changed = inventory.clone();
    for (end, address) in ends.iter().zip(chosen) {
        for host in changed.hosts.iter_mut().filter(|host| host.name == end.host) {
            let known = host.endpoints.iter().find(|e| e.address == address && e.netns == end.netns).cloned();
            let own = known.map_or_else(
                || endpoint(address, end.netns.clone()),
                |e| Endpoint { layer: Layer::Overlay, ..e },
            );
            host.endpoints = vec![own];
        }
    }
    Ok(changed)
}

/// Addresses of an end with the length of their prefix: of the inventory where it has some, else asked of the
/// host.
async fn addresses(fleet: &Fleet, inventory: &Inventory, end: &End) -> anyhow::Result<Vec<(IpAddr, u8)>> {
    let host = inventory.host(&end.host);
    let listed = host.into_iter().flat_map(|host| &host.endpoints).filter(|e| e.netns == end.netns);
    let mut found: Vec<(IpAddr, u8)> = listed.map(|e| (e.address, 0)).collect();
    if found.is_empty() {
        let prefixes = [format!("{}nic.", end.prefix())];
        let facts = read_facts(fleet, &only(inventory, end), &end.host, &prefixes)
            .await
            .map_err(|reason| anyhow::anyhow!(reason))?;
        found = addresses_in(&facts, &prefixes[0]);
        let gap = facts.gaps.iter().find(|gap| gap.what.is_below(&end.prefix()));
        if let Some(gap) = gap.filter(|_| found.is_empty()) {
            anyhow::bail!(
                "host {}: {}: {}",
                end.host,
                gap.what.to_string().trim_end_matches('|'),
                gap.reason
            );
        }
    }
    anyhow::ensure!(
        !found.is_empty(),
        "host {}: no address to measure to in {}\nhint: name one in the inventory",
        end.host,
        end.netns.as_ref().map_or("the host".to_owned(), |netns| netns.display().to_string())
    );
    Ok(found)
}

/// Addresses in facts, those of the loopback left out.
fn addresses_in(facts: &HostFacts, prefix: &str) -> Vec<(IpAddr, u8)> {
    let lists =
        facts.readings.iter().filter(|(key, _)| key.starts_with(prefix) && key.ends_with(".addresses"));
    let texts =
        lists.filter_map(|(_, value)| if let FactValue::List(list) = value { Some(list) } else { None });
    let parsed = texts.flatten().filter_map(|text| {
        let (address, length) = text.split_once('/')?;
        Some((address.parse::<IpAddr>().ok()?, length.parse().ok()?))
    });
    parsed.filter(|(address, _)| !address.is_loopback()).collect()
}

/// One address of each, of the same family: in the same subnet where there is one, else the first.
fn choose(all: &[Vec<(IpAddr, u8)>]) -> Option<Vec<IpAddr>> {
    let first = all.first()?;
    let of_each = |fits: &dyn Fn(&(IpAddr, u8)) -> bool| -> Option<Vec<IpAddr>> {
        all.iter().map(|own| own.iter().find(|one| fits(one)).map(|(address, _)| *address)).collect()
    };
    let same = first.iter().find_map(|(wanted, bits)| {
        of_each(&|(address, more)| {
            let bits = (*bits).max(*more);
            subnet(*wanted, bits).is_some() && subnet(*wanted, bits) == subnet(*address, bits)
        })
        .map(|mut chosen| {
            chosen[0] = *wanted;
            chosen
        })
    });
    let family = || first.iter().find_map(|(wanted, _)| of_each(&|(a, _)| a.is_ipv4() == wanted.is_ipv4()));
    same.or_else(family)
}

/// The network part of an address.
fn subnet(address: IpAddr, bits: u8) -> Option<(bool, u128)> {
    let (value, width) = match address {
        IpAddr::V4(v4) => (u128::from(u32::from(v4)), 32),
        IpAddr::V6(v6) => (u128::from(v6), 128),
    };
    (bits > 0 && bits <= width).then(|| (address.is_ipv4(), value >> (width - bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_one_subnet_are_chosen() {
        let list = |texts: &[&str]| {
            let values = texts.iter().map(|t| (*t).to_owned()).collect();
            let mut facts = HostFacts::default();
            facts.readings.insert("netns.pid:7|nic.eth0.addresses".into(), FactValue::List(values));
            addresses_in(&facts, "netns.pid:7|nic.")
        };
        let from = list(&["127.0.0.1/8", "172.17.0.2/16", "10.0.0.5/24", "fd00::5/64"]);
        assert_eq!(from.len(), 3);
        let chosen = |to: &[&str]| {
            let addresses = choose(&[from.clone(), list(to)])?;
            Some(addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(chosen(&["192.168.0.9/24", "10.0.0.6/24"]).unwrap(), "10.0.0.5 10.0.0.6");
        assert_eq!(chosen(&["fd00::6/64"]).unwrap(), "fd00::5 fd00::6");
        assert_eq!(chosen(&["192.168.0.9/24"]).unwrap(), "172.17.0.2 192.168.0.9");
        assert_eq!(choose(&[from[..1].to_vec(), list(&["fd00::6/64"])]), None);
        let three = [list(&["10.0.0.5/24", "10.9.0.5/24"]), list(&["10.9.0.6/24"]), list(&["10.9.0.7/24"])];
        assert_eq!(
            choose(&three).unwrap(),
            ["10.9.0.5", "10.9.0.6", "10.9.0.7"].map(|a| a.parse::<IpAddr>().unwrap())
        );
        assert!(list(&["x/24", "10.0.0.1", "10.0.0.1/999"]).is_empty());
    }
}
