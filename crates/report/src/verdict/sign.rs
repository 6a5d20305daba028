//! What is plain without a comparison, as items of a verdict: a full CPU, a slow front end, a drive without
//! time left. One branch for each remark that blames something.

use linerate_model::change::Risk;
use linerate_model::remark::{DiskRemark, Remark};
use linerate_model::symptom::{Sign, Symptom};
use linerate_model::units::{percent, rate, ratio, short};
use linerate_model::verdict::{
    Certainty, HostCommand, VerdictCause, VerdictFix, VerdictItem, VerdictSubject,
};

use super::command::Shell;
use crate::names;
use crate::words::outlier;

/// Names in a line.
const NAMES_MAX: usize = 4;

/// Remarks that are one item: the saturated drives of a host; any other by itself.
pub(super) fn together<'a>(remarks: impl Iterator<Item = &'a Remark>) -> Vec<Vec<Remark>> {
    let host = |remark: &Remark| match remark {
        Remark::Disk(DiskRemark::Saturated { host, .. }) => Some(host.clone()),
        _ => None,
    };
    let mut all: Vec<Vec<Remark>> = Vec::new();
    for remark in remarks {
        let own = host(remark);
        match all.iter_mut().find(|of| own.is_some() && host(&of[0]) == own) {
            Some(of) => of.push(remark.clone()),
            None => all.push(vec![remark.clone()]),
        }
    }
    all
}

/// The item of remarks that are one.
pub(super) fn item(remarks: Vec<Remark>, shell: &Shell<'_>) -> VerdictItem {
    let first = remarks.first();
    VerdictItem {
        cause: first.and_then(cause),
        check: first.and_then(|remark| check(remark, shell)),
        fix: first.and_then(fix),
        what: VerdictSubject::Signs(remarks),
        next: None,
    }
}

/// The first line.
pub(super) fn line(remarks: &[Remark]) -> String {
    match remarks {
        [] => String::new(),
        [one] => of_one(one),
        [Remark::Disk(DiskRemark::Saturated { host, .. }), ..] => {
            let drives = remarks.iter().filter_map(|remark| match remark {
                Remark::Disk(DiskRemark::Saturated { device, busy, per_s, .. }) => {
                    Some(format!("{device} {} busy ({} requests/s)", percent(*busy), short(*per_s)))
                }
                _ => None,
            });
            let drives = names::list(&drives.collect::<Vec<_>>(), NAMES_MAX);
            if host.is_empty() {
                format!("saturated drives: {drives}")
            } else {
                format!("{host}, saturated drives: {drives}")
            }
        }
        [first, ..] => of_one(first),
    }
}

/// When it was so, where that is known: a line of its own, so that the first one is never cut for it.
pub(super) fn when(remarks: &[Remark]) -> Option<String> {
    match remarks {
        [Remark::Outlier(seen)] => Some(outlier::when(seen)),
        _ => None,
    }
}

fn of_one(remark: &Remark) -> String {
    match remark {
        Remark::Symptom(symptom) => of_symptom(symptom),
        Remark::Blocks { from, to } => {
            format!("{} receive little from {}; all else is fine", list(to), list(from))
        }
        Remark::Shared { pairs, each_bps, alone_bps, .. } => {
            format!("{pairs} pairs: {} each, one of them alone {}", rate(*each_bps), rate(*alone_bps))
        }
        Remark::FrontEnds { slow, fine } => {
            let times = slow.iter().map(|(_, _, times)| *times).fold(1.0, f64::max);
            let step = slow.first().map_or("", |(_, of, _)| crate::words::step(*of));
            let slow: Vec<String> = slow.iter().map(|(name, ..)| name.clone()).collect();
            format!(
                "downloads through {}: {step} {} worse than through {}",
                list(&slow),
                ratio(times),
                list(fine)
            )
        }
        Remark::SentAgain { host, per_s, .. } => {
            format!(
                "{host}: every sender retransmits to it, {} segments/s; to the others none",
                short(*per_s)
            )
        }
        Remark::Together(seen) => {
            let key = names::setting(&seen.key);
            format!(
                "{} drop the same packets: {key} grows by {} a minute",
                list(&seen.hosts),
                short(seen.most.1)
            )
        }
        Remark::Disk(disk) => of_disk(disk),
        Remark::Outlier(seen) => outlier::line(seen),
        other => crate::words::note(other),
    }
}

fn list(names: &[String]) -> String {
    names::list(names, NAMES_MAX)
}

