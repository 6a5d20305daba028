//! Text of netperf: TCP_STREAM, TCP_MAERTS, TCP_SENDFILE, UDP_STREAM, TCP_RR and UDP_RR, omni, and `-k`
//! pairs. Lines come in, a transfer or an RTT goes out. The percentages of `-c -C` are those of the whole
//! machine, not of one core.

use linerate_model::kind::{RttPlan, TestKind};
use linerate_model::load::Interval;
use linerate_model::sample::{Measurement, Outcome};

use super::transfer::Transfer;
use crate::ends;
use crate::reader::{Block, Reader};
use crate::sink::{Raw, Sink};
use crate::units::{iperf_rate, number};

/// The format.
pub(crate) struct Netperf;

/// Kind of test in the title.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Stream,
    Maerts,
    Udp,
    Turns,
}

/// `MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.0.0.2 () port 0 AF_INET : demo`:
/// kind, from, to.
fn title(line: &str) -> Option<(Kind, Option<&str>, &str)> {
    let line = line.trim();
    let (head, rest) = line.split_once(" TEST ")?;
    let head = head.strip_prefix("MIGRATED ").unwrap_or(head);
    let kind = match head.to_uppercase().as_str() {
        "TCP STREAM" | "TCP SENDFILE" | "OMNI SEND" => Kind::Stream,
        "TCP MAERTS" | "OMNI RECEIVE" => Kind::Maerts,
        "UDP STREAM" | "UDP UNIDIRECTIONAL SEND" => Kind::Udp,
        "TCP REQUEST/RESPONSE" | "UDP REQUEST/RESPONSE" | "OMNI SEND|RECV" => Kind::Turns,
        _ => return None,
    };
    let (from, to) = match rest.strip_prefix("from ") {
        Some(rest) => {
            let (from, to) = rest.split_once(" to ")?;
            (from.split_whitespace().next(), to)
        }
        None => (None, rest.strip_prefix("to ")?),
    };
    // The address in brackets is cut to what fits; the name before it is whole.
    Some((kind, from.filter(|f| !f.contains("0.0.0.0") && *f != "(null)"), to.split_whitespace().next()?))
}

/// Lines of the table's head.
const HEADS: [&str; 11] =
    ["Recv", "Socket", "Size", "bytes", "Local", "Send", "!!!", "Messages", "enable_", "Final", "Remote"];

/// A row of an omni test, whose rate has its unit behind it: seconds, rate, and bit/s of one unit; none of
/// transactions. `2626560 6291456 16384 10.00 9414.92 10^6bits/s 2.16 S …`
fn omni(words: &[&str]) -> Option<(f64, f64, Option<f64>)> {
    let unit = |word: &str| match word {
        "bits/s" => Some(Some(1.0)),
        "10^3bits/s" => Some(Some(1e3)),
        "10^6bits/s" => Some(Some(1e6)),
        "10^9bits/s" => Some(Some(1e9)),
        "Trans/s" => Some(None),
        // `MBytes/s`
        _ => Some(Some(iperf_rate(&format!("{word}ec"))?)),
    };
    let (at, unit) = words.iter().enumerate().skip(2).find_map(|(at, word)| Some((at, unit(word)?)))?;
    number(words[0].trim_start_matches('-'))?;
    Some((number(words[at - 2])?, number(words[at - 1])?, unit))
}

impl Reader for Netperf {
    fn name(&self) -> &'static str {
        "netperf"
    }

    fn describes(&self) -> &'static str {
        "netperf: streams and request/response"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        title(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some((kind, from, to)) = title(block.first()) else {
            out.unread(0, "no title of netperf");
            return 1;
        };
        let mut test = Test { unit: 1e6, ..Test::default() };
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            if title(line).is_some() || !test.line(line) {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        let reversed = kind == Kind::Maerts;
        let ends = match from {
            Some(local) if !crate::sink::is_loopback(to) => ends::of_connection(block.at, out, local, to)
                .map(|(here, there)| if reversed { (there, here) } else { (here, there) }),
            _ => ends::of_command(block.at, Some(to), reversed),
        };
        match ends {
            Some(ends) => test.put(kind, ends, block, out),
            None => out.unread(0, ends::WHO),
        }
        taken
    }
}

/// Seconds, rate in the unit of the table, datagrams lost and sent.
type Whole = (f64, f64, Option<(f64, f64)>);

#[derive(Default)]
struct Test {
    /// Bit/s of one unit of the table.
    unit: f64,
    rows: Vec<Vec<f64>>,
    interim: Vec<(f64, f64)>,
    keyed: Vec<(String, String)>,
    omni: Option<(f64, f64, Option<f64>)>,
}

