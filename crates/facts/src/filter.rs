//! Facts `nic.*.filter.*` and `nic.*.xdp`: what can drop, hold back or redirect packets of a device beside
//! its queueing discipline. What a filter selects is left out: it names addresses.
//!
//! Numbers of programs differ from host to host; their names and the hashes of their instructions do not.

use std::collections::BTreeMap;

use linerate_model::fact::FactDecl;
use linerate_sys::bpf;
use linerate_sys::filter::{FILTERS_MAX, Filter, FilterAction, FilterPoint};
use linerate_sys::packet_program::PacketProgram;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::{View, key_name};

/// The topic.
pub(super) struct Filters;

/// Digits of the hash of a program that stand in a fact.
const TAG_DIGITS: usize = 8;
/// Names of `TC_ACT_*` from 0 on.
const VERDICTS: [&str; 9] =
    ["pass", "reclassify", "drop", "continue", "stolen", "queued", "repeat", "redirect", "trap"];
/// Names of `XDP_ATTACHED_*` from 1 on.
const XDP_MODES: [&str; 4] = ["driver", "generic", "hardware", "several"];

impl Fact for Filters {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact(
                "nic.*.filter.*",
                "text",
                "A filter of `tc` at a point (ingress, egress, queue), numbered in the order in which packets meet them: its classifier, its actions with what becomes of the packet, the rate of a policer in bit/s; a program by its name and a hash of its instructions. Without what it selects.",
            ),
            fact("nic.*.qdisc_ingress", "text", "ingress or clsact, which hold filters."),
            fact(
                "nic.*.xdp",
                "text",
                "XDP program that sees what the device receives first: where it runs (driver, generic, hardware, several), its name and a hash of its instructions.",
            ),
        ]
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let name = |link: u32| view.name_of(link).map(key_name);
        let mut values: BTreeMap<(u32, &str), Vec<String>> = BTreeMap::new();
        let programs = view.packet_programs();
        for program in programs.map(|all| all.programs.as_slice()).unwrap_or_default() {
            match program.point {
                // The kernel asks these before the filters.
                Some(point) => {
                    values
                        .entry((program.link, of(point)))
                        .or_default()
                        .push(words(&["tcx", &called(program)]));
                }
                None => put_xdp(view, program, out),
            }
        }
        for filter in view.filters() {
            let text = described(filter, view);
            values.entry((filter.link, of(filter.point))).or_default().push(text);
        }
        for ((link, point), texts) in values {
            let Some(nic) = name(link) else { continue };
            for (number, text) in texts.into_iter().enumerate() {
                out.text(format!("nic.{nic}.filter.{point}.{number}"), text);
            }
        }
        for qdisc in view.qdiscs().iter().filter(|q| q.is_ingress()) {
            if let Some(nic) = name(qdisc.link) {
                out.text(format!("nic.{nic}.qdisc_ingress"), qdisc.kind.as_str());
            }
        }
        if let Some(reason) = programs.and_then(|all| all.unseen.as_ref()) {
            out.gap("nic.*.filter.*", &format!("programs without a classifier (tcx): {reason}"));
        }
        if view.filters().len() >= FILTERS_MAX {
            out.gap("nic.*.filter.*", &format!("only the first {FILTERS_MAX} filters are kept"));
        }
    }
}

fn of(point: FilterPoint) -> &'static str {
    match point {
        FilterPoint::Ingress => "ingress",
        FilterPoint::Egress => "egress",
        FilterPoint::Queue => "queue",
    }
}

fn words(all: &[&str]) -> String {
    let present: Vec<&str> = all.iter().copied().filter(|word| !word.is_empty()).collect();
    present.join(" ")
}

fn called(program: &PacketProgram) -> String {
    let tag = program.tag.as_deref().unwrap_or_default();
    words(&[program.name.as_deref().unwrap_or_default(), tag.get(..TAG_DIGITS).unwrap_or(tag)])
}

fn put_xdp(view: &View<'_>, program: &PacketProgram, out: &mut Readings) {
    let Some(link) = view.links().iter().find(|l| l.index == program.link) else { return };
    let mode = link.xdp.and_then(|xdp| XDP_MODES.get(usize::from(xdp.mode).checked_sub(1)?));
    let mode = mode.copied().unwrap_or("unknown");
    out.text(format!("nic.{}.xdp", key_name(&link.name)), words(&[mode, &called(program)]));
}

/// A filter in words that are the same on each host that has it.
fn described(filter: &Filter, view: &View<'_>) -> String {
    let mut text = filter.kind.clone();
    if filter.kind == "bpf" {
        let known = filter.program_id.and_then(|id| bpf::name_of(id).ok().filter(|_| view.root.is_live()));
        let name = filter.program.clone().or_else(|| known.as_ref().map(|known| known.name.clone()));
        let tag = known.map(|known| known.tag).unwrap_or_default();
        let tag = tag.get(..TAG_DIGITS).unwrap_or_default();
        let how = if filter.decides { "direct-action" } else { "" };
        text = words(&[&text, &name.unwrap_or_default(), tag, how]);
    }
    for action in &filter.actions {
        let one = described_action(action, view);
        text = format!("{text}, {one}");
    }
    text
}

fn described_action(action: &FilterAction, view: &View<'_>) -> String {
    let verdict = action.verdict.and_then(|v| VERDICTS.get(usize::try_from(v).ok()?)).copied();
    let verdict = verdict.unwrap_or_default();
    let rate = action.rate_bps.map(|rate| format!("{rate} bit/s")).unwrap_or_default();
    let to = action.to.map(|link| view.name_of(link).unwrap_or("a device elsewhere").to_owned());
    let to = to.map(|name| format!("to {name}")).unwrap_or_default();
    let program = action.program.as_deref().unwrap_or_default();
    words(&[&action.kind, program, &rate, &to, verdict])
}

#[cfg(test)]
mod tests {
    use linerate_sys::root::Root;

    use super::*;

    #[test]
    fn filters_are_described_by_what_they_do() {
        let root = Root::live();
        let view = View::new(&root, None, &[]);
        let filter = |kind: &str, action| Filter {
            link: 1,
            point: FilterPoint::Ingress,
            kind: kind.into(),
            program: None,
            program_id: None,
            decides: false,
            actions: vec![action],
        };
        let policer = FilterAction {
            kind: "police".into(),
            verdict: Some(2),
            rate_bps: Some(10_000_000),
            ..FilterAction::default()
        };
        let gone = FilterAction {
            kind: "mirred".into(),
            verdict: Some(4),
            to: Some(u32::MAX),
            ..FilterAction::default()
        };
        assert_eq!(described(&filter("matchall", policer), &view), "matchall, police 10000000 bit/s drop");
        assert_eq!(described(&filter("u32", gone), &view), "u32, mirred to a device elsewhere stolen");
    }
}
