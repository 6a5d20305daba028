//! What iperf 2 and iperf3 print alike: lines of intervals with `[ID] start-end sec amount rate …`. Lines
//! come in, streams with their parts and totals go out.

use std::collections::BTreeMap;

use linerate_model::load::Interval;

use super::transfer::Transfer;
use crate::reader::Block;
use crate::sink::Sink;
use crate::units::{iperf_amount, iperf_rate, number};

/// One line of figures.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Figures {
    /// Stream: its number, or `SUM`.
    pub id: String,
    /// `TX-C`, `RX-C`, `TX-S`, `RX-S` of a bidirectional test.
    pub role: String,
    /// Seconds since the start.
    pub start: f64,
    /// Seconds since the start.
    pub end: f64,
    /// Bit/s.
    pub bps: f64,
    /// Segments retransmitted.
    pub retransmits: Option<f64>,
    /// Microseconds.
    pub rtt_us: Option<f64>,
    /// Congestion window, bytes.
    pub cwnd_bytes: Option<f64>,
    /// Lost and sent.
    pub datagrams: Option<(f64, f64)>,
    /// `sender` or `receiver` at the end of a total of iperf3.
    pub whose: String,
    /// iperf3 counts it for nothing (`-O`): slow start.
    pub omitted: bool,
}

/// Lines that are skipped to find the next one of the same session.
const GAP_MAX: usize = 3;
/// Length of the usual interval, seconds, with what it may be late.
const SECOND: f64 = 1.05;
/// Intervals with a congestion window that show whether it stays.
const WINDOWS_MIN: usize = 3;
/// A window that moves no more than this, as a factor, stays.
const WINDOW_STAYS: f64 = 1.1;
/// Bytes of the unit in which `iperf -e` prints the congestion window.
const KIB: f64 = 1024.0;

/// Hands the lines of a session on, one after the other, as long as one of the next ones belongs to it;
/// `take` returns whether it understood one. Gives how many lines were taken.
pub(crate) fn lines_of(
    block: &Block<'_>,
    out: &mut Sink,
    tool: &str,
    is_of_session: fn(&str) -> bool,
    mut take: impl FnMut(usize, &str, &mut Sink) -> bool,
) -> usize {
    let mut taken = 0;
    for at in 0..block.lines.len() {
        if at < taken {
            continue;
        }
        let line = block.line(at).trim_start();
        if let Some(whole) = unwrapped(line, block.line(at + 1)) {
            take(at, &whole, out);
            taken = at + 2;
        } else if take(at, line, out) {
            taken = at + 1;
        } else if crate::ends::titled(line).is_some()
            || !(1..=GAP_MAX).any(|n| is_of_session(block.line(at + n)))
        {
            break;
        } else if !line.is_empty() && !["...", "[...]", "…"].contains(&line.trim_end()) {
            out.unread(at, format!("not a line of {tool}"));
        }
    }
    taken
}

/// A line of figures or of a connection that a mail broke in two.
fn unwrapped(line: &str, next: &str) -> Option<String> {
    if !line.starts_with('[') || next.trim().is_empty() || next.trim_start().starts_with('[') {
        return None;
    }
    let whole = || format!("{} {}", line.trim_end(), next.trim());
    let is_figures = figures(line).is_none() && line.contains(" sec") && figures(&whole()).is_some();
    let is_connection =
        line.contains("] local ") && connection(line).is_none() && connection(&whole()).is_some();
    let tail = next.split_whitespace().next().unwrap_or_default();
    let is_tail = ["sender", "receiver", "Bytes", "KBytes", "MBytes", "(omitted)"].contains(&tail)
        && next.split_whitespace().count() <= 2
        && figures(line).is_some_and(|f| f.whose.is_empty());
    (is_figures || is_connection || is_tail).then(whole)
}

/// `[  5]`, `[SUM]`, `[ *1]`: what stands in the first brackets, and the rest.
pub(crate) fn bracket(line: &str) -> Option<(String, &str)> {
    let (inside, rest) = line.trim_start().strip_prefix('[')?.split_once(']')?;
    let id = inside.trim().trim_start_matches('*').to_owned();
    let known = id == "SUM" || (!id.is_empty() && id.len() <= 6 && id.bytes().all(|b| b.is_ascii_digit()));
    known.then_some((id, rest))
}

/// Reads a line of figures.
pub(crate) fn figures(line: &str) -> Option<Figures> {
    let (id, mut rest) = bracket(line)?;
    let mut role = String::new();
    if let Some((inside, after)) = rest.strip_prefix('[').and_then(|r| r.split_once(']')) {
        inside.trim().clone_into(&mut role);
        rest = after;
    }
    let (interval, rest) = rest.split_once(" sec")?;
    let (start, end) = interval.split_once('-')?;
    let (start, end) = (number(start.trim())?, number(end.trim())?);
    let mut words = rest.split_whitespace();
    let amount = words.next()?;
    number(amount)?;
    iperf_amount(words.next()?)?;
    let rate = number(words.next()?)?;
    let bps = rate * iperf_rate(words.next()?)?;
    if end < start || !bps.is_finite() {
        return None;
    }
    let mut found = Figures { id, role, start, end, bps, ..Figures::default() };
    tail(&mut found, &words.collect::<Vec<_>>());
    Some(found)
}

