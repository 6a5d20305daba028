//! Where and how much, in one line: a located loss in, words out.

use linerate_knowledge::placeholder::is_command;
use linerate_model::finding::{Clue, Direction, FactHit, LayerScope, Metric, ReplicaPattern, Suspect};
use linerate_model::names::ranges;
use linerate_model::units::{percent, value};
use linerate_model::verdict::{Certainty, LossBasis, VerdictCause, VerdictLoss};

use crate::names;

/// Hosts that are named.
const HOSTS_MAX: usize = 3;

/// The line.
pub(super) fn line(loss: &VerdictLoss, cause: Option<&VerdictCause>) -> String {
    let mut parts = Vec::new();
    if loss.affected > 0 && loss.tested > 1 {
        parts.push(format!("{} of {} pairs", loss.affected, loss.tested));
    }
    if let LayerScope::Only(layer) = loss.layer {
        parts.push(format!("{layer} only"));
    }
    if loss.intermittent {
        parts.push("intermittent".to_owned());
    }
    if loss.certainty < Certainty::Likely {
        parts.push(format!("{}, repeat it", loss.certainty.word()));
    }
    let text = what(loss, cause);
    if parts.is_empty() { text } else { format!("{text} ({})", parts.join(", ")) }
}

/// Other suspects that the same evidence fits, for the end of the line.
pub(super) fn or(loss: &VerdictLoss) -> Vec<String> {
    let first = loss.locations.first().map_or(1.0, |at| at.probability);
    // What is as good as certain has no alternative.
    if Certainty::of(first) == Certainty::Certain {
        return Vec::new();
    }
    let others = loss.locations.iter().skip(1).filter(|p| Certainty::of(p.probability) > Certainty::Unknown);
    others.map(|p| subject(&p.suspect, p.direction)).collect()
}

fn what(loss: &VerdictLoss, cause: Option<&VerdictCause>) -> String {
    let first = loss.locations.first();
    let (suspect, direction) =
        first.map_or((&Suspect::All, Direction::Both), |at| (&at.suspect, at.direction));
    let unit = loss.metric.unit();
    let (measured, expected) = (value(loss.measured, unit), value(loss.expected, unit));
    let of = if loss.basis == LossBasis::Peers {
        format!("{measured}, its peers {expected}")
    } else {
        format!("{measured} of {expected}")
    };
    let subject = subject(suspect, direction);
    if loss.basis == LossBasis::Reading {
        return read(loss, suspect, cause);
    }
    match (loss.metric, suspect) {
        (_, _) if loss.is_dead => format!("{subject}: nothing gets through"),
        (Metric::Throughput, Suspect::Host(_) | Suspect::Group(_)) => moved(suspect, direction, &of),
        (Metric::Throughput, _) => format!("{subject}: {of}"),
        (Metric::Storage, _) => match &loss.replica {
            Some(replica) => format!("{} over {}: {of}", pattern(replica.pattern), replica.transport),
            None => format!("{subject}: storage {of}"),
        },
        (Metric::Loss, Suspect::Host(host) | Suspect::Group(host)) => match direction {
            Direction::Rx => format!("{host} loses {measured} of the UDP datagrams that it receives"),
            Direction::Tx => format!("{host} loses {measured} of the UDP datagrams that it sends"),
            Direction::Both => format!("{host} loses {measured} of its UDP datagrams, both directions"),
        },
        (Metric::Loss, _) => format!("{subject}: {measured} of UDP datagrams lost"),
        (Metric::Reordering, _) => format!("{subject}: {measured} of datagrams out of order or twice"),
        (Metric::TwoState, _) => format!("{subject}: throughput jumps between {expected} and {measured}"),
        (Metric::PathMtu, _) => format!("{subject}: packets of {measured} pass, of {expected} do not"),
        (Metric::TcpOptions, _) => format!("{subject}: connections lose an option of TCP"),
        (Metric::Stalls, _) => format!("{subject}: stalls of {measured}"),
        (Metric::Setting, _) => format!("{subject}: held back in {measured} of its tests"),
        (metric, _) => format!("{subject}: {} {measured}, {expected} elsewhere", metric.label()),
    }
}

/// Who moves how much.
fn moved(suspect: &Suspect, direction: Direction, of: &str) -> String {
    let (name, is_group) = match suspect {
        Suspect::Host(name) => (name, false),
        Suspect::Group(name) => (name, true),
        _ => return String::new(),
    };
    match (direction, is_group) {
        (Direction::Tx, false) => format!("{name} sends {of}"),
        (Direction::Rx, false) => format!("{name} receives {of}"),
        (Direction::Both, false) => format!("{name} sends and receives {of}"),
        (Direction::Tx, true) => format!("{name} sends {of} to other groups"),
        (Direction::Rx, true) => format!("{name} receives {of} from other groups"),
        (Direction::Both, true) => format!("{name}, to and from other groups: {of}"),
    }
}

/// A suspect as the beginning of a line.
pub(super) fn subject(suspect: &Suspect, direction: Direction) -> String {
    match (suspect, direction) {
        (Suspect::Host(name), Direction::Both) => name.clone(),
        (Suspect::Group(name), Direction::Both) => format!("{name}, to and from other groups"),
        (Suspect::Host(name), Direction::Tx) => format!("{name}, sending"),
        (Suspect::Host(name), Direction::Rx) => format!("{name}, receiving"),
        (Suspect::Group(name), Direction::Tx) => format!("{name}, sending to other groups"),
        (Suspect::Group(name), Direction::Rx) => format!("{name}, receiving from other groups"),
        (Suspect::Pair(a, b), Direction::Both) => format!("{a} and {b}, both directions"),
        (Suspect::Pair(from, to) | Suspect::GroupToGroup(from, to), _) => format!("{from} -> {to}"),
        (Suspect::Mismatch(_, hosts), _) => some(hosts),
        (Suspect::Drive(host, device), _) => format!("drive {device} of {host}"),
        (Suspect::All, _) => "every pair".to_owned(),
    }
}

