//! A snapshot without the names and addresses of its owner, so that it can be given away as a case. The same
//! name gets the same replacement everywhere, so that the diagnosis is the same. What cannot be replaced with
//! care is left out. In: a snapshot. Out: another one, and a check that nothing of the original is left.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_model::fact::{FactKey, FactValue, HostFacts};
use linerate_model::inventory::{Inventory, TransportSpec};
use linerate_model::load::LoadReport;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;

/// Facts that name people's things and decide nothing by their value.
const LEFT_OUT: [&str; 6] = [
    "lldp.",
    "machine.guests",
    "machine.host",
    "sysctl.kernel.hostname",
    "sysctl.kernel.domainname",
    "sysctl.kernel.core_pattern",
];
/// Names shorter than this are words of any text: only where a name is meant are they replaced.
const WORD_MIN: usize = 3;

/// The snapshot with everything replaced, and the names that were.
pub fn anonymous(snapshot: &Snapshot) -> (Snapshot, Renamer) {
    let mut renamer = Renamer::new(&snapshot.inventory);
    let mut copy = snapshot.clone();
    "recorded".clone_into(&mut copy.id);
    copy.parent = None;
    copy.start_ms = 0;
    copy.imported = None;
    // They have times, and decide nothing.
    copy.changes.clear();
    renamer.inventory(&mut copy.inventory);
    copy.facts = copy.facts.iter().map(|(host, facts)| (renamer.host(host), renamer.facts(facts))).collect();
    // Downloads speak of services and URLs, tests of disks of folders; pairs are what a case is about.
    copy.samples.retain(|s| !s.test.kind.plan().has_one_end());
    let first_ms = copy.samples.iter().map(|s| s.start_ms).filter(|ms| *ms > 0).min().unwrap_or(0);
    for sample in &mut copy.samples {
        renamer.sample(sample);
        // When a test was in the run says whether what it shows comes and goes; when the run was is nobody's
        // business.
        sample.start_ms =
            sample.start_ms.saturating_sub(first_ms).saturating_add(u64::from(sample.start_ms > 0));
    }
    for figure in &mut copy.storage {
        figure.host = renamer.host(&figure.host);
    }
    for watched in &mut copy.watched {
        watched.host = renamer.host(&watched.host);
        watched.key = renamer.key(&watched.key);
    }
    for stored in &mut copy.stored {
        stored.host = renamer.host(&stored.host);
        stored.key = renamer.key(&stored.key);
    }
    for gap in &mut copy.gaps {
        *gap.what.name_mut() = renamer.text(gap.what.name_mut());
        gap.reason = renamer.text(&gap.reason);
    }
    copy.left_out = copy.left_out.iter().map(|text| renamer.text(text)).collect();
    (copy, renamer)
}

/// What was replaced by what.
#[derive(Debug, Default)]
pub struct Renamer {
    hosts: BTreeMap<String, String>,
    groups: BTreeMap<String, String>,
    /// Addresses, hardware addresses, identifiers, paths, volumes: by kind.
    others: BTreeMap<(Kind, String), String>,
    /// Further names that stand for a host: its short name, its name for ssh, its account.
    aliases: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    V4,
    V6,
    Mac,
    Uuid,
    Namespace,
    Mount,
    Volume,
}

impl Renamer {
    fn new(inventory: &Inventory) -> Self {
        let mut renamer = Self::default();
        for (number, group) in (1..).zip(&inventory.groups) {
            renamer.groups.insert(group.name.clone(), format!("group-{number}"));
        }
        for (number, host) in (1..).zip(&inventory.hosts) {
            // A machine that is a group has one name for both.
            let new = match inventory.groups.iter().position(|g| g.name == host.name) {
                Some(group) => format!("group-{}", group + 1),
                None => format!("host-{number}"),
            };
            renamer.hosts.insert(host.name.clone(), new.clone());
            if let Some((short, _)) = host.name.split_once('.') {
                renamer.aliases.insert(short.to_owned(), new.clone());
            }
            match &host.transport {
                TransportSpec::Ssh(ssh) => {
                    renamer.aliases.insert(ssh.host.clone(), new);
                    renamer.aliases.extend(ssh.user.iter().map(|user| (user.clone(), "user".to_owned())));
                }
                TransportSpec::Slurm(slurm) => drop(renamer.aliases.insert(slurm.node.clone(), new)),
                _ => {}
            }
        }
        if !inventory.name.is_empty() {
            renamer.aliases.insert(inventory.name.clone(), "cluster".to_owned());
        }
        renamer.aliases.remove("root");
        renamer
    }

