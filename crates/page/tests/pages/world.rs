//! A store for the tests of pages: the recorded survey of the report's tests ten times over ten days, with
//! a host that became worse meanwhile, a setting that changed then, a kept trial, an hour of minutes with
//! alarms of losses, RTTs and downloads, and a count of drops.

use std::path::Path;
use std::sync::Arc;

use linerate_history::{AlarmRecord, DropsRecord, History, HistoryLimits, SeriesKey, Statistic};
use linerate_model::download::DownloadPath;
use linerate_model::drift::{DriftPolicy, DriftRow, DriftState, KeptSetting};
use linerate_model::drops::{DropGroup, DropMeaning, DropReport, DropRow, HostDrops, ResentKind, ResentRow};
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::fact_change::{FactChange, SeenBy};
use linerate_model::finding::{Diagnosis, Direction, Metric, Suspect};
use linerate_model::inventory::Layer;
use linerate_model::shell::word;
use linerate_model::slow::{
    DecidedRtt, DecidingRtt, DownloadSuspect, RttVerdict, SlowAlarm, SlowOf, UsualOf,
};
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;
use linerate_model::watch::{DecidedLoss, DecidingFlow, LossAlarm, LossVerdict, WatchAlarm};
use linerate_page::Source;
use linerate_page::view::DriftView;
use linerate_store::{FactReading, ReadScope, Store};
use serde_json::Value;

/// Start of the last survey, Unix milliseconds; an hour later it is now.
const START_MS: u64 = 1_795_665_357_447;
const DAY_MS: u64 = 86_400_000;
const RUNS: u64 = 10;
/// From this one on the host is slow.
const WORSE_FROM: u64 = 6;
/// The setting that changed, and where.
pub(crate) const SETTING: &str = "nic.up0.feature.generic-receive-offload";

fn now_ms() -> u64 {
    START_MS + 3_600_000
}

/// A stored survey with its trials.
pub(crate) struct Recorded {
    snapshot: Snapshot,
    diagnosis: Diagnosis,
    trials: Vec<Trial>,
    slow: String,
    machine: String,
}

/// The recorded survey with other names for its hosts.
pub(crate) fn recorded(rename: &dyn Fn(&str) -> String) -> Recorded {
    let text = include_str!("../../../report/tests/pages/survey.json");
    let mut all: Value = serde_json::from_str(text).unwrap();
    let hosts = all["snapshot"]["inventory"]["hosts"].as_array().unwrap().iter();
    let hosts: Vec<String> = hosts.map(|host| host["name"].as_str().unwrap().to_owned()).collect();
    let named =
        |text: &str| if hosts.iter().any(|host| host == text) { rename(text) } else { text.to_owned() };
    replace(&mut all, &named);
    let mut part = |name: &str| all[name].take();
    Recorded {
        snapshot: serde_json::from_value(part("snapshot")).unwrap(),
        diagnosis: serde_json::from_value(part("diagnosis")).unwrap(),
        trials: serde_json::from_value(part("trials")).unwrap(),
        slow: rename("arc-3"),
        machine: rename("vs-3"),
    }
}

/// Names of hosts, wherever they stand alone.
fn replace(value: &mut Value, named: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = named(text),
        Value::Array(all) => all.iter_mut().for_each(|one| replace(one, named)),
        Value::Object(map) => {
            for (key, mut value) in std::mem::take(map) {
                replace(&mut value, named);
                map.insert(named(&key), value);
            }
        }
        _ => {}
    }
}

