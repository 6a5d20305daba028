//! Builds one snapshot from everything that was read: names and addresses of one host are merged, both ends'
//! views of one transfer become one test, hosts get endpoints and groups. The sink comes in, a snapshot goes
//! out.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::http::HttpFetch;
use linerate_model::imported::{Earlier, Imported};
use linerate_model::inventory::{Endpoint, Group, Host, Inventory, Layer, SshSpec, TransportSpec};
use linerate_model::kind::{HttpPlan, TestKind};
use linerate_model::load::LoadReport;
use linerate_model::outlier::StoredSeries;
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::{CounterWatch, Snapshot, StorageFigure, StoragePattern, StorageSubject};
use linerate_model::units::rate;

use crate::ends::{SERVER, UNNAMED};
use crate::options::ImportOptions;
use crate::prose;
use crate::sink::{CLIENT, NAMELESS, Raw, Run, Sink, Values, plain_address};
use crate::states::{self, Superseded};

/// Fact: the best throughput of a host with itself, Mbit/s.
const LOOPBACK: &str = "loopback.throughput_mbit";
/// Longest chain of names that stand for each other.
const CHAIN_MAX: usize = 8;

/// The snapshot.
pub(crate) fn snapshot(
    mut sink: Sink,
    text: &[String],
    options: &ImportOptions,
    account: &mut Imported,
) -> Snapshot {
    let ends: BTreeSet<String> =
        sink.samples.iter().flat_map(|run| [run.raw.from.clone(), run.raw.to.clone()]).collect();
    for member in prose::members(text, &ends) {
        sink.member(member);
    }
    let names = Names::new(&mut sink, options);
    let mut values: BTreeMap<String, Values> = BTreeMap::new();
    for (host, found) in std::mem::take(&mut sink.facts) {
        let whole = values.entry(names.host(&host)).or_default();
        whole.readings.extend(found.readings);
        whole.counters.extend(found.counters);
    }
    let made = |found: Values| HostFacts {
        readings: found.readings.into_iter().collect(),
        counters: found.counters,
        ..HostFacts::default()
    };
    let mut facts: BTreeMap<String, HostFacts> =
        values.into_iter().map(|(host, v)| (host, made(v))).collect();
    links_of_devices(&mut facts, &account.words);
    let mut hosts: Vec<String> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for name in sink.order.iter().map(|h| names.host(h)) {
        if seen.insert(name.clone()) {
            hosts.push(name);
        }
    }
    let mut storage: Vec<StorageFigure> =
        sink.storage.iter().map(|f| StorageFigure { host: renamed(&names, &f.host), ..f.clone() }).collect();
    let mut runs: Vec<Run> = Vec::new();
    for run in merged(std::mem::take(&mut sink.samples)) {
        match run.raw.variant.as_ref().zip(bps(&run.raw)) {
            Some((variant, bps)) => storage.push(StorageFigure {
                what: StorageSubject::Transport,
                variant: variant.clone(),
                pattern: StoragePattern::Stream,
                bytes_per_s: bps / 8.0,
                ..StorageFigure::default()
            }),
            None => runs.push(run),
        }
    }
    let (mut raws, superseded) = states::part(runs, |name| names.host(name));
    raws.extend(downloads(&sink, &names));
    let (mut samples, addresses) = samples(&raws, &names, &mut sink, &mut facts);
    crate::flood::mark(&mut samples, &facts);
    account.earlier = earlier(superseded, &names, &mut sink, &mut facts);
    let mut inventory = inventory(&hosts, &samples, &addresses, &facts, &names, &mut sink, options);
    state_links(&mut inventory, &samples, &prose::speeds(text), &mut sink);
    if facts.contains_key(NAMELESS) {
        sink.note(format!("some of it names no host: it is called {NAMELESS}; --host NAME names it"));
    }
    account.notes = sink.notes.into_iter().collect();
    let watched = sink.watched.into_iter().map(|w| CounterWatch { host: names.host(&w.host), ..w }).collect();
    let stored = sink.stored.into_iter().map(|s| StoredSeries { host: names.host(&s.host), ..s }).collect();
    Snapshot {
        schema: linerate_model::SCHEMA,
        inventory,
        facts,
        samples,
        storage,
        watched,
        stored,
        ..Snapshot::default()
    }
}

