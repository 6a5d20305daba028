//! What is worth knowing beside the findings, and what was not used, each in a line.

use std::fmt::Write as _;

use linerate_model::fact::Gap;
use linerate_model::finding::{AtRest, Direction};
use linerate_model::http::HttpStep;
use linerate_model::inventory::Layer;
use linerate_model::names::ranges;
use linerate_model::path_methods::{MethodPair, PathClass};
use linerate_model::remark::{DiskRemark, PortClass, Refused, Remark, Repetition, TcpOption, Together};
use linerate_model::units::{percent, rate, ratio, short};

use super::{cause, diff};

/// A note.
pub(crate) fn note(remark: &Remark) -> String {
    match remark {
        Remark::Compared(difference) => diff::difference(difference).sentence,
        Remark::Consequence { at: (suspect, direction), title, of } => {
            format!("{}: {title}; a consequence of this: {of}", suspect.label(*direction))
        }
        Remark::Retransmits { from, to, share, per_s } => format!(
            "{from} to {to}: {} of the ceiling, so its {} retransmits per second do not matter",
            percent(*share),
            short(*per_s)
        ),
        Remark::Ports(classes) => format!(
            "{}; no link speed was read, so `ethtool` of a NIC of each tells whether it is what it should be",
            ports(classes)
        ),
        Remark::LostOnce { from, to, layer, loss } => format!(
            "{from} to {to} ({layer}): {} of the datagrams of a probe were lost, and nothing else points to it; survey again to see whether it comes back",
            percent(*loss)
        ),
        Remark::MoreLost(more) => format!("{more} more pairs lost datagrams in a probe"),
        Remark::Suspicion { at: (suspect, direction), repetition, cause: explanation } => {
            let cause = explanation.as_ref().map_or(String::new(), |(title, evidence)| {
                let evidence: Vec<String> = evidence.iter().map(cause::support).collect();
                format!(". What would explain it: {title} [{}]", evidence.join("; "))
            });
            format!("{}: suspected once {}{cause}", suspect.label(*direction), outcome(*repetition))
        }
        Remark::Symptom(symptom) => super::symptom::symptom(symptom),
        Remark::Blocks { from, to } => super::symptom::blocks(from, to),
        Remark::Read { host, formats, readings, is_judged } => {
            super::symptom::read(host, formats, *readings, *is_judged)
        }
        Remark::Node { host, state, reason } => super::symptom::node(host, state, reason),
        Remark::Shared { pairs, each_bps, alone_bps, ports } => {
            super::symptom::shared(*pairs, *each_bps, *alone_bps, *ports)
        }
        Remark::Replica { host, device, connection, disks, bytes_per_s } => {
            super::symptom::replica(host, device, connection, disks, *bytes_per_s)
        }
        Remark::Disk(remark) => disk(remark),
        Remark::Together(seen) => together(seen),
        Remark::Outlier(seen) => {
            format!("{}; {}", super::outlier::line(seen), super::outlier::when(seen))
        }
        Remark::SentAgain { host, per_s, at_rest: rest } => format!(
            "host {host}, what it receives: every sender retransmits, {} segments a second, and none does elsewhere.{}",
            short(*per_s),
            rest.as_ref().map_or(String::new(), at_rest)
        ),
        Remark::FrontEnds { slow, fine } => {
            let one = |(name, of, times): &(String, HttpStep, f64)| {
                format!("{name} ({} {} worse)", step(*of), ratio(*times))
            };
            let slow: Vec<String> = slow.iter().map(one).collect();
            format!("downloads are slow through {}; fine through {}", slow.join(", "), fine.join(", "))
        }
        Remark::Crossing(hosts) => format!(
            "requests in turn over {hosts} front ends, one of which has the service, cross to another host in {} of the cases: \
             that is structure, no fault",
            percent(1.0 - 1.0 / *hosts as f64)
        ),
        Remark::OtherTraffic { host, direction, share, bps } => other_traffic(host, *direction, *share, *bps),
        Remark::Paced { share, assumed } => paced(*share, assumed.as_ref()),
        Remark::Methods { class, methods, bps, plain_bps } => by_methods(*class, methods, *bps, *plain_bps),
        Remark::OptionLost { option, pairs, lost, kept } => option_lost(*option, pairs, *lost, *kept),
        Remark::Marked { from, to, layer, share } => format!(
            "{from} to {to} ({layer}): a queue on the path marks {} of the segments (CE) instead of dropping them: it is congested there",
            percent(*share)
        ),
    }
}