/// Fills a folder with both files.
pub(crate) fn fill(folder: &Path, of: &Recorded) {
    let mut store = Store::open(&folder.join("linerate.sqlite")).unwrap();
    for number in 0..RUNS {
        let at_ms = START_MS - (RUNS - 1 - number) * DAY_MS;
        add_run(&mut store, of, number, at_ms);
        // The setting was read each day, and changed between two surveys.
        let value = if number < WORSE_FROM { "off" } else { "on" };
        let mut facts = HostFacts::default();
        facts.readings.insert(SETTING.to_owned(), FactValue::Text(value.to_owned()));
        let prefixes = [SETTING.to_owned()];
        for host in [&of.machine, &of.slow] {
            let reading = FactReading {
                cluster: &of.snapshot.inventory.name,
                started_ms: at_ms - 1000,
                ended_ms: at_ms - 1000,
                seen_by: SeenBy::Facts,
                scope: ReadScope::Below(&prefixes),
                who: Some("tuned.service"),
            };
            store.log_facts(&reading, [(host, &facts)]).unwrap();
        }
    }
    // Another one changed while a watch wrote minutes.
    for (minute, mtu) in [(0, 1500), (39, 9000)] {
        let key = "nic.up0.mtu".to_owned();
        let mut facts = HostFacts::default();
        facts.readings.insert(key.clone(), FactValue::Int(mtu));
        let at_ms = START_MS + minute * 60_000;
        let reading = FactReading {
            cluster: &of.snapshot.inventory.name,
            started_ms: at_ms,
            ended_ms: at_ms,
            seen_by: SeenBy::Watch,
            scope: ReadScope::Below(&[key]),
            who: None,
        };
        store.log_facts(&reading, [(&of.slow, &facts)]).unwrap();
    }
    for trial in &of.trials {
        store.save_trial(trial, START_MS + 60_000).unwrap();
    }
    minutes(folder, of);
}

/// One more run, as a survey of another process would write it.
pub(crate) fn add_run(store: &mut Store, of: &Recorded, number: u64, at_ms: u64) {
    let is_last = number + 1 == RUNS;
    let mut snapshot = of.snapshot.clone();
    let mut diagnosis = of.diagnosis.clone();
    snapshot.start_ms = at_ms;
    if !is_last {
        snapshot.id = format!("20261126-0355{number:02}-aaaa");
        snapshot.samples.clear();
        diagnosis.run.clone_from(&snapshot.id);
    }
    if number < WORSE_FROM {
        let healthy = 179e6;
        for cell in
            diagnosis.cells.iter_mut().filter(|cell| cell.to == of.slow && cell.layer == Layer::Overlay)
        {
            cell.throughput_bps = Some(healthy * (1.0 + 0.001 * number as f64));
        }
        diagnosis.findings.clear();
    }
    store.begin_run(&snapshot, None).unwrap();
    store.add_facts(&snapshot.id, &snapshot.facts).unwrap();
    store.add_samples(&snapshot.id, &snapshot.samples).unwrap();
    store.finish(&snapshot, &diagnosis).unwrap();
}

fn minutes(folder: &Path, of: &Recorded) {
    let limits = HistoryLimits { reserve: 0, ..HistoryLimits::default() };
    let mut history = History::open(&folder.join("linerate-history.sqlite"), limits).unwrap();
    let key = SeriesKey {
        cluster: of.snapshot.inventory.name.clone(),
        suspect: Suspect::Host(of.slow.clone()),
        direction: Direction::Rx,
        layer: Layer::Overlay,
        metric: Metric::Loss,
        statistic: Statistic::Typical,
    };
    let rtt = SeriesKey { metric: Metric::RttIdle, ..key.clone() };
    let path = download(of);
    let rate = SeriesKey {
        suspect: Suspect::Pair(path.source(), path.host.clone()),
        direction: Direction::Tx,
        metric: Metric::Throughput,
        ..key.clone()
    };
    let [series, rtt, rate] = [key, rtt, rate].map(|key| history.series(&key).unwrap());
    for minute in 0..60 {
        let (lost, rtt_us) = if minute < 40 { (0.0, 180.0) } else { (0.02, 900.0) };
        let rate_bps = if (40..45).contains(&minute) { 256e3 } else { 800e6 };
        let values = [(series, lost), (rtt, rtt_us), (rate, rate_bps)];
        history.append(START_MS + minute * 60_000, &values).unwrap();
    }
    let ended_ms = Some(START_MS + 45 * 60_000);
    for (alarm, decided, ended_ms) in [
        (WatchAlarm::Loss(open_alarm(of)), Some(confirmed(of)), None),
        (WatchAlarm::Loss(past_alarm(of)), None, ended_ms),
        (WatchAlarm::Loss(left_alarm(of)), None, None),
        (slow(of, 5, SlowOf::Rtt(Suspect::Host(of.slow.clone()))), None, None),
        (slow_download(of), None, ended_ms),
        (failing_front_end(of), None, ended_ms),
    ] {
        add_alarm(&mut history, of, alarm, decided, ended_ms);
    }
    history.keep(&drops(of, START_MS - DAY_MS)).unwrap();
    history.keep(&drops(of, START_MS + 30 * 60_000)).unwrap();
}

