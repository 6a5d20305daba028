//! `/proc/drbd` of DRBD 8: states, counters and the progress of a resync by device. Lines come in; facts,
//! counters and a figure for each resync go out. Of several states of a device the last one counts.

use linerate_model::fact::FactValue;
use linerate_model::snapshot::{StorageFigure, StoragePattern, StorageSubject};

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct Drbd;

/// Counters of the second line that are kept; KiB for the first four (the kernel's `drbd_proc.c` halves
/// sectors).
const COUNTERS: [&str; 8] = ["ns", "nr", "dw", "dr", "al", "bm", "lo", "oos"];

/// States of a connection in which both sides should hold the same, if both report their data as good.
const AT_REST: [&str; 3] = ["Connected", "VerifyS", "VerifyT"];

/// ` 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----`: minor and the rest.
fn device(line: &str) -> Option<(u32, &str)> {
    let (minor, rest) = line.trim().split_once(": ")?;
    Some((minor.parse().ok()?, rest)).filter(|(_, rest)| rest.trim_start().starts_with("cs:"))
}

fn is_version(line: &str) -> bool {
    line.starts_with("version: 8") && line.contains("(api:")
        || line.starts_with("version: 9") && line.contains("(api:")
}

impl Reader for Drbd {
    fn name(&self) -> &'static str {
        "drbd"
    }

    fn describes(&self) -> &'static str {
        "/proc/drbd"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        is_version(block.first()) || device(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut minor = None;
        let mut is_at_rest = false;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some((number, rest)) = device(line) {
                minor = Some(number);
                let word = |wanted: &str| rest.split_whitespace().any(|word| word == wanted);
                is_at_rest =
                    word("ds:UpToDate/UpToDate") && AT_REST.iter().any(|state| word(&format!("cs:{state}")));
                // What an earlier state left behind is over.
                out.forget(&format!("drbd.{number}.out_of_sync_kib"));
                out.forget(&format!("drbd.{number}.resync."));
                state(number, rest, out);
            } else if is_version(line) {
                let version =
                    text.trim_start_matches("version: ").split_whitespace().next().unwrap_or_default();
                out.text("drbd.version", version);
            } else if let Some(minor) = minor.filter(|_| text.starts_with("ns:")) {
                counters(minor, text, out);
                // While something is copied, a side is alone or has no data yet, blocks that differ are the
                // work that is left.
                if let Some(kib) = marked(text).filter(|_| is_at_rest) {
                    out.fact(format!("drbd.{minor}.out_of_sync_kib"), FactValue::Int(kib));
                }
            } else if let Some(minor) = minor.filter(|_| text.contains("speed: ")) {
                resync(minor, text, out);
            } else if !(text.is_empty()
                || ["srcversion:", "GIT-hash:", "[", "finish:", "resync:", "act_log:"]
                    .iter()
                    .any(|s| text.starts_with(s)))
            {
                break;
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}

/// KiB that are marked as different.
fn marked(text: &str) -> Option<i64> {
    text.split_whitespace().find_map(|word| word.strip_prefix("oos:"))?.parse().ok()
}

fn state(minor: u32, rest: &str, out: &mut Sink) {
    let mut words = rest.split_whitespace();
    for word in words.by_ref().take(3) {
        let Some((name, value)) = word.split_once(':') else { continue };
        let fact = match name {
            "cs" => "connection",
            "ro" | "st" => "roles",
            "ds" => "disks",
            _ => continue,
        };
        out.text(format!("drbd.{minor}.{fact}"), value);
    }
    if let Some(protocol) = words.next().filter(|p| ["A", "B", "C"].contains(p)) {
        out.text(format!("drbd.{minor}.protocol"), protocol);
    }
}

fn counters(minor: u32, text: &str, out: &mut Sink) {
    for word in text.split_whitespace() {
        let Some((name, value)) = word.split_once(':') else { continue };
        if name == "wo" {
            out.text(format!("drbd.{minor}.write_ordering"), value);
        } else if let Some(value) = value.parse().ok().filter(|_| COUNTERS.contains(&name)) {
            out.counter(format!("drbd.{minor}.stat.{name}"), value);
        }
    }
}

/// `finish: 0:00:29 speed: 13,572 (13,572) want: 12,280 K/sec`: now, since the start, and what DRBD itself
/// aims at (only at the side that is filled), in KiB/s. Keys as those of the alarm of a running replica.
fn resync(minor: u32, text: &str, out: &mut Sink) {
    let after = |word: &str| {
        let rest = text.split(word).nth(1).filter(|rest| rest.contains("K/sec"))?;
        number(&rest.split_whitespace().next()?.replace(',', ""))
    };
    let want = after("want: ").filter(|want| *want > 0.0);
    if let Some(kib) = after("speed: ") {
        let head = format!("drbd.{minor}.resync");
        out.fact(format!("{head}.kib_per_s"), FactValue::Int(kib as i64));
        if let Some(want) = want {
            out.text(format!("{head}.limit"), &format!("{want} KiB/s (want)"));
            out.fact(format!("{head}.percent_of_limit"), FactValue::Int((100.0 * kib / want).round() as i64));
        }
        out.last_figure(StorageFigure {
            what: StorageSubject::Resync,
            variant: format!("drbd{minor}"),
            pattern: StoragePattern::Write,
            bytes_per_s: kib * 1024.0,
            ..StorageFigure::default()
        });
    }
}