fn other_traffic(host: &str, direction: Direction, share: f64, bps: f64) -> String {
    let does = if direction == Direction::Rx { "received" } else { "sent" };
    format!(
        "host {host} {does} other traffic of about {} during the tests, {} of what its NIC counted; `ss -tinp` there lists connections with their bytes",
        rate(bps),
        percent(share)
    )
}

fn paced(share: f64, assumed: Option<&(Vec<String>, f64)>) -> String {
    let assumed = assumed.map_or(String::new(), |(hosts, bps)| {
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        format!("; the link speed of {} is not known: {} assumed", ranges(&hosts), rate(*bps))
    });
    format!("{}{assumed}", pace(share))
}

/// What tests that are paced to a share of each link can show.
pub(crate) fn pace(share: f64) -> String {
    format!("transfers took {} of each link: slower than that is seen, faster is not", percent(share))
}

fn by_methods(class: PathClass, methods: &MethodPair, bps: f64, plain_bps: f64) -> String {
    let speed = class.link_bps.map_or("unknown speed".to_owned(), |bps| rate(bps as f64));
    format!(
        "transfers over links of {speed} ({}) were made by {methods}, which reached {}; {}, the methods of other paths, reached {}",
        class.layer,
        rate(bps),
        MethodPair::plain(),
        rate(plain_bps)
    )
}

fn option_lost(option: TcpOption, pairs: &[(String, String)], lost: usize, kept: usize) -> String {
    let option = match option {
        TcpOption::Sack => "selective acknowledgements (SACK)",
        TcpOption::Ecn => "congestion marks (ECN)",
        TcpOption::Timestamps => "timestamps",
        TcpOption::WindowScale => "window scale",
    };
    let mut named: Vec<String> = pairs.iter().map(|(from, to)| format!("{from} to {to}")).collect();
    if lost > pairs.len() {
        named.push(format!("{} more pairs", lost - pairs.len()));
    }
    let others = if kept > 0 { format!("; {kept} other pairs have it") } else { String::new() };
    format!(
        "connections of {} go without {option}, which both hosts have switched on: a device on the path takes it out{others}",
        named.join(", ")
    )
}

/// A layer of which too many pairs have no valid transfer, as something that could not be seen.
pub(crate) fn unmeasured((layer, pairs, of): &(Layer, usize, usize)) -> Gap {
    Gap {
        what: format!("the throughput of {pairs} of {of} pairs ({layer})").into(),
        reason: "each of their transfers was contended; survey again when the hosts are idle".to_owned(),
    }
}

/// What a step of a download is called.
pub(crate) fn step(step: HttpStep) -> &'static str {
    match step {
        HttpStep::Dns => "resolving its name",
        HttpStep::Connect => "connecting",
        HttpStep::Tls => "the TLS handshake",
        HttpStep::FirstByte => "the first byte",
        HttpStep::Rate => "the rate",
    }
}

/// What was taken for ports.
pub(super) fn ports(classes: &[PortClass]) -> String {
    let class = |class: &PortClass| {
        let link = class.link_bps.map_or(String::new(), |bps| format!(" (ports of {})", rate(bps)));
        let hosts: Vec<&str> = class.hosts.iter().map(String::as_str).collect();
        format!("{} reach {}{link}", ranges(&hosts), rate(class.bps))
    };
    let classes: Vec<String> = classes.iter().map(class).collect();
    format!("as it seems, their ports have different speeds: {}", classes.join(", "))
}

/// What an addition to a sentence says of a host at rest.
pub(super) fn at_rest(rest: &AtRest) -> String {
    format!(" It shows only under load: otherwise {} a day at {}.", short(rest.per_day), rest.host)
}