/// An alarm with the setting that changed before it.
fn add_alarm(
    history: &mut History,
    of: &Recorded,
    alarm: WatchAlarm,
    decided: Option<DecidedLoss>,
    ended_ms: Option<u64>,
) {
    let changed = FactChange {
        host: of.slow.clone(),
        key: SETTING.to_owned(),
        from: Some(FactValue::Text("off".to_owned())),
        to: Some(FactValue::Text("on".to_owned())),
        after_ms: alarm.since_ms() - 60_000,
        seen_ms: alarm.since_ms() - 60_000,
        seen_by: SeenBy::Watch,
        who: Some("tuned.service".to_owned()),
    };
    let record = AlarmRecord {
        cluster: of.snapshot.inventory.name.clone(),
        watch_ms: START_MS,
        seen_ms: if alarm.id() == 3 { alarm.reported_ms() } else { now_ms() },
        command: match alarm.downloads().and_then(|of| of.url.as_deref()) {
            Some(url) => format!("linerate measure http {}", word(url)),
            None => "linerate survey -i cluster.toml".to_owned(),
        },
        alarm,
        decided,
        changed: vec![changed],
        hosts: Vec::new(),
        inventory: String::new(),
        ended_ms,
    };
    history.keep(&record).unwrap();
}

/// One more open alarm, as a watch of another process would write it.
pub(crate) fn open_another(folder: &Path, of: &Recorded) {
    let limits = HistoryLimits { reserve: 0, ..HistoryLimits::default() };
    let mut history = History::open(&folder.join("linerate-history.sqlite"), limits).unwrap();
    let alarm = LossAlarm { id: 4, suspect: Suspect::All, direction: Direction::Both, ..open_alarm(of) };
    add_alarm(&mut history, of, WatchAlarm::Loss(alarm), None, None);
}

/// What the slow host receives, since the minutes show it.
fn open_alarm(of: &Recorded) -> LossAlarm {
    let since_ms = START_MS + 40 * 60_000 + 3000;
    LossAlarm {
        id: 1,
        suspect: Suspect::Host(of.slow.clone()),
        direction: Direction::Rx,
        since_ms,
        reported_ms: since_ms + 9000,
        lost: 192,
        sent: 9600,
        partners: 3,
    }
}

fn past_alarm(of: &Recorded) -> LossAlarm {
    let suspect = Suspect::Pair(of.machine.clone(), of.slow.clone());
    LossAlarm { id: 2, suspect, direction: Direction::Tx, lost: 40, sent: 100, partners: 1, ..open_alarm(of) }
}

fn left_alarm(of: &Recorded) -> LossAlarm {
    let group = of.snapshot.inventory.groups[0].name.clone();
    let since_ms = START_MS - 3 * DAY_MS;
    let reported_ms = since_ms + 20_000;
    let suspect = Suspect::Group(group);
    LossAlarm { id: 3, suspect, direction: Direction::Both, since_ms, reported_ms, ..open_alarm(of) }
}

/// Something slow, since the same moment as the loss.
fn slow(of: &Recorded, id: u64, what: SlowOf) -> WatchAlarm {
    let (usual, now) = if matches!(what, SlowOf::Rtt(_)) { (180.0, 900.0) } else { (800e6, 256e3) };
    let LossAlarm { since_ms, reported_ms, .. } = open_alarm(of);
    let usual_of = UsualOf::Before;
    let (seen_with, failure) = (8, None);
    let decided = matches!(what, SlowOf::Rtt(_)).then(|| rtts(of));
    WatchAlarm::Slow(SlowAlarm {
        id,
        of: what,
        since_ms,
        reported_ms,
        usual,
        now,
        usual_of,
        seen_with,
        failure,
        decided,
    })
}

fn rtts(of: &Recorded) -> DecidedRtt {
    let pair = |to: &String, rtt_us| DecidingRtt {
        from: of.machine.clone(),
        to: to.clone(),
        usual_us: 180.0,
        rtt_us,
    };
    DecidedRtt {
        verdict: RttVerdict::Confirmed,
        pairs: vec![pair(&of.slow, 910.0)],
        controls: vec![pair(&of.machine, 190.0)],
        reason: String::new(),
    }
}

/// What the slow host downloads through an address of a host; the name of a file may be any text.
fn download(of: &Recorded) -> DownloadPath {
    let via = of.snapshot.inventory.hosts[1].endpoints[0].address.to_string();
    DownloadPath { host: of.slow.clone(), url: format!("http://files.example/{}.iso", of.machine), via }
}

