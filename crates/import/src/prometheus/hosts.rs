//! Which host a series is of: a label, the name that the host gave itself, else what was scraped.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::inventory::Inventory;

use super::answer::Series;
use crate::context::is_host;

/// Metric whose label `nodename` is the name of a host.
pub(super) const UNAME: &str = "node_uname_info";

/// Names of hosts by what was scraped.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    by_instance: BTreeMap<String, String>,
    /// Names of an inventory by address and by name.
    known: BTreeMap<String, String>,
}

/// The host of `arc-1:9100`, `[fd00::2]:9100`, `http://arc-1/metrics`.
fn without_port(instance: &str) -> &str {
    let instance = instance.split_once("://").map_or(instance, |(_, rest)| rest);
    let instance = instance.split('/').next().unwrap_or(instance);
    if let Some(rest) = instance.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match instance.rsplit_once(':') {
        Some((host, _)) if !host.contains(':') => host,
        _ => instance,
    }
}

impl Hosts {
    pub(super) fn new(inventory: Option<&Inventory>) -> Self {
        let mut known = BTreeMap::new();
        for host in inventory.iter().flat_map(|inventory| &inventory.hosts) {
            known.insert(host.name.clone(), host.name.clone());
            for end in &host.endpoints {
                known.insert(end.address.to_string(), host.name.clone());
            }
        }
        Self { by_instance: BTreeMap::new(), known }
    }

    /// Learns the names that hosts gave themselves. One that two of them have is of neither.
    pub(super) fn learn(&mut self, series: &[Series]) {
        let mut claims: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut in_order = Vec::new();
        for one in series {
            let names = [one.label("host"), one.label("nodename")];
            let name = names.into_iter().find(|name| is_host(name) && !name.starts_with("localhost"));
            if let Some(name) = name {
                let instance = without_port(one.label("instance"));
                claims.entry(name).or_default().insert(instance);
                in_order.push((name, instance));
            }
        }
        for (name, instance) in in_order {
            if claims.get(name).is_some_and(|instances| instances.len() == 1) {
                // The newest series come first: a host that was renamed has its new name.
                self.by_instance.entry(instance.to_owned()).or_insert_with(|| name.to_owned());
            }
        }
    }

    /// The host of a series; `None` where it names none.
    pub(super) fn of(&self, series: &Series) -> Option<String> {
        let instance = without_port(series.label("instance"));
        let label = Some(series.label("host")).filter(|host| !host.is_empty());
        let own = self.by_instance.get(instance).map(String::as_str);
        // A metric of hosts that were not scraped themselves has their name in a label.
        let is_of_watch = series.label("__name__").starts_with("linerate_");
        let name = if is_of_watch { label? } else { own.unwrap_or(instance) };
        let known = self.known.get(instance).filter(|_| !is_of_watch).or_else(|| self.known.get(name));
        Some(known.map_or(name, String::as_str)).filter(|name| is_host(name)).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::series;
    use super::*;

    fn of(labels: &[&[(&str, &str)]]) -> Vec<Series> {
        let all: Vec<_> = labels
            .iter()
            .map(|labels| {
                let metric: BTreeMap<_, _> = labels.iter().copied().collect();
                serde_json::json!({ "metric": metric, "values": [] })
            })
            .collect();
        let data = serde_json::json!({ "resultType": "matrix", "result": all });
        series(serde_json::json!({ "status": "success", "data": data }).to_string().as_bytes()).unwrap()
    }

    #[test]
    fn hosts_go_by_their_own_name_unless_two_have_it() {
        let uname = of(&[
            &[("instance", "10.0.0.1:9100"), ("nodename", "arc-1")],
            &[("instance", "10.0.0.2:9100"), ("nodename", "arc-2"), ("host", "two")],
            &[("instance", "10.0.0.3:9100"), ("nodename", "pod")],
            &[("instance", "10.0.0.4:9100"), ("nodename", "pod")],
            &[("instance", "10.0.0.5:9100"), ("nodename", "a b;c")],
        ]);
        let mut hosts = Hosts::new(None);
        hosts.learn(&uname);
        let names: Vec<Option<String>> = uname.iter().map(|one| hosts.of(one)).collect();
        let names: Vec<&str> = names.iter().map(|name| name.as_deref().unwrap()).collect();
        assert_eq!(names, ["arc-1", "two", "10.0.0.3", "10.0.0.4", "10.0.0.5"]);
        let others = of(&[
            &[("instance", "[fd00::2]:9100")],
            &[("instance", "fd00::2")],
            &[("instance", "http://web/metrics")],
            &[("instance", "$(id)")],
            &[],
        ]);
        let names: Vec<Option<String>> = others.iter().map(|one| hosts.of(one)).collect();
        let name = |text: &str| Some(text.to_owned());
        assert_eq!(names, [name("fd00::2"), name("fd00::2"), name("web"), None, None]);
    }
}
