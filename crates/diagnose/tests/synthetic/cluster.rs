//! Synthetic snapshots that look like those of the lab: hosts behind shared uplinks, an overlay, one fault,
//! seeded noise.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use linerate_diagnose::stats::Rng;
use linerate_model::datagram::UdpFlow;
use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::histogram::Histogram;
use linerate_model::inventory::{Endpoint, Group, Host, Inventory, Layer, TransportSpec};
use linerate_model::kind::{MtuPlan, RttPlan, TcpPlan, TestKind, UdpPlan};
use linerate_model::load::{Interval, LoadReport, TcpEnd, UdpEnd};
use linerate_model::path_mtu::MtuProbe;
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;

pub(crate) const UPLINK_BPS: f64 = 200e6;

/// Groups with their hosts.
pub(crate) type Layout = &'static [(&'static str, &'static [&'static str])];

pub(crate) const THREE: Layout = &[("rack-1", &["node-1"]), ("rack-2", &["node-2"]), ("rack-3", &["node-3"])];
pub(crate) const SIX: Layout = &[
    ("vs-4", &["arc-1", "arc-2", "arc-4"]),
    ("vs-3", &["arc-3"]),
    ("vs-5", &["arc-5"]),
    ("vs-2", &["arc-6"]),
];
pub(crate) const TWELVE: Layout = &[
    ("hv-1", &["n-1", "n-2", "n-3"]),
    ("hv-2", &["n-4", "n-5", "n-6"]),
    ("hv-3", &["n-7", "n-8"]),
    ("hv-4", &["n-9", "n-10"]),
    ("hv-5", &["n-11"]),
    ("hv-6", &["n-12"]),
];

/// What one path does to traffic.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub rate_bps: f64,
    pub loss: f64,
    pub reordered: f64,
    pub duplicated: f64,
    /// Wrong checksums that the receiver counts in a test.
    pub damaged: i64,
    /// Change of the idle RTT from request to request, over its middle.
    pub rtt_spread: f64,
    /// Loss of small datagrams.
    pub small_loss: f64,
    /// How late the latest datagram comes.
    pub stall_us: f64,
    pub rtt_us: f64,
    pub loaded_us: f64,
    pub retransmits_per_s: f64,
    pub cpu: f64,
    /// Largest window in bytes, and whether the receiver sets it.
    pub window: Option<(f64, bool)>,
    pub size_max: u32,
    /// TCP knows the smaller size, so only probes fail.
    pub clamps: bool,
    pub low_bps: Option<f64>,
    pub blocked: bool,
    pub wait_share: f64,
    pub throttled_tx: i64,
    pub throttled_rx: i64,
    pub congestion: &'static str,
    pub scaled: bool,
}

/// A snapshot under construction.
pub(crate) struct Cluster {
    pub inventory: Inventory,
    pub facts: BTreeMap<String, HostFacts>,
    pub layout: Layout,
}

impl Cluster {
    pub(crate) fn new(layout: Layout) -> Self {
        let mut hosts = Vec::new();
        let mut facts = BTreeMap::new();
        let mut number = 0u8;
        for (group, members) in layout {
            for name in *members {
                number += 1;
                hosts.push(host(name, group, number));
                facts.insert((*name).to_owned(), host_facts(number));
            }
        }
        for (group, members) in layout {
            hosts.push(Host { endpoints: Vec::new(), groups: Vec::new(), ..host(group, "", 0) });
            facts.insert((*group).to_owned(), machine_facts(members));
        }
        let groups = layout
            .iter()
            .map(|(name, _)| Group {
                name: (*name).to_owned(),
                kind: "hypervisor".to_owned(),
                parent: None,
                uplink_bps: Some(UPLINK_BPS),
                machine: Some((*name).to_owned()),
            })
            .collect();
        Self {
            inventory: Inventory { name: "synthetic".to_owned(), groups, hosts, ..Inventory::default() },
            facts,
            layout,
        }
    }

