//! What is decided for each node, from evidence, the scheduler's view and the ledger; nothing is written.
//!
//! In: values. Out: which nodes to hold, which to release, and of all others why not.

use std::fmt;

use linerate_model::fact::FactKey;
use linerate_model::run_id::RunId;
use schemars::JsonSchema;
use serde::Serialize;

use super::evidence::{Evidence, Explanation, LocatedFault, Seen, Sighting};
use super::ledger::{Hold, Ledger, Trip, TripCause};
use super::rules;
use super::scheduler::{Node, Reservation};

/// Why nothing is done with a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "why")]
pub enum Refusal {
    /// The newest run that saw it found nothing.
    Healthy,
    /// No run saw it.
    Unseen,
    /// Only traffic with one other host, or with faulty hosts, suffers.
    OtherEnd,
    /// Its group suffers.
    Group,
    /// Fault or location are not certain.
    Uncertain,
    /// A setting that was read, without a measured loss.
    OnlyRead,
    /// No second run that is old enough shows the same fault.
    SeenOnce,
    /// The newest run is too old.
    TooOld,
    /// Another reason stands at the node.
    OtherReason {
        /// Text.
        reason: String,
    },
    /// A state in which it is left alone.
    State {
        /// Word of the scheduler.
        state: String,
    },
    /// The scheduler does not know it.
    UnknownNode,
    /// It is held already.
    Held,
    /// The circuit breaker is open.
    Breaker,
    /// The cap does not allow as many.
    Cap,
    /// The hold was never confirmed.
    Unconfirmed,
    /// No run since it was held, or since its last boot, has measured it.
    NotMeasuredSince,
    /// The newest run found a fault, or another explanation of one.
    StillFaulty,
    /// Kept settings are not in force.
    NotInForce {
        /// Settings.
        settings: Vec<FactKey>,
    },
    /// It changed between plan and write.
    Changed,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Healthy => "passed in the newest run",
            Self::Unseen => "not measured",
            Self::OtherEnd => "explained by the other end",
            Self::Group => "explained by its group",
            Self::Uncertain => "fault or location not certain",
            Self::OnlyRead => "a setting, without a measured loss",
            Self::SeenOnce => "seen once; needs a second run, at least 5 min apart",
            Self::TooOld => "newest run older than 1 h",
            Self::OtherReason { reason } => return write!(f, "has another reason: {reason}"),
            Self::State { state } => return write!(f, "is {} in Slurm", state.to_lowercase()),
            Self::UnknownNode => "not known to Slurm",
            Self::Held => "already held",
            Self::Breaker => "the circuit breaker is open",
            Self::Cap => "beyond the cap",
            Self::Unconfirmed => "hold never confirmed: resume it by hand",
            Self::NotMeasuredSince => "not measured since it was held or booted",
            Self::StillFaulty => "the newest run found a fault",
            Self::NotInForce { settings } => {
                return write!(f, "kept settings not in force: {}", settings.join(", "));
            }
            Self::Changed => "changed meanwhile; nothing was written",
        })
    }
}

/// A node with what is decided for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The node as it was when this was decided.
    pub node: Node,
    /// Reason or comment.
    pub text: String,
    /// Runs on which it rests, older first.
    pub runs: Vec<RunId>,
}

/// What to drain.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DrainPlan {
    /// Nodes to hold.
    pub hold: Vec<Decision>,
    /// All others, with the reason.
    pub leave: Vec<(String, Refusal)>,
    /// Nodes that may be held at a time.
    pub cap: usize,
    /// Nodes that are held already, by this ledger or another one.
    pub held: usize,
    /// Opens the circuit breaker.
    pub trip: Option<TripCause>,
}

/// What to resume.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResumePlan {
    /// Nodes to release.
    pub release: Vec<Decision>,
    /// Other own holds, with the reason.
    pub keep: Vec<(String, Refusal)>,
    /// Nodes that may be held at a time.
    pub cap: usize,
}

