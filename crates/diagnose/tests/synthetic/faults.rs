//! The faults of the lab as changes of synthetic paths and facts, each with its truth.

use linerate_model::fact::FactValue;
use linerate_model::finding::{Direction, Suspect};
use linerate_model::inventory::Layer;

use super::cluster::{Cluster, Layout, Path};

/// Where a fault is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Spot {
    Host(&'static str),
    Group(&'static str),
    Pair(&'static str, &'static str),
    All,
}

/// What a fault does to one path.
pub(crate) type Damage = Box<dyn Fn(&str, &str, Layer, &mut Path)>;

/// A fault of the lab.
pub(crate) struct Fault {
    pub name: &'static str,
    pub cause: &'static str,
    place: fn() -> Spot,
    direction: Option<Direction>,
    facts: fn(&mut Cluster, &str),
    harm: fn(&mut Path, Layer, End),
}

/// Which end of a path is the bad one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum End {
    Sends,
    Receives,
    Neither,
}

fn at_host() -> Spot {
    Spot::Host("")
}
fn at_group() -> Spot {
    Spot::Group("")
}
fn none(_: &mut Cluster, _: &str) {}

fn flag(on: bool) -> FactValue {
    FactValue::Flag(on)
}
fn text(value: &str) -> FactValue {
    FactValue::Text(value.to_owned())
}

/// Caps a rate, and makes the queue before it as long as that rate makes it.
fn cap(path: &mut Path, bps: f64) {
    if path.rate_bps > bps {
        path.rate_bps = bps * 0.95;
        path.loaded_us = path.loaded_us.max(30_000.0);
    }
}

use Direction::{Both, Rx, Tx};
use End::{Receives, Sends};

macro_rules! fault {
    ($name:literal, $cause:literal, $place:expr, $direction:expr, $facts:expr, $harm:expr) => {
        Fault { name: $name, cause: $cause, place: $place, direction: $direction, facts: $facts, harm: $harm }
    };
}

