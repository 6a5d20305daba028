//! What there is to say about a finding or a trial, in order and in plain words: rows of a label and lines.
//! Text, HTML and Markdown render the same cards, so none of them can forget something. Never formats for one
//! medium.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use linerate_model::change::{Change, Remedy, Risk};
use linerate_model::finding::{Finding, Metric, RankedCause};
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::trial::{Arm, Effect, Trial, TrialStatus};
use linerate_model::units;
use linerate_model::verdict::Certainty;

use super::{names, words};

/// How a row is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowStyle {
    /// Sentences.
    Prose,
    /// One item per line.
    List,
    /// Commands to type, one per line.
    Commands,
    /// What to do by hand, in commands and in words, one step per line.
    Instruction,
}

/// A label with its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CardRow {
    /// One or two words.
    pub label: &'static str,
    /// At least one.
    pub lines: Vec<String>,
    /// How to show them.
    pub shape: RowStyle,
}

/// A heading and its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Card {
    /// A sentence.
    pub heading: String,
    /// In order.
    pub rows: Vec<CardRow>,
}

impl Card {
    fn push(&mut self, label: &'static str, shape: RowStyle, lines: Vec<String>) {
        let lines: Vec<String> = lines.into_iter().filter(|l| !l.trim().is_empty()).collect();
        if !lines.is_empty() {
            self.rows.push(CardRow { label, lines, shape });
        }
    }
}

/// The card of a finding.
pub fn finding(finding: &Finding, inventory: &Inventory) -> Card {
    let mut card = Card { heading: finding.sentence.clone(), rows: Vec::new() };
    card.push("Where", RowStyle::Prose, vec![whereabouts(finding, inventory)]);
    let measured = if finding.was_only_read() {
        vec!["Nothing; it was only read.".to_owned()]
    } else {
        vec![sentence(&words::loss(finding)), shows_in(finding), breadth(finding)]
    };
    card.push("Measured", RowStyle::Prose, measured);
    why(&mut card, finding);
    card.push("Confidence", RowStyle::Prose, vec![confidence(finding)]);
    card.push("Or else", RowStyle::List, otherwise(finding, inventory));
    card.push("To settle it", RowStyle::Prose, finding.decide.iter().cloned().collect());
    if let Some(remedy) = finding.causes.iter().find_map(|c| c.remedy.as_ref()) {
        remedy_rows(&mut card, remedy);
    }
    card.push("Differs here", RowStyle::Prose, differs(finding));
    card
}

fn whereabouts(finding: &Finding, inventory: &Inventory) -> String {
    let members = finding.places.first().map_or(String::new(), |p| names::members(&p.suspect, inventory));
    words::location(finding) + &members
}

fn shows_in(finding: &Finding) -> String {
    let words: Vec<String> = finding.responses.iter().map(|r| r.label().to_owned()).collect();
    if words.is_empty() { String::new() } else { format!("Shows in {}.", names::list(&words, 8)) }
}

fn breadth(finding: &Finding) -> String {
    let parts = pairs(&finding.affected);
    match (finding.affected.len(), parts.len()) {
        (0, _) => String::new(),
        (1, _) => format!("One pair is affected: {}.", parts[0]),
        (n, many) if many > 6 => format!("{n} pairs are affected: {}; and others.", parts[..6].join("; ")),
        (n, _) => format!("{n} pairs are affected: {}.", parts.join("; ")),
    }
}

/// Pairs in few words: senders with the same receivers are named together.
fn pairs(affected: &[(HostName, HostName)]) -> Vec<String> {
    let mut by_receivers: Vec<(Vec<HostName>, Vec<HostName>)> = Vec::new();
    let mut by_sender: BTreeMap<&HostName, BTreeSet<&HostName>> = BTreeMap::new();
    for (sender, receiver) in affected {
        by_sender.entry(sender).or_default().insert(receiver);
    }
    for (sender, receivers) in by_sender {
        let to: Vec<HostName> = receivers.into_iter().cloned().collect();
        match by_receivers.iter_mut().find(|(receivers, _)| *receivers == to) {
            Some((_, from)) => from.push(sender.clone()),
            None => by_receivers.push((to, vec![sender.clone()])),
        }
    }
    by_receivers
        .iter()
        .map(|(to, from)| format!("{} to {}", names::list(from, 8), names::list(to, 8)))
        .collect()
}

fn why(card: &mut Card, finding: &Finding) {
    let Some(cause) = finding.causes.first() else {
        let text = "Not known: no setting that differs and no known cause explains it.".to_owned();
        card.push("Why", RowStyle::Prose, vec![text]);
        return;
    };
    card.push("Why", RowStyle::Prose, vec![sentence(&cause.title), cause.mechanism.clone()]);
    card.push("Evidence", RowStyle::List, cause.evidence.clone());
    card.push("Against it", RowStyle::List, cause.against.clone());
    card.push("Sources", RowStyle::List, cause.sources.clone());
}

