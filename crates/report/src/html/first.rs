//! The first screen of a page: whether it is cured, the lines of the verdict, the command to type and the
//! proof. The verdict comes in as it is; no sentence of it is made here.

use linerate_model::finding::Diagnosis;
use linerate_model::remark::Overall;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::{Arm, Effect, Trial, TrialStatus};
use linerate_model::units;
use linerate_model::verdict::{Verdict, VerdictItem};
use maud::{Markup, html};

use crate::names::unbroken;
use crate::verdict::{self, LabelledLine};
use crate::{card, chart, text, words};

/// A page has no columns: every line in its longest form.
const COLUMNS: usize = 400;

/// What a trial did for a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treatment {
    /// The change is kept and was better.
    Cured,
    /// It was better; the old values are back.
    Proven,
}

/// The latest trial of the fix of a finding, where it was better.
fn treatment<'a>(item: &VerdictItem, trials: &'a [Trial]) -> Option<(Treatment, &'a Trial)> {
    let cause = item.cause.as_ref().filter(|cause| !cause.id.is_empty())?;
    let is_of = |trial: &&Trial| {
        let hosts = trial.remedy.hosts();
        let treats = |fix: &linerate_model::verdict::VerdictFix| fix.hosts.iter().all(|h| hosts.contains(h));
        trial.remedy.id == cause.id && item.fix.as_ref().is_none_or(treats)
    };
    let trial = trials.iter().filter(is_of).max_by(|a, b| a.id.cmp(&b.id))?;
    let is_better = trial.effect.as_ref().is_some_and(|e| e.effect == Effect::Better);
    match trial.status {
        TrialStatus::Kept if is_better => Some((Treatment::Cured, trial)),
        TrialStatus::Measured if is_better => Some((Treatment::Proven, trial)),
        _ => None,
    }
}

/// The state of a run: a word for the style sheet and one for people.
fn state(verdict: &Verdict, trials: &[Trial]) -> (&'static str, String) {
    let all = verdict.findings.len();
    let treated: Vec<_> = verdict.findings.iter().filter_map(|item| treatment(item, trials)).collect();
    let cured = treated.iter().filter(|(t, _)| *t == Treatment::Cured).map(|(_, trial)| *trial);
    let cured: Vec<&Trial> = cured.collect();
    match (all, cured.as_slice()) {
        // What was not seen may be what is wrong.
        (0, _) if !verdict.unseen.is_nothing() => ("good", "no finding, not all seen".to_owned()),
        (0, _) => ("good", "no finding".to_owned()),
        (_, [first, ..]) if cured.len() == all => ("good", format!("cured by trial {}", first.id)),
        (_, [_, ..]) => ("wrong", format!("{} of {all} findings cured", cured.len())),
        (1, []) if treated.is_empty() => ("wrong", "1 finding".to_owned()),
        (1, []) => ("wrong", "1 finding, fix proven".to_owned()),
        (_, []) => ("wrong", format!("{all} findings")),
    }
}

/// What a page adds below the lines of a finding: nothing in a report of one file.
pub type More<'a> = &'a dyn Fn(&VerdictItem) -> Markup;

/// All of it above the matrix.
pub fn screen(
    snapshot: &Snapshot,
    diagnosis: &Diagnosis,
    verdict: &Verdict,
    trials: &[Trial],
    reveal: Option<&str>,
    more: More<'_>,
) -> Markup {
    let (class, word) = state(verdict, trials);
    html! {
        header class={ "verdict " (class) } id="verdict" {
            p.over {
                span.facts { (over(snapshot, diagnosis)) }
                // Single tests have a headline and no findings.
                @if !crate::single::is_single(snapshot) { b.state { (word) } }
            }
            @if verdict.findings.is_empty() { h1 { (unbroken(&whole(snapshot, diagnosis))) } }
            @for (i, item) in verdict.findings.iter().enumerate().take(verdict::FINDINGS_MAX) {
                (finding(i, item, verdict, trials, more))
            }
            @if verdict.findings.len() > verdict::FINDINGS_MAX {
                p.small { "and " (verdict.findings.len() - verdict::FINDINGS_MAX) " more findings: " a href="#evidence" { "evidence" } }
            }
            @if let Some(effect) = verdict.effect.as_ref().and_then(|e| verdict::effect_text(e, COLUMNS)) {
                p.effect { (unbroken(&effect)) }
            }
            (proof(verdict, trials))
            @if let Some(reveal) = reveal { p.reveal { b { "What was broken: " } (reveal) } }
        }
    }
}

/// The sentence where nothing is wrong, or of single tests.
fn whole(snapshot: &Snapshot, diagnosis: &Diagnosis) -> String {
    let is_old = diagnosis.summary.overall == Overall::Nothing && !diagnosis.cells.is_empty();
    if is_old || crate::single::is_single(snapshot) {
        diagnosis.headline.clone()
    } else {
        words::whole(diagnosis)
    }
}

/// The first line of the verdict, for the title of the window.
pub fn title(snapshot: &Snapshot, diagnosis: &Diagnosis, verdict: &Verdict) -> String {
    match verdict.findings.first() {
        Some(item) => verdict::finding_lines(item, None, COLUMNS, COLUMNS).what,
        None => whole(snapshot, diagnosis),
    }
}

