//! What a watch reports, as lines: alarms of loss, gaps, changes. Events in, text of at most the width out.

use std::fmt::Write;

use linerate_model::printable::{lines_of_error, one_line};
use linerate_model::suspect::{Direction, Suspect};
use linerate_model::units;
use linerate_model::watch::{LossAlarm, WatchEvent, WatchTotals};

use crate::{changes, names};

/// The lines of an event; `at_ms` is now.
#[must_use]
pub fn event(event: &WatchEvent, at_ms: u64, width: usize) -> String {
    let line = |text: &str| names::cut(&format!("{} {text}", clock(at_ms)), width) + "\n";
    match event {
        WatchEvent::Watched { gap_ms: None, .. } => String::new(),
        WatchEvent::Watched { host, gap_ms: Some(gap_ms) } => {
            line(&format!("{}: watched again after {}", one_line(host), span(*gap_ms)))
        }
        WatchEvent::Gap { host, reason } => {
            line(&format!("{}: not watched: {}", one_line(host), one_line(&lines_of_error(reason))))
        }
        WatchEvent::Changed { host, notice } => changes::notice(host, notice, width),
        WatchEvent::Opened { alarm, changes: before } => {
            let mut out = line(&format!("ALARM {}: {}", alarm.id, loses(alarm)));
            let _ = writeln!(out, "  {}", rests_on(alarm));
            for one in before {
                for text in changes::notice(&one.host, &one.notice, width.saturating_sub(2)).lines() {
                    let _ = writeln!(out, "  {text}");
                }
            }
            out
        }
        WatchEvent::Widened { alarm } => {
            line(&format!("alarm {} is more: {}", alarm.id, loses(alarm)))
                + &format!("  {}\n", rests_on(alarm))
        }
        WatchEvent::Closed { alarm } => {
            let lasted = span(at_ms.saturating_sub(alarm.since_ms));
            line(&format!(
                "alarm {} is over after {lasted}: {}",
                alarm.id,
                loses(alarm).replacen("loses", "lost", 1)
            ))
        }
    }
}

/// What a watch did, in one sentence.
#[must_use]
pub fn totals(totals: &WatchTotals) -> String {
    let WatchTotals { hosts, probes, lost, alarms, gaps, changes } = totals;
    format!(
        "watched {hosts} hosts: {lost} of {probes} probes lost, {alarms} alarms, {gaps} gaps, {changes} changes"
    )
}

/// How much is lost, by whom and of what.
fn loses(alarm: &LossAlarm) -> String {
    let (who, of) = whom(alarm);
    format!("{who} loses {}{of}", units::percent_lost(alarm.share()))
}

/// What loses, and which direction of its traffic.
fn whom(alarm: &LossAlarm) -> (String, &'static str) {
    let of = match alarm.direction {
        Direction::Tx => " of what it sends",
        Direction::Rx => " of what it receives",
        Direction::Both => " of what it sends and receives",
    };
    match &alarm.suspect {
        Suspect::Host(host) => (one_line(host), of),
        Suspect::Group(group) => (format!("group {}", one_line(group)), of),
        Suspect::Pair(from, to) => (format!("the path from {} to {}", one_line(from), one_line(to)), ""),
        _ => ("every path".to_owned(), ""),
    }
}

fn rests_on(alarm: &LossAlarm) -> String {
    let with = match alarm.partners {
        0 | 1 => String::new(),
        partners => format!(", seen with {partners} hosts"),
    };
    format!("{} of {} probes since {}{with}", alarm.lost, alarm.sent, clock(alarm.since_ms))
}

/// The time of day, UTC.
fn clock(unix_ms: u64) -> String {
    units::date(unix_ms).chars().skip("2026-11-21 ".len()).take("08:30:15".len()).collect()
}

fn span(ms: u64) -> String {
    units::span_s(ms as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alarm(suspect: Suspect, direction: Direction) -> LossAlarm {
        LossAlarm {
            id: 2,
            suspect,
            direction,
            since_ms: 1_780_000_000_000,
            reported_ms: 1_780_000_011_000,
            lost: 4,
            sent: 400,
            partners: 3,
        }
    }

    #[test]
    fn an_alarm_has_who_how_much_and_on_what_it_rests() {
        let alarm = alarm(Suspect::Host("arc-2".into()), Direction::Rx);
        let text = event(&WatchEvent::Opened { alarm, changes: Vec::new() }, 1_780_000_011_000, 100);
        assert_eq!(
            text,
            "20:26:51 ALARM 2: arc-2 loses 1 % of what it receives\n  4 of 400 probes since 20:26:40, seen with 3 hosts\n"
        );
    }

    #[test]
    fn names_of_strangers_stay_on_their_line() {
        let pair = alarm(Suspect::Pair("a\nb".into(), "c\u{1b}[31m".into()), Direction::Tx);
        let text = event(&WatchEvent::Closed { alarm: pair }, 1_780_000_100_000, 100);
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
