//! The end of a screen: at most four lines for each finding, then what is harmless, what could not be seen,
//! and the name of the run. A verdict in, text of at most the width out; commands are never cut.

use linerate_model::change::Risk;
use linerate_model::difference::Difference;
use linerate_model::fact::{Gap, GapSubject};
use linerate_model::finding::{Clue, NextTest};
use linerate_model::printable::{self, without_hint};
use linerate_model::units::{rate, ratio};
use linerate_model::verdict::{
    Certainty, LossBasis, Unseen, Verdict, VerdictCause, VerdictFix, VerdictItem, VerdictSubject,
};

use super::{first_line, sign};
use crate::heat::Style;
use crate::wrap::wrap;
use crate::{changes, names, words};

/// Findings of a screen; the rest is counted.
pub const FINDINGS_MAX: usize = 5;
/// Hosts and groups that are named in a line.
const NAMES_MAX: usize = 4;
/// Width of the labels, with the indent before them.
const LABEL: usize = 10;

/// The end of a screen. `whole` sums it up where nothing is wrong, `more` the command that
/// shows all of it.
#[must_use]
pub fn text(verdict: &Verdict, whole: &str, more: &str, style: Style) -> String {
    let mut out = String::new();
    let mut line = |text: &str| {
        out += text;
        out.push('\n');
    };
    if let Some(effect) = verdict.effect.as_ref().and_then(|effect| effect_text(effect, style.width)) {
        line(&style.bold(&printable::clean(&effect)));
    }
    if verdict.findings.is_empty() {
        for part in wrap(whole, style.width) {
            line(&style.fine(&part));
        }
    }
    for (i, item) in verdict.findings.iter().enumerate().take(FINDINGS_MAX) {
        for text in self::item(i + 1, item, same_as(&verdict.findings, i), style) {
            line(&text);
        }
    }
    let hidden = verdict.findings.len().saturating_sub(FINDINGS_MAX);
    if hidden > 0 {
        line(&style.dim(&format!("and {hidden} more findings: {more}")));
    }
    if let Some(harmless) = harmless_text(verdict) {
        line(&style.dim(&format!("{harmless}: {more}")));
    }
    if let Some(share) = verdict.unseen.paced {
        for part in wrap(&format!("{PACED}{}", words::pace(share)), style.width) {
            line(&style.dim(&part));
        }
    }
    for text in unseen(&verdict.unseen, style) {
        line(&text);
    }
    out
}

/// A line of a finding below its first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LabelledLine {
    /// When, Cause, Check, Fix or Next.
    pub label: &'static str,
    /// What stands behind it.
    pub text: String,
    /// Whether it is typed.
    pub is_command: bool,
    /// What a fix risks: a remark of the shell behind the command.
    pub remark: Option<String>,
}

/// A finding in lines, for any medium.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindingLines {
    /// Where, and how much.
    pub what: String,
    /// At most three.
    pub rows: Vec<LabelledLine>,
}

/// The lines of a finding: its first fits `first` columns, what stands behind a label fits `columns` where
/// there is a shorter form. `same` is the earlier finding with the same cause, check and fix.
pub(crate) fn finding_lines(
    item: &VerdictItem,
    same: Option<usize>,
    first: usize,
    columns: usize,
) -> FindingLines {
    let what = match &item.what {
        VerdictSubject::Loss(loss) => {
            let line = first_line::line(loss, item.cause.as_ref());
            let or = first_line::or(loss);
            let with = format!("{line}; or {}", or.join(", or "));
            if or.is_empty() || with.chars().count() > first { line } else { with }
        }
        VerdictSubject::Signs(remarks) => sign::line(remarks),
        VerdictSubject::Trial(trial) => trial.heading.clone(),
        VerdictSubject::Replica(replica) => replica.sentence.clone(),
        VerdictSubject::Drive(drive) => format!("{}: {}", drive.host, drive.sentence),
        VerdictSubject::Stated(stated) => stated.sentence.clone(),
    };
    let row = |label, text: String, is_command| LabelledLine {
        label,
        text: printable::clean(&text),
        is_command,
        remark: None,
    };
    let mut found = FindingLines { what: printable::clean(&what), rows: Vec::new() };
    if let Some(same) = same {
        found.rows.push(row("Cause", format!("as in {}", same + 1), false));
        return found;
    }
    if let VerdictSubject::Signs(remarks) = &item.what {
        found.rows.extend(sign::when(remarks).map(|text| row("When", text, false)));
    }
    let was_read = matches!(&item.what, VerdictSubject::Loss(loss) if loss.basis == LossBasis::Reading);
    found.rows.extend(cause(item, was_read, columns).map(|text| row("Cause", text, false)));
    found.rows.extend(item.check.as_ref().map(|check| row("Check", check.command.clone(), true)));
    match (&item.fix, &item.next) {
        (Some(fix), _) => {
            let (command, remark) = self::fix(fix, columns);
            let is_command = fix.trial.is_some() || command.starts_with("on ");
            found.rows.push(LabelledLine { remark, ..row("Fix", command, is_command) });
        }
        (None, Some(next)) => found.rows.push(row("Next", self::next(next), false)),
        (None, None) => {}
    }
    found
}

