//! Words around a table: the unit of its numbers, whether they are rates at all, which side sends. A title, a
//! corner or the head of a column comes in, an answer goes out. It reads no cell.

use crate::units::{number, spoken_bare, spoken_rate};

/// One word of a heading.
struct Word {
    text: String,
    /// The word before it, in small letters; empty where a comma or a bracket stands between.
    before: String,
    /// It stands in brackets, and whether these are glued to the word before, as in `host(s)`.
    bracketed: bool,
    glued: bool,
    last: bool,
}

impl Word {
    /// `10 Gbit/s` is an amount, not the unit of the table.
    fn is_amount(&self) -> bool {
        number(self.before.trim_start_matches(['~', '<', '>'])).is_some()
    }

    /// It stands where a unit is usual: in brackets or after `in`.
    fn is_at_unit_position(&self) -> bool {
        self.bracketed || ["in", "unit", "units", "as"].contains(&self.before.as_str())
    }
}

/// The words of a heading. `mbit_s` and `Mbit / s` become `mbit/s`; other `_` part words.
fn words(text: &str) -> Vec<Word> {
    let text = text.replace(" / ", "/").replace(" per second", "/s").replace("_per_sec", "/s");
    let mut found: Vec<Word> = Vec::new();
    let mut word = String::new();
    let (mut bracketed, mut glued, mut is_apart) = (false, false, true);
    for c in text.chars().chain([' ']) {
        if !(c.is_whitespace() || "|()[],;\"'`*#".contains(c)) {
            word.push(c);
            continue;
        }
        let is_glued = !word.is_empty();
        if is_glued {
            let ends = word.ends_with(':');
            push(&std::mem::take(&mut word), (bracketed, glued), is_apart, &mut found);
            is_apart = ends;
        }
        is_apart |= "|()[],;".contains(c);
        match c {
            '(' | '[' => (bracketed, glued) = (true, is_glued),
            ')' | ']' => bracketed = false,
            _ => {}
        }
    }
    if let Some(last) = found.last_mut() {
        last.last = true;
    }
    found
}

fn push(word: &str, (bracketed, glued): (bool, bool), is_apart: bool, found: &mut Vec<Word>) {
    let word = word.trim_matches([':', '.', '!', '?', '\\']);
    let head = word.strip_suffix("_s").or_else(|| word.strip_suffix("_sec"));
    let word = head.map_or_else(|| word.to_owned(), |head| format!("{head}/s"));
    for (at, part) in word.split('_').filter(|part| !part.is_empty()).enumerate() {
        let before = found.last().filter(|_| at > 0 || !is_apart).map(|w| w.text.to_lowercase());
        let before = before.unwrap_or_default();
        found.push(Word { text: part.to_owned(), before, bracketed, glued, last: false });
    }
}

/// Bit/s of the unit that a text names in full, such as `Mbit/s`.
pub(crate) fn unit_in(text: &str) -> Option<f64> {
    words(text)
        .iter()
        .filter(|w| w.text.starts_with(char::is_alphabetic) && !w.is_amount())
        .find_map(|w| spoken_rate(&w.text))
}

/// The same of one without its time, `Gbit`, where it can only be a unit; at the end too of what is no
/// sentence.
pub(crate) fn bare_unit_in(text: &str, is_sentence: bool) -> Option<f64> {
    words(text)
        .iter()
        .filter(|w| !w.is_amount() && (w.is_at_unit_position() || w.last && !is_sentence))
        .find_map(|w| spoken_bare(&w.text))
}

/// Units of time, without the second: `s` stands for too many other things.
const TIMES: [&str; 8] = ["ms", "msec", "us", "µs", "μs", "usec", "ns", "millisec"];
/// Words for what is measured in a table, and what that is.
const OTHERS: [(&str, &[&str]); 3] = [
    ("RTTs", &["rtt", "rtts", "latency", "latencies", "ping", "pings", "jitter"]),
    ("losses", &["loss", "losses"]),
    ("retransmissions", &["retrans", "retr", "retransmits", "retransmissions"]),
];
/// Words for a rate.
const RATES: [&str; 6] = ["throughput", "bandwidth", "goodput", "bitrate", "datarate", "speed"];
/// Tools that are never named above a table of RTTs.
const TOOLS: [&str; 5] = ["iperf", "iperf2", "iperf3", "nuttcp", "netperf"];
/// Words that distinguish a sentence from a title.
const SENTENCES: [&str; 22] = [
    "i", "we", "it", "is", "are", "was", "were", "have", "has", "had", "see", "saw", "there", "our", "my",
    "please", "since", "because", "when", "but", "you", "get",
];

