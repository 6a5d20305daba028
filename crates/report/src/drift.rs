//! The screen of `linerate drift`: four lines for what drifted, what will not survive a boot and who fights,
//! one line for what could not be read, and a count of the rest. Rows in, text of at most the width out;
//! commands are never cut.

use std::fmt::Write;

use linerate_model::change::Risk;
use linerate_model::drift::{DriftPolicy, DriftRow, DriftState};
use linerate_model::fact::Gap;
use linerate_model::names::ranges;
use linerate_model::printable::{lines_of_error, one_line};
use linerate_model::shell::word;
use linerate_model::units::day_minute;
use linerate_model::verdict::{Certainty, HostCommand, Verdict, VerdictCause, VerdictFix, VerdictItem};
use linerate_model::writable::writable;

use crate::changes;
use crate::heat::Style;
use crate::names;

/// Findings with four lines; further ones have one each.
const WHOLE_MAX: usize = 8;
/// Width of the labels, with the indent before them.
const LABEL: usize = 10;

/// Rows that are one finding: the same setting with the same values for the same reason on several hosts.
struct Finding<'a> {
    first: &'a DriftRow,
    hosts: Vec<&'a str>,
}

/// Options that another command needs to find the same files, each with a space behind it.
#[derive(Debug, Clone, Copy, Default)]
pub struct SameFiles<'a> {
    /// Of the inventory.
    pub inventory: &'a str,
    /// Of the kept set.
    pub kept: &'a str,
}

/// The screen. `file` is the kept set as a person named it.
#[must_use]
pub fn text(rows: &[DriftRow], file: &str, again: SameFiles<'_>, style: Style) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        let _ = writeln!(out, "{text}");
    };
    line(&style.bold(&names::cut(&summary(rows, file), style.width)));
    let findings = findings(rows);
    for (at, finding) in findings.iter().enumerate() {
        let lines = self::finding(at + 1, finding, again, style);
        let shown = if at < WHOLE_MAX { lines.len() } else { 1 };
        for text in lines.iter().take(shown) {
            line(text);
        }
    }
    for row in rows.iter().filter(|row| row.state == DriftState::Unreadable) {
        let reason = row.reason.as_deref().map(lines_of_error).unwrap_or_default();
        let text = format!("not read: {} {}: {}", one_line(&row.kept.host), one_line(&row.kept.key), reason);
        line(&style.dim(&names::cut(&text, style.width)));
    }
    for (reason, hosts) in unread_files(rows) {
        let text = format!("files not read: {}: {}", ranges(&hosts), lines_of_error(reason));
        line(&style.dim(&names::cut(&text, style.width)));
    }
    out
}

/// The same findings as facts.
#[must_use]
pub fn verdict(rows: &[DriftRow], again: SameFiles<'_>) -> Verdict {
    let unread = rows.iter().filter(|row| row.state == DriftState::Unreadable);
    let gap = |row: &DriftRow| Gap {
        what: format!("{} {}", row.kept.host, row.kept.key).into(),
        reason: row.reason.clone().unwrap_or_default(),
    };
    let files = unread_files(rows).into_iter().map(|(reason, hosts)| Gap {
        what: format!("{}: files that a boot reads", ranges(&hosts)).into(),
        reason: reason.to_owned(),
    });
    Verdict::stating(
        findings(rows).iter().map(|finding| item(finding, again)),
        unread.map(gap).chain(files).collect(),
    )
}

fn item(finding: &Finding<'_>, again: SameFiles<'_>) -> VerdictItem {
    let row = finding.first;
    let host = finding.hosts.first().filter(|_| finding.hosts.len() == 1);
    let sentence = format!("{}: {}", ranges(&finding.hosts), what(row));
    // What was not read in a file or seen to change is a guess.
    let was_read = row.boot.is_some() || !row.against.is_empty() || row.changed.is_some();
    let cause = VerdictCause {
        id: String::new(),
        title: cause(row, 0),
        certainty: if was_read { Certainty::Certain } else { Certainty::Unknown },
        evidence: Vec::new(),
        changed: row.changed.clone(),
    };
    let (by_hand, is_command) = fix(row, again);
    let writes = writable(&row.kept.key).filter(|_| is_command);
    VerdictItem {
        cause: Some(cause),
        check: Some(HostCommand::own(check(row, again))),
        fix: Some(VerdictFix {
            hosts: finding.hosts.iter().map(|host| (*host).to_owned()).collect(),
            by_hand,
            risk: writes.map_or(Risk::Harmless, |family| family.risk),
            ..VerdictFix::default()
        }),
        ..VerdictItem::stated(host.copied(), &row.kept.key, sentence)
    }
}