    /// The new name of a host; empty stays empty.
    fn host(&self, name: &str) -> String {
        self.hosts
            .get(name)
            .cloned()
            .unwrap_or_else(|| if name.is_empty() { String::new() } else { "another-host".to_owned() })
    }

    fn group(&self, name: &str) -> String {
        self.groups.get(name).cloned().unwrap_or_else(|| "another-group".to_owned())
    }

    fn inventory(&mut self, inventory: &mut Inventory) {
        "cluster".clone_into(&mut inventory.name);
        inventory.disturbances = None;
        inventory.index = linerate_model::inventory::NameIndex::default();
        for group in &mut inventory.groups {
            group.name = self.group(&group.name);
            group.parent = group.parent.as_ref().map(|p| self.group(p));
            group.machine = group.machine.as_ref().map(|m| self.host(m));
        }
        for host in &mut inventory.hosts {
            host.name = self.host(&host.name);
            host.groups = host.groups.iter().map(|g| self.group(g)).collect();
            host.transport = TransportSpec::Local;
            host.state_dir = None;
            host.etc_dir = None;
            host.cache_dir = None;
            for endpoint in &mut host.endpoints {
                endpoint.address = self.address(endpoint.address);
                endpoint.netns = endpoint
                    .netns
                    .as_ref()
                    .map(|path| self.other(Kind::Namespace, &path.display().to_string()).into());
            }
        }
    }

    fn facts(&mut self, facts: &HostFacts) -> HostFacts {
        let kept = |key: &&FactKey| {
            let bare = key.rsplit_once('|').map_or(key.as_str(), |(_, rest)| rest);
            !LEFT_OUT.iter().any(|left| bare.starts_with(left))
        };
        let readings: Vec<(FactKey, FactValue)> = facts
            .readings
            .iter()
            .filter(|(key, _)| kept(key))
            .map(|(key, value)| (self.key(key), self.value(key, value)))
            .collect();
        let gaps = facts.gaps.iter().cloned().map(|mut gap| {
            *gap.what.name_mut() = self.key(gap.what.name_mut());
            gap.reason = self.text(&gap.reason);
            gap
        });
        HostFacts {
            gaps: gaps.collect(),
            readings: readings.into_iter().collect(),
            // Since boot: only their change means something.
            counters: BTreeMap::new(),
            tool_bps: facts.tool_bps,
        }
    }

    /// A key: names of namespaces and folders in it are replaced, words of the vocabulary are not.
    fn key(&mut self, key: &str) -> String {
        if let Some((path, rest)) = key.strip_prefix("netns.").and_then(|k| k.split_once('|')) {
            return format!("netns.{}|{}", self.other(Kind::Namespace, path), self.key(rest));
        }
        match key.strip_prefix("mount.") {
            Some(path) if path != "/" => format!("mount.{}", self.other(Kind::Mount, path)),
            Some(_) => key.to_owned(),
            None => self.key_of_address(key).unwrap_or_else(|| self.literal(key)),
        }
    }

    /// A key of a route or of a neighbour, in which the dots of an address are slashes.
    fn key_of_address(&mut self, key: &str) -> Option<String> {
        let (head, rest) = match key.split_once(".neighbour.") {
            Some((head, rest)) => (format!("{head}.neighbour."), rest),
            None => ("route.".to_owned(), key.strip_prefix("route.")?),
        };
        let end = rest.find(['-', '.']).unwrap_or(rest.len());
        let address: IpAddr = rest[..end].replace('/', ".").parse().ok()?;
        let new = self.address(address).to_string().replace('.', "/");
        Some(format!("{head}{new}{}", &rest[end..]))
    }

