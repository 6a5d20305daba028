//! `sar -n DEV`, `EDEV`, `TCP`, `ETCP`, `SOCK`: rates of devices and protocols. Rows come in, facts of the
//! average, or of the last row, go out: `nic.<if>.rate.…`, `tcp.rate.…`.

use linerate_model::fact::FactValue;

use super::ethtool::key;
use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::number;

/// The format.
pub(crate) struct SarNet;

/// Columns of devices.
const OF_NIC: [(&str, &str); 13] = [
    ("rxpck/s", "rx_packets_per_s"),
    ("txpck/s", "tx_packets_per_s"),
    ("rxkB/s", "rx_kib_per_s"),
    ("txkB/s", "tx_kib_per_s"),
    ("%ifutil", "use_percent"),
    ("rxerr/s", "rx_errors_per_s"),
    ("txerr/s", "tx_errors_per_s"),
    ("rxdrop/s", "rx_dropped_per_s"),
    ("txdrop/s", "tx_dropped_per_s"),
    ("rxfifo/s", "rx_fifo_per_s"),
    ("txfifo/s", "tx_fifo_per_s"),
    ("rxfram/s", "rx_frame_per_s"),
    ("txcarr/s", "tx_carrier_per_s"),
];

/// Columns of TCP.
const OF_TCP: [(&str, &str); 8] = [
    ("active/s", "active_per_s"),
    ("passive/s", "passive_per_s"),
    ("iseg/s", "in_segments_per_s"),
    ("oseg/s", "out_segments_per_s"),
    ("atmptf/s", "attempts_failed_per_s"),
    ("estres/s", "resets_per_s"),
    ("retrans/s", "retransmits_per_s"),
    ("isegerr/s", "segment_errors_per_s"),
];

/// Names of the columns that are rates or shares, and whether a device stands in front.
fn heading(line: &str) -> Option<(Vec<&str>, bool)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_of_nic = words.contains(&"IFACE");
    let columns: Vec<&str> =
        words.into_iter().filter(|word| word.ends_with("/s") || *word == "%ifutil").collect();
    let known = |word: &&str| OF_NIC.iter().chain(&OF_TCP).any(|(column, _)| column == word);
    (columns.iter().filter(|word| known(word)).count() >= 2).then_some((columns, is_of_nic))
}

/// The values of a row, and the word before them.
fn row<'l>(line: &'l str, columns: &[&str]) -> Option<(&'l str, Vec<f64>)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (head, values) = words.split_at_checked(words.len().checked_sub(columns.len())?)?;
    let values: Option<Vec<f64>> = values.iter().map(|value| number(&value.replace(',', "."))).collect();
    Some((head.last()?, values?))
}

impl Reader for SarNet {
    fn name(&self) -> &'static str {
        "sar"
    }

    fn describes(&self) -> &'static str {
        "sar -n DEV, EDEV, TCP, ETCP"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        let is_title = block.first().starts_with("Linux ") && block.first().contains(" CPU)");
        heading(block.first()).is_some() || is_title && (1..3).any(|at| heading(block.line(at)).is_some())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let (mut columns, mut is_of_nic) = (Vec::new(), false);
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if let Some(found) = heading(line) {
                (columns, is_of_nic) = found;
            } else if let Some((name, values)) = row(line, &columns).filter(|_| !columns.is_empty()) {
                put(name, is_of_nic, &columns, &values, out);
            } else if let Some((_, rest)) = line.strip_prefix("Linux ").and_then(|l| l.split_once(" (")) {
                out.speaks_of(block.at, rest.split(')').next().unwrap_or_default());
            } else if !line.trim().is_empty() {
                break;
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}

fn put(name: &str, is_of_nic: bool, columns: &[&str], values: &[f64], out: &mut Sink) {
    let (head, known): (String, &[(&str, &str)]) =
        if is_of_nic { (format!("{}.rate", key(name)), &OF_NIC) } else { ("tcp.rate".to_owned(), &OF_TCP) };
    for (column, value) in columns.iter().zip(values) {
        if let Some((_, fact)) = known.iter().find(|(wanted, _)| wanted == column) {
            out.fact(format!("{head}.{fact}"), FactValue::Float(*value));
        }
    }
}
