//! A watch of block devices in sentences: which hosts were seen, what began and ended, what is wrong. Fits
//! 100 columns, but for the dated lines of a log.
//!
//! "Nothing is wrong" is never said of hosts that were not seen.

use linerate_diagnose::disks::IntervalChange;
use linerate_model::disk::DiskEpisodes;
use linerate_model::fact::{Gap, GapSubject};
use linerate_model::printable::{before_hint, lines_of_error, one_line};

use super::words;
use super::wrap::wrap;
use linerate_model::units::{date, span_s};

const WIDTH: usize = 100;
/// Names in a line; the others are counted.
const NAMES_MAX: usize = 8;

/// Hosts of a watch.
#[derive(Debug, Clone, Copy)]
pub struct WatchedHosts<'a> {
    /// How many were asked for.
    pub asked: usize,
    /// How many were seen at any time.
    pub seen: usize,
    /// Hosts that were never seen.
    pub unseen: &'a [String],
    /// What is missing, of hosts and of what they report, with reasons.
    pub gaps: &'a [Gap],
}

impl WatchedHosts<'_> {
    /// `1 of 4 hosts seen; not seen: full, hang, refused`; empty where all are seen.
    #[must_use]
    pub fn line(&self) -> String {
        if self.unseen.is_empty() {
            return String::new();
        }
        format!("{} of {} hosts seen; not seen: {}", self.seen, self.asked, self.names())
    }

    /// The same with the reason of everything that is missing, a line each.
    #[must_use]
    pub fn lines(&self) -> String {
        let line = self.line();
        let first = if line.is_empty() { String::new() } else { line + "\n" };
        first + &self.reasons()
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.unseen.iter().take(NAMES_MAX).map(|name| one_line(name)).collect();
        match self.unseen.len() - names.len() {
            0 => names.join(", "),
            more => format!("{} and {more} more", names.join(", ")),
        }
    }

    fn reasons(&self) -> String {
        let line = |gap: &Gap| {
            let (GapSubject::Host(name) | GapSubject::Session(name) | GapSubject::Part(name)) = &gap.what;
            paragraph(&format!("  {}: {}", one_line(name), lines_of_error(&gap.reason)))
        };
        self.gaps.iter().map(line).collect()
    }

    /// The hosts that a sentence about all of them is true of.
    fn scope(&self) -> String {
        match (self.asked, self.unseen.is_empty()) {
            (1, true) => String::new(),
            (asked, true) => format!(" on the {asked} hosts"),
            (asked, false) => format!(" on the {} of {asked} hosts that were seen", self.seen),
        }
    }
}

fn paragraph(text: &str) -> String {
    let indent = if text.starts_with("  ") { "  " } else { "" };
    let lines: Vec<String> = text.lines().flat_map(|line| wrap(line, WIDTH - 4)).collect();
    format!("{indent}{}\n", lines.join(&format!("\n  {indent}")))
}

/// What began or ended, with its time: one line of a log, however long.
#[must_use]
pub fn change(change: &IntervalChange) -> String {
    let (at_ms, word, all) = match change {
        IntervalChange::Began(all) => (all.last_ms, "began", all),
        IntervalChange::Ended(all) => (all.last_ms, "ended", all),
    };
    let text = words::disks::sentence(&all.finding);
    let text = match change {
        IntervalChange::Began(_) => text,
        IntervalChange::Ended(_) => format!("{text} (held for {})", span_s(all.seconds)),
    };
    format!("{} {word}: {}: {}\n", date(at_ms), one_line(&all.finding.host), one_line(&text))
}

/// A host that was lost, or is back: a line of a log.
#[must_use]
pub fn lost(at_ms: u64, host: &str, reason: &str) -> String {
    let line = format!("{} lost: {}: {}", date(at_ms), one_line(host), lines_of_error(reason));
    before_hint(&line, "; it is asked again") + "\n"
}

/// See [`lost`].
#[must_use]
pub fn back(at_ms: u64, host: &str, away_s: f64) -> String {
    format!("{} back: {}, after {}\n", date(at_ms), one_line(host), span_s(away_s))
}

/// All findings with their times, and what was not seen.
#[must_use]
pub fn summary(findings: &[DiskEpisodes], reach: WatchedHosts<'_>) -> String {
    let mut text: String = findings.iter().map(|all| paragraph(&sentence(all))).collect();
    if findings.is_empty() {
        text = format!("nothing is wrong as far as the counters show it{}\n", reach.scope());
    }
    text + &reach.lines()
}

/// A finding with its times.
#[must_use]
pub fn sentence(all: &DiskEpisodes) -> String {
    let finding = &all.finding;
    let often = if all.times > 1 { format!(", in {} periods", all.times) } else { String::new() };
    let until = if all.open { String::new() } else { format!(" until {}", date(all.last_ms)) };
    format!(
        "{}: {} (since {}{until}, held for {}{often})",
        one_line(&finding.host),
        one_line(&words::disks::sentence(finding)),
        date(all.since_ms),
        span_s(all.seconds)
    )
}

