//! A test as lines for people, in iperf3's columns.
//!
//! What comes in: a [`TestRecord`] and its intervals. What goes out: text. It does no I/O.

use std::fmt::Write as _;

use super::json::summed;
use super::parameters::DataDirection;
use super::record::{RecordInterval, StreamCount, StreamInterval, TestRecord};

/// In which unit rates are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RateUnit {
    /// Whatever fits: bits.
    #[default]
    Fitting,
    /// A fixed one: its power of a thousand (or 1024 for bytes), and whether it counts bytes.
    Fixed {
        /// 1 for kilo, 2 for mega, 3 for giga, 4 for tera.
        power: u32,
        /// Bytes instead of bits.
        bytes: bool,
    },
}

impl RateUnit {
    /// iperf3's letters: `kmgt` for bits, `KMGT` for bytes.
    pub fn of(letter: &str) -> Option<Self> {
        let lower = letter.to_ascii_lowercase();
        let power = ["k", "m", "g", "t"].iter().position(|known| *known == lower)? as u32 + 1;
        Some(Self::Fixed { power, bytes: lower != letter })
    }

    fn rate(self, bits_per_second: f64) -> String {
        match self {
            Self::Fitting => scaled(bits_per_second, 1000.0, "bits/sec", None),
            Self::Fixed { power, bytes: false } => scaled(bits_per_second, 1000.0, "bits/sec", Some(power)),
            Self::Fixed { power, bytes: true } => {
                scaled(bits_per_second / 8.0, 1024.0, "Bytes/sec", Some(power))
            }
        }
    }
}

/// Three digits and a prefix.
fn scaled(value: f64, step: f64, unit: &str, power: Option<u32>) -> String {
    const PREFIXES: [&str; 5] = ["", "K", "M", "G", "T"];
    let fitting = || (0..4).find(|p| value / step.powi(*p) < step * 0.9995).unwrap_or(4) as u32;
    let power = power.unwrap_or_else(fitting).min(4);
    let number = value / step.powi(power as i32);
    let digits = match number {
        n if n < 9.995 => 2,
        n if n < 99.95 => 1,
        _ => 0,
    };
    format!("{number:.digits$} {}{unit}", PREFIXES[power as usize])
}

fn amount(bytes: u64) -> String {
    scaled(bytes as f64, 1024.0, "Bytes", None)
}

/// The first lines of a test: who is connected with whom.
pub fn opening(record: &TestRecord) -> String {
    let mut text = String::new();
    let (host, port) = &record.target;
    if record.server {
        let _ = writeln!(text, "Accepted connection from {host}, port {port}");
        if let Some(user) = &record.user {
            let _ = writeln!(text, "Authenticated user {user}");
        }
    } else {
        let _ = writeln!(text, "Connected to host {host}, port {port}");
        if record.parameters.direction == DataDirection::Reverse {
            let _ = writeln!(text, "Reverse mode, the server sends");
        }
    }
    for lane in &record.lanes {
        let _ = writeln!(
            text,
            "[{:3}] local {} port {} connected to {} port {}",
            lane.socket,
            lane.local.ip().to_canonical(),
            lane.local.port(),
            lane.peer.ip().to_canonical(),
            lane.peer.port()
        );
    }
    text + &heading(record, false)
}

fn is_both(record: &TestRecord) -> bool {
    record.parameters.direction == DataDirection::Both
}

fn heading(record: &TestRecord, end: bool) -> String {
    let role = if is_both(record) { "[Role]" } else { "" };
    let sends = record.directions().contains(&true);
    let rest = match (record.is_udp(), sends, end) {
        (true, _, true) | (true, false, false) => "  Jitter     Lost/Total Datagrams",
        (true, true, false) => "  Total Datagrams",
        (false, true, false) => "  Retr  Cwnd",
        (false, _, true) => "  Retr",
        (false, false, false) => "",
    };
    format!("[ ID]{role} Interval           Transfer     Bitrate       {rest}\n")
}

fn name(record: &TestRecord, socket: Option<i32>, sends: bool) -> String {
    let name = socket.map_or_else(|| "[SUM]".to_owned(), |socket| format!("[{socket:3}]"));
    if !is_both(record) {
        return name;
    }
    format!("{name}[{}-{}]", if sends { "TX" } else { "RX" }, if record.server { "S" } else { "C" })
}

fn columns(name: &str, start_s: f64, end_s: f64, bytes: u64, unit: RateUnit) -> String {
    let seconds = end_s - start_s;
    let rate = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    format!("{name} {start_s:6.2}-{end_s:<6.2} sec  {:>12}  {:>15}", amount(bytes), unit.rate(rate))
}

