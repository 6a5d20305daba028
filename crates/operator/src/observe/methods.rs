//! By which methods a survey moves its bytes where a path is faster than the plain ones. Pure.
//!
//! What comes in: the planned rounds, their limits, what an earlier run chose, transfers of a pair by each
//! method. What goes out: classes of paths in question with the pairs to ask, and the methods of a class. All
//! pairs of a class are measured alike, because their rates are compared; so are later runs of the cluster.

use linerate_model::inventory::HostName;
use linerate_model::kind::TcpPlan;
use linerate_model::load::{LoadReport, Turn};
use linerate_model::path_methods::{MethodPair, PathClass, PathMethods, SURVEY_METHODS};
use linerate_model::plan::{Round, Test};
use linerate_model::sample::{Outcome, Sample};
use linerate_model::statistics::median;

use super::limits::{FAST_BPS, Limits};

/// Length of one transfer, ms.
const TURN_MS: u32 = 250;
/// Turns of each method, in opposite orders.
pub(crate) const ROUNDS: usize = 2;
/// Pairs of a class that are asked at most: the first may have the fault that the survey is to find.
const PAIRS: usize = 2;
/// Classes that are asked about at most.
const CLASSES_MAX: usize = 3;
/// Share of a budget that the comparison may take.
const BUDGET_SHARE: f64 = 0.1;
/// A rate of this share of the link leaves no other method anything to gain: headers take 6 %.
const FILLED: f64 = 0.85;
/// Use of one CPU from which on an end may be what binds.
const BUSY: f64 = 0.8;
/// How much faster than the plain methods others must be, in each of their turns.
const GAIN: f64 = 1.1;
/// Rates within this share of the best are equal: the cheaper one is used.
const EQUAL: f64 = 0.97;
/// How long later runs use what was chosen, ms: 14 days.
pub(crate) const HOLDS_MS: u64 = 14 * 24 * 3600 * 1000;

/// A class of paths whose methods are to be chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// Which.
    pub class: PathClass,
    /// Sender and receiver of pairs to ask, in this order.
    pub pairs: Vec<(HostName, HostName)>,
}

impl Question {
    /// One turn of a pair.
    pub(crate) fn turn(&self, pair: &(HostName, HostName)) -> Test {
        Test::new(pair.0.clone(), pair.1.clone(), self.class.layer, TcpPlan::single(TURN_MS).into())
    }

    /// Every turn that may be needed, one a round.
    fn rounds(&self) -> impl Iterator<Item = Round> {
        let turns = |pair| std::iter::repeat_n(self.turn(pair), ROUNDS * SURVEY_METHODS.len());
        self.pairs.iter().flat_map(turns).map(|test| Round { tests: vec![test] })
    }
}

/// All turns that may be needed, to be announced.
pub(crate) fn rounds(questions: &[Question]) -> Vec<Round> {
    questions.iter().flat_map(Question::rounds).collect()
}

/// Seconds that the comparison takes at most: one pair is asked to the end.
pub(crate) fn most_s(questions: &[Question]) -> f64 {
    let turns = PAIRS - 1 + ROUNDS * SURVEY_METHODS.len();
    let turn_s = |question: &Question| {
        let test = question.pairs.first().map(|pair| question.turn(pair));
        test.map_or(0.0, |test| test.kind.plan().expected().as_secs_f64())
    };
    questions.iter().map(|question| turn_s(question) * turns as f64).sum()
}