pub(crate) static ALL: &[Fault] =
    &[
        fault!(
            "rx-rate-cap",
            "port-rate-limited",
            at_host,
            Some(Rx),
            |c, h| {
                let group = c.group_of(h);
                c.set(group, &format!("nic.p-{h}.qdisc"), text("tbf"));
            },
            |p, _, e| if e == Receives {
                cap(p, 70e6);
            }
        ),
        fault!(
            "tx-rate-cap",
            "port-rate-limited",
            at_host,
            Some(Tx),
            |c, h| {
                let group = c.group_of(h);
                c.set(group, "nic.ifb0.qdisc", text("tbf"));
            },
            |p, _, e| if e == Sends {
                cap(p, 90e6);
            }
        ),
        fault!(
            "forgotten-shaper",
            "forgotten-shaper",
            at_host,
            Some(Tx),
            |c, h| c.set(h, "nic.eth0.qdisc", text("tbf")),
            |p, _, e| if e == Sends {
                cap(p, 60e6);
            }
        ),
        fault!("loss-rx", "packet-loss", at_host, Some(Rx), none, |p, _, e| if e == Receives {
            p.loss = 0.011;
            p.retransmits_per_s += 300.0;
        }),
        fault!("loss-tx", "packet-loss", at_host, Some(Tx), none, |p, _, e| if e == Sends {
            p.loss = 0.015;
            p.retransmits_per_s += 300.0;
        }),
        fault!(
            "mtu-mismatch",
            "mtu-mismatch",
            at_host,
            None,
            |c, h| {
                c.set(h, "nic.eth0.mtu", FactValue::Int(1400));
                c.set(h, "nic.vx0.mtu", FactValue::Int(1350));
            },
            |_, _, _| {}
        ),
        fault!("pmtu-black-hole", "pmtu-black-hole", at_group, Some(Rx), none, |p, _, e| if e == Receives {
            p.size_max = 1350;
        }),
        fault!(
            "small-rmem",
            "tcp-rmem-small",
            at_host,
            Some(Rx),
            |c, h| c.set(h, "sysctl.net.ipv4.tcp_rmem", text("4096 16384 24576")),
            |p, _, e| if e == Receives {
                p.window = Some((24576.0, true));
            }
        ),
        fault!(
            "small-wmem",
            "tcp-wmem-small",
            at_host,
            Some(Tx),
            |c, h| c.set(h, "sysctl.net.ipv4.tcp_wmem", text("4096 16384 16384")),
            |p, _, e| if e == Sends {
                p.window = Some((32768.0, false));
            }
        ),
        fault!(
            "window-scaling-off",
            "tcp-window-scaling-off",
            at_host,
            Some(Both),
            |c, h| c.set(h, "sysctl.net.ipv4.tcp_window_scaling", FactValue::Int(0)),
            |p, _, e| if e != End::Neither {
                p.window = Some((65535.0, true));
                p.scaled = false;
            }
        ),
        fault!(
            "rcvbuf-autotuning-off",
            "tcp-rcvbuf-autotuning-off",
            at_host,
            Some(Rx),
            |c, h| c.set(h, "sysctl.net.ipv4.tcp_moderate_rcvbuf", FactValue::Int(0)),
            |p, _, e| if e == Receives {
                p.window = Some((65536.0, true));
            }
        ),
        fault!(
            "wrong-congestion-control",
            "congestion-control-differs",
            at_host,
            Some(Tx),
            |c, h| c.set(h, "sysctl.net.ipv4.tcp_congestion_control", text("reno")),
            |p, _, e| {
                p.loss += 0.001;
                if e == Sends && p.rtt_us > 1000.0 {
                    p.rate_bps *= 0.35;
                    p.retransmits_per_s = 10.0;
                    p.congestion = "reno";
                }
            }
        ),
        fault!(
            "gro-overlay",
            "nic-gro-overlay",
            at_group,
            Some(Rx),
            |c, g| c.set(g, "nic.up0.feature.generic-receive-offload", flag(true)),
            |p, layer, e| if e == Receives && layer == Layer::Overlay {
                p.rate_bps = 5e6;
            }
        ),
        fault!(
            "overlay-offload-off",
            "overlay-offload-off",
            at_host,
            Some(Tx),
            |c, h| {
                for feature in ["tx-checksumming", "tcp-segmentation-offload", "tx-tcp-segmentation"] {
                    c.set(h, &format!("nic.vx0.feature.{feature}"), flag(false));
                }
            },
            |p, layer, e| if e == Sends && layer == Layer::Overlay {
                p.cpu *= 3.0;
                p.rate_bps = p.rate_bps.min(2e9);
            }
        ),
        fault!(
            "tso-off",
            "tso-off",
            at_host,
            Some(Tx),
            |c, h| {
                c.set(h, "nic.eth0.feature.tcp-segmentation-offload", flag(false));
                c.set(h, "nic.eth0.feature.tx-tcp-segmentation", flag(false));
            },
            |p, _, e| if e == Sends {
                p.cpu *= 3.5;
                p.rate_bps = p.rate_bps.min(2.5e9);
            }
        ),
        fault!("hypervisor-rx-cap", "uplink-rate-limited", at_group, Some(Rx), none, |p, _, e| if e
            == Receives
        {
            cap(p, 70e6);
        }),
        fault!("slow-uplink", "uplink-slow", at_group, Some(Both), none, |p, _, e| if e != End::Neither {
            cap(p, 80e6);
        }),
        fault!(
            "capacity-flapping",
            "capacity-flapping",
            at_group,
            Some(Rx),
            none,
            |p, _, e| if e == Receives {
                p.low_bps = Some(50e6);
            }
        ),
        fault!("cpu-starved", "cpu-starved", at_host, Some(Both), none, |p, _, e| if e != End::Neither {
            p.rate_bps *= 0.2;
            p.wait_share = 0.5;
            p.rtt_us *= 3.0;
            if e == Sends { p.throttled_tx = 4 } else { p.throttled_rx = 4 }
        }),
        fault!("bufferbloat", "bufferbloat", at_group, Some(Rx), none, |p, _, e| if e == Receives {
            p.loaded_us *= 9.0;
        }),
        fault!("reordering", "packet-reordering", at_group, Some(Rx), none, |p, _, e| if e == Receives {
            p.reordered = 0.025;
        }),
        fault!("path-blocked", "path-blocked", || Spot::Pair("", ""), None, none, |p, _, e| if e
            != End::Neither
        {
            p.blocked = true;
        }),
        fault!("damaged-frames", "frames-damaged", at_group, Some(Rx), none, |p, _, e| if e == Receives {
            p.loss = 0.015;
            p.damaged = 40;
        }),
        fault!("duplicates", "packets-duplicated", at_group, Some(Rx), none, |p, _, e| if e == Receives {
            p.duplicated = 0.03;
        }),
        fault!("pauses", "path-pauses", at_group, Some(Rx), none, |p, _, e| if e == Receives {
            p.stall_us = 90_000.0;
        }),
        fault!("longer-path", "path-longer", at_group, Some(Both), none, |p, _, e| if e != End::Neither {
            p.rtt_us += 7000.0;
            p.loaded_us += 7000.0;
        }),
        fault!("jitter", "delay-jitters", at_group, Some(Both), none, |p, _, e| if e != End::Neither {
            p.rtt_us += 9000.0;
            p.loaded_us += 12_000.0;
            p.rtt_spread = 0.5;
            p.stall_us = 12_000.0;
        }),
        fault!("policed-uplink", "rate-policed", at_group, Some(Rx), none, |p, _, e| if e == Receives {
            p.rate_bps = p.rate_bps.min(70e6);
            p.retransmits_per_s = 1500.0;
            p.loaded_us = p.rtt_us * 1.1;
        }),
        fault!("packet-rate-limit", "packet-rate-limited", at_group, Some(Rx), none, |p, _, e| if e
            == Receives
        {
            cap(p, 60e6);
            p.retransmits_per_s = 0.0;
            p.small_loss = 0.5;
        }),
        fault!(
            "link-speed-low",
            "link-speed-low",
            at_group,
            Some(Both),
            |c, g| c.set(g, "nic.up0.speed_mbit", FactValue::Int(80)),
            |p, _, e| if e != End::Neither {
                cap(p, 80e6);
            }
        ),
        fault!(
            "machine-mtu-low",
            "machine-mtu-low",
            at_group,
            None,
            |c, g| {
                c.set(g, "nic.up0.mtu", FactValue::Int(1300));
                c.set(g, "nic.br0.mtu", FactValue::Int(1300));
            },
            |p, _, e| if e != End::Neither {
                p.size_max = 1300;
            }
        ),
        fault!("tunnel-loss", "tunnel-loss", at_group, Some(Rx), none, |p, layer, e| if e == Receives
            && layer == Layer::Overlay
        {
            p.loss = 0.03;
            p.retransmits_per_s += 400.0;
        }),
        fault!("tunnel-filtered", "tunnel-blocked", at_group, Some(Both), none, |p, layer, e| if e
            != End::Neither
            && layer == Layer::Overlay
        {
            p.blocked = true;
        }),
        fault!(
            "overlay-mtu-too-large",
            "overlay-mtu-too-large",
            || Spot::All,
            None,
            |c, _| {
                for host in c.hosts() {
                    c.set(host, "nic.vx0.mtu", FactValue::Int(1500));
                }
            },
            |p, layer, _| if layer == Layer::Overlay {
                p.size_max = 1400;
            }
        ),
    ];