fn loss(lost: i64, packets: u64) -> String {
    let percent = if packets == 0 { 0.0 } else { lost as f64 * 100.0 / packets as f64 };
    format!("{lost}/{packets} ({percent:.2}%)")
}

/// The lines of an interval.
pub fn interval(record: &TestRecord, interval: &RecordInterval, unit: RateUnit) -> String {
    let mut text = String::new();
    let mut line = |socket: Option<i32>, sends: bool, stream: &StreamInterval| {
        let name = name(record, socket, sends);
        let mut row = columns(&name, interval.start_s, interval.end_s, stream.bytes, unit);
        match (record.is_udp(), sends, &stream.tcp) {
            (true, true, _) => drop(write!(row, "  {}", stream.packets)),
            (true, false, _) => {
                let _ =
                    write!(row, "  {:.3} ms  {}", stream.jitter_s * 1e3, loss(stream.lost, stream.packets));
            }
            (false, _, Some(tcp)) if socket.is_some() => {
                let _ = write!(row, "  {:4}  {}", tcp.retransmits, amount(tcp.cwnd_bytes));
            }
            (false, _, Some(tcp)) => drop(write!(row, "  {:4}", tcp.retransmits)),
            (false, _, None) => {}
        }
        let _ = writeln!(text, "{row}{}", if interval.omitted { "  (omitted)" } else { "" });
    };
    for (lane, stream) in record.lanes.iter().zip(&interval.streams) {
        line(Some(lane.socket), lane.sends, stream);
    }
    if record.parameters.parallel > 1 {
        for sends in record.directions() {
            line(None, sends, &summed(record, interval, sends));
        }
    }
    text
}

/// The lines at the end: as sender and receiver counted.
pub fn closing(record: &TestRecord, unit: RateUnit) -> String {
    let mut text = String::new();
    if !record.ends.is_empty() {
        let _ = writeln!(text, "- - - - - - - - - - - - - - - - - - - - - - - - -");
        text += &heading(record, true);
    }
    let mut both = |socket: Option<i32>, sends: bool, sent: &StreamCount, received: &StreamCount| {
        let name = name(record, socket, sends);
        for (side, word) in [(sent, "sender"), (received, "receiver")] {
            // A side without counts is left out.
            if side.seconds <= 0.0 {
                continue;
            }
            let mut row = columns(&name, 0.0, side.seconds, side.bytes, unit);
            if record.is_udp() {
                let _ = write!(row, "  {:.3} ms  {}", side.jitter_s * 1e3, loss(side.lost, side.packets));
            } else if let (Some(retransmits), "sender") = (side.retransmits, word) {
                let _ = write!(row, "  {retransmits:4}");
            }
            let _ = writeln!(text, "{row}  {word}");
        }
    };
    for (lane, end) in record.lanes.iter().zip(&record.ends) {
        both(Some(lane.socket), lane.sends, &end.sent, &end.received);
    }
    if record.parameters.parallel > 1 && !record.ends.is_empty() {
        for sends in record.directions() {
            let (sent, received) = record.sums(sends);
            both(None, sends, &sent, &received);
        }
    }
    text
}

/// What an asker wants to know beside the figures.
pub fn details(record: &TestRecord) -> String {
    let [total, user, system] = record.cpu_percent;
    let [remote, remote_user, remote_system] = record.cpu_percent_remote;
    let mut text = format!(
        "CPU: here {total:.1}% ({user:.1}% user, {system:.1}% system), there {remote:.1}% ({remote_user:.1}% user, \
         {remote_system:.1}% system)\n"
    );
    for (side, name) in [("here", &record.congestion), ("there", &record.congestion_remote)] {
        if let Some(name) = name {
            let _ = writeln!(text, "congestion control {side}: {name}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(amount(1_048_576), "1.00 MBytes");
        assert_eq!(amount(820 << 20), "820 MBytes");
        assert_eq!(amount(999), "999 Bytes");
        assert_eq!(RateUnit::Fitting.rate(6.87e9), "6.87 Gbits/sec");
        assert_eq!(RateUnit::Fitting.rate(1e15), "1000 Tbits/sec");
        assert_eq!(RateUnit::of("m").map(|u| u.rate(6.87e9)), Some("6870 Mbits/sec".to_owned()));
        assert_eq!(RateUnit::of("M").map(|u| u.rate(8.0 * 1_048_576.0)), Some("1.00 MBytes/sec".to_owned()));
        assert_eq!(RateUnit::of("x"), None);
    }
}