/// The text names a rate, by its unit or by a word.
pub(crate) fn names_rate(text: &str) -> bool {
    unit_in(text).or_else(|| bare_unit_in(text, true)).is_some() || names_word(text, &RATES)
}

fn names_word(text: &str, known: &[&str]) -> bool {
    words(text).iter().any(|w| w.text.to_lowercase().split('/').any(|part| known.contains(&part)))
}

/// What the numbers are by a unit that is none of a rate.
pub(crate) fn other_unit_in(text: &str, is_sentence: bool) -> Option<&'static str> {
    words(text).iter().filter(|w| !w.is_amount()).find_map(|w| {
        let at_position = w.is_at_unit_position() || w.last && (!is_sentence || w.text == "ms");
        match w.text.as_str() {
            "s" | "sec" if w.bracketed && !w.glued => Some("times"),
            time if TIMES.contains(&time) && at_position => Some("times"),
            "%" | "percent" => Some("shares"),
            _ => None,
        }
    })
}

/// A line of a tool, such as `100 packets transmitted, 88 received, 12% packet loss`, is no title.
fn is_of_numbers(text: &str) -> bool {
    text.starts_with("---")
        || text.split_whitespace().filter(|w| w.starts_with(|c: char| c.is_ascii_digit())).count() > 2
}

/// What the numbers are by their heading, when that is no rate; `is_sentence`: it stands above the table,
/// where a sentence may stand too that speaks of a loss and is no title.
pub(crate) fn other_than_rate(text: &str, is_sentence: bool) -> Option<&'static str> {
    if unit_in(text).or_else(|| bare_unit_in(text, is_sentence)).is_some() {
        return None;
    }
    let by_word = || {
        let is_prose = is_sentence
            && (text.trim_end().ends_with(['.', '!', '?'])
                || text.contains('=')
                || is_of_numbers(text)
                || names_word(text, &SENTENCES));
        if is_prose || names_word(text, &RATES) {
            return None;
        }
        let is_of_tool = names_word(text, &TOOLS);
        let found = words(text);
        let named = |w: &Word| {
            let word = w.text.to_lowercase();
            // `iperf3 and ping`, `iperf3 in the low latency network`, `no loss`
            let is_beside = is_of_tool && ["ping", "pings", "latency"].contains(&word.as_str())
                || ["no", "without"].contains(&w.before.as_str());
            let is = |known: &[&str]| !is_beside && word.split('/').any(|part| known.contains(&part));
            OTHERS.iter().find(|(_, known)| is(known)).map(|(what, _)| *what)
        };
        found.iter().find_map(named)
    };
    by_word().or_else(|| other_unit_in(text, is_sentence))
}

/// Which side the rows of a table are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sides {
    /// The text speaks of rows or columns that send or receive, and it is not clear how.
    Unclear,
    /// Rows send.
    RowsSend,
    /// Rows receive.
    RowsReceive,
}

/// Meaning of a word for [`sides`].
#[derive(Clone, Copy, PartialEq)]
enum Mark {
    Row,
    Column,
    Sends,
    Receives,
}

fn mark(word: &str, next: &str, has_both: bool) -> Option<Mark> {
    let axis = |word: &str| match word {
        "row" | "rows" => Some(Mark::Row),
        "column" | "columns" | "col" | "cols" => Some(Mark::Column),
        _ => None,
    };
    match word {
        "sender" | "senders" | "sends" | "send" | "sending" | "source" | "sources" => Some(Mark::Sends),
        "receiver" | "receivers" | "receives" | "receive" | "receiving" | "destination" | "destinations" => {
            Some(Mark::Receives)
        }
        // A server may be any host, unless there is a client too.
        "client" | "clients" if has_both => Some(Mark::Sends),
        "server" | "servers" if has_both => Some(Mark::Receives),
        // `from` and `to` stand everywhere.
        "from" => axis(next).and(Some(Mark::Sends)),
        "to" => axis(next).and(Some(Mark::Receives)),
        _ => axis(word),
    }
}

