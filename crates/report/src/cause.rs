//! A cause in words: for a terminal, and as a page of the reference. A cause comes in, text goes out; it
//! judges nothing.

use std::fmt::Write as _;

use linerate_knowledge::{
    Cause, CauseProof, Condition, FactSide, FactTest, FeatureTest, FixTarget, LayerFit, NicRole, Op,
    SuspectKind,
};
use linerate_model::fact::FactValue;
use linerate_model::units;

use super::wrap::wrap;

/// Who proves a cause, short: `lab`, `case`, `lab, case`.
pub fn proven_by(cause: &Cause) -> &'static str {
    let case = cause.proof.iter().any(|p| matches!(p, CauseProof::Case(_)));
    let lab = cause.proof.iter().any(|p| matches!(p, CauseProof::Fault(_)));
    match (lab, case) {
        (true, true) => "lab, case",
        (true, false) => "lab",
        _ => "case",
    }
}

/// One part of a cause: heading and lines.
type Part = (&'static str, Vec<String>);

fn parts(cause: &Cause) -> Vec<Part> {
    let some = |text: &str| (!text.trim().is_empty()).then(|| text.trim().replace('\n', " "));
    let needed = |required: bool| if required { " (needed)" } else { "" };
    let shapes = cause.shape.iter().map(|t| format!("{}{}", shape(t), needed(t.required)));
    let indicators = cause.indicators.iter().map(|t| format!("{}{}", fact(t), needed(t.required)));
    let mut parts: Vec<Part> = vec![
        ("Shows in", vec![symptom(cause)]),
        ("Measured values", shapes.collect()),
        ("Betrayed by", indicators.collect()),
        ("Excluded by", cause.excludes.iter().map(fact).collect()),
        ("Follows from", cause.follows_from.clone()),
        ("Worth an alarm by itself", cause.alarm.as_deref().map(alarm).into_iter().collect()),
    ];
    if let Some(remedy) = &cause.remedy {
        let sets = remedy.set.iter().map(|set| {
            let written = |value: &FactValue| match value {
                FactValue::Flag(on) => on.to_string(),
                other => other.to_string(),
            };
            let to = match &set.to {
                FixTarget::Peers => "the value of the peers".to_owned(),
                FixTarget::Value(value) => written(value),
                FixTarget::PeersOr(value) => format!("the value of the peers, or {}", written(value)),
                FixTarget::Fact(key) => format!("the value of `{key}`"),
                FixTarget::Spread(key) => format!("one CPU each of `{key}`, in turn"),
                FixTarget::TunnelEnd => "an address of the host that the entry is for".to_owned(),
                FixTarget::Without(words) => format!("the same without `{}`", words.join("`, `")),
            };
            format!("sets {} to {to}", set.keys.join(", "))
        });
        parts.push((
            "Remedy",
            some(&remedy.title).into_iter().chain(some(&remedy.instruction)).chain(sets).collect(),
        ));
        parts.push(("Survives a reboot by", some(&remedy.persistence).into_iter().collect()));
        let risk = [Some(remedy.risk.to_string()), some(&remedy.risk_text)];
        parts.push(("Risk", risk.into_iter().flatten().collect()));
    }
    parts.push(("Proven by", cause.proof.iter().map(proof).collect()));
    parts.push(("Sources", cause.sources.clone()));
    parts.retain(|(_, lines)| !lines.is_empty());
    parts
}

fn proof(proof: &CauseProof) -> String {
    match proof {
        CauseProof::Case(name) => format!("the case cases/{name}.toml"),
        CauseProof::Fault(name) => format!("the fault {name} of the lab"),
    }
}

/// All about a cause, for a terminal.
pub fn text(cause: &Cause) -> String {
    let title = wrap(&format!("{}: {}", cause.id, cause.title), WIDTH).join("\n");
    let mut text = format!("{title}\n\n{}\n", wrap(&cause.mechanism, WIDTH).join("\n"));
    for (heading, lines) in parts(cause) {
        let _ = writeln!(text, "\n{heading}:");
        for line in lines {
            // A line that goes on stands further in.
            let parts = wrap(&line, WIDTH - 4).join("\n    ");
            let _ = writeln!(text, "  {parts}");
        }
    }
    text
}

/// The same as a page.
pub fn markdown(cause: &Cause) -> String {
    let mut page =
        format!("# {}\n\n{}.\n\n{}\n", cause.id, sentence_case(&cause.title), cause.mechanism.trim());
    for (heading, lines) in parts(cause) {
        let _ = write!(page, "\n## {heading}\n\n");
        for line in lines {
            let _ = writeln!(page, "- {}", linked(&line));
        }
    }
    page
}

fn sentence_case(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// The files of a proof as links from a page in `docs/reference/causes/`, and what Markdown would take for
/// marks as it is.
fn linked(line: &str) -> String {
    if let Some(case) = line.strip_prefix("the case ") {
        return format!("[{case}](../../../{case})");
    }
    let escaped = line.replace('\\', "\\\\").replace('<', "&lt;").replace('*', "\\*").replace('_', "\\_");
    escaped.replace('|', "\\|")
}

fn symptom(cause: &Cause) -> String {
    let responses: Vec<&str> = cause.symptom.responses.iter().map(|r| r.label()).collect();
    let suspects: Vec<&str> = cause.symptom.suspects.iter().map(|e| suspect(*e)).collect();
    let layer = match cause.symptom.layers {
        LayerFit::OverlayOnly => "; only in the overlay",
        LayerFit::UnderlayOnly => "; only below the overlay",
        LayerFit::Any => "; in all layers",
        LayerFit::Either => "",
    };
    format!("{}; at {}{layer}", responses.join(", "), suspects.join(", "))
}

fn suspect(kind: SuspectKind) -> &'static str {
    match kind {
        SuspectKind::HostTx => "what a host sends",
        SuspectKind::HostRx => "what a host receives",
        SuspectKind::HostBoth => "both directions of a host",
        SuspectKind::GroupTx => "what a group sends",
        SuspectKind::GroupRx => "what a group receives",
        SuspectKind::GroupBoth => "both directions of a group",
        SuspectKind::GroupToGroup => "one group to another",
        SuspectKind::Pair => "one pair",
        SuspectKind::Drive => "one drive",
        SuspectKind::All => "every pair",
    }
}

fn shape(test: &FeatureTest) -> String {
    let name = match linerate_knowledge::features::counter(&test.value) {
        Some(counter) => format!("growth of {counter} per test, beyond the others'"),
        None => test.value.replace('_', " "),
    };
    let limits = match (test.at_least, test.at_most) {
        (Some(least), Some(most)) => format!("from {least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => String::new(),
    };
    format!("{name}: {limits}")
}

fn fact(test: &FactTest) -> String {
    let side = match test.side {
        FactSide::Suspect => "",
        FactSide::Machine => ", on the machine below",
        FactSide::Sender => ", at the sender",
        FactSide::Receiver => ", at the receiver",
        FactSide::Either => ", on the host or the machine below",
    };
    let nic = match test.nic {
        NicRole::Path => "",
        NicRole::Any => ", any NIC",
        NicRole::Underlay => ", the NIC of the machines' network",
        NicRole::Overlay => ", the NIC of the overlay",
    };
    let field = if test.field > 0 { format!(" (number {})", test.field + 1) } else { String::new() };
    let peers = if test.unlike_peers { ", unlike the peers" } else { "" };
    let also: Vec<String> =
        test.also.iter().map(|c: &Condition| compared(&c.keys, c.op, &c.values)).collect();
    let also = if also.is_empty() { String::new() } else { format!(", while {}", also.join(" and ")) };
    format!("{}{field}{peers}{also}{side}{nic}", compared(&test.keys, test.op, &test.values))
}

/// When a state is worth an alarm where nothing was measured.
fn alarm(further: &[Condition]) -> String {
    if further.is_empty() {
        return "its indicators are enough".to_owned();
    }
    let further: Vec<String> = further.iter().map(|c| compared(&c.keys, c.op, &c.values)).collect();
    further.join(" and ")
}

fn compared(keys: &[String], op: Op, values: &[String]) -> String {
    let keys = keys.join(" or ");
    let first = values.first().map_or("", String::as_str);
    let any = values.join(" or ");
    let times = values.get(1).map_or_else(String::new, |factor| format!(" x {factor}"));
    match op {
        Op::Equals => format!("{keys} is {any}"),
        Op::Contains => format!("{keys} contains {any}"),
        Op::DiffersFromPeers => format!("{keys} differs from the peers"),
        Op::LessThan => format!("{keys} below {first}"),
        Op::GreaterThan => format!("{keys} above {first}"),
        Op::LessThanPeers => format!("{keys} below the peers' by a tenth or more"),
        Op::GreaterThanPeers => format!("{keys} above the peers' by a tenth or more"),
        Op::WindowAmple => format!("{keys} is ample for the measured rate, and no RTT is known"),
        Op::WindowBinds => format!("{keys}, over the loaded RTT, gives the measured rate"),
        Op::RateBinds => format!("{keys} is about the measured rate"),
        Op::ExceedsLowerMtu => format!("{keys} + {first} bytes does not fit the MTU below"),
        Op::RouteToPeers => format!("{keys} leads to another measured host, with {any}"),
        Op::SmallPackets => {
            format!("{keys} leads to another measured host with packets far below the MTU of its device")
        }
        Op::Detour => format!("{keys} leads through another device to a measured host of the own network"),
        Op::WrongNeighbour => format!("{keys} gives a measured host a hardware address that it has not"),
        Op::WrongForwarding => format!("{keys} sends what is for a measured host somewhere else"),
        Op::SharedAddress => format!("{keys} is that of another measured host too"),
        Op::Present => format!("{keys} is there"),
        Op::LessThanFact => format!("{keys} below {first}{times}"),
        Op::AtLeastFact => format!("{keys} at least {first}{times}"),
        Op::SameAsFact => format!("{keys} is the same as {first}"),
        Op::OutsideCpusOf => format!("{keys} has no CPU of {first}"),
        Op::MissingUnlikePeers => format!("{keys} is missing where most peers have it"),
    }
}

/// The widest line of a table.
const WIDTH: usize = 100;

/// A table of causes by area, within 100 columns: name, title, what proves it.
pub fn table(causes: &[&Cause]) -> String {
    let mut areas: Vec<&str> = causes.iter().map(|c| c.area.as_str()).collect();
    areas.sort_unstable();
    areas.dedup();
    let id_width = causes.iter().map(|c| c.id.len()).max().unwrap_or(0).min(40);
    let proof_width = causes.iter().map(|c| proven_by(c).len()).max().unwrap_or(0);
    let title_width = WIDTH - 2 - id_width - 2 - 2 - proof_width;
    let mut text = String::new();
    for area in areas {
        let _ = writeln!(text, "{area}");
        for cause in causes.iter().filter(|c| c.area == area) {
            for (number, line) in wrap(&cause.title, title_width).iter().enumerate() {
                let (id, proof) = if number == 0 { (cause.id.as_str(), proven_by(cause)) } else { ("", "") };
                let row = format!("  {id:<id_width$}  {line:<title_width$}  {proof}");
                let _ = writeln!(text, "{}", row.trim_end());
            }
        }
    }
    let _ = write!(text, "{}", units::counted(causes.len(), "cause"));
    text
}

#[cfg(test)]
mod tests {
    use linerate_knowledge::Knowledge;

    use super::*;

    #[test]
    fn the_table_of_all_causes_fits_a_terminal() {
        let knowledge = Knowledge::builtin().unwrap();
        let all: Vec<&Cause> = knowledge.causes().collect();
        let table = table(&all);
        assert!(table.lines().all(|l| l.chars().count() <= WIDTH), "{table}");
        assert!(all.iter().all(|c| table.contains(&c.id)));
    }

    #[test]
    fn every_cause_can_be_told_and_its_page_links_its_cases() {
        let knowledge = Knowledge::builtin().unwrap();
        for cause in knowledge.causes() {
            let (shown, page) = (text(cause), markdown(cause));
            assert!(shown.lines().all(|line| line.chars().count() <= WIDTH), "{shown}");
            for heading in ["Shows in", "Remedy", "Survives a reboot by", "Risk", "Proven by", "Sources"] {
                assert!(shown.contains(&format!("\n{heading}:")), "{}: no {heading}", cause.id);
                assert!(page.contains(&format!("\n## {heading}\n")), "{}: no {heading}", cause.id);
            }
            for proof in &cause.proof {
                if let CauseProof::Case(name) = proof {
                    assert!(page.contains(&format!("](../../../cases/{name}.toml)")), "{page}");
                }
            }
        }
    }
}