impl Fault {
    /// All places of a layout where it can be.
    pub(crate) fn spots(&self, layout: Layout) -> Vec<Spot> {
        let hosts: Vec<&str> = layout.iter().flat_map(|(_, m)| m.iter().copied()).collect();
        match (self.place)() {
            Spot::Host(_) => hosts.into_iter().map(Spot::Host).collect(),
            Spot::Group(_) => layout.iter().map(|(g, _)| Spot::Group(g)).collect(),
            Spot::Pair(..) => hosts.windows(2).map(|w| Spot::Pair(w[0], w[1])).collect(),
            Spot::All => vec![Spot::All],
        }
    }

    /// Changes the facts and gives the harm to paths.
    pub(crate) fn inject(&self, cluster: &mut Cluster, spot: &Spot) -> Damage {
        let name = match spot {
            Spot::Host(n) | Spot::Group(n) => *n,
            _ => "",
        };
        (self.facts)(cluster, name);
        let layout = cluster.layout;
        let group = move |host: &str| layout.iter().find(|(_, m)| m.contains(&host)).map_or("", |(g, _)| *g);
        let (spot, harm, mtu) = (spot.clone(), self.harm, self.name == "mtu-mismatch");
        Box::new(move |from, to, layer, path| {
            let end = match &spot {
                Spot::Host(h) if from == *h => Sends,
                Spot::Host(h) if to == *h => Receives,
                Spot::Group(g) if group(from) == *g && group(to) != *g => Sends,
                Spot::Group(g) if group(to) == *g && group(from) != *g => Receives,
                Spot::Pair(a, b) if (from == *a && to == *b) || (from == *b && to == *a) => Sends,
                _ => End::Neither,
            };
            // TCP fits its segments to the smaller MTU; only the probe into the host fails.
            if mtu && end == Receives {
                path.size_max = if layer == Layer::Overlay { 1350 } else { 1400 };
                path.clamps = true;
            }
            harm(path, layer, end);
        })
    }

    /// Whether a verdict names the right place.
    pub(crate) fn accepts(
        &self,
        spot: &Spot,
        suspect: &Suspect,
        direction: Direction,
        cluster: &Cluster,
    ) -> bool {
        let same_direction = self.direction.is_none_or(|d| d == direction);
        let alone = |g: &str| {
            cluster.layout.iter().find(|(n, _)| *n == g).filter(|(_, m)| m.len() == 1).map(|(_, m)| m[0])
        };
        match (spot, suspect) {
            (Spot::Host(h), Suspect::Mismatch(_, hosts)) => hosts == &[(*h).to_owned()],
            (Spot::Host(h), Suspect::Host(e)) => h == e && same_direction,
            (Spot::Host(h), Suspect::Group(e)) => alone(e) == Some(*h) && same_direction,
            (Spot::Group(g), Suspect::Group(e)) => g == e && same_direction,
            (Spot::Group(g), Suspect::Host(e)) => alone(g) == Some(e.as_str()) && same_direction,
            (Spot::Pair(a, b), Suspect::Pair(c, d)) => (a == c && b == d) || (a == d && b == c),
            (Spot::All, Suspect::All) => true,
            _ => false,
        }
    }
}