fn of_symptom(symptom: &Symptom) -> String {
    let pair = format!("{} -> {}", symptom.from, symptom.to);
    match &symptom.sign {
        Sign::CoreFull { bps, .. } => format!("{pair}: {}", rate(*bps)),
        Sign::Window { bps, rtt_us, .. } => {
            format!("{pair}: {} at an RTT of {} ms", rate(*bps), short(rtt_us / 1e3))
        }
        Sign::TwoLevels { high, low } => {
            format!("{pair}: throughput jumps between {} and {}", rate(*high), rate(*low))
        }
        Sign::Standstill { share } => format!("{pair}: nothing gets through {} of the time", percent(*share)),
        Sign::Burst { first_bps, bps, .. } => {
            format!("{pair}: {} at first, then {}", rate(*first_bps), rate(*bps))
        }
        Sign::Unanswered { share } => format!("{pair}: {} of the pings lost", percent(*share)),
        Sign::SlowAnswers { rtt_us } => format!("{pair}: a ping takes {} ms", short(rtt_us / 1e3)),
        Sign::LocalMtu { refused_bytes, .. } => {
            format!("{pair}: the sender itself refuses packets of {refused_bytes} bytes")
        }
        Sign::Resent { per_s, share } => {
            format!("{pair}: {} segments/s sent again, {} of all", short(*per_s), percent(*share))
        }
        Sign::OneDirection { bps, back_bps } => format!("{pair}: {}, back {}", rate(*bps), rate(*back_bps)),
        Sign::OneStream { bps, several_bps } => {
            format!("{pair}: {} with one stream, {} with several", rate(*bps), rate(*several_bps))
        }
        Sign::Conditions(states) => {
            let all: Vec<String> =
                states.iter().map(|(what, bps)| format!("{} ({what})", rate(*bps))).collect();
            format!("{pair}: {}", names::list(&all, NAMES_MAX))
        }
        Sign::BelowLink { bps, link_bps } => {
            format!("{pair}: {} of a link of {}", rate(*bps), rate(*link_bps))
        }
        Sign::NoPort { bps } => format!("{pair}: {}, the full rate of no port", rate(*bps)),
        Sign::FullPort { bps, link_bps } => {
            format!("{pair}: {}, a full port of {}", rate(*bps), rate(*link_bps))
        }
    }
}

fn drive(host: &str, device: &str) -> String {
    if host.is_empty() { device.to_owned() } else { format!("{host} {device}") }
}

fn drive_of(host: &str) -> String {
    if host.is_empty() { String::new() } else { format!("{host}: ") }
}

fn of_disk(disk: &DiskRemark) -> String {
    match disk {
        DiskRemark::Slow { host, device, pattern, wait_ms, usual_ms, others } => format!(
            "{}: a {pattern} takes {} ms, {} ms on the {others} other drives",
            drive(host, device),
            short(*wait_ms),
            short(*usual_ms)
        ),
        DiskRemark::Saturated { host, device, busy, per_s, .. } => {
            format!(
                "{} is saturated: {} busy with {} requests/s",
                drive(host, device),
                percent(*busy),
                short(*per_s)
            )
        }
        DiskRemark::SlowWrites { host, wait_ms, bytes_per_s } => {
            format!("{}{}", drive_of(host), crate::words::slow_writes(*wait_ms, *bytes_per_s))
        }
        DiskRemark::Volume { .. } => crate::words::note(&Remark::Disk(disk.clone())),
    }
}

fn cause(remark: &Remark) -> Option<VerdictCause> {
    let cause = |title: String, certainty| VerdictCause {
        id: String::new(),
        title,
        certainty,
        evidence: Vec::new(),
        changed: None,
    };
    Some(match remark {
        Remark::Symptom(symptom) => match &symptom.sign {
            Sign::CoreFull { host, busy, .. } => {
                cause(format!("one CPU of {host} is full ({} busy)", percent(*busy)), Certainty::Likely)
            }
            Sign::Window { window_bytes, .. } => cause(
                format!("the window: {} kB in flight, not the link", short(window_bytes / 1e3)),
                Certainty::Likely,
            ),
            Sign::Burst { .. } => {
                cause("a token bucket, credits of a cloud, or a cache".to_owned(), Certainty::Possible)
            }
            Sign::SlowAnswers { .. } => {
                cause("a full queue, or power saving of a radio link".to_owned(), Certainty::Possible)
            }
            Sign::OneStream { .. } => {
                cause("one stream is limited: one CPU, or its window".to_owned(), Certainty::Possible)
            }
            Sign::Conditions(states) if states.iter().all(|(what, _)| what.contains("-w ")) => {
                cause("the window decides".to_owned(), Certainty::Likely)
            }
            _ => return None,
        },
        Remark::Blocks { .. } => {
            cause("what the slow receivers share: a machine or a switch".to_owned(), Certainty::Possible)
        }
        Remark::Shared { .. } => cause("a link that the pairs share is full".to_owned(), Certainty::Possible),
        Remark::Together(seen) if !seen.shared.is_empty() => {
            cause(format!("only there: {}", seen.shared.join(", ")), Certainty::Likely)
        }
        Remark::SentAgain { at_rest: Some(rest), .. } => cause(
            format!("unknown; only under load, {} a day at rest", short(rest.per_day)),
            Certainty::Unknown,
        ),
        Remark::FrontEnds { .. } => {
            cause("unknown; find what only the slow ones share".to_owned(), Certainty::Unknown)
        }
        Remark::Disk(DiskRemark::Saturated { merged_per_s, .. }) => {
            let merged = if *merged_per_s >= 1.0 {
                format!(", after merging {}/s", short(*merged_per_s))
            } else {
                String::new()
            };
            cause(format!("more requests than a rotating disk serves{merged}"), Certainty::Possible)
        }
        Remark::Outlier(_) => cause("unknown; counters name the host alone".to_owned(), Certainty::Unknown),
        Remark::Disk(DiskRemark::SlowWrites { .. }) => cause(
            "flushes that wait for every drive, one slow drive, or a cache that is off".to_owned(),
            Certainty::Possible,
        ),
        Remark::Disk(DiskRemark::Slow { .. }) => {
            cause("the drive itself, if all are of one kind".to_owned(), Certainty::Possible)
        }
        _ => return None,
    })
}