impl Test {
    fn line(&mut self, line: &str) -> bool {
        let line = line.trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        if let Some(rest) = line.strip_prefix("Interim result: ") {
            let words: Vec<&str> = rest.split_whitespace().collect();
            if let [rate, unit, "over", seconds, ..] = words[..]
                && let (Some(rate), Some(seconds)) = (number(rate), number(seconds))
                && unit.contains("bits")
            {
                self.interim.push((rate * 1e6, seconds));
            }
            return true;
        }
        if line.starts_with("bytes") {
            // `-f` chooses the unit: 10^6bits, 10^9bits, 10^3bits, MBytes, KBytes, GBytes; with CPU columns
            // `10^6bits/s`.
            let unit = line.replace("Bytes  /s", "Bytes/sec");
            let found = unit.split_whitespace().find_map(|w| match w.trim_end_matches("ec") {
                "10^6bits/s" => Some(1e6),
                "10^9bits/s" => Some(1e9),
                "10^3bits/s" => Some(1e3),
                _ => iperf_rate(w),
            });
            self.unit = found.unwrap_or(self.unit);
            return true;
        }
        if let Some(row) = omni(&words) {
            self.unit = row.2.unwrap_or(self.unit);
            return self.omni.replace(row).is_none();
        }
        let numbers: Option<Vec<f64>> = words.iter().map(|w| number(w.trim_start_matches('-'))).collect();
        if let Some(numbers) = numbers.filter(|n| n.len() >= 2) {
            self.rows.push(numbers);
            return self.rows.len() <= 2;
        }
        if let [pair] = words[..]
            && let Some((key, value)) = pair.split_once('=')
        {
            self.keyed.push((key.to_owned(), value.to_owned()));
            return true;
        }
        line.is_empty() || HEADS.iter().any(|head| line.starts_with(head))
    }

    fn keyed(&self, key: &str) -> Option<f64> {
        self.keyed.iter().find(|(k, _)| k == key).and_then(|(_, v)| number(v))
    }

    /// The figures of the whole test.
    fn whole(&self, kind: Kind) -> Option<Whole> {
        // Rows of streams: sizes of receive and send socket, message, time, rate, then CPU.
        match (kind, self.rows.first().map(Vec::as_slice), self.rows.get(1).map(Vec::as_slice)) {
            (Kind::Stream | Kind::Maerts, Some([_, _, _, time, rate, ..]), _)
            | (Kind::Turns, Some([_, _, _, _, time, rate, ..]), _) => Some((*time, *rate, None)),
            (Kind::Udp, Some([_, _, time, sent, _, _, ..]), Some([_, _, got, rate, ..])) => {
                Some((*time, *rate, Some(((sent - got).max(0.0), *sent))))
            }
            _ => {
                let omni = self.omni.filter(|row| row.2.is_none() == (kind == Kind::Turns));
                let keyed = || Some((self.keyed("ELAPSED_TIME").unwrap_or(10.0), self.keyed("THROUGHPUT")?));
                let (time, rate) = omni.map(|(time, rate, _)| (time, rate)).or_else(keyed)?;
                Some((time, rate, None))
            }
        }
    }

    fn put(self, kind: Kind, ends: (String, String), block: &Block<'_>, out: &mut Sink) {
        // The title of an omni test does not name its protocol.
        let names_udp = || block.at.command.words.iter().any(|w| w.eq_ignore_ascii_case("udp"));
        if self.omni.is_some() && (kind == Kind::Udp || kind != Kind::Turns && names_udp()) {
            return out.unread(0, "a UDP sender does not know what arrived");
        }
        let Some((seconds, rate, lost)) = self.whole(kind) else {
            return out.unread(0, "the table of this test has no row of figures");
        };
        if kind == Kind::Turns {
            let turn = |us: f64| {
                Outcome::Measured(Box::new(Measurement { rtt_idle_us: Some(us), ..Measurement::default() }))
            };
            // Each request waits for the answer to the one before, except with a burst.
            let burst = block.first().split("first burst ").nth(1).and_then(|n| number(n.split(' ').next()?));
            let outcome = if rate > 0.0 && burst.is_none_or(|b| b == 0.0) {
                turn(1e6 / rate)
            } else {
                return out.unread(0, "requests in bursts do not measure the RTT");
            };
            let (kind, layer) = (
                TestKind::from(RttPlan { count: (rate * seconds).clamp(1.0, 65535.0) as u16 }),
                block.at.layer(),
            );
            let (from, to) = ends;
            return out.sample(Raw {
                from,
                to,
                layer,
                kind,
                outcome,
                flow: None,
                start_ms: 0,
                variant: None,
            });
        }
        let mut time = 0.0;
        let series: Vec<Interval> = self
            .interim
            .iter()
            .map(|(bps, seconds)| {
                time += seconds;
                Interval { at_ms: time * 1000.0, throughput_bps: *bps, ..Interval::default() }
            })
            .collect();
        let transfer = Transfer {
            ends,
            streams: 1,
            seconds,
            received_bps: Some(rate * self.unit),
            series,
            series_received: kind == Kind::Maerts,
            datagrams: lost,
            udp: kind == Kind::Udp,
            ..Transfer::default()
        };
        transfer.put(block.at, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_of_old_and_new_versions() {
        let new = "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.0.0.2 () port 0 AF_INET : demo";
        assert_eq!(title(new), Some((Kind::Stream, None, "10.0.0.2")));
        assert_eq!(title("TCP STREAM TEST to foobar"), Some((Kind::Stream, None, "foobar")));
        let bound =
            "MIGRATED TCP MAERTS TEST from 10.10.1.1 () port 0 AF_INET to 10.10.1.2 () port 0 AF_INET";
        assert_eq!(title(bound), Some((Kind::Maerts, Some("10.10.1.1"), "10.10.1.2")));
        assert_eq!(title("A TEST from b to c"), None);
    }
}
