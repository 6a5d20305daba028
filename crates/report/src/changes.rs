//! What changed on hosts between readings: the list of `linerate changes`, and the words with which `diff`
//! and verdicts quote a change. The log of the store in, text of at most the width out.

use std::fmt::Write;

use linerate_model::fact::FactValue;
use linerate_model::fact_change::{FactChange, SeenBy};
use linerate_model::notice::{FactNotice, NoticeSource};
use linerate_model::printable::one_line;
use linerate_model::units::{date, date_minute, day_minute};

use crate::names;

/// Between the two readings of a host that is followed, milliseconds, at most.
const SEEN_AS_IT_HAPPENED_MS: u64 = 1000;

/// Width of keys in the list; a longer one has its line for itself.
const KEY: usize = 34;

/// A change with the name of its cluster.
pub type OfCluster<'a> = (&'a str, &'a FactChange);

/// The list: changes that one reading found on a host stand together below when and where.
#[must_use]
pub fn text(changes: &[OfCluster<'_>], unlisted: &[(&str, u64, u64)], width: usize) -> String {
    let mut out = String::new();
    let mut clusters: Vec<&str> = changes.iter().map(|(cluster, _)| *cluster).collect();
    clusters.sort_unstable();
    clusters.dedup();
    let several = clusters.len() > 1;
    let head = |(cluster, change): &OfCluster<'_>| {
        let of = if several { format!(" ({})", one_line(cluster)) } else { String::new() };
        let by = change.seen_by.name();
        format!("{}{of}: {}, seen by {}", one_line(&change.host), between(change), one_line(&by))
    };
    let mut last = String::new();
    for one in changes {
        let head = head(one);
        if head != last {
            let _ = writeln!(out, "{}", names::cut(&head, width));
            last = head;
        }
        for line in line(one.1, width) {
            let _ = writeln!(out, "{line}");
        }
    }
    for (host, seen_ms, count) in unlisted {
        let text = format!("{}: {count} more changes seen {}", one_line(host), date_minute(*seen_ms));
        let _ = writeln!(out, "{}", names::cut(&text, width));
    }
    out
}