fn check(remark: &Remark, shell: &Shell<'_>) -> Option<HostCommand> {
    match remark {
        Remark::Symptom(symptom) => Some(match &symptom.sign {
            Sign::CoreFull { host, .. } => shell.on(host, "mpstat -P ALL 1 5   # during a transfer"),
            Sign::Window { .. } => shell.on(&symptom.to, "sysctl net.ipv4.tcp_rmem"),
            Sign::Burst { .. } | Sign::SlowAnswers { .. } => shell.on(&symptom.from, "tc -s qdisc show"),
            Sign::Unanswered { .. } => shell.on(&symptom.from, "ip -s link show"),
            Sign::LocalMtu { .. } => shell.on(&symptom.from, "ip route show"),
            Sign::OneStream { .. } | Sign::Conditions(_) => {
                shell.on(&symptom.to, "mpstat -P ALL 1 5   # during a transfer")
            }
            _ => shell.own(&["measure", "tcp", &symptom.from, &symptom.to]),
        }),
        Remark::FrontEnds { slow, fine } => {
            let names = slow.iter().map(|(name, ..)| name.as_str()).chain(fine.iter().map(String::as_str));
            let words: Vec<&str> = std::iter::once("survey").chain(names).collect();
            Some(shell.own(&words))
        }
        Remark::SentAgain { host, .. } => Some(shell.on(host, "ip -s link show")),
        Remark::Together(seen) => Some(shell.reads(&seen.most.0, &seen.key)),
        Remark::Outlier(seen) => Some(shell.on(&seen.host, &outlier::check(seen))),
        Remark::Disk(DiskRemark::SlowWrites { host, .. }) if !host.is_empty() => {
            Some(shell.on(host, "iostat -x 1   # during the writes"))
        }
        Remark::Disk(DiskRemark::Slow { host, .. } | DiskRemark::Saturated { host, .. })
            if !host.is_empty() =>
        {
            Some(shell.own(&["disk", "watch", host]))
        }
        _ => None,
    }
}

fn fix(remark: &Remark) -> Option<VerdictFix> {
    let words = match remark {
        Remark::Symptom(symptom) => match &symptom.sign {
            Sign::Window { .. } => {
                // Which of the two buffers it is does not show from outside.
                let hosts = format!("on {} and {}", symptom.from, symptom.to);
                return Some(VerdictFix {
                    hosts: vec![symptom.from.clone(), symptom.to.clone()],
                    by_hand: format!("{hosts}: sysctl -w net.ipv4.tcp_{{r,w}}mem='4096 131072 67108864'"),
                    risk_text: "more memory per busy connection".to_owned(),
                    ..VerdictFix::default()
                });
            }
            Sign::CoreFull { .. } | Sign::OneStream { .. } => {
                "use several streams, or spread the interrupts of the NIC"
            }
            _ => return None,
        },
        Remark::Disk(DiskRemark::Saturated { .. }) => "more spindles, or an SSD",
        Remark::Together(_) => "nothing, if these hosts do not want the packets; else set up what they lack",
        Remark::SentAgain { .. } => "compare its ring, pause frames and switch port with those of the others",
        Remark::Shared { .. } => "compare the port counters of that link, and its hash",
        Remark::Blocks { .. } => "survey again with the slow hosts as one group of the inventory",
        _ => return None,
    };
    Some(VerdictFix {
        trial: None,
        hosts: Vec::new(),
        by_hand: words.to_owned(),
        risk: Risk::Harmless,
        risk_text: String::new(),
    })
}