/// All downloads of a client as one test: front ends are compared within it.
fn downloads(sink: &Sink, names: &Names) -> Vec<Raw> {
    let mut clients: Vec<(String, Vec<&crate::sink::Download>)> = Vec::new();
    for download in &sink.downloads {
        let client = download.client.clone().unwrap_or_else(|| CLIENT.to_owned());
        match clients.iter_mut().find(|(name, _)| *name == client) {
            Some((_, list)) => list.push(download),
            None => clients.push((client, vec![download])),
        }
    }
    let test = |(client, list): (String, Vec<&crate::sink::Download>)| {
        let http: Vec<_> =
            list.iter().map(|d| HttpFetch { via: names.host(&d.fetch.via), ..d.fetch.clone() }).collect();
        let own = names.host(&client);
        let to = http.iter().map(|fetch| fetch.via.clone()).find(|via| *via != own)?;
        let mut via: Vec<String> = Vec::new();
        for fetch in &http {
            if !via.contains(&fetch.via) {
                via.push(fetch.via.clone());
            }
        }
        let plan = HttpPlan {
            url: list.first()?.url.clone(),
            via,
            repeat: 1,
            max_bytes: http.iter().map(|fetch| fetch.bytes).max()?,
            timeout_ms: 0,
            trusted_pem: None,
            insecure: false,
        };
        let end = LoadReport { http, ..LoadReport::default() };
        let measured = Measurement { tx: Some(Box::new(end)), ..Measurement::default() };
        Some(Raw {
            from: client,
            to,
            layer: Layer::Underlay,
            kind: TestKind::from(plan),
            outcome: Outcome::Measured(Box::new(measured)),
            flow: None,
            start_ms: 0,
            variant: None,
        })
    };
    clients.into_iter().filter_map(test).collect()
}

/// Which topic the device of a PCI address belongs to: by its class, its driver, else by the words of the
/// text, which name one of the two.
fn topic_of(address: &str, facts: &HostFacts, words: &[String]) -> Option<&'static str> {
    let text = |field: &str| {
        facts.readings.get(&format!("pci.{address}.{field}")).map(ToString::to_string).unwrap_or_default()
    };
    let class = text("class").to_lowercase();
    if !class.is_empty() {
        let is_nic = ["ethernet", "network", "infiniband"].iter().any(|word| class.contains(word));
        return if is_nic { Some("nic") } else { class.contains("non-volatile memory").then_some("disk") };
    }
    match text("driver").as_str() {
        "" => {}
        driver => return Some(if driver == "nvme" { "disk" } else { "nic" }).filter(|_| is_known(driver)),
    }
    let has =
        |known: &[&str]| known.iter().any(|word| words.binary_search_by(|w| w.as_str().cmp(word)).is_ok());
    match (has(&["nvme", "ssd"]), has(&["ethernet", "nic", "connectx"])) {
        (true, false) => Some("disk"),
        (false, true) => Some("nic"),
        _ => None,
    }
}

/// Drivers of NVMe drives and of NICs that print the width of their link.
fn is_known(driver: &str) -> bool {
    let begins =
        ["nvme", "mlx", "ixgb", "igb", "i40e", "ice", "bnx", "qed", "cxgb", "ena", "sfc", "nfp", "atlantic"];
    begins.iter().any(|start| driver.starts_with(start))
}

/// Facts of PCI addresses that no device names, as those of a device that is called by its address.
fn links_of_addresses(facts: &mut HostFacts, words: &[String]) {
    let is_named = |address: &str| {
        facts
            .readings
            .iter()
            .any(|(key, value)| key.rsplit('.').next() == Some("bus") && value.to_string() == address)
    };
    let links = facts.readings.iter().filter_map(|(key, value)| {
        let (address, field) = key.strip_prefix("pci.")?.split_once(".pcie.")?;
        let topic = topic_of(address, facts, words).filter(|_| !is_named(address))?;
        Some((format!("{topic}.{}.pcie.{field}", address.replace('.', "/")), value.clone()))
    });
    let links: Vec<(String, FactValue)> = links.collect();
    facts.readings.extend(links);
}

/// Facts of a PCI address belong to the device that has it, too.
fn links_of_devices(facts: &mut BTreeMap<String, HostFacts>, words: &[String]) {
    for facts in facts.values_mut() {
        links_of_addresses(facts, words);
        let named: Vec<(String, FactValue)> = facts
            .readings
            .iter()
            .filter_map(|(key, value)| {
                let (nic, address) = (key.strip_suffix(".bus")?, value.to_string());
                let head = format!("pci.{address}.pcie.");
                Some((nic.to_owned(), head)).map(|of| (of, value))
            })
            .flat_map(|((nic, head), _)| {
                let links = facts.readings.iter().filter_map(move |(key, value)| {
                    Some((key.strip_prefix(&head)?.to_owned(), value.clone()))
                });
                links.map(move |(field, value)| (format!("{nic}.pcie.{field}"), value)).collect::<Vec<_>>()
            })
            .collect();
        facts.readings.extend(named);
    }
}

