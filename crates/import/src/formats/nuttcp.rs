//! nuttcp: `69.4953 MB / 3.05 sec = 191.0820 Mbps 1 %TX 7 %RX 0 retrans 0.12 msRTT`, and the same as
//! `key=value`. Lines come in, a transfer goes out. Mbps are decimal; the RTT is that of the connection's
//! set-up; the percentages are shares of one CPU.

use linerate_model::load::Interval;

use super::transfer::Transfer;
use crate::context::{Command, is_host};
use crate::ends;
use crate::reader::{Block, Reader};
use crate::sink::{Sink, is_loopback, plain_address};
use crate::units::number;

/// The format.
pub(crate) struct Nuttcp;

/// Bit/s by the prefix of `bps`.
fn factor(unit: &str) -> Option<f64> {
    Some(match unit {
        "bps" => 1.0,
        "Kbps" => 1e3,
        "Mbps" => 1e6,
        "Gbps" => 1e9,
        _ => return None,
    })
}

#[derive(Debug, Default, PartialEq)]
struct Line {
    seconds: f64,
    bps: f64,
    cpu: (Option<f64>, Option<f64>),
    retransmits: Option<f64>,
    rtt_us: Option<f64>,
    datagrams: Option<(f64, f64)>,
    /// An interval rather than the total: it has no CPU values.
    part: bool,
}

fn line(text: &str) -> Option<Line> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.first()?.starts_with("megabytes=") {
        return keyed(&words);
    }
    let at = words.iter().position(|w| *w == "=")?;
    // `69.5 MB / 3.05 sec = 191.1 Mbps`; interval reports of old versions have no blank behind the slash.
    let seconds = number(words.get(at.checked_sub(2)?)?.trim_start_matches('/'))?;
    let (unit, size) = (words.get(at.checked_sub(1)?)?, words.get(1)?);
    if !["sec", "s"].contains(unit) || !["B", "KB", "MB", "GB", "TB"].contains(size) {
        return None;
    }
    let bps = number(words.get(at + 1)?)? * factor(words.get(at + 2)?)?;
    let mut found = Line { seconds, bps, part: true, ..Line::default() };
    let rest = words.get(at + 3..).unwrap_or_default();
    for pair in rest.windows(2) {
        match pair[1] {
            "%TX" => (found.cpu.0, found.part) = (number(pair[0]).map(|p| p / 100.0), false),
            "%RX" => (found.cpu.1, found.part) = (number(pair[0]).map(|p| p / 100.0), false),
            "retrans" => found.retransmits = number(pair[0]),
            "msRTT" => found.rtt_us = number(pair[0]).map(|ms| ms * 1000.0),
            _ => {}
        }
    }
    for three in rest.windows(4).filter(|w| w[1] == "/" && w[3] == "drop/pkt") {
        found.datagrams = number(three[0]).zip(number(three[2]));
    }
    Some(found)
}

/// `-fparse`
fn keyed(words: &[&str]) -> Option<Line> {
    let value =
        |key: &str| words.iter().find_map(|w| w.strip_prefix(key)?.strip_prefix('=')).and_then(number);
    Some(Line {
        seconds: value("real_seconds")?,
        bps: value("rate_Mbps")? * 1e6,
        cpu: (value("tx_cpu").map(|p| p / 100.0), value("rx_cpu").map(|p| p / 100.0)),
        retransmits: value("retrans"),
        rtt_us: value("rtt_ms").map(|ms| ms * 1000.0),
        datagrams: value("drop").zip(value("pkt")),
        part: false,
    })
}

impl Reader for Nuttcp {
    fn name(&self) -> &'static str {
        "nuttcp"
    }

    fn describes(&self) -> &'static str {
        "nuttcp, with intervals or -fparse"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        line(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut parts: Vec<Line> = Vec::new();
        let mut taken = 0;
        for (at, text) in block.lines.iter().enumerate() {
            match line(text) {
                Some(found) if found.part => parts.push(found),
                Some(whole) => {
                    put(&whole, &parts, at, block, out);
                    parts.clear();
                }
                None if text.trim().is_empty() => continue,
                None => break,
            }
            taken = at + 1;
        }
        if !parts.is_empty() {
            // Cut before the end: the parts are all there is.
            let seconds: f64 = parts.iter().map(|p| p.seconds).sum();
            let bits: f64 = parts.iter().map(|p| p.bps * p.seconds).sum();
            let whole =
                Line { seconds, bps: if seconds > 0.0 { bits / seconds } else { 0.0 }, ..Line::default() };
            put(&whole, &parts, taken.saturating_sub(1), block, out);
        }
        taken
    }
}

