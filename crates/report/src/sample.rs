//! Made-up evidence for the tests of this room: a cluster like casebook A with a fault on what one hypervisor
//! receives, a healthy one, and a big one. Nothing in, model values out. Only compiled for tests.

use std::collections::BTreeMap;

use linerate_model::change::{Change, Remedy, Risk};
use linerate_model::fact::{FactValue, Gap, HostFacts};
use linerate_model::finding::*;
use linerate_model::inventory::{Endpoint, Group, Host, Inventory, Layer, TransportSpec};
use linerate_model::kind::TcpPlan;
use linerate_model::load::{Interval, LoadReport};
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Arm, Effect, EffectSize, Trial, TrialStatus};
use linerate_model::units::MetricUnit;

const PLACES: [(&str, &str); 6] = [
    ("arc-1", "vs-4"),
    ("arc-2", "vs-4"),
    ("arc-3", "vs-3"),
    ("arc-4", "vs-4"),
    ("arc-5", "vs-5"),
    ("arc-6", "vs-2"),
];

pub(super) fn host(name: &str, groups: &[&str], endpoints: bool) -> Host {
    let address = |layer| Endpoint {
        address: [10, u8::from(layer == Layer::Overlay), 0, 1].into(),
        layer,
        netns: None,
        link_bps: None,
    };
    Host {
        name: name.to_owned(),
        transport: TransportSpec::Local,
        groups: groups.iter().map(|g| (*g).to_owned()).collect(),
        endpoints: if endpoints {
            vec![address(Layer::Underlay), address(Layer::Overlay)]
        } else {
            Vec::new()
        },
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    }
}

pub(crate) fn inventory() -> Inventory {
    let mut inventory = Inventory { name: "archive".to_owned(), ..Inventory::default() };
    for group in ["vs-4", "vs-3", "vs-5", "vs-2"] {
        inventory.groups.push(Group {
            name: group.to_owned(),
            kind: "hypervisor".to_owned(),
            uplink_bps: Some(200e6),
            machine: Some(group.to_owned()),
            parent: None,
        });
    }
    inventory.hosts = PLACES.iter().map(|(h, g)| host(h, &[g], true)).collect();
    inventory.hosts.extend(["vs-4", "vs-3", "vs-5", "vs-2"].map(|m| host(m, &[], false)));
    inventory
}

pub(crate) fn cell(
    from: &str,
    to: &str,
    layer: Layer,
    bps: Option<f64>,
    ceiling: f64,
    term: TermName,
) -> Cell {
    let why = if term == TermName::Uplink {
        "200 Mbit/s of frames of 1500 bytes"
    } else {
        "2.1 s of CPU per gigabyte"
    };
    Cell {
        from: from.to_owned(),
        to: to.to_owned(),
        layer,
        throughput_bps: bps,
        two_state_bps: None,
        loss: Some(0.0),
        rtt_idle_us: Some(1310.0),
        rtt_loaded_us: Some(9800.0),
        retransmits_per_s: Some(3.0),
        cpu_s_per_gb: Some(2.1),
        ceiling: Ceiling {
            bps: Some(ceiling),
            binding: term,
            terms: vec![CeilingTerm { name: term, bps: ceiling, basis: None, why: why.to_owned() }],
        },
        share: bps.map(|b| b / ceiling),
    }
}

fn group_of(host: &str) -> &'static str {
    PLACES.iter().find(|p| p.0 == host).map_or("", |p| p.1)
}

fn cells(sick: bool) -> Vec<Cell> {
    let mut cells = Vec::new();
    for layer in [Layer::Underlay, Layer::Overlay] {
        for (i, (from, _)) in PLACES.iter().enumerate() {
            for (j, (to, _)) in PLACES.iter().enumerate() {
                if i == j {
                    continue;
                }
                let across = group_of(from) != group_of(to);
                let (ceiling, term) = if across { (190e6, TermName::Uplink) } else { (21e9, TermName::Core) };
                let good = ceiling * (0.95 + 0.01 * ((i + 2 * j) % 5) as f64);
                let bad = sick && layer == Layer::Overlay && across && group_of(to) == "vs-4";
                let bps = match (bad, *from) {
                    (false, _) => good,
                    (true, "arc-6") => 0.0,
                    (true, _) => 0.3e6 * (1.0 + 0.1 * i as f64),
                };
                cells.push(cell(from, to, layer, Some(bps), ceiling, term));
            }
        }
    }
    if sick {
        cells[3].throughput_bps = None;
        cells[3].share = None;
        let flapping = cells.iter_mut().find(|c| c.from == "arc-5" && c.to == "arc-3").expect("both exist");
        flapping.two_state_bps = Some((180e6, 46e6));
    }
    cells
}

fn series(level: f64) -> Vec<Interval> {
    let wave = |i: u32| 1.0 + 0.04 * f64::from(i * 7 % 5) - 0.08;
    (1..=40)
        .map(|i| Interval {
            at_ms: f64::from(i) * 25.0,
            throughput_bps: level * wave(i) * (f64::from(i) / 4.0).min(1.0),
            ..Interval::default()
        })
        .collect()
}