/// The run in a line.
#[must_use]
pub fn headline(seconds: f64, findings: &[DiskEpisodes], reach: WatchedHosts<'_>) -> String {
    let what = match findings {
        [] if reach.unseen.is_empty() => "nothing wrong was seen".to_owned(),
        [] => "nothing wrong was seen on those".to_owned(),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" (and {} more)", rest.len()) };
            format!("{}: {}{more}", first.finding.host, words::disks::sentence(&first.finding))
        }
    };
    let watched = format!("watched for {}", span_s(seconds));
    if reach.unseen.is_empty() {
        return format!("disks of {} hosts {watched}: {what}", reach.asked);
    }
    format!("disks of {} of {} hosts {watched}, not seen: {}; {what}", reach.seen, reach.asked, reach.names())
}

#[cfg(test)]
mod tests {
    use linerate_model::disk::{DiskFinding, DiskTrouble};

    use super::*;

    fn slow(open: bool) -> DiskEpisodes {
        DiskEpisodes {
            finding: DiskFinding {
                host: "store-1".into(),
                device: "sdk".into(),
                what: DiskTrouble::SlowAmongEquals,
                evidence: None,
                sentence: "sdk is slow among its equals".into(),
            },
            since_ms: 1_795_249_815_000,
            last_ms: 1_795_250_535_000,
            open,
            times: 1,
            seconds: 720.0,
        }
    }

    fn gap(name: &str, reason: &str) -> Gap {
        Gap { what: GapSubject::Host(name.into()), reason: reason.into() }
    }

    #[test]
    fn hosts_that_were_not_seen_are_named_wherever_nothing_is_wrong() {
        let unseen = ["full", "hang", "refused"].map(str::to_owned);
        let gaps = [gap("full", "No space left"), gap("hang", "timed out"), gap("refused", "refused")];
        let reach = WatchedHosts { asked: 4, seen: 1, unseen: &unseen, gaps: &gaps };
        assert_eq!(reach.line(), "1 of 4 hosts seen; not seen: full, hang, refused");
        let text = summary(&[], reach);
        assert!(text.starts_with("nothing is wrong as far as the counters show it on the 1 of 4 hosts that"));
        for gap in &gaps {
            let GapSubject::Host(name) = &gap.what else { panic!("{gap:?}") };
            assert!(text.contains(&format!("\n  {name}: {}\n", gap.reason)), "{text}");
        }
        assert_eq!(
            headline(2.0, &[], reach),
            "disks of 1 of 4 hosts watched for 2 s, not seen: full, hang, refused; nothing wrong was seen on those"
        );
        let many: Vec<String> = (0..200).map(|n| format!("n{n}")).collect();
        let reach = WatchedHosts { asked: 201, seen: 1, unseen: &many, gaps: &[] };
        assert!(reach.line().ends_with("n7 and 192 more"), "{}", reach.line());
        let whole = WatchedHosts { asked: 2, seen: 2, unseen: &[], gaps: &[] };
        assert_eq!(summary(&[], whole), "nothing is wrong as far as the counters show it on the 2 hosts\n");
        assert_eq!(
            headline(3600.0, &[], whole),
            "disks of 2 hosts watched for 60 min: nothing wrong was seen"
        );
    }

    #[test]
    fn findings_have_their_times() {
        let whole = WatchedHosts { asked: 1, seen: 1, unseen: &[], gaps: &[] };
        let one_line = |text: String| text.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            one_line(summary(&[slow(true)], whole)),
            "store-1: sdk is slow among its equals (since 2026-11-21 08:30:15 UTC, held for 12 min)"
        );
        let twice = DiskEpisodes { times: 2, ..slow(false) };
        assert!(one_line(summary(&[twice], whole)).ends_with(
            "(since 2026-11-21 08:30:15 UTC until 2026-11-21 08:42:15 UTC, held for 12 min, in 2 periods)"
        ));
        assert_eq!(
            change(&IntervalChange::Began(slow(true))),
            "2026-11-21 08:42:15 UTC began: store-1: sdk is slow among its equals\n"
        );
        assert!(
            one_line(change(&IntervalChange::Ended(slow(false)))).contains("ended: store-1: sdk is slow")
        );
        assert!(back(1_795_249_815_000, "store-2", 61.0).ends_with("UTC back: store-2, after 61 s\n"));
        let lost = lost(1_795_249_815_000, "store-2", "reset by\u{1b}[2J peer");
        assert!(lost.contains("lost: store-2: reset by\\u{1b}[2J peer; it is asked again"), "{lost}");
    }
}