/// The earlier finding with the same cause, check and fix.
pub(crate) fn same_as(findings: &[VerdictItem], i: usize) -> Option<usize> {
    findings[..i].iter().position(|other| is_same(other, &findings[i]))
}

/// The lines of a finding on a terminal.
fn item(number: usize, item: &VerdictItem, same: Option<usize>, style: Style) -> Vec<String> {
    let head = format!("{number}. ");
    let columns = style.width - LABEL;
    let found = finding_lines(item, same, style.width - head.len(), columns);
    let mut lines = vec![style.alarm(&names::cut(&format!("{head}{}", found.what), style.width))];
    for row in &found.rows {
        let text = match row.label {
            "Check" => style.command(&fitting(&row.text, columns)),
            "Fix" => style.command(&row.text),
            _ => names::cut(&row.text, columns),
        };
        let remark =
            row.remark.as_ref().map_or(String::new(), |remark| style.dim(&format!("{REMARK}{remark}")));
        lines.push(labelled(row.label, &(text + &remark), style));
    }
    lines
}

/// Whether a finding has the cause, the check and the fix of an earlier one: they are not printed twice.
fn is_same(earlier: &VerdictItem, item: &VerdictItem) -> bool {
    let cause = |item: &VerdictItem| item.cause.as_ref().map(|cause| (cause.id.clone(), cause.certainty));
    cause(item).is_some_and(|(id, _)| !id.is_empty())
        && cause(earlier) == cause(item)
        && earlier.check == item.check
        && earlier.fix == item.fix
}

fn labelled(label: &str, text: &str, style: Style) -> String {
    format!("   {}{text}", style.dim(&format!("{label:<7}")))
}

/// A command without its filter, where it is too long with it.
fn fitting(command: &str, columns: usize) -> String {
    match command.split_once(" | ") {
        Some((head, _)) if command.chars().count() > columns => head.to_owned(),
        _ => command.to_owned(),
    }
}

fn cause(item: &VerdictItem, was_read: bool, columns: usize) -> Option<String> {
    let Some(cause) = &item.cause else {
        let is_loss = matches!(item.what, VerdictSubject::Loss(_));
        return is_loss.then(|| "unknown".to_owned());
    };
    let VerdictCause { title, certainty, evidence, changed, .. } = cause;
    let clauses: Vec<String> = changed.iter().flat_map(changes::clauses).collect();
    if *certainty == Certainty::Unknown {
        // A sign words what is known of it.
        let words =
            if cause.id.is_empty() { title.clone() } else { format!("unknown; first suspect: {title}") };
        return Some(words);
    }
    let word = certainty.word();
    // Settings come before what was measured.
    let readings = |is_setting, peers| {
        let of_kind = evidence.iter().filter(move |clue| matches!(clue, Clue::Read(_)) == is_setting);
        of_kind.filter_map(move |clue| first_line::reading(clue, peers))
    };
    if was_read {
        // The title stands in the first line.
        let reading = first_line::readings(evidence)
            .or_else(|| readings(true, true).chain(readings(false, true)).next());
        let Some(reading) = reading else { return Some(format!("read only ({word})")) };
        let most = columns.saturating_sub(word.len() + 3);
        return Some(format!("{} ({word})", quoting(&names::cut(&reading, most), &clauses, most)));
    }
    let most = columns.saturating_sub(word.len() + 3);
    // The value at least, where the name of its setting does not fit.
    let space = most.saturating_sub(title.chars().count() + 2);
    let forms = |clue| {
        let long = [true, false].into_iter().filter_map(move |peers| first_line::reading(clue, peers));
        long.chain(first_line::shorter(clue, space))
    };
    let settings = evidence.iter().filter(|clue| matches!(clue, Clue::Read(_))).flat_map(forms);
    let all = settings.chain(readings(false, true)).map(|reading| format!("{title}; {reading}"));
    let all: Vec<String> = all.collect();
    let fits = |text: &&String| text.chars().count() <= most;
    // A shorter reading with its change is worth more than a longer one without.
    let quoted = all.iter().map(|text| quoting(text, &clauses, most)).zip(&all);
    let quoted = quoted.filter(|(with, text)| with != *text).map(|(with, _)| with).next();
    let text = quoted.or_else(|| all.iter().find(fits).cloned());
    Some(format!("{} ({word})", text.unwrap_or_else(|| quoting(title, &clauses, most))))
}