/// What a followed host reports, as lines: when, where, what, and below each value that changed.
#[must_use]
pub fn notice(host: &str, notice: &FactNotice, width: usize) -> String {
    let about = |what: &str| match notice.about.as_str() {
        "" => what.to_owned(),
        about => format!("{what} {}", one_line(about)),
    };
    let what = match notice.source {
        NoticeSource::Written => about("written:"),
        NoticeSource::Link => about("network:"),
        NoticeSource::Driver => about("driver of"),
        NoticeSource::Firewall => about("firewall"),
        NoticeSource::File => about("file"),
        NoticeSource::Reading => "read again".to_owned(),
        NoticeSource::Reboot => "read again after a reboot".to_owned(),
    };
    let second: String =
        date(notice.at_ms).chars().skip("2026-11-21 ".len()).take("08:30:15".len()).collect();
    let mut out = names::cut(&format!("{second} {}: {what}", one_line(host)), width) + "\n";
    for one in &notice.changes {
        let change = FactChange {
            host: host.to_owned(),
            key: one.key.clone(),
            from: one.from.clone(),
            to: one.to.clone(),
            after_ms: notice.at_ms,
            seen_ms: notice.at_ms,
            seen_by: SeenBy::Facts,
            who: notice.who(),
        };
        for line in line(&change, width) {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}

/// Between which moments, in whole minutes; of one that was seen as it happened, the second.
#[must_use]
pub fn between(change: &FactChange) -> String {
    if change.seen_ms.saturating_sub(change.after_ms) < SEEN_AS_IT_HAPPENED_MS {
        return format!("at {}", date(change.seen_ms));
    }
    let (after, seen) = (date_minute(change.after_ms), date_minute(change.seen_ms));
    if after == seen { format!("at {seen} UTC") } else { format!("between {after} and {seen} UTC") }
}

/// Key, values and who, in one line where it fits.
fn line(change: &FactChange, width: usize) -> Vec<String> {
    let value = |value: &Option<FactValue>| {
        value.as_ref().map_or_else(|| "absent".to_owned(), |value| one_line(&value.to_string()))
    };
    let who = change.who.as_ref().map_or(String::new(), |who| format!("   by {}", one_line(who)));
    let (from, to) = (value(&change.from), value(&change.to));
    let key = one_line(&change.key);
    let whole = format!("  {key:<KEY$}  {from} -> {to}{who}");
    if whole.chars().count() <= width {
        return vec![whole];
    }
    // Who stands even where values are cut, and both values get their share.
    let left = width.saturating_sub(4 + " -> ".len() + who.chars().count());
    let (from, to) = share(&from, &to, left);
    vec![names::cut(&format!("  {key}"), width), format!("    {from} -> {to}{who}")]
}

/// A change in one line without its time: host, setting, values and who.
#[must_use]
pub fn in_short(change: &FactChange) -> String {
    format!("{} {}", one_line(&change.host), of_host(change))
}

/// The same without the host, where that stands beside it.
#[must_use]
pub fn of_host(change: &FactChange) -> String {
    let value = |value: &Option<FactValue>| value.as_ref().map_or_else(|| "absent".to_owned(), names::fact);
    let who = change.who.as_ref().map_or(String::new(), |who| format!(" by {who}"));
    let (from, to) = (value(&change.from), value(&change.to));
    one_line(&format!("{} {from} -> {to}{who}", names::setting(&change.key)))
}

/// Two texts cut to a width that they share: a short one leaves the rest to the other.
fn share(a: &str, b: &str, width: usize) -> (String, String) {
    let half = width / 2;
    let (long_a, long_b) = (a.chars().count(), b.chars().count());
    let of_a = if long_b < half { width - long_b } else { half };
    let of_b = if long_a < half { width - long_a } else { width - half };
    (names::cut(a, of_a), names::cut(b, of_b))
}

/// A change as a clause, longest first: the interval in which it happened, then only since when.
#[must_use]
pub fn clauses(change: &FactChange) -> [String; 2] {
    let (after, seen) = (day_minute(change.after_ms), day_minute(change.seen_ms));
    let by = change.who.as_ref().map_or(String::new(), |who| format!(" by {who}"));
    let day = |text: &str| text.rsplit_once(' ').map(|(day, _)| day.to_owned());
    if after == seen {
        return [format!("changed {seen} UTC{by}"), format!("changed {seen} UTC{by}")];
    }
    let is_one_day = day(&after) == day(&seen);
    let until = seen.rsplit_once(' ').filter(|_| is_one_day).map_or(seen.as_str(), |(_, minute)| minute);
    [format!("changed between {after} and {until} UTC{by}"), format!("changed since {after} UTC{by}")]
}

#[cfg(test)]
mod tests {
    use linerate_model::notice::{ValueChange, Writer};

    use super::*;

    fn change(key: &str, from: &str, to: Option<&str>) -> FactChange {
        FactChange {
            host: "arc-1".into(),
            key: key.into(),
            from: Some(FactValue::Text(from.into())),
            to: to.map(|to| FactValue::Text(to.into())),
            after_ms: 1_795_543_200_000,
            seen_ms: 1_795_573_200_000,
            seen_by: SeenBy::Facts,
            who: None,
        }
    }

    #[test]
    fn a_notice_says_when_what_and_who() {
        let one = FactNotice {
            at_ms: 1_795_543_215_000,
            read_after_ms: 40,
            source: NoticeSource::Written,
            about: "/proc/sys/vm/swappiness".into(),
            writer: Some(Writer {
                pid: 7,
                name: Some("tuned".into()),
                unit: Some("tuned.service".into()),
                is_probable: false,
            }),
            changes: vec![ValueChange {
                key: "sysctl.vm.swappiness".into(),
                from: Some(FactValue::Int(60)),
                to: Some(FactValue::Int(10)),
            }],
        };
        let text = notice("arc-1", &one, 100);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(":15 arc-1: written: /proc/sys/vm/swappiness"), "{text}");
        assert!(lines[1].trim_start().starts_with("sysctl.vm.swappiness "), "{text}");
        assert!(lines[1].ends_with("60 -> 10   by tuned.service"), "{text}");
        let boot =
            FactNotice { source: NoticeSource::Reboot, about: String::new(), writer: None, ..one.clone() };
        let text = notice("arc-1", &boot, 100);
        assert!(text.lines().next().unwrap().ends_with(" arc-1: read again after a reboot"), "{text}");
        assert!(text.ends_with("60 -> 10   by a reboot\n"), "{text}");
        let file = FactNotice { source: NoticeSource::File, writer: None, changes: Vec::new(), ..one };
        assert_eq!(notice("arc-1", &file, 100).lines().count(), 1);
    }

    #[test]
    fn a_reading_of_a_host_has_one_heading_and_no_line_is_too_long() {
        let mut long = change("sysctl.net.ipv4.tcp_rmem", &"4096 ".repeat(30), Some(&"8192 ".repeat(30)));
        long.who = Some("trial 20261121-083015-4f2a".into());
        let other = FactChange { host: "arc-2".into(), ..change("nic.eth0.mtu", "9000", None) };
        let changes = [change("nic.eth0.ring.rx", "4096", Some("256")), long, other];
        let changes: Vec<OfCluster<'_>> = changes.iter().map(|change| ("three", change)).collect();
        let text = text(&changes, &[("arc-2", 1_795_573_200_000, 812)], 100);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines[..2],
            [
                "arc-1: between 2026-11-24 18:00 and 2026-11-25 02:20 UTC, seen by facts",
                "  nic.eth0.ring.rx                    4096 -> 256"
            ]
        );
        assert!(
            lines[2] == "  sysctl.net.ipv4.tcp_rmem"
                && lines[3].ends_with("   by trial 20261121-083015-4f2a")
        );
        assert!(lines[4].starts_with("arc-2: ") && lines[5].ends_with("9000 -> absent"), "{text}");
        assert_eq!(lines[6], "arc-2: 812 more changes seen 2026-11-25 02:20");
    }

    #[test]
    fn a_clause_has_the_days_that_it_needs() {
        let mut one = change("x", "1", None);
        assert_eq!(clauses(&one)[0], "changed between 24 Nov 18:00 and 25 Nov 02:20 UTC");
        one.who = Some("trial t1".into());
        assert_eq!(clauses(&one)[1], "changed since 24 Nov 18:00 UTC by trial t1");
        one.after_ms = 1_795_570_000_000;
        assert_eq!(clauses(&one)[0], "changed between 25 Nov 01:26 and 02:20 UTC by trial t1");
        one.after_ms = one.seen_ms + 1;
        assert_eq!(clauses(&one)[0], "changed 25 Nov 02:20 UTC by trial t1");
        assert_eq!(between(&one), "at 2026-11-25 02:20:00 UTC");
    }
}