fn slow_download(of: &Recorded) -> WatchAlarm {
    let DownloadPath { host, url, via } = download(of);
    slow(of, 6, SlowOf::Download(DownloadSuspect { host: Some(host), url: Some(url), via: Some(via) }))
}

/// Every URL of every host fails through it.
fn failing_front_end(of: &Recorded) -> WatchAlarm {
    let via = Some("192.0.2.77:8080".to_owned());
    let what = SlowOf::Download(DownloadSuspect { via, ..DownloadSuspect::default() });
    let WatchAlarm::Slow(alarm) = slow(of, 7, what) else { unreachable!() };
    let failure = Some(format!("status 503 by {}", of.machine));
    WatchAlarm::Slow(SlowAlarm { now: 0.0, failure, ..alarm })
}

fn confirmed(of: &Recorded) -> DecidedLoss {
    let flow =
        |to: &String, lost| DecidingFlow { from: of.machine.clone(), to: to.clone(), sent: 2000, lost };
    DecidedLoss {
        verdict: LossVerdict::Confirmed,
        flows: vec![flow(&of.slow, 41)],
        controls: vec![flow(&of.machine, 0)],
        reason: String::new(),
    }
}

/// A count with a drop of the firewall, a harmless one on both hosts, and segments that were sent again.
fn drops(of: &Recorded, start_ms: u64) -> DropsRecord {
    let row = |reason: &str, packets, title: &str, harmless| DropRow {
        reason: reason.to_owned(),
        ether_type: Some(0x86dd),
        device: Some("up0".to_owned()),
        packets,
        class: Some(DropMeaning {
            id: "x".to_owned(),
            title: title.to_owned(),
            harmless,
            check: Some("nft list ruleset".to_owned()),
        }),
    };
    let disabled = |packets| row("IPV6DISABLED", packets, "IPv6 where IPv6 is disabled", true);
    let mut slow = HostDrops { host: of.slow.clone(), ..HostDrops::default() };
    slow.rows = vec![row("NETFILTER_DROP", 720, "a rule of the firewall", false), disabled(188)];
    slow.resent.sent = 12_000;
    slow.resent.again = 36;
    slow.resent.rows = vec![ResentRow {
        peer: "192.0.2.4".parse().unwrap(),
        host: Some(of.machine.clone()),
        kind: ResentKind::TailProbe,
        segments: 30,
    }];
    let machine = HostDrops {
        host: of.machine.clone(),
        rows: vec![disabled(188)],
        counters_alone: Some("needs root".to_owned()),
        ..HostDrops::default()
    };
    let group = DropGroup {
        reason: "IPV6DISABLED".to_owned(),
        ether_type: Some(0x86dd),
        hosts: vec![of.slow.clone(), of.machine.clone()],
        packets: 376,
        correlation: 0.99,
        probability: 0.997,
        shared: vec!["sysctl.net.ipv6.conf.all.disable_ipv6 is 1".to_owned()],
        shared_by_chance: 1.0 / 15.0,
        class: slow.rows[1].class.clone(),
    };
    let report = DropReport {
        seconds: 60.0,
        every_s: 1.0,
        hosts: vec![slow, machine],
        groups: vec![group],
        resent_to: None,
        gaps: Vec::new(),
    };
    let cluster = of.snapshot.inventory.name.clone();
    DropsRecord { cluster, start_ms, report, command: "linerate drops -i cluster.toml".to_owned() }
}

/// What pages of this folder are made of.
pub(crate) fn source(folder: &Path, of: &Recorded) -> Arc<Source> {
    let (store, history, host) =
        (folder.join("linerate.sqlite"), folder.join("linerate-history.sqlite"), of.machine.clone());
    Arc::new(Source {
        store: Box::new(move || Store::open(&store)),
        history: Box::new(move || {
            History::open(&history, HistoryLimits { reserve: 0, ..HistoryLimits::default() })
        }),
        run: Box::new(|store, row| store.load_snapshot(&row.id)),
        drift: Box::new(move |run, log| DriftView::Rows {
            file: "kept.toml".to_owned(),
            rows: vec![drifted(&host, run.snapshot.facts.get(&host), log)],
        }),
        now_ms,
    })
}