    pub(crate) fn group_of(&self, host: &str) -> &'static str {
        self.layout.iter().find(|(_, members)| members.contains(&host)).map_or("", |(g, _)| *g)
    }

    pub(crate) fn hosts(&self) -> Vec<&'static str> {
        self.layout.iter().flat_map(|(_, members)| members.iter().copied()).collect()
    }

    pub(crate) fn set(&mut self, host: &str, key: &str, value: FactValue) {
        self.facts.get_mut(host).expect("a host of the layout").readings.insert(key.to_owned(), value);
    }

    /// A healthy path.
    pub(crate) fn path(&self, from: &str, to: &str, layer: Layer, rng: &mut Rng) -> Path {
        let inside = self.group_of(from) == self.group_of(to);
        let overlay = layer == Layer::Overlay;
        let framing = if overlay { 1398.0 / 1538.0 } else { 1448.0 / 1538.0 };
        let (rate, rtt, loaded) = if inside {
            (if overlay { 12e9 } else { 24e9 } * (0.4 * rng.normal()).exp2(), 60.0, 300.0)
        } else {
            (UPLINK_BPS * framing * (0.97 + 0.01 * rng.normal()), 4500.0, 8500.0)
        };
        Path {
            rate_bps: rate,
            loss: if rng.unit() < 0.02 { 0.002 * rng.unit() } else { 0.0 },
            reordered: 0.0005 * rng.unit(),
            duplicated: 0.0,
            damaged: 0,
            small_loss: 0.0,
            rtt_spread: 0.02,
            stall_us: 1500.0,
            rtt_us: rtt * (0.1 * rng.normal()).exp(),
            loaded_us: loaded * (0.15 * rng.normal()).exp(),
            retransmits_per_s: 400.0 * (0.3 * rng.normal()).exp(),
            cpu: if inside { 0.3 } else { 0.75 }
                * if overlay { 1.4 } else { 1.0 }
                * (0.25 * rng.normal()).exp(),
            window: None,
            size_max: if overlay { 1450 } else { 1500 },
            clamps: false,
            low_bps: None,
            blocked: false,
            wait_share: 0.02 * rng.unit(),
            throttled_tx: 0,
            throttled_rx: 0,
            congestion: "bbr",
            scaled: true,
        }
    }

    /// All samples: TCP twice, a UDP probe, RTT and path MTU for every ordered pair and layer.
    pub(crate) fn measure(&self, seed: u64, damage: &dyn Fn(&str, &str, Layer, &mut Path)) -> Snapshot {
        let mut rng = Rng::new(seed);
        let mut samples = Vec::new();
        let hosts = self.hosts();
        let matchings = hosts.len() > 8;
        for layer in [Layer::Underlay, Layer::Overlay] {
            for from in &hosts {
                for to in hosts.iter().filter(|t| *t != from) {
                    // A large cluster is measured in random rounds.
                    if matchings && rng.unit() > 0.6 {
                        continue;
                    }
                    for repeat in 0..if matchings { 1 } else { 2 } {
                        let mut path = self.path(from, to, layer, &mut rng);
                        damage(from, to, layer, &mut path);
                        samples.push(tcp(from, to, layer, repeat, &path, &mut rng));
                        if path.small_loss > 0.0 {
                            samples.push(small(from, to, layer, &path));
                        }
                        if repeat == 0 {
                            samples.extend([
                                udp(from, to, layer, &path),
                                rtt(from, to, layer, &path),
                                mtu(from, to, layer, &path),
                            ]);
                        }
                    }
                }
            }
        }
        for (id, sample) in (1..).zip(&mut samples) {
            sample.test.id = id;
        }
        Snapshot {
            schema: linerate_model::SCHEMA,
            id: format!("synthetic-{seed}"),
            inventory: self.inventory.clone(),
            facts: self.facts.clone(),
            samples,
            ..Snapshot::default()
        }
    }
}

fn host(name: &str, group: &str, number: u8) -> Host {
    let endpoint = |net: u8, layer| Endpoint {
        address: IpAddr::V4(Ipv4Addr::new(10, net, 0, number)),
        layer,
        netns: None,
        link_bps: None,
    };
    Host {
        name: name.to_owned(),
        transport: TransportSpec::Local,
        groups: vec![group.to_owned()],
        endpoints: vec![endpoint(77, Layer::Underlay), endpoint(78, Layer::Overlay)],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    }
}

fn readings(pairs: &[(&str, FactValue)]) -> HostFacts {
    HostFacts {
        readings: pairs.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect(),
        ..HostFacts::default()
    }
}

fn text(value: &str) -> FactValue {
    FactValue::Text(value.to_owned())
}