fn some(hosts: &[String]) -> String {
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let short = ranges(&hosts);
    if short.chars().count() <= 40 {
        short
    } else {
        names::list(&hosts.iter().map(|h| (*h).to_owned()).collect::<Vec<_>>(), HOSTS_MAX)
    }
}

/// What is wrong in words, where nothing was measured; what was read is the cause.
fn read(loss: &VerdictLoss, suspect: &Suspect, cause: Option<&VerdictCause>) -> String {
    let hosts = match (suspect, loss.read_on) {
        (Suspect::All, Some((of, hosts))) if of < hosts => format!("{of} of {hosts} hosts"),
        (Suspect::All, Some((_, hosts))) => format!("all {hosts} hosts"),
        (Suspect::All, None) => "most hosts".to_owned(),
        (Suspect::Host(_) | Suspect::Group(_), _) => {
            let mut hosts: Vec<String> = Vec::new();
            for at in &loss.locations {
                if let Suspect::Host(name) | Suspect::Group(name) = &at.suspect
                    && Certainty::of(at.probability) > Certainty::Unknown
                    && !hosts.contains(name)
                {
                    hosts.push(name.clone());
                }
            }
            names::list(&hosts, HOSTS_MAX)
        }
        (suspect, _) => subject(suspect, Direction::Both),
    };
    cause.map_or_else(|| format!("{hosts}: a setting differs"), |cause| format!("{hosts}: {}", cause.title))
}

/// What was read of the same setting on several hosts.
pub(super) fn readings(evidence: &[Clue]) -> Option<String> {
    let hits = evidence.iter().filter_map(|clue| match clue {
        Clue::Read(hit) => Some(hit),
        _ => None,
    });
    let hits: Vec<&FactHit> = hits.collect();
    let first = *hits.first()?;
    let same: Vec<&&FactHit> = hits.iter().filter(|hit| hit.key == first.key).collect();
    let all: Vec<String> =
        same.iter().map(|hit| format!("{} on {}", value_of(&hit.value), hit.host)).collect();
    (all.len() > 1).then(|| format!("{} is {}", setting(&first.key), names::list(&all, HOSTS_MAX)))
}

fn value_of(value: &linerate_model::fact::FactValue) -> String {
    names::cut(&value.to_string(), 28)
}

/// A key as people name the setting of a device.
fn setting(key: &str) -> String {
    let of_drive = ["disk.", "disk_health.", "disk_limit."].iter().find_map(|head| key.strip_prefix(head));
    // A folder may have dots of its own.
    let of_device = of_drive.and_then(|rest| rest.split_once('.'));
    let of_device = of_device.or_else(|| key.strip_prefix("nfs.").and_then(|rest| rest.rsplit_once('.')));
    if let Some((device, rest)) = of_device {
        return format!("{device} {rest}");
    }
    if let Some((resource, rest)) = key.strip_prefix("drbd.").and_then(|rest| rest.split_once('.')) {
        return format!("DRBD {resource} {rest}");
    }
    if let Some(folder) = key.strip_prefix("mount.") {
        return format!("the mount of {folder}");
    }
    names::setting(key).replace(" feature.", " ")
}

/// A reading, without its host; `peers` with what the others have.
pub(super) fn reading(clue: &Clue, peers: bool) -> Option<String> {
    match clue {
        Clue::Read(hit) if hit.key.starts_with("sentence.") => Some(format!("its log has `{}`", hit.value)),
        Clue::Read(hit) => {
            let others = hit.peers.as_ref().filter(|others| peers && **others != hit.value);
            let others = others.map_or(String::new(), |others| format!(", peers: {}", value_of(others)));
            Some(format!("{}: {}{others}", setting(&hit.key), value_of(&hit.value)))
        }
        Clue::Measured { says: words, value, .. } if !words.is_empty() => {
            Some(words.replace("{%}", &percent(*value)).replace("{}", &linerate_model::units::short(*value)))
        }
        Clue::AlsoOn(_) | Clue::Measured { .. } => None,
    }
}

/// The value of a setting where its line has no space for all of its name: with the end of the name, alone,
/// and cut to so many columns.
pub(super) fn shorter(clue: &Clue, columns: usize) -> Vec<String> {
    /// Less of a value means nothing.
    const LEAST: usize = 8;
    let Clue::Read(hit) = clue else { return Vec::new() };
    let (value, end) = (value_of(&hit.value), hit.key.rsplit('.').next().unwrap_or_default());
    let alone = format!("now {value}");
    let cut = (columns >= LEAST).then(|| names::cut(&alone, columns));
    [format!("{end}: {value}"), alone].into_iter().chain(cut).collect()
}

fn pattern(pattern: ReplicaPattern) -> &'static str {
    match pattern {
        ReplicaPattern::Write => "replicated writes",
        ReplicaPattern::RandomWrite => "replicated random writes",
        ReplicaPattern::Resync => "resync",
    }
}

/// A fix by hand, with its host before a command; words name the host themselves.
pub(super) fn by_hand(text: &str, host: &str) -> String {
    let is_on_host = is_command(text) && !text.starts_with("linerate ");
    if is_on_host && !host.is_empty() { format!("on {host}: {text}") } else { text.to_owned() }
}