/// Cluster, time, and what was measured.
fn over(snapshot: &Snapshot, diagnosis: &Diagnosis) -> String {
    let inventory = &snapshot.inventory;
    let count =
        |n: usize, one: &str, many: &str| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") };
    let mut parts = vec!["linerate".to_owned()];
    parts.extend((!inventory.name.is_empty()).then(|| inventory.name.clone()));
    parts.extend((snapshot.start_ms > 0).then(|| units::date(snapshot.start_ms)));
    if crate::single::is_single(snapshot) {
        parts.extend(text::test_counts(snapshot).iter().map(|(kind, n)| format!("{kind}: {}", n[0])));
        return parts.join(" · ");
    }
    let hosts = inventory.hosts.iter().filter(|h| !h.endpoints.is_empty()).count();
    if hosts > 0 {
        parts.push(count(hosts, "host", "hosts"));
    }
    let seen = diagnosis.cells.iter().filter(|c| c.throughput_bps.is_some()).count();
    if !diagnosis.cells.is_empty() {
        parts.push(format!("{seen} of {} measured", count(diagnosis.cells.len(), "pair", "pairs")));
    }
    parts.join(" · ")
}

fn finding(i: usize, item: &VerdictItem, verdict: &Verdict, trials: &[Trial], more: More<'_>) -> Markup {
    let same = verdict::same_as(&verdict.findings, i);
    let (what, lines) = parts(i, item, same, trials);
    let lines = html! { (lines) (more(item)) };
    if i == 0 {
        html! { article.item id="finding-1" { h1 { (what) } (lines) } }
    } else {
        // Further findings are one line each until they are opened.
        html! { details.item { summary { (what) } div id={ "finding-" (i + 1) } { (lines) } } }
    }
}

/// A finding for a page about what it speaks of.
#[must_use]
pub fn item(i: usize, verdict: &Verdict, trials: &[Trial]) -> Markup {
    let (what, lines) = parts(i, &verdict.findings[i], None, trials);
    html! { h3 { (what) } (lines) }
}

/// What was found, and the lines below it; `same` is the earlier finding with the same cause, check and fix.
fn parts(i: usize, item: &VerdictItem, same: Option<usize>, trials: &[Trial]) -> (Markup, Markup) {
    let found = verdict::finding_lines(item, same, COLUMNS, COLUMNS);
    let treatment = treatment(item, trials);
    let mut rows = found.rows;
    // A fix that was tried is not to be tried again.
    match treatment {
        Some((Treatment::Cured, trial)) => {
            replace_fix(
                &mut rows,
                "Undo",
                format!("linerate undo {}", trial.id),
                "the change is kept; this restores the old values",
            );
        }
        Some((Treatment::Proven, trial)) => {
            replace_fix(
                &mut rows,
                "Keep",
                format!("linerate keep {}", trial.id),
                "proven; the old values are back until then",
            );
        }
        None => {}
    }
    let number = format!("{}. ", i + 1);
    let is_cured = treatment.is_some_and(|(t, _)| t == Treatment::Cured);
    let what = html! {
        span.no { (number) } (unbroken(&found.what)) @if is_cured { " " b.cured { "cured" } }
    };
    let lines = html! {
        dl.lines { @for row in &rows { dt { (row.label) } dd { (row_body(row)) } } }
    };
    (what, lines)
}

fn replace_fix(rows: &mut Vec<LabelledLine>, label: &'static str, text: String, remark: &str) {
    rows.retain(|row| row.label != "Fix");
    rows.push(LabelledLine { label, text, is_command: true, remark: Some(remark.to_owned()) });
}

fn row_body(row: &LabelledLine) -> Markup {
    // `on n4: ethtool …   (and the same on its switch port)`: only what stands between is pasted.
    let (head, text) = match row.text.split_once(": ") {
        Some((head, command)) if row.is_command && head.starts_with("on ") => (Some(head), command),
        _ => (None, row.text.as_str()),
    };
    let (command, note) = text.split_once("   ").map_or((text, ""), |(command, note)| (command, note.trim()));
    html! {
        @if row.is_command {
            @if let Some(head) = head { span.on { (head) ": " } }
            pre.cmd { (command) }
            @if !note.is_empty() { span.on { " " (note) } }
        } @else { p { (unbroken(&row.text)) } }
        @if let Some(remark) = &row.remark { p.small { (unbroken(remark)) } }
    }
}

/// What the trials showed: that of the first finding, else the latest that has an effect.
fn proof(verdict: &Verdict, trials: &[Trial]) -> Markup {
    let treated = verdict.findings.iter().find_map(|item| treatment(item, trials)).map(|(_, trial)| trial);
    let latest = || trials.iter().filter(|t| t.effect.is_some()).max_by(|a, b| a.id.cmp(&b.id));
    let Some(trial) = treated.or_else(latest) else { return html! {} };
    let Some(effect) = &trial.effect else { return html! {} };
    let unit = trial.response.unit();
    let of = |changed: bool| trial.arms.iter().filter(move |arm| arm.changed == changed);
    let value = |arm: &Arm| arm.value.map_or_else(|| "invalid".to_owned(), |v| units::value(v, unit));
    html! {
        section.proof id="proof" {
            p { b { "Proof " } (unbroken(&card::sentence(&effect.sentence))) " " (card::sentence(card::status(trial.status))) }
            @if !trial.arms.is_empty() {
                div.arms {
                    (chart::strip(trial))
                    p.values {
                        i.key.old {} "as it was: " (of(false).map(value).collect::<Vec<_>>().join(", "))
                        br;
                        i.key.new {} "changed: " (of(true).map(value).collect::<Vec<_>>().join(", "))
                    }
                }
            }
        }
    }
}