fn host_facts(number: u8) -> HostFacts {
    readings(&[
        ("nic.eth0.addresses", text(&format!("10.77.0.{number}/24"))),
        ("nic.eth0.driver", text("veth")),
        ("nic.eth0.speed_mbit", FactValue::Int(10000)),
        ("nic.eth0.mtu", FactValue::Int(1500)),
        ("nic.eth0.qdisc", text("noqueue")),
        ("nic.eth0.feature.tcp-segmentation-offload", FactValue::Flag(true)),
        ("nic.eth0.feature.tx-tcp-segmentation", FactValue::Flag(true)),
        ("nic.vx0.addresses", text(&format!("10.78.0.{number}/24"))),
        ("nic.vx0.kind", text("vxlan")),
        ("nic.vx0.mtu", FactValue::Int(1450)),
        ("nic.vx0.qdisc", text("noqueue")),
        ("nic.vx0.feature.tx-checksumming", FactValue::Flag(true)),
        ("nic.vx0.feature.tcp-segmentation-offload", FactValue::Flag(true)),
        ("nic.vx0.feature.tx-tcp-segmentation", FactValue::Flag(true)),
        ("nic.lo.mtu", FactValue::Int(65536)),
        ("sysctl.net.ipv4.tcp_congestion_control", text("bbr")),
        ("sysctl.net.ipv4.tcp_moderate_rcvbuf", FactValue::Int(1)),
        ("sysctl.net.ipv4.tcp_rmem", text("4096 131072 33554432")),
        ("sysctl.net.ipv4.tcp_window_scaling", FactValue::Int(1)),
        ("sysctl.net.ipv4.tcp_wmem", text("4096 16384 4194304")),
    ])
}

fn machine_facts(members: &[&str]) -> HostFacts {
    let mut facts = readings(&[
        ("nic.up0.driver", text("tun")),
        ("nic.up0.speed_mbit", FactValue::Int(200)),
        ("nic.up0.carrier_changes", FactValue::Int(2)),
        ("nic.up0.mtu", FactValue::Int(1500)),
        ("nic.up0.qdisc", text("pfifo_fast")),
        ("nic.up0.feature.generic-receive-offload", FactValue::Flag(false)),
        ("nic.br0.mtu", FactValue::Int(1500)),
        ("nic.br0.feature.generic-receive-offload", FactValue::Flag(true)),
    ]);
    for member in members {
        facts.readings.insert(format!("nic.p-{member}.qdisc"), text("noqueue"));
        facts
            .readings
            .insert(format!("nic.p-{member}.feature.generic-receive-offload"), FactValue::Flag(false));
    }
    facts
}

pub(crate) fn sample(
    from: &str,
    to: &str,
    layer: Layer,
    kind: TestKind,
    repeat: u16,
    outcome: Outcome,
) -> Sample {
    let test = Test { repeat, ..Test::new(from.to_owned(), to.to_owned(), layer, kind) };
    Sample::new(test, 0, outcome)
}

/// 25 intervals of 20 ms: a ramp, then the rate, or two rates in turn.
fn series(path: &Path, rate: f64, loaded: f64, rng: &mut Rng) -> Vec<Interval> {
    (1..=25)
        .map(|i| {
            let level = match path.low_bps {
                Some(low) if (i / 6) % 2 == 0 => low,
                _ => rate,
            };
            Interval {
                at_ms: 20.0 * f64::from(i),
                throughput_bps: if i <= 5 {
                    rate * f64::from(i) / 5.0
                } else {
                    level * (1.0 + 0.06 * rng.normal())
                },
                rtt_us: loaded,
                ..Interval::default()
            }
        })
        .collect()
}

fn tcp(from: &str, to: &str, layer: Layer, repeat: u16, path: &Path, rng: &mut Rng) -> Sample {
    let kind = TestKind::from(TcpPlan::single(500));
    let inner = if layer == Layer::Overlay { 1450 } else { 1500 };
    if path.blocked || (path.size_max < inner && !path.clamps) {
        let reason = "stalled".to_owned();
        return sample(from, to, layer, kind, repeat, Outcome::NothingThrough { reason });
    }
    let (mut rate, mut limited) = (path.rate_bps, 0.0);
    let mut retransmits_per_s = path.retransmits_per_s;
    let mut unacked = rate / 8.0 * path.loaded_us / 1e6;
    let mut loaded = path.loaded_us;
    if let Some((bytes, receiver)) = path.window {
        let allowed = bytes * 8.0 / (path.rtt_us / 1e6);
        if allowed < rate {
            rate = allowed * (0.98 + 0.01 * rng.normal());
            loaded = path.rtt_us * 1.05;
            unacked = bytes;
            retransmits_per_s = 0.0;
            limited = if receiver { 0.9 } else { 0.0 };
        }
    }
    let series = series(path, rate, loaded, rng);
    let mean = series[5..].iter().map(|i| i.throughput_bps).sum::<f64>() / 20.0;
    let end = TcpEnd {
        rtt_min_us: path.rtt_us,
        retransmits: (retransmits_per_s / 2.0) as u64,
        busy_us: 500_000,
        rwnd_limited_us: (500_000.0 * limited) as u64,
        mss: inner - 52,
        congestion: path.congestion.to_owned(),
        wscale: if path.scaled { (10, 10) } else { (0, 0) },
        unacked_bytes_max: unacked as u64,
        sndbuf_bytes: 2_400_000,
        ..TcpEnd::default()
    };
    let report = |tcp| LoadReport {
        bytes: (mean / 16.0) as u64,
        elapsed_s: 0.5,
        wait_s: 0.5 * path.wait_share,
        series: series.clone(),
        tcp,
        ..LoadReport::default()
    };
    let measurement = Measurement {
        throughput_bps: Some(mean),
        rtt_loaded_us: Some(loaded),
        retransmits_per_s: Some(retransmits_per_s),
        cpu_s_per_gb: Some(path.cpu),
        tx: Some(Box::new(report(Some(end)))),
        rx: Some(Box::new(report(None))),
        ..Measurement::default()
    };
    let mut sample = sample(from, to, layer, kind, repeat, Outcome::Measured(Box::new(measurement)));
    let throttled = |n: i64| (n > 0).then(|| ("cgroup.nr_throttled".to_owned(), n));
    sample.tx_counters.extend(throttled(path.throttled_tx));
    sample.rx_counters.extend(throttled(path.throttled_rx));
    sample.rx_counters.insert("softnet.processed".to_owned(), 900);
    if path.damaged > 0 {
        sample.rx_counters.insert("snmp.Tcp.InCsumErrors".to_owned(), path.damaged);
    }
    sample
}