fn drifted(
    host: &str,
    facts: Option<&HostFacts>,
    log: &[linerate_model::fact_change::FactChange],
) -> DriftRow {
    DriftRow {
        kept: KeptSetting {
            host: host.to_owned(),
            key: SETTING.to_owned(),
            value: FactValue::Text("off".to_owned()),
            policy: DriftPolicy::PutBack,
            trial: None,
            profile: None,
            line: 4,
        },
        state: DriftState::Drifted,
        now: facts.and_then(|facts| facts.readings.get(SETTING)).cloned(),
        reason: None,
        boot: None,
        boot_read: false,
        changed: log.iter().find(|one| one.host == host).cloned(),
        against: Vec::new(),
        fight: false,
        put_back_ms: None,
    }
}

/// A made-up cluster of so many hosts in racks of 16, with the finding of the recorded survey: what `n0002`
/// receives is slow. Up to 128 hosts all pairs are tested, beyond 24 partners of each host.
pub(crate) fn large(hosts: usize) -> Recorded {
    const ALL_PAIRS_MAX: usize = 128;
    const PARTNERS: usize = 24;
    let name = |number: usize| format!("n{number:04}");
    let of = |text: &str| text.strip_prefix("arc-").and_then(|n| n.parse::<usize>().ok());
    let mut all = recorded(&|text| of(text).map_or_else(|| text.to_owned(), |n| name(n - 1)));
    let inventory = &mut all.snapshot.inventory;
    let pattern = inventory.hosts[0].clone();
    let group = inventory.groups[0].clone();
    inventory.groups.extend((0..hosts.div_ceil(16)).map(|rack| linerate_model::inventory::Group {
        name: format!("rack-{rack}"),
        kind: "rack".to_owned(),
        machine: None,
        ..group.clone()
    }));
    inventory.hosts = (0..hosts)
        .map(|n| linerate_model::inventory::Host {
            name: name(n),
            groups: vec![format!("rack-{}", n / 16)],
            ..pattern.clone()
        })
        .collect();
    let mut facts = all.snapshot.facts[&name(0)].clone();
    facts.readings.extend((0..500).map(|n| (format!("sysctl.made.up.{n}"), FactValue::Int(n))));
    all.snapshot.facts = (0..hosts).map(|n| (name(n), facts.clone())).collect();
    let cell = all.diagnosis.cells[0].clone();
    all.diagnosis.cells.clear();
    for from in 0..hosts {
        for step in 1..if hosts <= ALL_PAIRS_MAX { hosts } else { PARTNERS + 1 } {
            let to = (from + step * step.div_ceil(2).max(1)) % hosts;
            let to = if hosts <= ALL_PAIRS_MAX { (from + step) % hosts } else { to };
            let share = if to == 2 { 0.3 } else { 0.93 + (from * 7 + to * 13) as f64 % 50.0 / 1000.0 };
            let mut one = linerate_model::finding::Cell { from: name(from), to: name(to), ..cell.clone() };
            one.ceiling.bps = Some(25e9);
            one.ceiling.binding = linerate_model::finding::TermName::Link;
            (one.share, one.throughput_bps) = (Some(share), Some(share * 25e9));
            all.diagnosis.cells.push(one);
        }
    }
    all
}

/// Six surveys of it over six days, the last three with the slow host.
pub(crate) fn fill_large(folder: &Path, of: &Recorded) {
    let mut store = Store::open(&folder.join("linerate.sqlite")).unwrap();
    for number in 0..6_u64 {
        let mut snapshot = of.snapshot.clone();
        let mut diagnosis = of.diagnosis.clone();
        snapshot.start_ms = START_MS - (5 - number) * DAY_MS;
        if number < 5 {
            snapshot.id = format!("20261126-0355{number:02}-aaaa");
            snapshot.samples.clear();
            diagnosis.run.clone_from(&snapshot.id);
        }
        if number < 3 {
            diagnosis.findings.clear();
            for cell in diagnosis.cells.iter_mut().filter(|cell| cell.to == of.slow) {
                (cell.share, cell.throughput_bps) = (Some(0.95), Some(0.95 * 25e9));
            }
        }
        store.begin_run(&snapshot, None).unwrap();
        store.add_facts(&snapshot.id, &snapshot.facts).unwrap();
        store.finish(&snapshot, &diagnosis).unwrap();
    }
    for trial in &of.trials {
        store.save_trial(trial, START_MS + 60_000).unwrap();
    }
}
