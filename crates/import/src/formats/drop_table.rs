//! Tables of drops by interval: a column for each host, a row for each interval, a title that speaks of drops
//! and of the length of an interval. Rows come in, counters that were watched go out.

use linerate_model::snapshot::CounterWatch;

use crate::context::is_host;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::{leading, number};

/// The format.
pub(crate) struct DropTable;

/// Fewer rows than this are no series.
const ROWS_MIN: usize = 3;

/// The cells of a line, in Markdown or in columns.
fn cells(line: &str) -> Vec<&str> {
    let line = line.trim();
    if line.contains('|') {
        return line.trim_matches('|').split('|').map(str::trim).collect();
    }
    let sign = [',', ';', '\t'].into_iter().find(|sign| line.contains(*sign));
    match sign {
        Some(sign) => line.split(sign).map(str::trim).collect(),
        None => line.split_whitespace().collect(),
    }
}

fn is_divider(line: &str) -> bool {
    line.contains("--") && line.chars().all(|c| "|-: +".contains(c))
}

/// Device and counter of `/sys/class/net/em1/statistics/rx_dropped` in a title.
fn counter_file(label: &str) -> Option<(&str, &str)> {
    let (_, rest) = label.split_once("/sys/class/net/")?;
    let (nic, rest) = rest.split_once("/statistics/")?;
    let end = rest.find(|c: char| !(c.is_ascii_lowercase() || c == '_')).unwrap_or(rest.len());
    (!nic.is_empty() && nic.len() <= 15 && end > 0).then_some((nic, &rest[..end]))
}

/// What a title counts, and the length of an interval in seconds.
fn title(label: &str) -> Option<(String, f64)> {
    let lower = label.to_lowercase();
    let key = if let Some((nic, counter)) = counter_file(label) {
        format!("{}.stat.{counter}", super::ethtool::key(nic))
    } else if lower.contains("retrans") {
        "snmp.Tcp.RetransSegs".to_owned()
    } else if lower.contains("drop") {
        "nic.any.stat.rx_dropped".to_owned()
    } else {
        return None;
    };
    let words: Vec<&str> = lower.split(|c: char| c.is_whitespace() || c == '(' || c == ',').collect();
    let at = words.iter().position(|word| ["per", "every", "/"].contains(word))?;
    let count = words.get(at + 1).copied().unwrap_or_default();
    let unit = words.get(at + 2).copied().unwrap_or_default();
    let (count, unit) = leading(count).map_or((1.0, count), |n| {
        let rest = count.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        (n, if rest.is_empty() { unit } else { rest })
    });
    let factor = match unit.trim_end_matches([':', '.', ')']) {
        "s" | "sec" | "second" | "seconds" | "secs" => 1.0,
        "min" | "minute" | "minutes" => 60.0,
        "h" | "hour" | "hours" => 3600.0,
        _ => return None,
    };
    Some((key, count * factor)).filter(|(_, every)| *every > 0.0)
}

/// The hosts of a head; a first column of times is left out.
fn hosts<'l>(head: &[&'l str], width: usize) -> Option<Vec<&'l str>> {
    let names = head.get(head.len().checked_sub(width)?..)?;
    let is_name = |name: &&str| is_host(name) && name.contains(|c: char| c.is_alphabetic());
    (names.len() >= 2 && names.iter().all(is_name)).then(|| names.to_vec())
}

/// Numbers of a row, from the end.
fn values(line: &str, width: usize) -> Option<Vec<f64>> {
    let cells = cells(line);
    let values: Option<Vec<f64>> =
        cells.get(cells.len().checked_sub(width)?..)?.iter().map(|cell| number(cell)).collect();
    values.filter(|_| cells.len() <= width + 1)
}

/// Hosts and their series.
fn begin<'l>(block: &Block<'l>) -> Option<(Vec<&'l str>, usize)> {
    let head = cells(block.first());
    let first = if is_divider(block.line(1)) { 2 } else { 1 };
    [head.len(), head.len().checked_sub(1)?].into_iter().find_map(|width| {
        let hosts = hosts(&head, width)?;
        let is_series = (first..first + ROWS_MIN).all(|row| values(block.line(row), width).is_some());
        is_series.then_some((hosts, first))
    })
}

impl Reader for DropTable {
    fn name(&self) -> &'static str {
        "drop-table"
    }

    fn describes(&self) -> &'static str {
        "drops or retransmissions per interval, one column for each host"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        title(&block.at.label).is_some() && begin(block).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some(((key, every_s), (hosts, first))) = title(&block.at.label).zip(begin(block)) else {
            out.unread(0, "a table of counts needs a title such as `drops per 10 seconds`");
            return 1;
        };
        out.used_label = true;
        let rows: Vec<Vec<f64>> = block
            .lines
            .get(first..)
            .unwrap_or_default()
            .iter()
            .map_while(|line| values(line, hosts.len()))
            .collect();
        for (at, host) in hosts.iter().enumerate() {
            out.watched(CounterWatch {
                host: (*host).to_owned(),
                key: key.clone(),
                every_s,
                growth: rows.iter().map(|row| row[at]).collect(),
            });
        }
        first + rows.len()
    }
}