/// The command that reads a setting.
fn check(row: &DriftRow, again: SameFiles<'_>) -> String {
    format!("linerate facts {}{} {}", again.inventory, word(&row.kept.host), word(&row.kept.key))
}

/// Why it is not known what the files give after a boot, with the hosts, each reason once.
fn unread_files(rows: &[DriftRow]) -> Vec<(&str, Vec<&str>)> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows.iter().filter(|row| row.state != DriftState::Unreadable && !row.boot_read) {
        let (host, Some(reason)) = (row.kept.host.as_str(), row.reason.as_deref()) else { continue };
        match found.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, hosts)) if hosts.contains(&host) => {}
            Some((_, hosts)) => hosts.push(host),
            None => found.push((reason, vec![host])),
        }
    }
    found
}

/// How many rows are in which state.
fn summary(rows: &[DriftRow], file: &str) -> String {
    let count = |state: DriftState| rows.iter().filter(|row| row.state == state).count();
    let fights = rows.iter().filter(|row| row.fight).count();
    let part = |number: usize, words: &str| (number > 0).then(|| format!("{number} {words}"));
    let parts = [
        part(count(DriftState::Drifted), "drifted"),
        part(count(DriftState::WillNotSurvive), "will not survive a reboot"),
        part(fights, if fights == 1 { "with two owners" } else { "with two owners each" }),
        part(count(DriftState::Unreadable), "not read"),
        part(count(DriftState::Same), "in force"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let settings = if rows.len() == 1 { "setting" } else { "settings" };
    let rest = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    format!("{}: {} kept {settings}{rest}", one_line(file), rows.len())
}

/// What a person has to see, worst first, in the order of the hosts.
fn findings(rows: &[DriftRow]) -> Vec<Finding<'_>> {
    let mut found: Vec<Finding<'_>> = Vec::new();
    let is_shown = |row: &&DriftRow| row.state > DriftState::Unreadable || row.fight;
    for row in rows.iter().filter(is_shown) {
        match found.iter_mut().find(|finding| is_same(finding.first, row)) {
            Some(finding) => finding.hosts.push(&row.kept.host),
            None => found.push(Finding { first: row, hosts: vec![&row.kept.host] }),
        }
    }
    found.sort_by_key(|finding| std::cmp::Reverse(finding.first.state));
    found
}

fn is_same(one: &DriftRow, other: &DriftRow) -> bool {
    let change = |row: &DriftRow| {
        row.changed.as_ref().map(|c| (c.after_ms / 60_000, c.seen_ms / 60_000, c.who.clone()))
    };
    let of =
        |row: &DriftRow| (row.kept.key.clone(), row.kept.value.clone(), row.kept.policy, row.now.clone());
    of(one) == of(other)
        && (one.state, &one.boot, one.fight, &one.against)
            == (other.state, &other.boot, other.fight, &other.against)
        && change(one) == change(other)
}

fn finding(number: usize, finding: &Finding<'_>, again: SameFiles<'_>, style: Style) -> Vec<String> {
    let row = finding.first;
    let head = format!("{number}. {}: {}", ranges(&finding.hosts), what(row));
    let labelled = |label: &str, text: &str| format!("   {}{text}", style.dim(&format!("{label:<7}")));
    let columns = style.width - LABEL;
    let mut lines = vec![
        style.alarm(&names::cut(&one_line(&head), style.width)),
        labelled("Cause", &names::cut(&one_line(&cause_within(row, columns)), columns)),
        labelled("Check", &style.command(&check(row, again))),
    ];
    lines.push(match fix(row, again) {
        (text, true) => labelled("Fix", &style.command(&text)),
        (text, false) => labelled("Next", &names::cut(&one_line(&text), columns)),
    });
    lines
}

/// Setting and values.
fn what(row: &DriftRow) -> String {
    let now = row.now.as_ref().map_or_else(|| "absent".to_owned(), names::fact);
    let kept = names::fact(&row.kept.value);
    match row.state {
        DriftState::Drifted => format!("{} is {now}, {kept} was kept", row.kept.key),
        DriftState::WillNotSurvive => format!("{} is {kept} as kept, but not after a reboot", row.kept.key),
        DriftState::Same | DriftState::Unreadable => {
            format!("{} is {kept} as kept, with two owners", row.kept.key)
        }
    }
}

/// The cause with the interval of the change, where that fits.
fn cause_within(row: &DriftRow, columns: usize) -> String {
    let [whole, short] = [0, 1].map(|clause| cause(row, clause));
    if whole.chars().count() <= columns { whole } else { short }
}

/// From which file, when and by whom.
fn cause(row: &DriftRow, clause: usize) -> String {
    let mut parts = Vec::new();
    if let Some(at_ms) = row.put_back_ms.filter(|_| row.state == DriftState::Drifted) {
        let what = if row.fight { "written again after it was put back" } else { "undone after a put back" };
        parts.push(format!("{what} {} UTC", day_minute(at_ms)));
    }
    let sets_now =
        row.against.iter().rev().find(|line| row.now.as_ref().is_some_and(|now| now.is_same(&line.value)));
    match (row.state, sets_now, &row.boot) {
        (DriftState::Drifted, Some(line), _) => parts.push(format!("set by {}", line.at)),
        (DriftState::WillNotSurvive, _, Some(line)) => {
            parts.push(format!("{} sets {}", line.at, names::fact(&line.value)));
        }
        (DriftState::WillNotSurvive, _, None) => parts.push("no file sets it".to_owned()),
        (DriftState::Drifted, None, _) if row.changed.is_none() && parts.is_empty() => {
            parts.push(if row.boot_read { "no file sets this value" } else { "unknown" }.to_owned());
        }
        _ => {}
    }
    parts.extend(row.changed.as_ref().map(|change| changes::clauses(change)[clause].clone()));
    if row.fight && row.put_back_ms.is_none() {
        let owners = |line: &&linerate_model::drift::OwnerLine| {
            row.boot.as_ref().is_none_or(|boot| boot.at != line.at)
        };
        if let Some(other) = row.against.iter().rev().find(owners).filter(|_| parts.is_empty()) {
            parts.push(format!("{} sets {}", other.at, names::fact(&other.value)));
        }
        parts.push("two owners".to_owned());
    }
    parts.join("; ")
}

/// What helps, and whether it is a command.
fn fix(row: &DriftRow, again: SameFiles<'_>) -> (String, bool) {
    let other = row.against.last().filter(|_| row.fight);
    if let Some(line) = other {
        return (
            format!("remove the line {} of {}: two owners write it in turn", line.at, line.owner),
            false,
        );
    }
    if row.fight {
        return ("find what writes it: it is put back at most once an hour".to_owned(), false);
    }
    if row.put_back_ms.is_some() && row.state == DriftState::Drifted {
        return ("see why it was undone: it is put back at most once an hour".to_owned(), false);
    }
    let command =
        format!("linerate drift {}{}{} --put-back", again.inventory, again.kept, word(&row.kept.host));
    match row.kept.policy {
        DriftPolicy::Report => {
            ("policy report: `put-back` in the kept set lets it be put back".to_owned(), false)
        }
        DriftPolicy::Propose => (command + " --yes", true),
        DriftPolicy::PutBack => (command, true),
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::drift::{KeptSetting, OwnerLine};
    use linerate_model::fact::FactValue;
    use linerate_model::fact_change::{FactChange, SeenBy};

    use super::*;

    fn row(host: &str, state: DriftState) -> DriftRow {
        let key = "sysctl.net.ipv4.tcp_rmem".to_owned();
        let value = FactValue::Text("4096 131072 33554432".to_owned());
        let kept = KeptSetting {
            host: host.to_owned(),
            key,
            value,
            policy: DriftPolicy::PutBack,
            trial: None,
            profile: None,
            line: 4,
        };
        let now = Some(FactValue::Text("4096 131072 212992".to_owned()));
        DriftRow {
            kept,
            state,
            now,
            reason: None,
            boot: None,
            boot_read: true,
            changed: None,
            against: Vec::new(),
            fight: false,
            put_back_ms: None,
        }
    }

    fn page(rows: &[DriftRow]) -> String {
        let text = text(rows, "kept.toml", SameFiles::default(), Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        text
    }

    #[test]
    fn what_drifted_has_four_lines_and_hosts_alike_are_one_finding() {
        let mut drifted = row("vs-1", DriftState::Drifted);
        drifted.changed = Some(FactChange {
            host: "vs-1".to_owned(),
            key: drifted.kept.key.clone(),
            from: None,
            to: drifted.now.clone(),
            after_ms: 1_795_543_200_000,
            seen_ms: 1_795_573_200_000,
            seen_by: SeenBy::Facts,
            who: Some("trial 20261121-083015-4f2a".to_owned()),
        });
        let at = "/etc/sysctl.d/99-vendor.conf:7".to_owned();
        let line = OwnerLine { owner: "sysctl.d".to_owned(), at, value: drifted.now.clone().unwrap() };
        drifted.against.push(line);
        let mut other = drifted.clone();
        other.kept.host = "vs-2".to_owned();
        let mut blind = row("vs-3", DriftState::Unreadable);
        blind.reason = Some("ssh exited with 255".to_owned());
        let rows = [row("vs-4", DriftState::Same), drifted, other, blind];
        let verdict = verdict(&rows, SameFiles { inventory: "-i c.toml ", kept: "" });
        let [found] = &verdict.findings[..] else { panic!("{verdict:?}") };
        let fix = found.fix.as_ref().unwrap();
        assert_eq!(fix.hosts, ["vs-1", "vs-2"]);
        assert_eq!(fix.by_hand, "linerate drift -i c.toml vs-1 --put-back");
        assert_eq!(found.cause.as_ref().unwrap().certainty, Certainty::Certain);
        let check = &found.check.as_ref().unwrap().command;
        assert_eq!(check, "linerate facts -i c.toml vs-1 sysctl.net.ipv4.tcp_rmem");
        assert_eq!(verdict.unseen.gaps.len(), 1);
        let page = page(&rows);
        let lines: Vec<&str> = page.lines().collect();
        assert_eq!(
            lines,
            [
                "kept.toml: 4 kept settings: 2 drifted, 1 not read, 1 in force",
                "1. vs-1, vs-2: sysctl.net.ipv4.tcp_rmem is 4096 131072 212992, 4096 131072 33554432 was kept",
                "   Cause  set by /etc/sysctl.d/99-vendor.conf:7; changed since 24 Nov 18:00 UTC by trial 20261121-0…",
                "   Check  linerate facts vs-1 sysctl.net.ipv4.tcp_rmem",
                "   Fix    linerate drift vs-1 --put-back",
                "not read: vs-3 sysctl.net.ipv4.tcp_rmem: ssh exited with 255",
            ]
        );
    }

    #[test]
    fn a_value_that_a_reboot_loses_names_the_line_that_wins() {
        let mut lost = row("vs-1", DriftState::WillNotSurvive);
        lost.now = Some(lost.kept.value.clone());
        assert!(page(&[lost.clone()]).contains("   Cause  no file sets it\n"));
        let at = "/usr/lib/tuned/x/tuned.conf:9".to_owned();
        lost.boot =
            Some(OwnerLine { owner: "tuned".to_owned(), at, value: FactValue::Text("1 2 3".to_owned()) });
        let page = page(&[lost]);
        assert!(page.contains("as kept, but not after a reboot\n"), "{page}");
        assert!(page.contains("   Cause  /usr/lib/tuned/x/tuned.conf:9 sets 1 2 3\n"), "{page}");
        assert!(
            page.contains("   Fix    linerate drift vs-1 --put-back\n"),
            "{page}: it is written where it counts after that line"
        );
    }

    #[test]
    fn a_line_that_is_not_understood_is_named_once() {
        let unread = |host| {
            let mut row = row(host, DriftState::Same);
            (row.boot_read, row.reason) =
                (false, Some("/etc/rc.local:4 cannot be read: /opt/tune.sh".to_owned()));
            row
        };
        let page = page(&[unread("vs-1"), unread("vs-1"), unread("vs-2")]);
        assert_eq!(
            page,
            "kept.toml: 3 kept settings: 3 in force\n\
             files not read: vs-1, vs-2: /etc/rc.local:4 cannot be read: /opt/tune.sh\n"
        );
    }

    #[test]
    fn two_owners_are_no_loop() {
        let mut again = row("vs-1", DriftState::Drifted);
        (again.fight, again.put_back_ms) = (true, Some(1_795_573_200_000));
        let page = page(&[again]);
        assert!(page.starts_with("kept.toml: 1 kept setting: 1 drifted, 1 with two owners\n"), "{page}");
        assert!(page.contains("written again after it was put back 25 Nov 02:20 UTC"), "{page}");
        assert!(page.contains("at most once an hour") && !page.contains("--yes"), "{page}");
        let mut undone = row("vs-1", DriftState::Drifted);
        undone.put_back_ms = Some(1_795_573_200_000);
        let page = self::page(&[undone]);
        assert!(page.contains("undone after a put back 25 Nov 02:20 UTC"), "{page}");
        assert!(page.contains("at most once an hour") && !page.contains("--put-back"), "{page}");
    }
}