fn samples(cells: &[Cell]) -> Vec<Sample> {
    cells
        .iter()
        .enumerate()
        .map(|(i, c)| {
            let test = Test {
                id: i as u32,
                serial: false,
                ..Test::new(c.from.clone(), c.to.clone(), c.layer, TcpPlan::single(1000).into())
            };
            let outcome = match c.throughput_bps {
                None => Outcome::Gap { reason: "host arc-4 is lost".to_owned() },
                Some(bps) if bps <= 0.0 => Outcome::NothingThrough { reason: "connect".to_owned() },
                Some(bps) => Outcome::Measured(Box::new(Measurement {
                    throughput_bps: Some(bps),
                    rx: Some(Box::new(LoadReport { series: series(bps), ..LoadReport::default() })),
                    ..Measurement::default()
                })),
            };
            Sample::new(test, 0, outcome)
        })
        .collect()
}

fn facts() -> BTreeMap<String, HostFacts> {
    let mut facts = BTreeMap::new();
    for (i, machine) in ["vs-4", "vs-3", "vs-5", "vs-2"].into_iter().enumerate() {
        let mut host = HostFacts::default();
        host.readings.insert("nic.up0.feature.rx-gro-hw".to_owned(), FactValue::Flag(i == 0));
        host.readings.insert("nic.up0.mtu".to_owned(), FactValue::Int(1500));
        host.readings.insert("cpu.model".to_owned(), FactValue::Text("Some CPU at 2.1 GHz".to_owned()));
        if i == 0 {
            host.readings.insert("sysctl.net.iw_cm.default_backlog".to_owned(), FactValue::Int(256));
        }
        facts.insert(machine.to_owned(), host);
    }
    facts
}

pub(crate) fn remedy() -> Remedy {
    Remedy {
        id: "nic-gro-hw-overlay".to_owned(),
        title: "switch hardware receive coalescing off on the uplink of vs-4".to_owned(),
        changes: vec![Change {
            host: "vs-4".to_owned(),
            key: "nic.up0.feature.rx-gro-hw".to_owned(),
            from: FactValue::Flag(true),
            to: FactValue::Flag(false),
        }],
        instruction: "ethtool -K up0 rx-gro-hw off".to_owned(),
        persistence: "a systemd .link file for up0".to_owned(),
        risk: Risk::Brief,
        risk_text: "a little more CPU for received packets; the link is not interrupted".to_owned(),
        check: "ethtool -k up0 | grep rx-gro-hw".to_owned(),
        host: "vs-4".to_owned(),
        ..Remedy::default()
    }
}

fn cause() -> RankedCause {
    RankedCause {
        id: "nic-gro-hw-overlay".to_owned(),
        title: "hardware receive coalescing (rx-gro-hw) breaks vxlan".to_owned(),
        probability: 0.86,
        mechanism: "The NIC glues received TCP segments together before the kernel sees them. Inside vxlan it gets the \
                    lengths wrong, and the receiver drops the result."
            .to_owned(),
        evidence: vec![
            "rx-gro-hw is on at up0 of vs-4, off on vs-2, vs-3 and vs-5".to_owned(),
            "only the overlay suffers, the underlay between the same hosts reaches 97 %".to_owned(),
            "traffic inside vs-4 does not pass up0 and is fine".to_owned(),
        ],
        against: vec!["the counters of up0 show no receive errors".to_owned()],
        remedy: Some(remedy()),
        ..RankedCause::default()
    }
}

fn finding() -> Finding {
    let place = |suspect, direction, probability| LossLocation { suspect, direction, probability };
    let other = RankedCause {
        id: "uplink-rate-limited".to_owned(),
        title: "the uplink of the machine is limited in one direction".to_owned(),
        probability: 0.06,
        ..RankedCause::default()
    };
    Finding {
        sentence: "What enters vs-4 from other hypervisors over the overlay reaches 0.2 % of its ceiling: hardware receive \
                   coalescing (rx-gro-hw) breaks vxlan."
            .to_owned(),
        places: vec![
            place(Suspect::Group("vs-4".to_owned()), Direction::Rx, 0.93),
            place(Suspect::GroupToGroup("vs-3".to_owned(), "vs-4".to_owned()), Direction::Both, 0.03),
        ],
        layer: LayerScope::Only(Layer::Overlay),
        responses: vec![Metric::Throughput, Metric::Retransmits],
        expected: 184e6,
        measured: 0.36e6,
        unit: MetricUnit::BitPerSecond,
        probability: 0.998,
        causes: vec![cause(), other],
        benign: vec![BenignDifference {
            host: "vs-4".to_owned(),
            key: "sysctl.net.iw_cm.default_backlog".to_owned(),
            value: FactValue::Int(256),
            peers: None,
            is_known: false,
            is_of_layer: false,
            why: "belongs to RDMA connection set-up, which no test used".to_owned(),
        }],
        decide: Some("test arc-6 to arc-1 alone, with rx-gro-hw off on vs-4".to_owned()),
        affected: ["arc-3", "arc-5", "arc-6"]
            .iter()
            .flat_map(|f| ["arc-1", "arc-2", "arc-4"].map(|t| ((*f).to_owned(), t.to_owned())))
            .collect(),
        ..Finding::default()
    }
}