fn udp(from: &str, to: &str, layer: Layer, path: &Path) -> Sample {
    let kind = TestKind::from(UdpPlan::paced(0.2 * path.rate_bps.min(200e6), 1200, 500));
    if path.blocked {
        return sample(
            from,
            to,
            layer,
            kind,
            0,
            Outcome::NothingThrough { reason: "no byte arrived".to_owned() },
        );
    }
    let mut delay = Histogram::default();
    delay.record((path.stall_us * 1e3) as u64);
    let flow = UdpFlow { delay_change_ns: Some(delay), ..UdpFlow::default() };
    let measurement = Measurement {
        throughput_bps: Some(0.2 * path.rate_bps.min(200e6)),
        loss: Some(path.loss),
        reordered: Some(path.reordered),
        duplicated: Some(path.duplicated),
        rx: Some(Box::new(LoadReport {
            udp: Some(UdpEnd { datagrams: 2000, ..UdpEnd::default() }),
            udp_flow: Some(flow),
            ..LoadReport::default()
        })),
        ..Measurement::default()
    };
    sample(from, to, layer, kind, 0, Outcome::Measured(Box::new(measurement)))
}

/// What the second stage sends where a limit may count packets.
fn small(from: &str, to: &str, layer: Layer, path: &Path) -> Sample {
    let measurement = Measurement { loss: Some(path.small_loss), ..Measurement::default() };
    let kind = TestKind::from(UdpPlan::paced(0.25 * path.rate_bps, 200, 500));
    sample(from, to, layer, kind, 100, Outcome::Measured(Box::new(measurement)))
}

fn rtt(from: &str, to: &str, layer: Layer, path: &Path) -> Sample {
    let kind = TestKind::from(RttPlan { count: 20 });
    if path.blocked {
        return sample(from, to, layer, kind, 0, Outcome::NothingThrough { reason: "no answer".to_owned() });
    }
    let rtts =
        [-1.0, 1.0, 0.0, 1.0, -1.0, 0.0].map(|step| path.rtt_us * (1.0 + path.rtt_spread * step)).to_vec();
    let tx = Some(Box::new(LoadReport { rtt_us: rtts, ..LoadReport::default() }));
    let measurement = Measurement { rtt_idle_us: Some(path.rtt_us), tx, ..Measurement::default() };
    sample(from, to, layer, kind, 0, Outcome::Measured(Box::new(measurement)))
}

fn mtu(from: &str, to: &str, layer: Layer, path: &Path) -> Sample {
    let full = if layer == Layer::Overlay { 1450 } else { 1500 };
    let kind = TestKind::from(MtuPlan { sizes: vec![576, full], tries: 3 });
    if path.blocked {
        return sample(
            from,
            to,
            layer,
            kind,
            0,
            Outcome::NothingThrough { reason: "no probe was answered".to_owned() },
        );
    }
    let probe = |bytes| MtuProbe {
        bytes,
        sent: 3,
        answered: if bytes <= path.size_max { 3 } else { 0 },
        refused_mtu: None,
    };
    let measurement = Measurement { mtu: vec![probe(576), probe(full)], ..Measurement::default() };
    sample(from, to, layer, kind, 0, Outcome::Measured(Box::new(measurement)))
}