/// The hosts that a command names. Values of options stand behind a blank too: `-T 10 -w 4m`.
fn hosts(command: &Command) -> Vec<&str> {
    if !command.is(&["nuttcp"]) {
        return Vec::new();
    }
    let words = command.words.iter().skip(1).map(String::as_str).take_while(|w| !w.starts_with('<'));
    let mut before = "";
    let mut found = Vec::new();
    for word in words {
        // `10`, `0.5`, `4m`
        let letters = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let is_value = letters.len() <= 1 && number(&word[..word.len() - letters.len()]).is_some();
        if is_host(word) && !is_value && before != "-I" {
            found.push(word);
        }
        before = word;
    }
    found
}

/// Ends of a test between two hosts, neither with the command.
fn between(first: &str, second: &str, reversed: bool) -> Option<(String, String)> {
    let (first, second) = (plain_address(first).to_owned(), plain_address(second).to_owned());
    if first == second || is_loopback(&first) || is_loopback(&second) {
        return None;
    }
    Some(if reversed { (second, first) } else { (first, second) })
}

fn put(whole: &Line, parts: &[Line], at: usize, block: &Block<'_>, out: &mut Sink) {
    let command = &block.at.command;
    let received = command.has(&["-r"]);
    let hosts = hosts(command);
    let ends = match hosts[..] {
        // A third party has the first host send to the second one.
        [first, second] => between(first, second, received),
        _ => ends::of_command(block.at, hosts.last().copied(), received),
    };
    let Some(ends) = ends else {
        out.unread(at, ends::WHO);
        return;
    };
    let mut series = Vec::new();
    let mut time = 0.0;
    for part in parts {
        time += part.seconds;
        let retransmits = part.retransmits.unwrap_or(0.0) as u64;
        series.push(Interval {
            at_ms: time * 1000.0,
            throughput_bps: part.bps,
            retransmits,
            ..Interval::default()
        });
    }
    let streams = command.value(&["-N"]).and_then(|n| n.parse().ok()).unwrap_or(1);
    let transfer = Transfer {
        ends,
        streams,
        seconds: whole.seconds,
        received_bps: Some(whole.bps),
        retransmits: whole.retransmits,
        rtt_idle_us: whole.rtt_us.filter(|us| *us > 0.0),
        cpu: whole.cpu,
        series,
        series_received: true,
        datagrams: whole.datagrams,
        udp: whole.datagrams.is_some() || command.has(&["-u"]),
        ..Transfer::default()
    };
    transfer.put(block.at, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_agree() {
        let read =
            line("   69.4953 MB /   3.05 sec =  191.0820 Mbps 1 %TX 7 %RX 0 retrans 0.12 msRTT").unwrap();
        assert_eq!((read.seconds, read.bps, read.cpu), (3.05, 191.082e6, (Some(0.01), Some(0.07))));
        assert_eq!((read.retransmits, read.rtt_us, read.part), (Some(0.0), Some(120.0), false));
        let keyed =
            line("megabytes=46.6 real_seconds=2.05 rate_Mbps=191.5 tx_cpu=0 rx_cpu=7 retrans=0 rtt_ms=0.09")
                .unwrap();
        assert_eq!((keyed.bps, keyed.rtt_us), (191.5e6, Some(90.0)));
        let udp =
            line(" 11.9219 MB /   2.00 sec =   50.0000 Mbps 66 %TX 1 %RX 3 / 12208 drop/pkt 0.00 %loss")
                .unwrap();
        assert_eq!(udp.datagrams, Some((3.0, 12208.0)));
        assert!(line("   22.9375 MB /   1.00 sec =  192.4004 Mbps     0 retrans").unwrap().part);
        for text in ["a = b", "= 1 Mbps", "kernel.x = 3", "1 MB / x sec = 1 Mbps", ""] {
            assert_eq!(line(text), None, "{text}");
        }
    }
}