impl DrainPlan {
    /// Decides for every node of the evidence.
    #[must_use]
    pub fn make(
        ledger: &Ledger,
        nodes: &[Node],
        reservations: &[Reservation],
        evidence: &Evidence,
        now_ms: u64,
    ) -> Self {
        let mut plan =
            Self { cap: rules::cap(nodes.len()), held: held(ledger, nodes, reservations), ..Self::default() };
        for (name, sightings) in evidence {
            let node = nodes.iter().find(|node| node.name == *name);
            let is_reserved = reservations.iter().any(|reservation| reservation.node == *name);
            match candidate(ledger, node, name, sightings, now_ms) {
                Ok(_) if is_reserved => plan.leave.push((name.clone(), Refusal::Held)),
                Ok(decision) => plan.hold.push(decision),
                Err(why) => plan.leave.push((name.clone(), why)),
            }
        }
        let wanted = plan.held + plan.hold.len();
        if !plan.hold.is_empty() && ledger.breaker.is_some() {
            plan.refuse(&Refusal::Breaker);
        } else if !plan.hold.is_empty() && wanted > plan.cap {
            plan.trip = Some(TripCause::Cap { wanted, cap: plan.cap });
            plan.refuse(&Refusal::Cap);
        }
        plan
    }

    fn refuse(&mut self, why: &Refusal) {
        let refused = std::mem::take(&mut self.hold);
        self.leave.extend(refused.into_iter().map(|decision| (decision.node.name, why.clone())));
    }
}

/// What the reasons of this program begin with.
const MARK: &str = "linerate: ";

/// The finding, then the run; what could end a word or a line of the scheduler is left out.
fn reason(fault: &LocatedFault, run: &str) -> String {
    let plain = |c: &char| c.is_ascii_graphic() && !"\"'\\;=`$".contains(*c) || *c == ' ';
    let end = format!("; run {run}");
    let finding: String = fault.text.chars().filter(plain).collect();
    let most = rules::REASON_CHARS.saturating_sub(MARK.len() + end.len());
    format!("{MARK}{}{end}", finding.chars().take(most).collect::<String>())
}

/// Nodes that are held by this program, of all its users.
fn held(ledger: &Ledger, nodes: &[Node], reservations: &[Reservation]) -> usize {
    let marked = |node: &&Node| node.reason.as_ref().is_some_and(|reason| reason.text.starts_with(MARK));
    let shown = nodes.iter().filter(marked).map(|node| node.name.as_str());
    let reserved = reservations.iter().map(|reservation| reservation.node.as_str());
    let own = ledger.holds.keys().map(String::as_str);
    shown.chain(reserved).chain(own).collect::<std::collections::BTreeSet<_>>().len()
}

/// Whether a node is to be held.
fn candidate(
    ledger: &Ledger,
    node: Option<&Node>,
    name: &str,
    sightings: &[Sighting],
    now_ms: u64,
) -> Result<Decision, Refusal> {
    let since = ledger.released.get(name).copied();
    let (fault, runs) = twice(sightings, since, now_ms)?;
    let node = node.ok_or(Refusal::UnknownNode)?;
    if ledger.holds.contains_key(name) {
        return Err(Refusal::Held);
    }
    if let Some(reason) = &node.reason {
        return Err(Refusal::OtherReason { reason: reason.text.clone() });
    }
    let state = node.obstacle().map(str::to_owned).or_else(|| node.is_drained().then(|| "DRAIN".to_owned()));
    if let Some(state) = state {
        return Err(Refusal::State { state });
    }
    let text = reason(fault, runs.last().map_or("", String::as_str));
    Ok(Decision { node: node.clone(), text, runs })
}

/// The fault that two runs located on a host, with the runs, older first.
fn twice(
    sightings: &[Sighting],
    since: Option<u64>,
    now_ms: u64,
) -> Result<(&LocatedFault, Vec<RunId>), Refusal> {
    let counts = |s: &&Sighting| since.is_none_or(|ms| s.at_ms > ms) && s.seen != Seen::Unseen;
    let mut seen: Vec<&Sighting> = sightings.iter().filter(counts).collect();
    seen.sort_by_key(|sighting| std::cmp::Reverse(sighting.at_ms));
    let newest = seen.first().ok_or(Refusal::Unseen)?;
    let fault = match &newest.seen {
        Seen::Located(fault) => fault,
        Seen::Explained(Explanation::OtherEnd) => return Err(Refusal::OtherEnd),
        Seen::Explained(Explanation::Group) => return Err(Refusal::Group),
        Seen::Explained(Explanation::Uncertain) => return Err(Refusal::Uncertain),
        Seen::Explained(Explanation::OnlyRead) => return Err(Refusal::OnlyRead),
        Seen::Healthy => return Err(Refusal::Healthy),
        Seen::Unseen => return Err(Refusal::Unseen),
    };
    // A clock that was set back makes no old run new.
    if now_ms.abs_diff(newest.at_ms) > rules::NEWEST_AGE_MS_MAX {
        return Err(Refusal::TooOld);
    }
    let mut runs = vec![newest.run.clone()];
    // Everything in between has to show the same: what passed meanwhile is not a fault that lasts.
    for earlier in seen.iter().skip(1) {
        let apart = newest.at_ms - earlier.at_ms;
        let same = matches!(&earlier.seen, Seen::Located(other) if fault.is_same(other));
        if !same || apart > rules::APART_MS_MAX {
            break;
        }
        if apart >= rules::APART_MS {
            runs.insert(0, earlier.run.clone());
            break;
        }
    }
    if runs.len() < rules::SIGHTINGS {
        return Err(Refusal::SeenOnce);
    }
    Ok((fault, runs))
}