/// With a capital and a full stop.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let head = letters.next().map(|c| c.to_uppercase().collect::<String>()).unwrap_or_default();
    let whole = head + letters.as_str();
    if whole.is_empty() || whole.ends_with(['.', '!', '?']) { whole } else { whole + "." }
}

fn confidence(finding: &Finding) -> String {
    let word = match finding.causes.first() {
        Some(cause) => super::verdict::certainty(cause, finding),
        None => Certainty::of(finding.probability),
    };
    let mut text = format!("Together {}. Finding: {}.", word.word(), units::sure(finding.probability));
    if let Some(place) = finding.places.first() {
        let _ = write!(text, " Location: {}.", units::sure(place.probability));
    }
    if let Some(cause) = finding.causes.first() {
        let _ = write!(text, " Cause, given the location: {}.", units::sure(cause.probability));
    }
    text
}

fn otherwise(finding: &Finding, inventory: &Inventory) -> Vec<String> {
    let places = finding.places.iter().skip(1).filter(|p| p.probability >= 0.01).take(4).map(|p| {
        let members = names::members(&p.suspect, inventory);
        format!("another place: {}{members} ({})", p.suspect.label(p.direction), units::sure(p.probability))
    });
    let causes = finding.causes.iter().skip(1).filter(|c| c.probability >= 0.01).take(4).map(other_cause);
    places.chain(causes).collect()
}

fn other_cause(cause: &RankedCause) -> String {
    let command = cause.remedy.as_ref().and_then(try_command).map(|c| format!("; {c}")).unwrap_or_default();
    let title = cause.title.trim_end_matches('.');
    format!("another cause: {title} ({}{command})", units::sure(cause.probability))
}

/// The command that tries a remedy wherever it changes something; none for an instruction.
fn try_command(remedy: &Remedy) -> Option<String> {
    let command = format!("linerate try {}", remedy.id);
    match remedy.hosts().as_slice() {
        [] => None,
        [host] => Some(format!("{command} --on {host}")),
        _ => Some(command),
    }
}

/// A change in words.
pub fn change(change: &Change) -> String {
    format!(
        "{}: {} from {} to {}",
        change.host,
        names::setting(&change.key),
        names::fact(&change.from),
        names::fact(&change.to)
    )
}

/// Changes that are told one by one; JSON has all of them.
const CHANGES_MAX: usize = 8;

fn remedy_rows(card: &mut Card, remedy: &Remedy) {
    let count = remedy.hosts().len();
    let command = try_command(remedy).map(|command| {
        if count > 1 {
            format!("{command}   # on all {count} hosts; --on HOST for one of them")
        } else {
            command
        }
    });
    card.push("Try", RowStyle::Commands, command.into_iter().collect());
    card.push("It does", RowStyle::Prose, vec![sentence(&remedy.title)]);
    let mut changes: Vec<String> = remedy.changes.iter().take(CHANGES_MAX).map(change).collect();
    if remedy.changes.len() > CHANGES_MAX {
        changes.push(format!("and {} more of the same kind", remedy.changes.len() - CHANGES_MAX));
    }
    card.push("Changes", RowStyle::List, changes);
    card.push("By hand", RowStyle::Instruction, remedy.instruction.lines().map(str::to_owned).collect());
    card.push("To keep it", RowStyle::Prose, vec![remedy.persistence.clone()]);
    card.push("Risk", RowStyle::Prose, vec![risk(remedy)]);
}

fn risk(remedy: &Remedy) -> String {
    match (remedy.risk, remedy.risk_text.trim()) {
        (Risk::Harmless, "") => "harmless.".to_owned(),
        (level, "") => sentence(&level.to_string()),
        (level, text) => {
            let level = level.to_string();
            let word = level.split(':').next().unwrap_or_default();
            format!("{word}: {}.", text.trim_end_matches('.'))
        }
    }
}

fn differs(finding: &Finding) -> Vec<String> {
    if finding.benign.is_empty() {
        return Vec::new();
    }
    let mut keys: Vec<String> = Vec::new();
    for one in &finding.benign {
        let words = format!("{} = {}", names::setting(&one.key), names::cut(&one.value.to_string(), 24));
        if !keys.contains(&words) {
            keys.push(words);
        }
    }
    let verb = if keys.len() == 1 { "setting differs" } else { "settings differ" };
    vec![format!("{} {verb} from the peers: {}.", keys.len(), names::list(&keys, 5))]
}