/// Which side the rows are by a text such as `sender in the column, receiver in the row`; `None` when it
/// speaks of something else.
pub(crate) fn sides(text: &str) -> Option<Sides> {
    let lower = text.to_lowercase();
    let plain: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|w| !w.is_empty() && !["the", "a", "in", "each"].contains(w))
        .collect();
    let has_both = lower.contains("client") && lower.contains("server");
    let marks: Vec<Mark> = plain
        .iter()
        .enumerate()
        .filter_map(|(at, word)| mark(word, plain.get(at + 1).copied().unwrap_or_default(), has_both))
        .collect();
    let is_axis = |m: &Mark| matches!(m, Mark::Row | Mark::Column);
    if !marks.iter().any(is_axis) || marks.iter().all(is_axis) {
        return None;
    }
    // `row to column`
    if let [from, Mark::Receives, to] = marks[..]
        && is_axis(&from)
        && is_axis(&to)
        && from != to
    {
        return Some(if from == Mark::Row { Sides::RowsSend } else { Sides::RowsReceive });
    }
    let mut found = None;
    for pair in marks.chunks(2) {
        let sides = match pair {
            [Mark::Row, Mark::Sends]
            | [Mark::Sends, Mark::Row]
            | [Mark::Column, Mark::Receives]
            | [Mark::Receives, Mark::Column] => Sides::RowsSend,
            [Mark::Row, Mark::Receives]
            | [Mark::Receives, Mark::Row]
            | [Mark::Column, Mark::Sends]
            | [Mark::Sends, Mark::Column] => Sides::RowsReceive,
            _ => return Some(Sides::Unclear),
        };
        if found.is_some_and(|before| before != sides) {
            return Some(Sides::Unclear);
        }
        found = Some(sides);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_in_full_and_short() {
        for text in [
            "Bandwidth (Gb/s), sender",
            "bandwidth_gbps",
            "a [Gbit/s]",
            "10 Mbit/s shaped, Gbit/s",
            "iperf3 -t 10, Gbit/s",
            "-t 10: Gbit/s",
            "gbit_s",
        ] {
            assert_eq!(unit_in(text), Some(1e9), "{text}");
        }
        assert_eq!(unit_in("MB / s"), Some(8e6));
        assert_eq!(unit_in("hosts with 10 Gbit/s ports"), None);
        for text in ["(Gbit)", "Throughput in Gbit", "rate [Gb]", "from/to (Gbit)"] {
            assert_eq!(bare_unit_in(text, true), Some(1e9), "{text}");
        }
        for text in ["two Gbit switches:", "hosts in 10 Gbit", "with Gbit", "(GB)", "gb"] {
            assert_eq!(bare_unit_in(text, true), None, "{text}");
        }
        assert_eq!(bare_unit_in("throughput mbit", false), Some(1e6));
    }

    #[test]
    fn what_is_no_rate() {
        for title in [
            "RTT in ms",
            "Packet loss %",
            "## Ping",
            "latency [us]",
            "Values (s)",
            "Retr",
            "all in %",
            "UDP/loss, iperf3",
        ] {
            assert!(other_than_rate(title, true).is_some(), "{title}");
        }
        for title in [
            "lossless Ethernet",
            "measured on ms1 and ms2",
            "Throughput between host(s)",
            "Since Monday we see packet loss:",
            "There is a loss.",
            "RTT and throughput (Mbit/s)",
            "iperf3 and ping of all nodes",
            "low-latency cluster",
            "throughput with 1 % loss",
            "only 10 % of what it was, please help us",
            "RTT is 0.2 ms",
            "100 packets transmitted, 88 received, 12% packet loss, time 20100ms",
            "--- c2 ping statistics ---",
            "Mbit / s",
        ] {
            assert_eq!(other_than_rate(title, true), None, "{title}");
        }
        assert_eq!(other_than_rate("from/to latency [ms]", false), Some("RTTs"));
        assert_eq!(other_than_rate("from/to ms", false), Some("times"));
    }

    #[test]
    fn which_side_the_rows_are() {
        for text in [
            "sender in the column, receiver in the row",
            "rows receive",
            "to rows from columns",
            "column to row",
        ] {
            assert_eq!(sides(text), Some(Sides::RowsReceive), "{text}");
        }
        for text in [
            "rows send, columns receive",
            "from row to column",
            "Sender (row) / receiver (column)",
            "client: row, server: column",
        ] {
            assert_eq!(sides(text), Some(Sides::RowsSend), "{text}");
        }
        for text in ["rows and columns: sender, receiver", "rows send, columns send", "sender row, receiver"]
        {
            assert_eq!(sides(text), Some(Sides::Unclear), "{text}");
        }
        for text in [
            "all servers",
            "every row of the table",
            "",
            "rows and columns are servers",
            "a sender in the rack",
        ] {
            assert_eq!(sides(text), None, "{text}");
        }
    }
}