impl ResumePlan {
    /// Decides for every own hold. The ledger has been reconciled with the same nodes.
    #[must_use]
    pub fn make(ledger: &Ledger, nodes: &[Node], evidence: &Evidence) -> Self {
        let mut plan = Self { cap: rules::cap(nodes.len()), ..Self::default() };
        for (name, hold) in &ledger.holds {
            let node = nodes.iter().find(|node| node.name == *name);
            let sightings = evidence.get(name).map_or(&[][..], Vec::as_slice);
            match passed(hold, node, sightings, ledger.breaker.as_ref()) {
                Ok((node, run)) => plan.release.push(Decision {
                    node: node.clone(),
                    text: hold.text.clone(),
                    runs: vec![run],
                }),
                Err(why) => plan.keep.push((name.clone(), why)),
            }
        }
        plan
    }
}

/// The run that a held node passed.
fn passed<'a>(
    hold: &Hold,
    node: Option<&'a Node>,
    sightings: &[Sighting],
    breaker: Option<&Trip>,
) -> Result<(&'a Node, RunId), Refusal> {
    let node = node.ok_or(Refusal::UnknownNode)?;
    if hold.confirmed.is_none() {
        return Err(Refusal::Unconfirmed);
    }
    if breaker.is_some() {
        return Err(Refusal::Breaker);
    }
    if let Some(state) = node.obstacle() {
        return Err(Refusal::State { state: state.to_owned() });
    }
    if node.boot_s == 0 {
        return Err(Refusal::NotMeasuredSince);
    }
    let booted_ms = node.boot_s.saturating_mul(1000).saturating_add(rules::CLOCK_MS);
    let newest = sightings.iter().max_by_key(|sighting| sighting.at_ms).ok_or(Refusal::NotMeasuredSince)?;
    if newest.at_ms <= hold.asked_ms || newest.at_ms <= booted_ms {
        return Err(Refusal::NotMeasuredSince);
    }
    match newest.seen {
        Seen::Healthy => {}
        Seen::Unseen => return Err(Refusal::Unseen),
        Seen::Located(_) | Seen::Explained(_) => return Err(Refusal::StillFaulty),
    }
    if !newest.not_in_force.is_empty() {
        return Err(Refusal::NotInForce { settings: newest.not_in_force.clone() });
    }
    Ok((node, newest.run.clone()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use linerate_model::finding::{Direction, LayerScope, Metric};

    use super::super::ledger::HoldMeans;
    use super::super::scheduler::DrainReason;
    use super::*;

    const MINUTE: u64 = 60_000;
    const NOW: u64 = 100 * 60 * MINUTE;

    fn node(name: &str, state: &str, reason: Option<&str>) -> Node {
        Node {
            name: name.into(),
            state: state.split('+').map(str::to_owned).collect::<BTreeSet<_>>(),
            reason: reason.map(|text| DrainReason { text: text.into(), by: "alice".into(), at_s: 7 }),
            boot_s: 1,
        }
    }

    fn fault(direction: Direction) -> Seen {
        Seen::Located(LocatedFault {
            text: "rx 0.94 Gbit/s \"not\" 9.41 Gbit/s\n, throughput".into(),
            metrics: vec![Metric::Throughput],
            direction,
            layer: LayerScope::Any,
            drive: None,
        })
    }

    /// Runs so many minutes ago.
    fn seen(runs: &[(u64, Seen)]) -> Evidence {
        let sighting = |(ago, seen): &(u64, Seen)| Sighting {
            run: format!("r-{ago}"),
            at_ms: NOW - ago * MINUTE,
            seen: seen.clone(),
            not_in_force: Vec::new(),
        };
        [("n1".to_owned(), runs.iter().map(sighting).collect())].into()
    }

    fn plan(nodes: &[Node], evidence: &Evidence) -> DrainPlan {
        DrainPlan::make(&Ledger::default(), nodes, &[], evidence, NOW)
    }

    fn refusal(runs: &[(u64, Seen)]) -> Option<Refusal> {
        let plan = plan(&[node("n1", "IDLE", None)], &seen(runs));
        plan.leave.first().map(|(_, why)| why.clone())
    }

    #[test]
    fn two_runs_five_minutes_apart_are_needed() {
        let rx = || fault(Direction::Rx);
        assert_eq!(refusal(&[(1, rx())]), Some(Refusal::SeenOnce));
        assert_eq!(refusal(&[(1, rx()), (5, rx())]), Some(Refusal::SeenOnce));
        assert_eq!(refusal(&[(1, rx()), (6, rx())]), None);
        assert_eq!(refusal(&[(1, rx()), (3, rx()), (6, rx())]), None, "one in between changes nothing");
        assert_eq!(
            refusal(&[(1, rx()), (3, Seen::Unseen), (6, rx())]),
            None,
            "nor does one that saw nothing"
        );
        assert_eq!(refusal(&[(1, rx()), (3, Seen::Healthy), (6, rx())]), Some(Refusal::SeenOnce));
        assert_eq!(refusal(&[(1, rx()), (6, fault(Direction::Tx))]), Some(Refusal::SeenOnce));
        assert_eq!(refusal(&[(1, Seen::Healthy), (6, rx()), (20, rx())]), Some(Refusal::Healthy));
        assert_eq!(refusal(&[(61, rx()), (90, rx())]), Some(Refusal::TooOld));
        assert_eq!(refusal(&[(1, rx()), (25 * 60, rx())]), Some(Refusal::SeenOnce));
        assert_eq!(refusal(&[(1, Seen::Unseen)]), Some(Refusal::Unseen));
    }

    #[test]
    fn the_reason_is_the_finding_and_then_the_run() {
        let runs = [(1, fault(Direction::Rx)), (6, fault(Direction::Rx))];
        let plan = plan(&[node("n1", "MIXED", None)], &seen(&runs));
        assert_eq!(plan.hold[0].text, "linerate: rx 0.94 Gbit/s not 9.41 Gbit/s, throughput; run r-1");
        assert_eq!(plan.hold[0].runs, ["r-6", "r-1"]);
        let long = LocatedFault {
            text: "x".repeat(500),
            ..match fault(Direction::Rx) {
                Seen::Located(fault) => fault,
                other => panic!("{other:?}"),
            }
        };
        let text = reason(&long, "20261121-083015-4f2a");
        assert!(
            text.len() == rules::REASON_CHARS && text.ends_with("xx; run 20261121-083015-4f2a"),
            "{text}"
        );
    }

    #[test]
    fn nodes_of_others_and_in_other_states_are_left_alone() {
        let runs = seen(&[(1, fault(Direction::Rx)), (6, fault(Direction::Rx))]);
        for (state, reason) in [
            ("IDLE+DRAIN", Some("fan 3 broken")),
            // A reason without a drain is a note of a person.
            ("IDLE", Some("being watched")),
            ("DOWN", None),
            ("IDLE+DRAIN", None),
            ("IDLE+REBOOT_ISSUED", None),
        ] {
            let plan = plan(&[node("n1", state, reason)], &runs);
            assert!(plan.hold.is_empty() && plan.leave.len() == 1, "{state} {reason:?}");
        }
        assert_eq!(plan(&[], &runs).leave[0].1, Refusal::UnknownNode);
    }

    #[test]
    fn more_than_the_cap_opens_the_breaker_and_holds_none() {
        let one = seen(&[(1, fault(Direction::Rx)), (6, fault(Direction::Rx))]);
        let many =
            |count: usize| (1..=count).map(|n| (format!("n{n}"), one["n1"].clone())).collect::<Evidence>();
        let nodes: Vec<Node> = (1..=20).map(|n| node(&format!("n{n}"), "IDLE", None)).collect();
        assert_eq!((plan(&nodes, &many(2)).hold.len(), plan(&nodes, &many(2)).trip), (2, None));
        let three = plan(&nodes, &many(3));
        assert_eq!((three.hold.len(), three.trip), (0, Some(TripCause::Cap { wanted: 3, cap: 2 })));
        // What another ledger of this program holds counts as well.
        let mut nodes = nodes;
        nodes[10] = node("n11", "IDLE+DRAIN", Some("linerate: tx; run q"));
        nodes[11] = node("n12", "IDLE+DRAIN", Some("fan"));
        let two = plan(&nodes, &many(2));
        assert_eq!((two.held, two.trip), (1, Some(TripCause::Cap { wanted: 3, cap: 2 })));
        let ledger = Ledger {
            breaker: Some(Trip { at_ms: 1, cause: TripCause::Late { node: "n1".into() } }),
            ..Ledger::default()
        };
        let open = DrainPlan::make(&ledger, &nodes, &[], &many(1), NOW);
        assert_eq!((open.hold.len(), &open.leave[0].1), (0, &Refusal::Breaker));
    }

    /// A hold of 50 minutes ago.
    fn held(confirmed: bool) -> Ledger {
        let text = "linerate: rx; run r".to_owned();
        let reason = DrainReason { text: text.clone(), by: "alice".into(), at_s: 7 };
        let hold = Hold {
            by: HoldMeans::State,
            text,
            runs: vec![],
            asked_ms: NOW - 50 * MINUTE,
            confirmed: confirmed.then_some(reason),
        };
        Ledger { holds: [("n1".to_owned(), hold)].into(), ..Ledger::default() }
    }

    #[test]
    fn a_hold_ends_after_a_run_that_passed_since() {
        let drained = || node("n1", "IDLE+DRAIN", Some("linerate: rx; run r"));
        let why = |ledger: &Ledger, node: Node, evidence: &Evidence| {
            ResumePlan::make(ledger, &[node], evidence).keep.first().map(|(_, why)| why.clone())
        };
        let passed = seen(&[(10, Seen::Healthy)]);
        assert_eq!(why(&held(true), drained(), &passed), None);
        assert_eq!(why(&held(false), drained(), &passed), Some(Refusal::Unconfirmed));
        let since = Some(Refusal::NotMeasuredSince);
        assert_eq!(why(&held(true), drained(), &seen(&[(55, Seen::Healthy)])), since);
        assert_eq!(why(&held(true), drained(), &Evidence::new()), since);
        let booted = Node { boot_s: (NOW - 5 * MINUTE) / 1000, ..drained() };
        assert_eq!(why(&held(true), booted, &passed), since);
        let again = seen(&[(10, Seen::Healthy), (5, fault(Direction::Rx))]);
        assert_eq!(why(&held(true), drained(), &again), Some(Refusal::StillFaulty));
        assert_eq!(why(&held(true), drained(), &seen(&[(5, Seen::Unseen)])), Some(Refusal::Unseen));
        let down = node("n1", "DOWN+DRAIN", Some("linerate: rx; run r"));
        assert!(matches!(why(&held(true), down, &passed), Some(Refusal::State { .. })));
        let mut drifted = passed;
        drifted.values_mut().flatten().for_each(|s| s.not_in_force.push("sysctl.x".into()));
        assert!(matches!(why(&held(true), drained(), &drifted), Some(Refusal::NotInForce { .. })));
    }

    #[test]
    fn a_hold_that_others_took_over_is_forgotten() {
        let mut same = node("n1", "IDLE+DRAIN", Some("linerate: rx; run r"));
        let mut ledger = held(true);
        assert!(ledger.reconcile(std::slice::from_ref(&same), &[], NOW).is_empty());
        // The same words, written later by a person.
        same.reason = same.reason.map(|reason| DrainReason { at_s: 8, ..reason });
        assert_eq!(ledger.reconcile(&[same], &[], NOW), ["n1"]);
        // Runs of before are no evidence any more.
        let runs = seen(&[(1, fault(Direction::Rx)), (6, fault(Direction::Rx))]);
        let plan = DrainPlan::make(&ledger, &[node("n1", "IDLE", None)], &[], &runs, NOW);
        assert_eq!(plan.leave[0].1, Refusal::Unseen);
    }
}