/// What a trial showed, in a sentence.
fn heading(trial: &Trial) -> String {
    let measured = trial.effect.as_ref().map(|effect| effect.sentence.clone());
    measured.unwrap_or_else(|| format!("{}: not measured", trial.remedy.title))
}

/// The card of a trial.
pub fn trial(trial: &Trial) -> Card {
    let mut card = Card { heading: heading(trial), rows: Vec::new() };
    let number = format!("{} (remedy {}), {}", trial.id, trial.remedy.id, status(trial.status));
    card.push("Trial", RowStyle::Prose, vec![number]);
    card.push("Changed", RowStyle::List, trial.remedy.changes.iter().map(change).collect());
    let what = trial.response.label();
    let (from, to) = &trial.pair;
    card.push("Measured", RowStyle::Prose, vec![format!("{what} from {from} to {to}, {}.", trial.layer)]);
    let control = match &trial.control {
        Some((from, to)) => format!("{from} to {to}, which shares nothing with the change."),
        None => format!("none: {}, so that a drift of everything would not show.", no_control(trial)),
    };
    card.push("Control", RowStyle::Prose, vec![control]);
    card.push("Effect", RowStyle::Prose, effect(trial));
    card.push("Written to", RowStyle::List, trial.persisted.clone());
    card.push("Notes", RowStyle::List, trial.notes.clone());
    card.push("Meaning", RowStyle::Prose, vec![meaning(trial)]);
    card.push("What next", RowStyle::Commands, next_commands(trial));
    card
}

/// What the screen shows of a trial: what it proved, with which values, and what to type next.
pub fn trial_brief(trial: &Trial) -> Card {
    let mut card = Card { heading: trial_heading(trial), rows: Vec::new() };
    card.push("Setting", RowStyle::List, trial.remedy.changes.iter().map(change).collect());
    if trial.status != TrialStatus::Kept {
        let unit = trial.response.unit();
        for (label, changed) in [("As it was", false), ("Changed", true)] {
            let arms = trial.arms.iter().filter(|arm| arm.changed == changed);
            let values: Vec<String> = arms
                .map(|arm| arm.value.map_or("invalid".to_owned(), |value| units::value(value, unit)))
                .collect();
            let any = trial.arms.iter().any(|arm| arm.value.is_some());
            card.push(label, RowStyle::Prose, if any { vec![values.join(", ")] } else { Vec::new() });
        }
        let (from, to) = &trial.pair;
        let control = match &trial.control {
            Some((a, b)) => format!("control: {a} to {b}"),
            None => format!("no control pair: {}", no_control(trial)),
        };
        let pairs = format!("{from} to {to}, {}; {control}", trial.layer);
        card.push("Measured", RowStyle::Prose, vec![pairs]);
    }
    card.push("Written to", RowStyle::List, trial.persisted.clone());
    card.push("Notes", RowStyle::List, trial.notes.clone());
    // The first question after a change is what is in force.
    if matches!(trial.status, TrialStatus::Measured | TrialStatus::Undone) {
        card.push("In force", RowStyle::Prose, vec![meaning(trial)]);
    }
    card.push("Next", RowStyle::Commands, next_commands(trial));
    card
}

/// Why a trial has no control pair.
pub(crate) fn no_control(trial: &Trial) -> &'static str {
    if trial.response == Metric::Storage {
        "a drive or replica has no untouched one of its kind"
    } else {
        "every other pair shares a host, group or machine with it"
    }
}

/// What a trial proved, and where it stands.
pub(crate) fn trial_heading(trial: &Trial) -> String {
    if trial.status == TrialStatus::Kept { status(trial.status).to_owned() } else { heading(trial) }
}

/// Where a trial stands, in words.
pub fn status(status: TrialStatus) -> &'static str {
    match status {
        TrialStatus::Running => "still measuring",
        TrialStatus::Measured => "measured; the old values are back",
        TrialStatus::Kept => "kept; it survives a reboot",
        TrialStatus::Undone => "undone; the old values are back",
        TrialStatus::UndoFailed => "NOT undone: restore the old values by hand",
    }
}