/// A text with the longest of the clauses that fits beside it; without one where none does.
fn quoting(text: &str, clauses: &[String], columns: usize) -> String {
    let mut with = clauses.iter().map(|clause| format!("{text}; {clause}"));
    with.find(|with| with.chars().count() <= columns).unwrap_or_else(|| text.to_owned())
}

/// The command, and what it risks: the longest that fits.
fn fix(fix: &VerdictFix, columns: usize) -> (String, Option<String>) {
    let risk = risk(fix);
    let hosts = if fix.hosts.len() > 1 { format!("on {} hosts; ", fix.hosts.len()) } else { String::new() };
    let (command, remarks) = match &fix.trial {
        Some(trial) => {
            let by_hand = fix.by_hand.rsplit_once(": ").map_or(fix.by_hand.as_str(), |(_, command)| command);
            let full = format!("= {by_hand}; {hosts}{risk}");
            let whole = format!("{hosts}{risk}");
            let is_command = !by_hand.is_empty() && fix.by_hand.starts_with("on ");
            (trial.clone(), if is_command { vec![full, whole] } else { vec![whole] })
        }
        None => (fix.by_hand.clone(), vec![risk]),
    };
    let command = printable::clean(&command);
    // What is only pointed to risks nothing yet.
    if fix.trial.is_none() && command.starts_with("by hand: ") {
        return (command, None);
    }
    // What breaks is worth more than its level, and is cut where a clause ends.
    let words = fix.risk_text.trim().trim_end_matches('.');
    let shorter = words.match_indices([';', ',']).map(|(at, _)| words[..at].to_owned()).collect::<Vec<_>>();
    let all = remarks.iter().cloned().chain([words.to_owned()]).chain(shorter.into_iter().rev());
    let all = all.chain([least(fix.risk).to_owned()]);
    let mut fits = all.filter(|remark| {
        !remark.is_empty() && command.chars().count() + REMARK.len() + remark.chars().count() <= columns
    });
    let remark = fits.next().map(|remark| printable::clean(&remark));
    (command, remark)
}

/// A risk in few words, where those of the fix do not fit.
fn least(risk: Risk) -> &'static str {
    match risk {
        Risk::Harmless => "",
        Risk::Brief => "link down for seconds, or more CPU",
        Risk::Disruptive => "may cut connections",
        Risk::Dangerous => "data or security at stake",
    }
}

/// Between a command and its risk: a shell passes over it.
const REMARK: &str = "   # ";

fn risk(fix: &VerdictFix) -> String {
    let text = fix.risk_text.trim().trim_end_matches('.');
    let level = fix.risk.to_string();
    let word = level.split(':').next().unwrap_or_default();
    match (fix.risk, text) {
        (Risk::Harmless, "") if fix.trial.is_none() => String::new(),
        (_, "") => word.to_owned(),
        (Risk::Harmless, text) => text.to_owned(),
        (_, text) => format!("{word}: {text}"),
    }
}