/// What stands behind the rate: retransmits and window, or jitter and losses, or what `iperf -e` adds; and
/// whose line it is.
fn tail(found: &mut Figures, words: &[&str]) {
    if let Some(whose) = words.iter().find(|w| ["sender", "receiver"].contains(w)) {
        (*whose).clone_into(&mut found.whose);
    }
    found.omitted = words.contains(&"(omitted)");
    let fraction = words.iter().enumerate().find_map(|(at, w)| {
        let (lost, all) = w.split_once('/')?;
        // Old versions of iperf 2 pad the second number: `45/  893`.
        let all = if all.is_empty() { words.get(at + 1)? } else { all };
        Some((number(lost)?, number(all)?))
    });
    // A fraction after a time in ms is loss; `iperf -e` prints writes and errors as a fraction too.
    if words.contains(&"ms") {
        found.datagrams = fraction;
    } else if words.iter().any(|w| w.contains("K/")) && words.contains(&"us") {
        found.retransmits = words.get(1).and_then(|w| number(w));
        let window_and_rtt = words.get(2).and_then(|w| w.split_once("K/"));
        found.cwnd_bytes = window_and_rtt.and_then(|(window, _)| number(window)).map(|kib| kib * KIB);
        found.rtt_us =
            window_and_rtt.and_then(|(_, rtt)| number(rtt.split('(').next()?)).filter(|us| *us > 0.0);
    } else {
        found.retransmits = words.first().and_then(|w| number(w));
        let amount = words.get(1).and_then(|w| number(w)).zip(words.get(2).and_then(|u| iperf_amount(u)));
        found.cwnd_bytes = amount.map(|(window, unit)| window * unit).filter(|bytes| *bytes > 0.0);
    }
}

/// The streams of one direction: figures in the order of the lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Streams {
    /// Lines of single streams.
    pub single: Vec<Figures>,
    /// Lines of the sum over all streams.
    pub sum: Vec<Figures>,
    /// Number of streams that were opened; 0 if unknown.
    pub opened: usize,
}

impl Streams {
    /// Adds a line, unless the tool itself leaves it out.
    pub(crate) fn push(&mut self, figures: Figures) {
        if figures.omitted {
            return;
        }
        if figures.id == "SUM" { self.sum.push(figures) } else { self.single.push(figures) }
    }

    /// The streams go on: of each there are intervals and no total. A single line of a second or less is one
    /// of many.
    pub(crate) fn is_going_on(&self) -> bool {
        let mut ids: BTreeMap<&str, Vec<&Figures>> = BTreeMap::new();
        for figures in &self.single {
            ids.entry(&figures.id).or_default().push(figures);
        }
        let is_open = |lines: &Vec<&Figures>| match lines[..] {
            [only] => only.end - only.start <= SECOND,
            _ => Split::of(lines.clone()).totals.is_empty(),
        };
        !ids.is_empty() && ids.values().all(is_open)
    }

    /// Nothing was measured.
    pub(crate) fn is_empty(&self) -> bool {
        self.single.is_empty() && self.sum.is_empty()
    }