    fn value(&mut self, key: &str, value: &FactValue) -> FactValue {
        match value {
            FactValue::Text(text) if key.contains("mount.") => {
                // The type of the file system; its source names servers and volumes.
                FactValue::Text(text.split_whitespace().next().unwrap_or_default().to_owned())
            }
            FactValue::Text(text) if key.ends_with(".dm_name") => {
                FactValue::Text(self.other(Kind::Volume, text))
            }
            FactValue::Text(text) => FactValue::Text(self.text(text)),
            FactValue::List(list) => FactValue::List(list.iter().map(|t| self.text(t)).collect()),
            other => other.clone(),
        }
    }

    fn sample(&mut self, sample: &mut Sample) {
        sample.test.from = self.host(&sample.test.from);
        sample.test.to = self.host(&sample.test.to);
        for counters in [&mut sample.tx_counters, &mut sample.rx_counters] {
            *counters = counters.iter().map(|(key, delta)| (self.key(key), *delta)).collect();
        }
        match &mut sample.outcome {
            Outcome::NothingThrough { reason } | Outcome::Invalid { reason } | Outcome::Gap { reason } => {
                *reason = self.text(reason);
            }
            Outcome::Measured(measured) => self.measured(measured),
        }
    }

    fn measured(&mut self, measured: &mut Measurement) {
        for report in [&mut measured.tx, &mut measured.rx].into_iter().flatten() {
            self.report(report);
        }
    }

    fn report(&mut self, report: &mut LoadReport) {
        // Not looked at by the diagnosis, and large.
        report.inside.clear();
        report.http.clear();
        report.stopped = report.stopped.as_ref().map(|text| self.text(text));
        if let Some(way) = &mut report.way {
            way.remark = self.text(&way.remark);
        }
        for turn in &mut report.calibration {
            turn.failed = turn.failed.as_ref().map(|text| self.text(text));
        }
        if let Some(connects) = &mut report.connects {
            connects.first_failure = connects.first_failure.as_ref().map(|text| self.text(text));
        }
        for inner in [&mut report.back, &mut report.far].into_iter().flatten() {
            self.report(inner);
        }
    }

    fn address(&mut self, address: IpAddr) -> IpAddr {
        let kind = if address.is_ipv4() { Kind::V4 } else { Kind::V6 };
        self.other(kind, &address.to_string()).parse().unwrap_or(address)
    }

    /// A text for people: names where they stand alone, addresses, identifiers.
    pub fn text(&mut self, text: &str) -> String {
        let text = self.literal(text);
        let mut names: Vec<(&String, &String)> =
            self.hosts.iter().chain(&self.groups).chain(&self.aliases).collect();
        names.retain(|(name, _)| name.len() >= WORD_MIN);
        // The longest first: a name may begin with another one.
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        let mut out = String::with_capacity(text.len());
        let mut rest = text.as_str();
        let mut before = ' ';
        while let Some(c) = rest.chars().next() {
            let fits = |name: &str| {
                rest.starts_with(name)
                    && rest[name.len()..].chars().next().is_none_or(|next| !next.is_alphanumeric())
            };
            let found = names.iter().find(|(name, _)| !before.is_alphanumeric() && fits(name));
            if let Some((name, new)) = found {
                out.push_str(new);
                rest = &rest[name.len()..];
                before = 'x';
                continue;
            }
            out.push(c);
            before = c;
            rest = &rest[c.len_utf8()..];
        }
        out
    }