/// The classes of fast paths in the planned rounds that no earlier run chose methods for, with pairs of
/// different hosts: as many as fit into their share of the budget.
pub(crate) fn questions(
    limits: &Limits<'_>,
    rounds: &[Round],
    known: &[PathMethods],
    budget_s: Option<f64>,
) -> Vec<Question> {
    let mut questions: Vec<Question> = Vec::new();
    for test in rounds.iter().flat_map(|round| &round.tests) {
        let Some(class) = limits.fast_class(test) else { continue };
        if known.iter().any(|methods| methods.class == class) {
            continue;
        }
        let pair = (test.from.clone(), test.to.clone());
        let has = |host: &HostName, other: &(HostName, HostName)| *host == other.0 || *host == other.1;
        if let Some(question) = questions.iter_mut().find(|question| question.class == class) {
            let is_new = question.pairs.iter().all(|other| !has(&pair.0, other) && !has(&pair.1, other));
            if is_new && question.pairs.len() < PAIRS {
                question.pairs.push(pair);
            }
        } else if questions.len() < CLASSES_MAX {
            questions.push(Question { class, pairs: vec![pair] });
        }
    }
    let most = budget_s.map_or(f64::INFINITY, |budget_s| budget_s * BUDGET_SHARE);
    while most_s(&questions) > most {
        questions.pop();
    }
    questions
}

/// A transfer as a turn; `None` where it measured nothing.
pub(crate) fn turn(sample: &Sample, methods: &MethodPair) -> Option<Turn> {
    let Outcome::Measured(measured) = &sample.outcome else { return None };
    let (tx, rx) = (measured.tx.as_ref()?, measured.rx.as_ref()?);
    let cost = |report: &LoadReport| report.cpu_s / (report.bytes.max(1) as f64 / 1e9);
    Some(Turn {
        send: methods.send.clone(),
        receive: methods.receive.clone(),
        bps: measured.throughput_bps?,
        tx_s_per_gb: cost(tx),
        rx_s_per_gb: cost(rx),
        host_s_per_gb: measured.host_cpu_s_per_gb,
        turn_ms: TURN_MS,
        ..Turn::default()
    })
}

/// Whether a transfer by the plain methods left a part of its path empty because an end had no more CPU.
pub(crate) fn is_bound(sample: &Sample, class: PathClass) -> bool {
    let Outcome::Measured(measured) = &sample.outcome else { return false };
    let bps = measured.throughput_bps.unwrap_or(0.0);
    let is_filled = class.link_bps.is_some_and(|link_bps| bps >= FILLED * link_bps as f64);
    let busy = |report: &Option<Box<LoadReport>>| report.as_ref().and_then(|report| report.core_busy_max);
    let is_busy = [&measured.tx, &measured.rx].into_iter().any(|end| busy(end).is_none_or(|b| b >= BUSY));
    bps >= FAST_BPS && !is_filled && is_busy
}

/// The methods to use after these turns: the plain ones unless each turn of others was faster than all of
/// theirs by more than turns differ.
pub(crate) fn chosen(turns: &[Turn]) -> MethodPair {
    let rates = |methods: &MethodPair| -> Vec<f64> {
        let own = turns.iter().filter(|t| t.send == methods.send && t.receive == methods.receive);
        own.map(|turn| turn.bps).collect()
    };
    let plain = rates(&MethodPair::plain()).into_iter().fold(0.0, f64::max);
    let better: Vec<(MethodPair, f64)> = SURVEY_METHODS[1..]
        .iter()
        .map(|names| MethodPair::named(*names))
        .filter_map(|methods| {
            let rates = rates(&methods);
            let wins = plain > 0.0 && rates.len() >= ROUNDS && rates.iter().all(|bps| *bps >= GAIN * plain);
            median(&rates).filter(|_| wins).map(|bps| (methods, bps))
        })
        .collect();
    let best = better.iter().map(|(_, bps)| *bps).fold(0.0, f64::max);
    let cost = |methods: &MethodPair| {
        let own = turns.iter().filter(|t| t.send == methods.send && t.receive == methods.receive);
        let cost = |turn: &Turn| turn.host_s_per_gb.unwrap_or(turn.tx_s_per_gb + turn.rx_s_per_gb);
        median(&own.map(cost).collect::<Vec<_>>()).unwrap_or(f64::INFINITY)
    };
    let equal = better.into_iter().filter(|(_, bps)| *bps >= EQUAL * best).map(|(methods, _)| methods);
    equal.min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or_else(MethodPair::plain)
}

#[cfg(test)]
#[path = "methods_tests.rs"]
mod tests;
