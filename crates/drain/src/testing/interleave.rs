//! One random interleaving. In: a scheduler on which others act, a seed, a number of steps. Out: a tally.

use std::cell::RefCell;
use std::rc::Rc;

use linerate_model::finding::{Direction, LayerScope, Metric};
use linerate_model::random::Random;

use super::super::evidence::{Evidence, Explanation, LocatedFault, Seen, Sighting};
use super::super::ledger::HoldMeans;
use super::super::ledger::Ledger;
use super::super::machine::{Machine, MachineError, NodeOutcome};
use super::super::scheduler::{CallError, Guarded, Node, Reservation, Scheduler};
use super::watched::{Odds, Others, Watched};

/// What to interleave.
#[derive(Debug, Clone, Copy)]
pub struct Interleaving {
    /// Seed.
    pub seed: u64,
    /// Steps: runs, commands, acts of others.
    pub steps: usize,
    /// Virtual time of the first step, Unix milliseconds.
    pub start_ms: u64,
    /// How nodes are held.
    pub by: HoldMeans,
    /// Write without the expected state, to see that breaches are noticed.
    pub careless: bool,
}

/// What happened.
#[derive(Debug, Default)]
pub struct Tally {
    /// Nodes held.
    pub drains: usize,
    /// Nodes released.
    pub resumes: usize,
    /// Calls without a result in time.
    pub late: usize,
    /// How often the program was killed.
    pub killed: usize,
    /// How often the ledger could not be saved.
    pub unsaved: usize,
    /// How often the circuit breaker opened.
    pub trips: usize,
    /// Acts of others.
    pub acts: usize,
    /// Writes that found another state than the planned one.
    pub changed: usize,
    /// Breaches of the rules, with what led to them.
    pub breaches: Vec<String>,
}

impl Tally {
    /// Adds another interleaving.
    pub fn add(&mut self, other: Self) {
        self.drains += other.drains;
        self.resumes += other.resumes;
        self.late += other.late;
        self.killed += other.killed;
        self.unsaved += other.unsaved;
        self.trips += other.trips;
        self.acts += other.acts;
        self.changed += other.changed;
        self.breaches.extend(other.breaches);
    }
}

/// Runs one. The scheduler's nodes are idle and without reasons before.
pub fn interleave<W: Others>(world: &mut W, wanted: Interleaving) -> Tally {
    let mut watched = Watched::new(world, wanted.seed, wanted.start_ms);
    watched.careless = wanted.careless;
    let mut evidence = Evidence::new();
    let mut tally = Tally::default();
    let faulty = watched.random.below(watched.names().len());
    for _ in 0..wanted.steps {
        match watched.random.below(10) {
            0..=3 => run(&mut watched, &mut evidence, faulty),
            4..=6 => command(&mut watched, &evidence, wanted.by, true, &mut tally),
            7 | 8 => command(&mut watched, &evidence, wanted.by, false, &mut tally),
            _ => watched.other_acts(),
        }
    }
    // In quiet everything is brought to where it can be compared.
    watched.odds = Odds { act: 0.0, late: 0.0, killed: 0.0, unsaved: 0.0 };
    watched.compare();
    tally.drains = watched.drains;
    tally.resumes = watched.resumes;
    tally.late = watched.late;
    tally.acts = watched.acts;
    let seed = wanted.seed;
    let synced = |breach: String| format!("seed {seed}: {breach}; {}", watched.trace.join(" | "));
    tally.breaches = watched.breaches.iter().cloned().map(synced).collect();
    tally
}