pub(crate) fn sick() -> (Snapshot, Diagnosis) {
    let cells = cells(true);
    let snapshot = Snapshot {
        schema: 1,
        id: "20261121-083015-4f2a".to_owned(),
        start_ms: 1_795_249_815_000,
        inventory: inventory(),
        facts: facts(),
        samples: samples(&cells),
        gaps: vec![Gap {
            what: "cpu.governor of vs-2".into(),
            reason: "the kernel has no cpufreq".to_owned(),
        }],
        left_out: vec!["the second repetition of 12 pairs".to_owned()],
        ..Snapshot::default()
    };
    let finding = finding();
    let diagnosis = Diagnosis {
        schema: 1,
        run: snapshot.id.clone(),
        headline: finding.sentence.clone(),
        cells,
        findings: vec![finding],
        refused: vec!["read figures of 8000 MB/s: that is the page cache".to_owned()],
        advice: vec![linerate_model::advice::Advice {
            advised: linerate_model::advice::Advised::Leave,
            about: "retransmits".to_owned(),
            sentence: "change nothing because of retransmissions: arc-1 to arc-2 has 30.1 a second and is at 99 % of its ceiling"
                .to_owned(),
            reason: None,
            settings: Vec::new(),
            references: vec!["a published value".to_owned()],
        }],
        notes: vec!["arc-5 to arc-3 jumps between two levels, too seldom to call".to_owned()],
        blind: snapshot.gaps.clone(),
        ..Diagnosis::default()
    };
    (snapshot, diagnosis)
}

pub(crate) fn healthy() -> (Snapshot, Diagnosis) {
    let cells = cells(false);
    let snapshot = Snapshot {
        schema: 1,
        id: "20261121-090000-0001".to_owned(),
        inventory: inventory(),
        samples: samples(&cells),
        ..Snapshot::default()
    };
    let headline = "All 60 directed pairs are at their ceiling.".to_owned();
    let diagnosis =
        Diagnosis { schema: 1, run: snapshot.id.clone(), headline, cells, ..Diagnosis::default() };
    (snapshot, diagnosis)
}

/// Many hosts with long names, one of which receives badly.
pub(crate) fn big(hosts: usize) -> (Snapshot, Diagnosis) {
    let names: Vec<String> = (0..hosts).map(|i| format!("node-{i:03}.rack{}.example", i / 10)).collect();
    let inventory = Inventory {
        name: "big".to_owned(),
        hosts: names.iter().map(|n| host(n, &[], true)).collect(),
        ..Inventory::default()
    };
    let mut cells = Vec::new();
    for from in &names {
        for to in names.iter().filter(|to| *to != from) {
            let bps = if to == &names[hosts / 2] { 2.4e9 } else { 9.4e9 };
            cells.push(cell(from, to, Layer::Underlay, Some(bps), 9.89e9, TermName::Link));
        }
    }
    let headline = "Something is slow.".to_owned();
    let diagnosis = Diagnosis { schema: 1, run: "r".to_owned(), headline, cells, ..Diagnosis::default() };
    (Snapshot { id: "r".to_owned(), inventory, ..Snapshot::default() }, diagnosis)
}

pub(crate) fn trial() -> Trial {
    let before = [0.31e6, 0.29e6, 0.30e6, 0.33e6];
    let after = [178e6, 181e6, 176e6, 183e6];
    let mut arms = Vec::new();
    for (i, changed) in [false, true, true, false, false, true, true, false].into_iter().enumerate() {
        let value = if changed { after[i / 2] } else { before[i / 2] };
        arms.push(Arm { changed, value: Some(value), control: Some(184e6 + 1e6 * (i % 3) as f64) });
    }
    Trial {
        id: "20261121-083110-99aa".to_owned(),
        run: "20261121-083015-4f2a".to_owned(),
        remedy: remedy(),
        response: Metric::Throughput,
        layer: Layer::Overlay,
        pair: ("arc-6".to_owned(), "arc-1".to_owned()),
        control: Some(("arc-3".to_owned(), "arc-5".to_owned())),
        arms,
        effect: Some(EffectSize {
            effect: Effect::Better,
            ratio: 589.0,
            interval: (540.0, 621.0),
            control_ratio: 1.0,
            control_interval: (0.99, 1.01),
            before: 0.305e6,
            after: 179.5e6,
            fewer_than: None,
            sentence: "It helps: 589 times the throughput, while the control pair did not move.".to_owned(),
        }),
        status: TrialStatus::Measured,
        persisted: Vec::new(),
        notes: Vec::new(),
    }
}