    /// The transfer in the lines; `receiving`: this end's own lines are the receiver's.
    pub(crate) fn transfer(&self, receiving: bool) -> Option<Transfer> {
        let mut ids: BTreeMap<&str, Vec<&Figures>> = BTreeMap::new();
        for figures in &self.single {
            ids.entry(&figures.id).or_default().push(figures);
        }
        let streams = self.opened.max(ids.len()).max(1);
        let split: Vec<Split<'_>> = if self.sum.is_empty() {
            ids.into_values().map(Split::of).collect()
        } else {
            vec![Split::of(self.sum.iter().collect())]
        };
        let total = |whose: &str| -> Option<Vec<&Figures>> {
            split.iter().map(|s| s.totals.iter().find(|f| f.whose == whose).copied()).collect()
        };
        let bps = |all: Option<Vec<&Figures>>| {
            all.filter(|all| !all.is_empty()).map(|all| all.iter().map(|f| f.bps).sum::<f64>())
        };
        let own = bps(total("")).or_else(|| {
            let parts: Option<Vec<f64>> = split.iter().map(Split::mean).collect();
            parts.filter(|p| !p.is_empty()).map(|p| p.iter().sum())
        });
        let (mut sent, mut received) = (bps(total("sender")), bps(total("receiver")));
        // A server of old prints a sender's line of nothing, because it does not know.
        sent = sent.filter(|b| *b > 0.0 || received.is_none());
        if sent.is_none() && received.is_none() {
            *(if receiving { &mut received } else { &mut sent }) = own;
        }
        let ends = split.iter().flat_map(|s| s.totals.iter().chain(&s.parts)).map(|f| f.end);
        let all = || split.iter().flat_map(|s| s.totals.iter());
        let sum_of = |pick: fn(&Figures) -> Option<f64>| -> Option<f64> {
            let found: Vec<f64> = all().filter_map(|f| pick(f)).collect();
            let parts = || split.iter().flat_map(|s| s.parts.iter()).filter_map(|f| pick(f));
            if found.is_empty() {
                parts().reduce(|a, b| a + b)
            } else {
                found.into_iter().reduce(|a, b| a + b)
            }
        };
        let series = series(&split);
        let rtts: Vec<f64> = split.iter().flat_map(|s| s.parts.iter()).filter_map(|f| f.rtt_us).collect();
        let lost = all().chain(split.iter().flat_map(|s| s.parts.iter())).filter(|f| f.whose != "sender");
        let datagrams = lost.filter_map(|f| f.datagrams).max_by(|a, b| a.1.total_cmp(&b.1));
        Some(Transfer {
            streams: u16::try_from(streams).unwrap_or(u16::MAX),
            seconds: ends.fold(0.0, f64::max),
            sent_bps: sent,
            received_bps: received,
            retransmits: sum_of(|f| f.retransmits).filter(|_| !receiving || sent.is_some()),
            rtt_us: (!rtts.is_empty()).then(|| rtts.iter().sum::<f64>() / rtts.len() as f64),
            series,
            series_received: receiving,
            window_bytes: window(&split, streams),
            datagrams,
            ..Transfer::default()
        })
        .filter(|t| t.sent_bps.is_some() || t.received_bps.is_some())
    }
}

/// Lines of one stream, by kind.
struct Split<'a> {
    parts: Vec<&'a Figures>,
    totals: Vec<&'a Figures>,
}

impl<'a> Split<'a> {
    /// A line is a total when it names its end, or when it covers all lines before it.
    fn of(mut lines: Vec<&'a Figures>) -> Self {
        let mut split = Self { parts: Vec::new(), totals: Vec::new() };
        split.totals = lines.iter().filter(|f| !f.whose.is_empty()).copied().collect();
        lines.retain(|f| f.whose.is_empty());
        if split.totals.is_empty()
            && let Some((last, before)) = lines.split_last()
        {
            let first = before.first().map_or(last.start, |f| f.start);
            // The drain at the end belongs to the total only, or to an interval of its own.
            let reached = before.last().map_or(last.end, |f| f.end);
            if last.start <= first + 1e-6 && last.end + 1e-6 >= reached {
                split.totals.push(last);
                lines.pop();
            }
        }
        split.parts = lines;
        split
    }

    fn mean(&self) -> Option<f64> {
        let time: f64 = self.parts.iter().map(|f| f.end - f.start).sum();
        (time > 0.0).then(|| self.parts.iter().map(|f| f.bps * (f.end - f.start)).sum::<f64>() / time)
    }
}