fn effect(trial: &Trial) -> Vec<String> {
    let Some(e) = &trial.effect else { return Vec::new() };
    let unit = trial.response.unit();
    let ratio = |r: f64, i: (f64, f64)| {
        if i.1 >= f64::MAX {
            return format!("{} (too few values for an interval)", units::factor(r));
        }
        let bounds = format!("{} to {}", units::factor(i.0), units::factor(i.1));
        format!("{} (95 % interval {bounds})", units::factor(r))
    };
    // Without a valid measurement the median is nothing, and so is what is made of it.
    let seen = |of: fn(&Arm) -> Option<f64>| {
        [false, true].map(|changed| trial.arms.iter().any(|arm| arm.changed == changed && of(arm).is_some()))
    };
    let value = |seen: bool, value: f64| {
        if seen { units::value(value, unit) } else { "no valid measurement".to_owned() }
    };
    let valid = seen(|arm| arm.value);
    let (before, after) = (value(valid[0], e.before), value(valid[1], e.after));
    if valid != [true; 2] {
        return vec![format!("Before: {before}; after: {after}.")];
    }
    let by = ratio(e.ratio, e.interval);
    let mut lines = vec![format!("{before} before, {after} after; better by a factor of {by}.")];
    if trial.control.is_some() {
        lines.push(if seen(|arm| arm.control) == [true; 2] {
            format!("The control pair: a factor of {}.", ratio(e.control_ratio, e.control_interval))
        } else {
            "The control pair: no valid measurement before, or none after.".to_owned()
        });
    }
    lines
}

/// What is typed next.
pub(crate) fn next_commands(trial: &Trial) -> Vec<String> {
    let better = trial.effect.as_ref().is_some_and(|e| e.effect == Effect::Better);
    match trial.status {
        TrialStatus::Measured if better && is_kept_by_hand(trial) => vec![trial.remedy.instruction.clone()],
        TrialStatus::Measured if better => vec![format!("linerate keep {}", trial.id)],
        TrialStatus::Kept => vec![format!("linerate undo {}", trial.id)],
        _ => Vec::new(),
    }
}

/// Whether the change is one of a file that belongs to several hosts and to the person who wrote it:
/// `linerate keep` refuses to touch it.
fn is_kept_by_hand(trial: &Trial) -> bool {
    trial.remedy.is_of_replicas()
}

/// What it means for the hosts.
pub(crate) fn meaning(trial: &Trial) -> String {
    let effect = trial.effect.as_ref().map(|e| e.effect);
    match (trial.status, effect) {
        (TrialStatus::UndoFailed, _) => {
            let values: Vec<String> = trial
                .remedy
                .changes
                .iter()
                .map(|c| format!("{} = {} on {}", names::setting(&c.key), c.from, c.host))
                .collect();
            format!("Restore by hand: {}.", values.join("; "))
        }
        (TrialStatus::Kept, _) => "The command below undoes it, also in the files.".to_owned(),
        (TrialStatus::Undone, _) => "Nothing was left changed.".to_owned(),
        (TrialStatus::Running, _) => {
            "If this process dies, the node puts the old values back by itself.".to_owned()
        }
        (TrialStatus::Measured, Some(Effect::Better)) if is_kept_by_hand(trial) => {
            "The old values are back. The file of the resource belongs to both hosts and to who wrote it, so that \
             linerate does not write it."
                .to_owned()
        }
        (TrialStatus::Measured, Some(Effect::Better)) => {
            "The old values are back; the change stays only with the command below.".to_owned()
        }
        (TrialStatus::Measured, Some(Effect::NoEffect)) => {
            "The old values are back: the change had no effect, so consider the other causes.".to_owned()
        }
        (TrialStatus::Measured, Some(Effect::Worse)) => {
            "The old values are back: the change does harm.".to_owned()
        }
        (TrialStatus::Measured, Some(Effect::NotShown) | None) => {
            "The old values are back: nothing is proven; try again when the cluster is quieter.".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn what_stands_in_a_resource_file_is_kept_by_hand() {
        let mut trial = sample::trial();
        assert_eq!(next_commands(&trial), [format!("linerate keep {}", trial.id)]);
        trial.remedy.changes[0].key = "drbd.r0.net.max-buffers".to_owned();
        trial.remedy.instruction = "on both nodes: net { max-buffers 8000; }".to_owned();
        assert_eq!(next_commands(&trial), [trial.remedy.instruction.clone()]);
        assert!(meaning(&trial).contains("belongs to both hosts"), "{}", meaning(&trial));
    }

    /// Tests that were all contended have no median, and nothing is 0 bit/s because of it.
    #[test]
    fn an_effect_without_valid_measurements_has_no_figures() {
        let mut trial = sample::trial();
        assert!(effect(&trial)[0].starts_with("305 kbit/s before, "), "{:?}", effect(&trial));
        for arm in &mut trial.arms {
            arm.control = None;
        }
        assert_eq!(effect(&trial)[1], "The control pair: no valid measurement before, or none after.");
        for arm in trial.arms.iter_mut().filter(|arm| arm.changed) {
            arm.value = None;
        }
        assert_eq!(effect(&trial), ["Before: 305 kbit/s; after: no valid measurement."]);
    }
}