/// The tests of earlier states, each with its condition.
fn earlier(
    superseded: Vec<Superseded>,
    names: &Names,
    sink: &mut Sink,
    facts: &mut BTreeMap<String, HostFacts>,
) -> Vec<Earlier> {
    let mut all = Vec::new();
    for Superseded { raw, condition, last, whole } in superseded {
        let sample = samples(&[raw], names, sink, facts).0.pop();
        all.extend(sample.map(|sample| Earlier { condition, last, whole, sample }));
    }
    all
}

/// The speed that the text states for the links, where it states one that fits what was measured.
fn state_links(inventory: &mut Inventory, samples: &[Sample], speeds: &[f64], sink: &mut Sink) {
    let rate = |s: &Sample| match &s.outcome {
        Outcome::Measured(m) => m.throughput_bps,
        _ => None,
    };
    let most = samples.iter().filter_map(rate).fold(0.0, f64::max);
    let mut fitting = speeds.iter().copied().filter(|bps| *bps >= most);
    let (Some(bps), None) = (fitting.next(), fitting.next()) else { return };
    let unknown = |e: &&mut Endpoint| e.link_bps.is_none();
    let endpoints = inventory.hosts.iter_mut().flat_map(|host| &mut host.endpoints).filter(unknown);
    let mut stated = false;
    for endpoint in endpoints {
        endpoint.link_bps = Some(bps);
        stated = true;
    }
    if stated {
        sink.note(format!("the links have {} Gbit/s: so the text states it", bps / 1e9));
    }
}

fn renamed(names: &Names, host: &str) -> String {
    if host.is_empty() { String::new() } else { names.host(host) }
}

fn bps(raw: &Raw) -> Option<f64> {
    match &raw.outcome {
        Outcome::Measured(m) => m.throughput_bps,
        _ => None,
    }
}

/// Which names mean the same host.
struct Names {
    aliases: BTreeMap<String, String>,
    /// Addresses of each host.
    addresses: BTreeMap<String, Vec<IpAddr>>,
    /// First names that hosts of several domains have.
    ambiguous: BTreeSet<String>,
}

impl Names {
    fn new(sink: &mut Sink, options: &ImportOptions) -> Self {
        let mut aliases = BTreeMap::new();
        // Options of the user have priority, then tables of names, then prompts.
        for host in options.inventory.iter().flat_map(|i| &i.hosts) {
            for endpoint in &host.endpoints {
                aliases.entry(endpoint.address.to_string()).or_insert_with(|| host.name.clone());
            }
        }
        for (address, names) in &sink.book {
            let short = || names.iter().find(|n| !n.contains('.'));
            let chosen = names.iter().find(|n| sink.is_known(n)).or_else(short).or(names.first());
            if let Some(chosen) = chosen {
                for name in names.iter().chain([address]).filter(|n| *n != chosen) {
                    aliases.entry(name.clone()).or_insert_with(|| chosen.clone());
                }
            }
        }
        // Two names of one address are one host, which goes by the name of its prompt.
        for [a, b] in std::mem::take(&mut sink.shared) {
            let [first, second] = [&a, &b].map(|name| sink.prompted.contains(name));
            let pair = match (first, second) {
                (true, false) => (b, a),
                (false, true) => (a, b),
                _ => continue,
            };
            aliases.entry(pair.0).or_insert(pair.1);
        }
        for (address, host) in std::mem::take(&mut sink.aliases) {
            aliases.entry(address).or_insert(host);
        }
        // A word of a file's name is a host only when something else confirms it.
        let named: BTreeSet<&String> = aliases.values().collect();
        let confirmed =
            |word: &String| sink.facts.contains_key(word) || sink.is_known(word) || named.contains(word);
        let weak: Vec<_> = sink
            .weak
            .iter()
            .filter(|(_, word)| confirmed(word))
            .map(|(a, w)| (a.clone(), w.clone()))
            .collect();
        for (address, word) in weak {
            aliases.entry(address).or_insert(word);
        }
        // Hosts go by their first name, unless two of different domains share it.
        let mut domains: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for name in sink.order.iter().chain(aliases.values()).filter(|n| !is_address(n)) {
            let first = name.split('.').next().unwrap_or(name);
            domains.entry(first).or_default().extend(name.contains('.').then_some(name.as_str()));
        }
        let ambiguous =
            domains.into_iter().filter(|(_, all)| all.len() > 1).map(|(n, _)| n.to_owned()).collect();
        let mut names = Self { aliases, addresses: BTreeMap::new(), ambiguous };
        names.name_the_nameless(sink);
        names.name_the_far_end(sink);
        for alias in names.aliases.keys() {
            if let Ok(address) = alias.parse() {
                names.addresses.entry(names.host(alias)).or_default().push(address);
            }
        }
        names
    }