fn outcome(repetition: Repetition) -> &'static str {
    match repetition {
        Repetition::Refuted => "and not confirmed by a repetition",
        Repetition::Invalid => "and its repetition was contended; survey again when the hosts are idle",
        Repetition::Missing => "and not tested again; a survey that has more time repeats it",
        Repetition::MissingInImport => "and not repeated; measure that again before you believe it",
    }
}

/// A rate of a disk.
pub(super) fn bytes_rate(bytes_per_s: f64) -> String {
    if bytes_per_s < 1e6 {
        format!("{} kB/s", short(bytes_per_s / 1e3))
    } else {
        format!("{} MB/s", short(bytes_per_s / 1e6))
    }
}

/// How slow writes are.
pub(crate) fn slow_writes(wait_ms: Option<f64>, bytes_per_s: f64) -> String {
    let rate = bytes_rate(bytes_per_s);
    match wait_ms {
        Some(ms) => format!("a synchronous write takes {} ms ({rate})", short(ms)),
        None => format!("writes in a row reach {rate}"),
    }
}

fn disk(remark: &DiskRemark) -> String {
    let drive = |host: &str, device: &str| {
        if host.is_empty() { device.to_owned() } else { format!("{host} {device}") }
    };
    match remark {
        DiskRemark::Slow { host, device, pattern, wait_ms, usual_ms, others } => format!(
            "{}: a {pattern} takes {} ms, one of the {others} other drives {} ms at its rate: slow among its equals, if all are of one kind; `linerate disk watch` looks at it over time",
            drive(host, device),
            short(*wait_ms),
            short(*usual_ms)
        ),
        DiskRemark::Saturated { host, device, busy, per_s, merged_per_s } => {
            let merged = if *merged_per_s >= 1.0 {
                format!(" after merging {} a second", short(*merged_per_s))
            } else {
                String::new()
            };
            format!(
                "{}: busy for {} of the time with {} requests a second{merged}: if it is a rotating disk, it is the limit",
                drive(host, device),
                percent(*busy),
                short(*per_s)
            )
        }
        DiskRemark::SlowWrites { host, wait_ms, bytes_per_s } => {
            let at = if host.is_empty() { String::new() } else { format!("{host}: ") };
            format!(
                "{at}{}: no drive needs that long, something holds the writes back",
                slow_writes(*wait_ms, *bytes_per_s)
            )
        }
        DiskRemark::Volume { host, device, name, on, per_s, busy } => {
            let on = if on.is_empty() { String::new() } else { format!(" on {}", on.join(", ")) };
            let requests = per_s.map_or(String::new(), |r| format!(": {} requests a second", short(r)));
            let busy = busy.map_or(String::new(), |b| format!(", busy for {} of the time", percent(b)));
            format!("{} is the volume {name}{on}{requests}{busy}", drive(host, device))
        }
    }
}

fn together(seen: &Together) -> String {
    let mut text = format!(
        "{}: {} count the same packets: their counters move together (correlation {:.2})",
        seen.key,
        seen.hosts.join(", "),
        seen.correlation
    );
    if !seen.quiet.is_empty() {
        let _ = write!(text, "; {} count hardly any", seen.quiet.join(", "));
    }
    if !seen.shared.is_empty() {
        let _ = write!(text, ". What they share and the others have not: {}", seen.shared.join("; "));
    }
    format!("{text}. {} a minute at {}", short(seen.most.1), seen.most.0)
}

/// What was not used, and why.
pub(super) fn refused(refused: &Refused) -> String {
    match refused {
        Refused::PageCache { figure, written } => format!(
            "{} {} {} of {} MB/s: {} times what is written there, so it was read from the page cache, not from the disk",
            figure.what,
            figure.variant,
            figure.pattern,
            short(figure.bytes_per_s / 1e6),
            short(figure.bytes_per_s / written)
        ),
        Refused::Mean { from, to, layer, levels: (high, low) } => format!(
            "{from} to {to} ({layer}): the mean throughput, for it jumps between {} and {}",
            rate(*high),
            rate(*low)
        ),
        Refused::Test { kind, from, to, reason } => format!("{kind} {from} to {to}: {reason}"),
    }
}