/// The congestion window of a single stream where it stayed: the median of the second half, unless it moved.
fn window(split: &[Split<'_>], streams: usize) -> Option<f64> {
    let [only] = split else { return None };
    let windows: Vec<f64> = only.parts.iter().filter_map(|f| f.cwnd_bytes).collect();
    let later = windows.get(windows.len() / 2..).filter(|_| windows.len() >= WINDOWS_MIN && streams == 1)?;
    let (least, most) =
        later.iter().fold((f64::INFINITY, 0.0_f64), |(l, m), bytes| (l.min(*bytes), m.max(*bytes)));
    (most <= WINDOW_STAYS * least).then_some(f64::midpoint(least, most))
}

/// Parts of all streams that begin at the same time, summed. What is much shorter than the others is the
/// drain at the end.
fn series(split: &[Split<'_>]) -> Vec<Interval> {
    let mut parts: Vec<&Figures> = split.iter().flat_map(|s| s.parts.iter().copied()).collect();
    parts.sort_by(|a, b| a.start.total_cmp(&b.start));
    let longest = parts.iter().map(|f| f.end - f.start).fold(0.0, f64::max);
    let mut series: Vec<(f64, Interval)> = Vec::new();
    for part in parts.into_iter().filter(|f| f.end - f.start > 0.5 * longest) {
        let retransmits = part.retransmits.unwrap_or(0.0) as u64;
        match series.last_mut().filter(|(start, _)| (part.start - *start).abs() < 0.25 * longest) {
            Some((_, interval)) => {
                interval.throughput_bps += part.bps;
                interval.retransmits += retransmits;
            }
            None => series.push((
                part.start,
                Interval {
                    at_ms: part.end * 1000.0,
                    throughput_bps: part.bps,
                    rtt_us: part.rtt_us.unwrap_or(0.0),
                    retransmits,
                    ..Interval::default()
                },
            )),
        }
    }
    series.into_iter().map(|(_, interval)| interval).collect()
}

/// `local A port P connected to B port Q`: address and port of both, and what stands behind.
pub(crate) fn connection(line: &str) -> Option<(String, Connection<'_>)> {
    let (id, rest) = bracket(line)?;
    let rest = rest.trim_start().trim_start_matches("[TX-C]").trim_start();
    let rest = rest.strip_prefix("local ")?;
    let (local, rest) = rest.split_once(" port ")?;
    let (local_port, rest) = rest.split_once(' ')?;
    let rest = rest.strip_prefix("connected to ").or_else(|| rest.strip_prefix("connected with "))?;
    let (remote, rest) = rest.split_once(" port ")?;
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (remote_port, behind) = rest.split_at(end);
    let starred = line.split(']').next().is_some_and(|head| head.contains('*'));
    Some((id, Connection { local, local_port, remote, remote_port, behind, starred }))
}

/// One connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection<'a> {
    /// Address of this end.
    pub local: &'a str,
    /// Its port.
    pub local_port: &'a str,
    /// Address of the far end.
    pub remote: &'a str,
    /// Its port.
    pub remote_port: &'a str,
    /// What iperf 2 adds: `(reverse) (icwnd/mss/irtt=14/1448/24)`.
    pub behind: &'a str,
    /// iperf 2 marks what a server does for its client with a star.
    pub starred: bool,
}

impl Connection<'_> {
    /// The flow, sender first.
    pub(crate) fn flow(&self, sending: bool) -> String {
        let local = format!("{}:{}", crate::sink::plain_address(self.local), self.local_port);
        let remote = format!("{}:{}", crate::sink::plain_address(self.remote), self.remote_port);
        if sending { format!("{local}>{remote}") } else { format!("{remote}>{local}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_programs() {
        let line = "[  5]   0.00-3.00   sec  69.6 MBytes   195 Mbits/sec    7             sender";
        let read = figures(line).unwrap();
        assert_eq!((read.bps, read.retransmits, read.whose.as_str()), (195e6, Some(7.0), "sender"));
        let read = figures("[  3]  0.0- 1.0 sec  1.10 GBytes  9.41 Gbits/sec").unwrap();
        assert_eq!((read.start, read.end, read.bps), (0.0, 1.0, 9.41e9));
        let read =
            figures("[  5][TX-C]   0.00-1.00   sec  24.6 MBytes   206 Mbits/sec    1    204 KBytes").unwrap();
        assert_eq!((read.role.as_str(), read.retransmits), ("TX-C", Some(1.0)));
        let read = figures("[  1] 0.0-2.0 sec  12.5 MBytes  52.4 Mbits/sec   0.001 ms 3/8918 (0%)").unwrap();
        assert_eq!((read.datagrams, read.retransmits), (Some((3.0, 8918.0)), None));
        let read =
            figures("[  3]  0.0-10.0 sec  1.19 MBytes   998 Kbits/sec   0.022 ms   45/  893 (5%)").unwrap();
        assert_eq!(read.datagrams, Some((45.0, 893.0)));
        let line =
            "[  1] 0.0-1.0 sec  23.6 MBytes   198 Mbits/sec  189/0          4      113K/5055(1158) us  4901";
        let read = figures(line).unwrap();
        assert_eq!((read.retransmits, read.rtt_us), (Some(4.0), Some(5055.0)));
        for line in [
            "[ ID] Interval           Transfer     Bitrate",
            "[  5] local a port 1",
            "[root@a ~]# x",
            "[  5] 2-1 sec 1 MBytes 1 Mbits/sec",
        ] {
            assert_eq!(figures(line), None, "{line}");
        }
    }

    #[test]
    fn a_total_is_distinguished_from_its_parts() {
        let mut streams = Streams::default();
        for line in [
            "[  1] 0.0-1.0 sec 1 MBytes 8 Mbits/sec",
            "[  1] 1.0-2.0 sec 1 MBytes 10 Mbits/sec",
            "[  1] 0.0-2.1 sec 2 MBytes 9 Mbits/sec",
        ] {
            streams.push(figures(line).unwrap());
        }
        let read = streams.transfer(false).unwrap();
        assert_eq!((read.sent_bps, read.series.len(), read.streams), (Some(9e6), 2, 1));
        streams.single.pop();
        let cut = streams.transfer(true).unwrap();
        assert_eq!((cut.received_bps, cut.seconds), (Some(9e6), 2.0));
    }
}