    /// Addresses and identifiers in a text.
    fn literal(&mut self, text: &str) -> String {
        let part = |c: char| c.is_ascii_hexdigit() || matches!(c, '.' | ':' | '-');
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        let mut before = ' ';
        while let Some(c) = rest.chars().next() {
            let end = rest.find(|c: char| !part(c)).unwrap_or(rest.len());
            if end == 0 || before.is_alphanumeric() {
                out.push(c);
                before = c;
                rest = &rest[c.len_utf8()..];
                continue;
            }
            let (token, after) = rest.split_at(end);
            let whole = after.chars().next().is_none_or(|c| !c.is_alphanumeric());
            let (trimmed, tail) = token.split_at(token.trim_end_matches(['.', ':', '-']).len());
            match kind_of(trimmed).filter(|_| whole || !tail.is_empty()) {
                Some(kind) => out.push_str(&self.other(kind, trimmed)),
                // Addresses with a port, a range, the list of a kernel command line.
                None => {
                    for piece in trimmed.split_inclusive([':', '-']) {
                        let (body, mark) = piece.split_at(piece.trim_end_matches([':', '-']).len());
                        match kind_of(body) {
                            Some(Kind::V4) => out.push_str(&self.other(Kind::V4, body)),
                            _ => out.push_str(body),
                        }
                        out.push_str(mark);
                    }
                }
            }
            out.push_str(tail);
            before = token.chars().next_back().unwrap_or(' ');
            rest = after;
        }
        out
    }

    /// The replacement of something that is no name, always the same.
    fn other(&mut self, kind: Kind, old: &str) -> String {
        if is_common(old) {
            return old.to_owned();
        }
        let number = self.others.keys().filter(|(k, _)| *k == kind).count() as u32 + 1;
        let [high, low] = [(number >> 8) as u8, number as u8];
        self.others
            .entry((kind, old.to_owned()))
            .or_insert_with(|| match kind {
                // The block that is set aside for measurements.
                Kind::V4 => Ipv4Addr::new(198, 18 + (number >> 16) as u8 % 2, high, low).to_string(),
                Kind::V6 => {
                    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, (number >> 16) as u16, number as u16).to_string()
                }
                Kind::Mac => {
                    let pairs = old.split(':').count();
                    let mut new = vec!["02".to_owned()];
                    new.extend((1..pairs.saturating_sub(2)).map(|_| "00".to_owned()));
                    new.extend([format!("{high:02x}"), format!("{low:02x}")]);
                    new.join(":")
                }
                Kind::Uuid => format!("00000000-0000-4000-8000-{number:012}"),
                Kind::Namespace => format!("/run/netns/{number}"),
                Kind::Mount => format!("/mounted/{number}"),
                Kind::Volume => format!("volume-{number}"),
            })
            .clone()
    }

    /// What of the original is still in a text: names that stand alone, addresses, identifiers.
    pub fn left_in(&self, text: &str) -> Vec<String> {
        let alone = |name: &str| {
            text.match_indices(name).any(|(at, _)| {
                let side = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
                side(text[..at].chars().next_back()) && side(text[at + name.len()..].chars().next())
            })
        };
        let names = self.hosts.keys().chain(self.groups.keys()).chain(self.aliases.keys());
        let others = self.others.iter().filter(|((_, old), new)| old != *new).map(|((_, old), _)| old);
        let mut left: Vec<String> =
            names.filter(|n| n.len() >= WORD_MIN).chain(others).filter(|name| alone(name)).cloned().collect();
        left.dedup();
        left
    }
}

/// Addresses that every host has.
fn is_common(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok_and(|a| {
        a.is_loopback() || a.is_unspecified() || matches!(a, IpAddr::V4(v4) if v4.is_broadcast())
    }) || text.chars().all(|c| matches!(c, '0' | ':' | '-'))
        || text.chars().all(|c| matches!(c, 'f' | ':'))
}

fn kind_of(token: &str) -> Option<Kind> {
    let hex = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit());
    let groups: Vec<&str> = token.split(':').collect();
    if groups.len() >= 6 && groups.iter().all(|g| g.len() == 2 && hex(g)) {
        return Some(Kind::Mac);
    }
    let lengths: Vec<usize> = token.split('-').map(str::len).collect();
    if lengths == [8, 4, 4, 4, 12] && token.split('-').all(hex) {
        return Some(Kind::Uuid);
    }
    match token.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => Some(Kind::V4),
        Ok(IpAddr::V6(_)) => Some(Kind::V6),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests;