fn next(next: &NextTest) -> String {
    match next {
        NextTest::Repeat => "repeat the tests of this pair three times with nothing else running".to_owned(),
        NextTest::ThirdHost => "measure both against a third host: the slow end stays slow".to_owned(),
        NextTest::FurtherGroup { group, .. } => {
            format!(
                "survey with a host of a further group too: slow into {group} as well, then it is {group}"
            )
        }
        NextTest::Partners => {
            "survey it with two partners of other groups and nothing else running".to_owned()
        }
    }
}

/// What a fix achieved.
pub(crate) fn effect_text(difference: &Difference, width: usize) -> Option<String> {
    let Difference::Effect { pairs, bps, ratio: times, interval, proof, .. } = difference else {
        return None;
    };
    let verdict = crate::words::verdict_of_fix(*proof);
    let rates = format!("{verdict}: {pairs} slow pairs went from {} to {}", rate(bps.0), rate(bps.1));
    let all = format!("{rates}, {} (95 %: {} to {})", ratio(*times), ratio(interval.0), ratio(interval.1));
    Some(if all.chars().count() <= width { all } else { format!("{rates}, {}", ratio(*times)) })
}

/// How the line of what could not be seen begins.
const NOT_SEEN: &str = "Not seen: ";
/// How the lines of what is asked for after it begin.
const THEN: &str = "Then:     ";
/// Before what tests at a share of each link can show.
const PACED: &str = "Gentle: ";

/// How many differences explain nothing.
pub(crate) fn harmless_text(verdict: &Verdict) -> Option<String> {
    match verdict.harmless {
        0 => None,
        1 => Some("1 other difference is harmless".to_owned()),
        many => Some(format!("{many} other differences are harmless")),
    }
}

fn unseen(unseen: &Unseen, style: Style) -> Vec<String> {
    let Some(text) = not_seen(unseen) else { return Vec::new() };
    let further =
        unseen.asked_then.iter().map(|missing| format!("{THEN}{}: {}", missing.what, missing.command));
    let lines = std::iter::once(format!("{NOT_SEEN}{text}")).chain(further);
    lines.flat_map(|line| wrap(&line, style.width)).map(|part| style.dim(&part)).collect()
}

/// What could not be seen, and what to do.
pub(crate) fn not_seen(unseen: &Unseen) -> Option<String> {
    let unread = match unseen.unread_lines {
        0 => None,
        1 => Some("1 line was not understood".to_owned()),
        many => Some(format!("{many} lines were not understood")),
    };
    if let Some(missing) = &unseen.asked {
        let unread = unread.map_or(String::new(), |unread| format!("; {unread}"));
        Some(format!("{}: {}{unread}", missing.what, missing.command))
    } else {
        let mut parts: Vec<String> = unseen
            .pairs
            .iter()
            .map(|(layer, pairs, of)| format!("{pairs} of {of} pairs ({layer})"))
            .collect();
        let untested: Vec<String> = unseen
            .untested
            .iter()
            .map(|(suspect, direction)| first_line::subject(suspect, *direction))
            .collect();
        if !untested.is_empty() {
            parts.push(format!("{}, suspected and not tested again", names::list(&untested, NAMES_MAX)));
        }
        let again = !parts.is_empty();
        parts.extend(gaps(&unseen.gaps));
        parts.extend(unread);
        match (parts.is_empty(), again) {
            (true, _) => None,
            (false, true) => Some(format!("{}; survey again when the hosts are idle", parts.join("; "))),
            (false, false) => Some(parts.join("; ")),
        }
    }
}

/// The gravest gap with what to do, and how many more there are.
fn gaps(gaps: &[Gap]) -> Option<String> {
    let is_host = |gap: &&Gap| matches!(gap.what, GapSubject::Host(_));
    let first = gaps.iter().find(is_host).or(gaps.first())?;
    let (reason, hint) = without_hint(&first.reason);
    let hint = hint.map_or(String::new(), |hint| format!(" ({hint})"));
    let same = gaps.iter().filter(|gap| gap.reason == first.reason).count();
    let what =
        if same > 1 { format!("{} and {} more", first.what, same - 1) } else { first.what.to_string() };
    let others = gaps.len() - same;
    let others = if others > 0 { format!("; {others} further gaps") } else { String::new() };
    Some(format!("{what}: {reason}{hint}{others}"))
}