    /// Facts without a name belong to the end of a test that has one of their addresses.
    fn name_the_nameless(&mut self, sink: &Sink) {
        let Some(facts) = sink.facts.get(NAMELESS) else { return };
        let ends: BTreeSet<String> = sink
            .samples
            .iter()
            .flat_map(|run| [&run.raw.from, &run.raw.to])
            .map(|end| plain_address(end).to_owned())
            .collect();
        let own = addresses_in(facts).into_iter().find(|address| ends.contains(address));
        // What stands above the only prompt of a text is of the same machine.
        let mut prompted = sink.prompted.iter();
        let only = prompted.next().filter(|_| prompted.next().is_none()).cloned();
        if let Some(own) = own.or(only) {
            let name = self.host(&own);
            self.aliases.insert(NAMELESS.to_owned(), name);
        }
    }

    /// A transfer that names no hosts is one with the only other host that its own was tested with, if any.
    fn name_the_far_end(&mut self, sink: &mut Sink) {
        let pairs = || sink.samples.iter().map(|run| [&run.raw.from, &run.raw.to].map(|end| self.host(end)));
        let (open, others): (Vec<_>, Vec<_>) =
            pairs().partition(|pair| pair.iter().any(|end| end == UNNAMED));
        let own: BTreeSet<&String> = open.iter().flatten().filter(|end| *end != UNNAMED).collect();
        let mut own = own.into_iter();
        let Some(here) = own.next() else { return };
        let is_one = own.next().is_none();
        let with_it = others.iter().filter(|pair| is_one && pair.contains(here));
        let partners: BTreeSet<&String> = with_it.flatten().filter(|end| *end != here).collect();
        let there = match partners.first() {
            Some(only) if partners.len() == 1 => (*only).clone(),
            _ => SERVER.to_owned(),
        };
        let note = format!("a transfer names no hosts: it is taken as one between {here} and {there}");
        sink.note(note);
        self.aliases.insert(UNNAMED.to_owned(), there);
    }

    /// The host that a name or address means.
    fn host(&self, name: &str) -> String {
        let mut name = plain_address(name);
        for _ in 0..CHAIN_MAX {
            match self.aliases.get(name) {
                Some(next) if next != name => name = next,
                _ => break,
            }
        }
        let first = name.split('.').next().unwrap_or(name);
        let keeps = first.is_empty() || is_address(name) || self.ambiguous.contains(first);
        if keeps { name.to_owned() } else { first.to_owned() }
    }
}

fn is_address(name: &str) -> bool {
    name.parse::<IpAddr>().is_ok()
}

/// Addresses among facts, without their prefix.
fn addresses_in(facts: &Values) -> Vec<String> {
    let lists = facts.readings.iter().filter(|(key, _)| key.ends_with(".addresses"));
    lists
        .flat_map(|(_, value)| match value {
            FactValue::List(list) => list.clone(),
            other => vec![other.to_string()],
        })
        .map(|a| a.split('/').next().unwrap_or_default().to_owned())
        .filter(|a| !crate::sink::is_loopback(a))
        .collect()
}

