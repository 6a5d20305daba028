//! What transfers show by themselves, each symptom in a line.

use linerate_model::symptom::{Sign, Symptom};
use linerate_model::units::{percent, rate, ratio, short};

/// A symptom.
pub(super) fn symptom(symptom: &Symptom) -> String {
    let pair = format!("{} to {} ({})", symptom.from, symptom.to, symptom.layer);
    match &symptom.sign {
        Sign::CoreFull { host, busy, bps } => {
            let end = if *host == symptom.to { "receiver" } else { "sender" };
            format!(
                "{pair}: {}; one CPU of the {end} {host} is busy for {} of the time: it is the limit, not the buffers",
                rate(*bps),
                percent(*busy)
            )
        }
        Sign::Window { window_bytes, rtt_us, bps } => format!(
            "{pair}: {}; {} kB in flight in an RTT of {} ms allow {}: the window is the limit, not the link",
            rate(*bps),
            short(window_bytes / 1e3),
            short(rtt_us / 1e3),
            rate(window_bytes * 8e6 / rtt_us)
        ),
        Sign::TwoLevels { high, low } => {
            format!("{pair}: bimodal throughput: {} / {}", rate(*high), rate(*low))
        }
        Sign::Standstill { share } => {
            format!("{pair}: nothing gets through in {} of the intervals", percent(*share))
        }
        Sign::Burst { first_bps, bps, after_s } => format!(
            "{pair}: {} for {} s, then {}: a burst is let through, and what follows is limited",
            rate(*first_bps),
            short(*after_s),
            rate(*bps)
        ),
        Sign::Unanswered { share } => {
            format!(
                "{pair}: {} of the pings are not answered; a ping does not show in which direction",
                percent(*share)
            )
        }
        Sign::SlowAnswers { rtt_us } => format!(
            "{pair}: a ping takes {} ms: no distance explains that, something holds the packets back",
            short(rtt_us / 1e3)
        ),
        Sign::LocalMtu { refused_bytes, mtu_bytes } => {
            format!("{pair}: {}", local_mtu(&symptom.from, *refused_bytes, *mtu_bytes))
        }
        Sign::Resent { per_s, share } => {
            format!("{pair}: {} segments a second are sent again, {} of all", short(*per_s), percent(*share))
        }
        Sign::OneDirection { bps, back_bps } => format!(
            "{pair}: {}, {} in the opposite direction: what {} receives from {} is slow",
            rate(*bps),
            rate(*back_bps),
            symptom.to,
            symptom.from
        ),
        Sign::OneStream { bps, several_bps } => {
            format!("{pair}: {} with one stream, {} with several", rate(*bps), rate(*several_bps))
        }
        Sign::Conditions(states) => format!("{pair}: {}", conditions(states)),
        Sign::BelowLink { bps, link_bps } => {
            format!("{pair}: {}, {} of what the stated link carries", rate(*bps), percent(bps / link_bps))
        }
        Sign::NoPort { bps } => {
            format!("{pair}: {} is the full rate of no port: something else limits it", rate(*bps))
        }
        Sign::FullPort { bps, link_bps } => {
            let (share, port) = (percent(bps / link_bps), rate(*link_bps));
            format!("{pair}: {}, {share} of a port of {port}: it is full", rate(*bps))
        }
    }
}

/// What a sender refuses itself, by the MTU of its own route.
fn local_mtu(from: &str, refused_bytes: u32, mtu_bytes: Option<u32>) -> String {
    let of = mtu_bytes.map_or_else(|| "smaller".to_owned(), |bytes| bytes.to_string());
    format!(
        "{from} refuses packets of {refused_bytes} bytes itself, as the MTU of its route is {of}, so none of \
         them was lost on the path"
    )
}

/// The rate under each condition of one pair, and the change.
fn conditions(states: &[(String, f64)]) -> String {
    let all: Vec<String> = states.iter().map(|(what, bps)| format!("{} ({what})", rate(*bps))).collect();
    all.join(", then ") + &change(states)
}

/// What the conditions of one pair differ in, and by how much.
fn change(states: &[(String, f64)]) -> String {
    let (Some((_, first)), Some((_, last))) = (states.first(), states.last()) else { return String::new() };
    let windows = states.iter().all(|(what, _)| what.contains("-w "));
    let which = match (last >= first, windows) {
        (true, true) => "a gain: the window decides",
        (false, true) => "a loss: the window decides",
        (true, false) => "a gain",
        (false, false) => "a loss",
    };
    let factor = if last >= first { last / first.max(1.0) } else { first / last.max(1.0) };
    format!("; {which}, {} between the first and the last; no mean is formed", ratio(factor))
}

/// Blocks of a matrix.
pub(super) fn blocks(from: &[String], to: &[String]) -> String {
    format!(
        "the matrix falls into blocks: {} receive little from {}, and all else is fine; if {} share a machine or a \
         switch, give them as a group with -i",
        to.join(", "),
        from.join(", "),
        to.join(", ")
    )
}

/// A node without work.
pub(super) fn node(host: &str, state: &str, reason: &str) -> String {
    let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let state = if state.is_empty() { "out of work".to_owned() } else { state.to_lowercase() };
    format!("{host} is {state} in Slurm{reason}")
}

/// Pairs that share something.
pub(super) fn shared(pairs: usize, each_bps: f64, alone_bps: f64, ports: Option<(usize, f64)>) -> String {
    let together = rate(pairs as f64 * each_bps);
    let full = ports.map_or(String::new(), |(count, bps)| {
        let all = rate(count as f64 * bps);
        format!(", as much as {count} full ports of {} carry ({all})", rate(bps))
    });
    format!(
        "{pairs} pairs reach {} each and {together} together{full}; one of them reached {} alone. If they ran at the \
         same time, they share a link that is full",
        rate(each_bps),
        rate(alone_bps)
    )
}

/// What was read of a host without a finding.
pub(super) fn read(host: &str, formats: &[String], readings: usize, is_judged: bool) -> String {
    let of = if host.is_empty() { String::new() } else { format!(" of {host}") };
    let values = if readings == 1 { "value" } else { "values" };
    let judged = if is_judged { "no rule finds a fault in it" } else { "no rule applies to any of it" };
    format!("read{of}: {} ({readings} {values}); {judged}", formats.join(", "))
}

/// A replica.
pub(super) fn replica(host: &str, device: &str, connection: &str, disks: &str, rate: Option<f64>) -> String {
    let at = rate.map_or(String::new(), |bytes| format!(", resync at {} MB/s", short(bytes / 1e6)));
    let disks = if disks.is_empty() { String::new() } else { format!(", disks {disks}") };
    format!("{host} {device}: {connection}{disks}{at}")
}

#[cfg(test)]
mod tests {
    use linerate_model::inventory::Layer;

    use super::*;

    fn of(sign: Sign) -> String {
        symptom(&Symptom { from: "a".into(), to: "b".into(), layer: Layer::Underlay, sign })
    }

    #[test]
    fn conditions_are_no_mean() {
        let states = vec![("-w 8k".to_owned(), 2.5e9), ("-w 128k".to_owned(), 9.38e9)];
        let text = of(Sign::Conditions(states));
        assert!(text.contains("2.5 Gbit/s (-w 8k), then 9.38 Gbit/s (-w 128k)"), "{text}");
        assert!(text.contains("the window decides"), "{text}");
    }
}
