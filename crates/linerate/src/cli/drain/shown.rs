//! What `linerate drain` and `linerate resume` print. In: decisions and what became of them. Out: text, the
//! JSON document, the exit code.

use std::fmt::Write as _;

use linerate_drain::{Applied, Decision, NodeOutcome, Refusal, Trip, TripCause};
use linerate_model::change::Risk;
use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_model::units::counted;
use linerate_model::verdict::{Verdict, VerdictFix, VerdictItem};
use schemars::JsonSchema;
use serde::Serialize;

use crate::cli::out;

/// What is to be done with a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::cli) enum Action {
    Drain,
    Resume,
    Leave,
}

impl Action {
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Drain => ("drain", "drained"),
            Self::Resume => ("resume", "resumed"),
            Self::Leave => ("leave", "left"),
        }
    }
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Became {
    /// Nothing was asked for.
    Planned,
    Done,
    /// Nothing was written.
    Refused,
    /// Whether it was written is not known.
    Unknown,
}

/// A node.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct NodeLine {
    node: String,
    action: Action,
    /// Reason that is written, or that stands there.
    reason: Option<String>,
    /// Runs on which it rests, older first.
    runs: Vec<String>,
    /// Why nothing is done.
    refusal: Option<Refusal>,
    became: Became,
    /// Words of Slurm.
    error: Option<String>,
}

impl NodeLine {
    pub(in crate::cli) fn of(decision: &Decision, action: Action, applied: &[Applied]) -> Self {
        let name = &decision.node.name;
        let outcome = applied.iter().find(|applied| applied.node == *name).map(|applied| &applied.outcome);
        let (became, refusal, error) = match outcome {
            None => (Became::Planned, None, None),
            Some(NodeOutcome::Done) => (Became::Done, None, None),
            Some(NodeOutcome::Refused(why)) => (Became::Refused, Some(why.clone()), None),
            Some(NodeOutcome::Failed(error)) => (Became::Refused, None, Some(error.clone())),
            Some(NodeOutcome::Unknown(error)) => (Became::Unknown, None, Some(error.clone())),
        };
        Self {
            node: name.clone(),
            action,
            reason: Some(decision.text.clone()),
            runs: decision.runs.clone(),
            refusal,
            became,
            error,
        }
    }

    pub(in crate::cli) fn left(node: &str, why: &Refusal) -> Self {
        Self {
            node: node.to_owned(),
            action: Action::Leave,
            reason: None,
            runs: Vec::new(),
            refusal: Some(why.clone()),
            became: Became::Planned,
            error: None,
        }
    }

    /// What is done with it, and why.
    fn words(&self) -> (String, String) {
        let (plan, done) = self.action.words();
        let what = match self.became {
            Became::Planned => plan.to_owned(),
            Became::Done => done.to_owned(),
            Became::Refused => format!("not {done}"),
            Became::Unknown => format!("perhaps {done}"),
        };
        let why = self.error.clone().or_else(|| self.refusal.as_ref().map(ToString::to_string));
        (what, why.or_else(|| self.reason.clone()).unwrap_or_default())
    }

    fn text(&self) -> String {
        let (what, why) = self.words();
        format!("{}  {what}  {why}", self.node)
    }
}

/// The document.
#[derive(Debug, Serialize, JsonSchema)]
pub(in crate::cli) struct Shown {
    /// Slurm's name of the cluster.
    pub(in crate::cli) cluster: String,
    /// Nodes that may be held at a time.
    pub(in crate::cli) cap: usize,
    /// Nodes that are held.
    pub(in crate::cli) held: usize,
    /// The circuit breaker, if it is open.
    pub(in crate::cli) breaker: Option<Trip>,
    /// Whether anything was to be written.
    pub(in crate::cli) acted: bool,
    pub(in crate::cli) nodes: Vec<NodeLine>,
}

impl Shown {
    pub(in crate::cli) fn print(
        &self,
        json: bool,
        trip: Option<&TripCause>,
        command: &str,
    ) -> anyhow::Result<()> {
        if json {
            return out::document(self.verdict(command), self);
        }
        out::print(&self.text())?;
        let would_act = self.nodes.iter().any(|line| line.action != Action::Leave);
        match (trip, &self.breaker) {
            (Some(cause), _) if !self.acted => {
                out::note(&format!("`{command}` would open the circuit breaker: {cause}"));
            }
            (_, Some(open)) => {
                out::note(&format!("circuit breaker open: {}", open.cause));
                out::note("hint: check the nodes, then `linerate drain --reset-breaker`");
            }
            _ if would_act && !self.acted => out::note(&format!("dry run; `{command}` acts")),
            _ => {}
        }
        Ok(())
    }

    /// What is to be done or was refused, an open circuit breaker, and writes without a known end; `command`
    /// acts.
    fn verdict(&self, command: &str) -> Verdict {
        let of = |became: Became| {
            self.nodes.iter().filter(move |line| line.action != Action::Leave && line.became == became)
        };
        let item = |line: &NodeLine| {
            let (what, why) = line.words();
            let fix = (line.became == Became::Planned).then(|| VerdictFix {
                hosts: vec![line.node.clone()],
                by_hand: command.to_owned(),
                risk: Risk::Disruptive,
                ..VerdictFix::default()
            });
            let sentence = format!("{}: {what}: {why}", line.node);
            VerdictItem { fix, ..VerdictItem::stated(Some(&line.node), "scheduler", sentence) }
        };
        let breaker = self.breaker.iter().map(|trip| VerdictItem {
            fix: Some(VerdictFix {
                by_hand: "linerate drain --reset-breaker".to_owned(),
                risk: Risk::Disruptive,
                ..VerdictFix::default()
            }),
            ..VerdictItem::stated(None, "circuit breaker", format!("circuit breaker open: {}", trip.cause))
        });
        let found = breaker.chain(of(Became::Refused).chain(of(Became::Planned)).map(item));
        let gap = |line: &NodeLine| {
            let (what, reason) = line.words();
            Gap { what: format!("{}: {what}", line.node).into(), reason }
        };
        Verdict::stating(found, of(Became::Unknown).map(gap).collect())
    }

    fn text(&self) -> String {
        let mut text = format!("Slurm cluster {}: {} held, at most {}\n", self.cluster, self.held, self.cap);
        let is_healthy = |line: &&NodeLine| line.refusal == Some(Refusal::Healthy);
        for line in self.nodes.iter().filter(|line| !is_healthy(line)) {
            // Writing into a `String` cannot fail.
            let _ = writeln!(text, "{}", line.text());
        }
        let healthy = self.nodes.iter().filter(is_healthy).count();
        if healthy > 0 {
            let _ = writeln!(text, "{} passed in the newest run", counted(healthy, "node"));
        }
        text
    }

    /// 3 where a write has no known end, 1 where something is to be done or was refused.
    pub(in crate::cli) fn code(&self) -> ExitCode {
        let any = |became: Became| {
            self.nodes.iter().any(|line| line.action != Action::Leave && line.became == became)
        };
        if any(Became::Unknown) {
            ExitCode::PartlyBlind
        } else if any(Became::Planned) || any(Became::Refused) || self.breaker.is_some() {
            ExitCode::Findings
        } else {
            ExitCode::Ok
        }
    }
}