/// A run that measures all nodes.
fn run<W: Others>(watched: &mut Watched<'_, W>, evidence: &mut Evidence, faulty: usize) {
    let pause = 60 + watched.random.below(900) as u64;
    watched.advance(pause);
    let id = format!("r{}", watched.now_ms / 1000);
    // Sometimes many nodes have a fault, sometimes none.
    let odds = [0.0, 0.0, 0.1, 0.9][watched.random.below(4)];
    for (number, name) in watched.names().to_vec().into_iter().enumerate() {
        let fault = if number == faulty { 0.7 } else { odds };
        let seen = if watched.chance(fault) {
            Seen::Located(LocatedFault {
                text: "rx 0.94 Gbit/s not 9.41 Gbit/s, throughput".to_owned(),
                metrics: vec![Metric::Throughput],
                direction: Direction::Rx,
                layer: LayerScope::Any,
                drive: None,
            })
        } else {
            match watched.random.below(12) {
                0 => Seen::Unseen,
                1 => Seen::Explained(Explanation::OtherEnd),
                2 => Seen::Explained(Explanation::Group),
                _ => Seen::Healthy,
            }
        };
        let not_in_force = if watched.chance(0.05) { vec!["sysctl.x".to_owned()] } else { Vec::new() };
        watched.saw(&name, seen == Seen::Healthy && not_in_force.is_empty());
        let sighting = Sighting { run: id.clone(), at_ms: watched.now_ms, seen, not_in_force };
        evidence.entry(name).or_default().push(sighting);
    }
}

/// `linerate drain` or `linerate resume`: plans, waits for a person to read that, acts. Sometimes killed.
fn command<W: Others>(
    watched: &mut Watched<'_, W>,
    evidence: &Evidence,
    by: HoldMeans,
    drains: bool,
    tally: &mut Tally,
) {
    watched.is_killed = false;
    let mut ledger = watched.saved.clone();
    // A person resets the breaker some time, whatever opened it.
    if ledger.breaker.is_some() && watched.chance(0.5) {
        ledger.breaker = None;
        watched.saved.breaker = None;
    }
    let saved = Rc::new(RefCell::new(ledger.clone()));
    let was_open = ledger.breaker.is_some();
    let now_ms = watched.now_ms;
    let (mut disk, unsaved) = (Random(watched.random.next_u64()), watched.odds.unsaved);
    let mut synced = Synced { watched, saved: Rc::clone(&saved) };
    let keep = |ledger: &Ledger| {
        if disk.fraction() < unsaved {
            return Err(std::io::Error::from(std::io::ErrorKind::StorageFull));
        }
        saved.replace(ledger.clone());
        Ok(())
    };
    let mut machine = Machine::new(&mut synced, ledger, keep);
    let done = if drains {
        let plan = machine.plan_drain(evidence, now_ms);
        plan.and_then(|plan| machine.drain(&plan, by, now_ms))
    } else {
        let plan = machine.plan_resume(evidence, now_ms);
        plan.and_then(|plan| machine.resume(&plan, now_ms))
    };
    // A killed program saves nothing after that.
    synced.sync();
    let is_changed = |outcome: &NodeOutcome| {
        matches!(outcome, NodeOutcome::Refused(super::super::decision::Refusal::Changed))
    };
    match done {
        Ok(applied) => tally.changed += applied.iter().filter(|a| is_changed(&a.outcome)).count(),
        Err(MachineError::Call(_)) => {}
        Err(MachineError::Ledger(_)) => tally.unsaved += 1,
    }
    tally.killed += usize::from(watched.is_killed);
    tally.trips += usize::from(!was_open && watched.saved.breaker.is_some());
}

/// Hands over what was saved to the book before each call: what comes after a kill is never saved.
struct Synced<'w, 'a, W> {
    watched: &'w mut Watched<'a, W>,
    saved: Rc<RefCell<Ledger>>,
}

impl<W: Others> Synced<'_, '_, W> {
    fn sync(&mut self) {
        if !self.watched.is_killed {
            self.watched.saved = self.saved.borrow().clone();
        }
    }
}

/// Each call hands over first.
macro_rules! synced {
    ($($name:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        impl<W: Others> Scheduler for Synced<'_, '_, W> {
            $(fn $name(&mut self, $($argument: $kind),*) -> Result<$result, CallError> {
                self.sync();
                self.watched.$name($($argument),*)
            })*
        }
    };
}

synced! {
    nodes() -> Vec<Node>;
    node(name: &str) -> Option<Node>;
    drain(expected: &Node, reason: &str) -> Guarded;
    resume(expected: &Node) -> Guarded;
    reservations() -> Vec<Reservation>;
    reserve(reservation: &Reservation) -> Guarded;
    release(node: &Node, expected: &Reservation) -> Guarded;
}