/// Both ends' views of one transfer as one test: the receiver's rate counts, each end's report is kept.
fn merged(runs: Vec<Run>) -> Vec<Run> {
    let mut whole: Vec<Run> = Vec::new();
    let mut at: BTreeMap<(String, &'static str, u32), usize> = BTreeMap::new();
    for run in runs {
        let Some(flow) = run.raw.flow.clone() else {
            whole.push(run);
            continue;
        };
        // Ports may come again after a change that the text names.
        let state = if run.condition.is_stated { run.condition.epoch } else { 0 };
        let key = (flow, run.raw.kind.name(), state);
        if let Some(first) = at.get(&key) {
            join(&mut whole[*first].raw, run.raw);
        } else {
            at.insert(key, whole.len());
            whole.push(run);
        }
    }
    whole
}

fn join(first: &mut Raw, other: Raw) {
    let (Outcome::Measured(one), Outcome::Measured(two)) = (&mut first.outcome, other.outcome) else {
        return;
    };
    let Measurement { throughput_bps, loss, rtt_idle_us, rtt_loaded_us, retransmits_per_s, tx, rx, .. } =
        *two;
    // The received rate counts: prefer the view with a receiver's report.
    if rx.as_ref().is_some_and(|r| r.bytes > 0) && one.rx.as_ref().is_none_or(|r| r.bytes == 0) {
        one.throughput_bps = throughput_bps.or(one.throughput_bps);
    }
    one.throughput_bps = one.throughput_bps.or(throughput_bps);
    one.loss = one.loss.or(loss);
    one.rtt_idle_us = one.rtt_idle_us.or(rtt_idle_us);
    one.rtt_loaded_us = one.rtt_loaded_us.or(rtt_loaded_us);
    one.retransmits_per_s = one.retransmits_per_s.or(retransmits_per_s);
    for (mine, theirs) in [(&mut one.tx, tx), (&mut one.rx, rx)] {
        let Some(theirs) = theirs else { continue };
        match mine {
            None => *mine = Some(theirs),
            Some(mine) => {
                if mine.series.is_empty() {
                    mine.series.clone_from(&theirs.series);
                }
                mine.core_busy_max = mine.core_busy_max.or(theirs.core_busy_max);
                mine.tcp = mine.tcp.take().or(theirs.tcp);
                if mine.bytes == 0 {
                    (mine.bytes, mine.elapsed_s) = (theirs.bytes, theirs.elapsed_s);
                }
            }
        }
    }
    // Names are preferred to addresses.
    for (mine, theirs) in [(&mut first.from, other.from), (&mut first.to, other.to)] {
        if mine.parse::<IpAddr>().is_ok() && theirs.parse::<IpAddr>().is_err() {
            *mine = theirs;
        }
    }
}

type Addresses = BTreeMap<(String, Layer), IpAddr>;

/// Tests with their numbers, and the addresses between which they ran.
fn samples(
    raws: &[Raw],
    names: &Names,
    sink: &mut Sink,
    facts: &mut BTreeMap<String, HostFacts>,
) -> (Vec<Sample>, Addresses) {
    let mut samples = Vec::new();
    let mut addresses = Addresses::new();
    let mut repeats: BTreeMap<(String, String, Layer, &'static str), u16> = BTreeMap::new();
    for raw in raws {
        let (from, to) = (names.host(&raw.from), names.host(&raw.to));
        if from == to {
            with_itself(&from, bps(raw), sink, facts);
            continue;
        }
        let flow = raw.flow.as_deref().and_then(|f| f.split_once('>'));
        let ends =
            flow.map(|(a, b)| [a, b].map(|end| end.rsplit_once(':').map_or(end, |(address, _)| address)));
        let addressed = ends.unwrap_or([&raw.from, &raw.to]);
        for (host, text) in [&from, &to].into_iter().zip(addressed) {
            if let Ok(address) = plain_address(text).parse() {
                addresses.entry((host.clone(), raw.layer)).or_insert(address);
            }
        }
        let count = repeats.entry((from.clone(), to.clone(), raw.layer, raw.kind.name())).or_default();
        let repeat = *count;
        *count = count.saturating_add(1);
        let test =
            Test { id: samples.len() as u32 + 1, repeat, ..Test::new(from, to, raw.layer, raw.kind.clone()) };
        samples.push(Sample::new(test, raw.start_ms, raw.outcome.clone()));
    }
    (samples, addresses)
}

/// A test of a host with itself: the limit of the host, not of a network. The best one is a fact.
fn with_itself(host: &str, bps: Option<f64>, sink: &mut Sink, facts: &mut BTreeMap<String, HostFacts>) {
    let what = bps.map_or_else(|| "a test".to_owned(), |bps| format!("a transfer of {}", rate(bps)));
    sink.note(format!("{what} of {host} with itself shows nothing of a network: it is the host's own limit"));
    let Some(mbit) = bps.map(|bps| (bps / 1e6).round() as i64) else { return };
    let readings = &mut facts.entry(host.to_owned()).or_default().readings;
    let best = readings.get(LOOPBACK).and_then(|value| value.number(0)).map_or(0, |best| best as i64);
    readings.insert(LOOPBACK.into(), FactValue::Int(mbit.max(best)));
}

fn inventory(
    hosts: &[String],
    samples: &[Sample],
    addresses: &Addresses,
    facts: &BTreeMap<String, HostFacts>,
    names: &Names,
    sink: &mut Sink,
    options: &ImportOptions,
) -> Inventory {
    let mut inventory = options
        .inventory
        .clone()
        .unwrap_or_else(|| Inventory { name: "imported".to_owned(), ..Inventory::default() });
    let mut measured: BTreeMap<&str, BTreeSet<Layer>> = BTreeMap::new();
    for test in samples.iter().map(|s| &s.test) {
        for end in [&test.from, &test.to] {
            measured.entry(end).or_default().insert(test.layer);
        }
    }
    let machines: BTreeSet<String> = sink.members.iter().map(|m| names.host(&m.group)).collect();
    let known: BTreeSet<String> = inventory.hosts.iter().map(|h| h.name.clone()).collect();
    for name in hosts.iter().filter(|n| !known.contains(*n)) {
        let layers = measured.get(name.as_str()).cloned().unwrap_or_default();
        if layers.is_empty() && !facts.contains_key(name) && !machines.contains(name) {
            continue;
        }
        let number = inventory.hosts.len();
        let mut endpoints = Vec::new();
        for layer in layers {
            let address =
                addresses.get(&(name.clone(), layer)).copied().or_else(|| guess(name, layer, names, sink));
            endpoints.push(Endpoint {
                address: address.unwrap_or_else(|| unknown(number)),
                layer,
                netns: None,
                link_bps: None,
            });
        }
        let spec = SshSpec::parse(name).unwrap_or_else(|_| SshSpec {
            host: name.clone(),
            user: None,
            port: None,
            sudo: true,
        });
        inventory.hosts.push(Host {
            name: name.clone(),
            transport: TransportSpec::Ssh(spec),
            groups: Vec::new(),
            endpoints,
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        });
    }
    // Hosts of an inventory that name no address of a layer that was measured.
    for (number, host) in inventory.hosts.iter_mut().enumerate() {
        for layer in measured.get(host.name.as_str()).cloned().unwrap_or_default() {
            if !host.endpoints.iter().any(|e| e.layer == layer) {
                let address =
                    addresses.get(&(host.name.clone(), layer)).copied().unwrap_or_else(|| unknown(number));
                host.endpoints.push(Endpoint { address, layer, netns: None, link_bps: None });
            }
        }
    }
    groups(&mut inventory, names, sink, facts);
    inventory
}

/// Address of a host that is known only from its own list of addresses. An overlay has another one.
fn guess(name: &str, layer: Layer, names: &Names, sink: &mut Sink) -> Option<IpAddr> {
    if layer == Layer::Overlay {
        return None;
    }
    let all = names.addresses.get(name)?;
    let first = all.iter().find(|a| a.is_ipv4()).or(all.first()).copied()?;
    if all.iter().filter(|a| a.is_ipv4()).count() > 1 {
        sink.note(format!(
            "{name} has several addresses: {first} is taken for the one that was measured; set it with -i FILE"
        ));
    }
    Some(first)
}

/// Addresses of imported evidence are often unknown; these are from the block for documentation.
fn unknown(number: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(192, 0, 2, (number % 250) as u8 + 1))
}

/// Tables of memberships become groups.
fn groups(inventory: &mut Inventory, names: &Names, sink: &Sink, facts: &BTreeMap<String, HostFacts>) {
    let index_of: BTreeMap<String, usize> =
        inventory.hosts.iter().enumerate().map(|(index, host)| (host.name.clone(), index)).collect();
    let mut known: BTreeSet<String> = inventory.groups.iter().map(|group| group.name.clone()).collect();
    let of_host = |(index, host): (usize, &Host)| {
        host.groups.iter().map(move |g| (index, g.clone())).collect::<Vec<_>>()
    };
    let mut members: BTreeSet<(usize, String)> =
        inventory.hosts.iter().enumerate().flat_map(of_host).collect();
    for member in &sink.members {
        let (host, group) = (names.host(&member.host), names.host(&member.group));
        let Some(index) = index_of.get(&host).filter(|_| host != group) else { continue };
        if members.insert((*index, group.clone())) {
            inventory.hosts[*index].groups.push(group.clone());
        }
        if known.insert(group.clone()) {
            let machine = facts.contains_key(&group).then(|| group.clone());
            inventory.groups.push(Group {
                name: group,
                kind: member.kind.clone(),
                machine,
                ..Group::default()
            });
        }
    }
}
