//! A scheduler on which others act before every call, some calls have no result in time, and the program may
//! be killed; with a book of who wrote what. In: a seed. Out: the calls, and every breach of the rules.

use std::collections::BTreeMap;

use linerate_model::random::Random;

use super::super::ledger::Ledger;
use super::super::rules;
use super::super::scheduler::{CallError, Guarded, Node, Reservation, Scheduler};

/// What people, other programs and machines do to a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchedAct {
    /// A person or another check drains it, whatever stands there.
    Drain(String),
    /// Its reason is replaced.
    Rename(String),
    /// It is resumed.
    Resume,
    /// It reboots; a node without a reason is down after that.
    Reboot,
    /// It does not respond; a node without a reason is down with that of Slurm.
    Vanish,
    /// It responds again.
    Return,
    /// Reservations of it are deleted.
    Unreserve,
}

/// A scheduler on which others act.
pub trait Others: Scheduler {
    /// Does it.
    fn others(&mut self, node: &str, act: &WatchedAct) -> Result<(), CallError>;

    /// Sets the scheduler's clock, where it has none of its own.
    fn set_clock(&mut self, unix_s: u64);
}

/// Who keeps a node out of work.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Holder {
    Ours { text: String, since_ms: u64 },
    Other { text: String },
}

/// What is known of one node without asking the scheduler.
#[derive(Debug, Clone, Default)]
struct Page {
    /// Who wrote the reason.
    state: Option<Holder>,
    /// Who made the reservation: only we do.
    reserved_ms: Option<u64>,
    boot_ms: u64,
    /// The newest run that saw it, and whether it passed.
    run: Option<(u64, bool)>,
}

/// How often something happens before or in a call, 0 to 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Odds {
    pub(super) act: f64,
    pub(super) late: f64,
    pub(super) killed: f64,
    /// The ledger cannot be saved: a full disk.
    pub(super) unsaved: f64,
}

/// See the file's head.
pub(super) struct Watched<'a, W> {
    world: &'a mut W,
    pub(super) random: Random,
    pub(super) now_ms: u64,
    pub(super) odds: Odds,
    /// Whether the expected state is left out of writes: to see that the book notices.
    pub(super) careless: bool,
    book: BTreeMap<String, Page>,
    names: Vec<String>,
    /// The ledger as it was last saved.
    pub(super) saved: Ledger,
    pub(super) is_killed: bool,
    pub(super) breaches: Vec<String>,
    pub(super) drains: usize,
    pub(super) resumes: usize,
    pub(super) late: usize,
    pub(super) acts: usize,
    pub(super) trace: Vec<String>,
}

impl<'a, W: Others> Watched<'a, W> {
    pub(super) fn new(world: &'a mut W, seed: u64, now_ms: u64) -> Self {
        let nodes = world.nodes().expect("the scheduler has nodes");
        let names: Vec<String> = nodes.into_iter().map(|node| node.name).collect();
        Self {
            world,
            random: Random(seed),
            now_ms,
            odds: Odds { act: 0.15, late: 0.02, killed: 0.01, unsaved: 0.02 },
            careless: false,
            book: names.iter().map(|name| (name.clone(), Page::default())).collect(),
            names,
            saved: Ledger::default(),
            is_killed: false,
            breaches: Vec::new(),
            drains: 0,
            resumes: 0,
            late: 0,
            acts: 0,
            trace: Vec::new(),
        }
    }

    pub(super) fn names(&self) -> &[String] {
        &self.names
    }

    pub(super) fn advance(&mut self, seconds: u64) {
        self.now_ms += seconds * 1000;
        self.world.set_clock(self.now_ms / 1000);
    }

    pub(super) fn chance(&mut self, odds: f64) -> bool {
        self.random.fraction() < odds
    }

    fn page(&mut self, node: &str) -> &mut Page {
        self.book.entry(node.to_owned()).or_default()
    }

    pub(super) fn saw(&mut self, node: &str, passed: bool) {
        let at_ms = self.now_ms;
        self.page(node).run = Some((at_ms, passed));
    }

    /// Someone else does something to a node.
    pub(super) fn other_acts(&mut self) {
        let names = self.names.clone();
        let node = self.random.pick(&names).cloned().unwrap_or_default();
        self.acts += 1;
        let text = format!("{} {}", ["fan 3 broken", "NHC: mount", "RMA"][self.random.below(3)], self.acts);
        let held = self.page(&node).state.clone();
        let act = match (self.random.below(8), &held) {
            (0 | 1, _) => WatchedAct::Drain(text),
            (2, Some(_)) => WatchedAct::Rename(text),
            // With the very words that stand there, as a script that copies reasons does.
            (3, Some(Holder::Ours { text, .. })) => WatchedAct::Drain(text.clone()),
            (4, Some(_)) => WatchedAct::Resume,
            (5, _) => WatchedAct::Reboot,
            (6, _) => WatchedAct::Vanish,
            (7, _) if self.chance(0.3) => WatchedAct::Unreserve,
            _ => WatchedAct::Return,
        };
        let pause = 30 + self.random.below(600) as u64;
        self.advance(pause);
        self.do_act(&node, &act);
    }

    pub(super) fn do_act(&mut self, node: &str, act: &WatchedAct) {
        self.trace.push(format!("{node}: {act:?}"));
        self.world.others(node, act).expect("others are never late");
        let now_ms = self.now_ms;
        let slurm = self.world.node(node).ok().flatten().and_then(|node| node.reason);
        let page = self.page(node);
        match act {
            WatchedAct::Drain(text) | WatchedAct::Rename(text) => {
                // A real one may write other words, where the same ones could not be distinguished.
                let text = slurm.as_ref().map_or(text, |reason| &reason.text).clone();
                page.state = Some(Holder::Other { text });
            }
            WatchedAct::Resume => page.state = None,
            WatchedAct::Unreserve => page.reserved_ms = None,
            WatchedAct::Reboot => page.boot_ms = now_ms,
            WatchedAct::Vanish | WatchedAct::Return => {}
        }
        // What the scheduler wrote or removed by itself.
        match (&slurm, &page.state) {
            (Some(reason), None) => page.state = Some(Holder::Other { text: reason.text.clone() }),
            (None, Some(_)) => page.state = None,
            _ => {}
        }
    }

    /// Before every call others may act; an error when the program was killed.
    fn before(&mut self, node: Option<&str>) -> Result<(), CallError> {
        self.advance(1);
        while self.chance(self.odds.act) {
            self.other_acts();
        }
        if self.is_killed || self.chance(self.odds.killed) {
            self.trace.push(format!("killed before a call for {node:?}"));
            self.is_killed = true;
            return Err(CallError::Failed("killed".to_owned()));
        }
        Ok(())
    }

    fn read<T>(&mut self, read: impl FnOnce(&mut W) -> Result<T, CallError>) -> Result<T, CallError> {
        self.before(None)?;
        if self.chance(self.odds.late) {
            self.late += 1;
            return Err(CallError::Late("no answer".to_owned()));
        }
        read(self.world)
    }

    /// A write that may be late, carried out or not, or the last act of a killed program.
    fn write(
        &mut self,
        what: &str,
        node: &str,
        write: impl FnOnce(&mut W) -> Result<Guarded, CallError>,
        written: impl FnOnce(&mut Self),
    ) -> Result<Guarded, CallError> {
        self.before(Some(node))?;
        let (is_late, is_killed) = (self.chance(self.odds.late * 3.0), self.chance(self.odds.killed));
        if is_late && self.chance(0.5) {
            self.late += 1;
            self.trace.push(format!("{node}: {what} is late and lost"));
            return Err(CallError::Late("no answer".to_owned()));
        }
        if self.saved.breaker.is_some() {
            self.breach(format!("{node}: {what} with an open breaker"));
        }
        let done = write(self.world)?;
        self.trace.push(format!("{node}: {what}: {done:?}, late {is_late}, killed {is_killed}"));
        if done == Guarded::Written {
            written(self);
        }
        if is_killed {
            self.is_killed = true;
            return Err(CallError::Failed("killed".to_owned()));
        }
        if is_late {
            self.late += 1;
            return Err(CallError::Late("no answer".to_owned()));
        }
        Ok(done)
    }

    fn breach(&mut self, what: String) {
        self.breaches.push(what);
    }

    fn held(&mut self, node: &str) {
        let ours =
            |page: &&Page| matches!(page.state, Some(Holder::Ours { .. })) || page.reserved_ms.is_some();
        let (held, cap) = (self.book.values().filter(ours).count(), rules::cap(self.names.len()));
        self.drains += 1;
        if held > cap {
            self.breach(format!("{node}: {held} nodes are held, {cap} may be"));
        }
    }

    /// Whether a node passed a run since it was held and since it booted.
    fn has_passed(&mut self, node: &str, since_ms: u64) {
        let page = self.page(node);
        let (run, boot_ms) = (page.run, page.boot_ms);
        if !run.is_some_and(|(at_ms, passed)| passed && at_ms > since_ms && at_ms > boot_ms) {
            self.breach(format!("{node}: resumed without a run that it passed: {run:?}"));
        }
        self.resumes += 1;
    }

    /// At the end every reason of others stands as they wrote it.
    pub(super) fn compare(&mut self) {
        for node in self.world.nodes().expect("the scheduler has nodes") {
            let shown = node.reason.map(|reason| reason.text);
            let text = match self.page(&node.name).state.clone() {
                Some(Holder::Ours { text, .. } | Holder::Other { text }) => Some(text),
                None => None,
            };
            if shown != text {
                self.breach(format!("{}: {shown:?} stands there, {text:?} was written", node.name));
            }
        }
    }
}

impl<W: Others> Scheduler for Watched<'_, W> {
    fn nodes(&mut self) -> Result<Vec<Node>, CallError> {
        self.read(Scheduler::nodes)
    }

    fn node(&mut self, name: &str) -> Result<Option<Node>, CallError> {
        // The reading right after a write: no one copies in that moment what was never shown.
        let odds = std::mem::replace(&mut self.odds.act, 0.0);
        let read = self.read(|world| world.node(name));
        self.odds.act = odds;
        read
    }

    fn drain(&mut self, expected: &Node, reason: &str) -> Result<Guarded, CallError> {
        let name = &expected.name;
        let careless = self.careless;
        let write = |world: &mut W| {
            let found = world.node(name)?.filter(|_| careless);
            world.drain(&found.unwrap_or_else(|| expected.clone()), reason)
        };
        self.write("drain", name, write, |watched| {
            if let Some(holder) = watched.page(name).state.clone() {
                watched.breach(format!("{name}: overwritten: {holder:?}"));
            }
            let since_ms = watched.now_ms;
            watched.page(name).state = Some(Holder::Ours { text: reason.to_owned(), since_ms });
            watched.held(name);
        })
    }

    fn resume(&mut self, expected: &Node) -> Result<Guarded, CallError> {
        let name = &expected.name;
        let careless = self.careless;
        let write = |world: &mut W| {
            let found = world.node(name)?.filter(|_| careless);
            world.resume(&found.unwrap_or_else(|| expected.clone()))
        };
        self.write("resume", name, write, |watched| match watched.page(name).state.take() {
            Some(Holder::Ours { since_ms, .. }) => watched.has_passed(name, since_ms),
            other => watched.breach(format!("{name}: wrong resume: {other:?}")),
        })
    }

    fn reservations(&mut self) -> Result<Vec<Reservation>, CallError> {
        self.read(Scheduler::reservations)
    }

    fn reserve(&mut self, reservation: &Reservation) -> Result<Guarded, CallError> {
        let name = &reservation.node;
        self.write(
            "reserve",
            name,
            |world| world.reserve(reservation),
            |watched| {
                watched.page(name).reserved_ms = Some(watched.now_ms);
                watched.held(name);
            },
        )
    }

    fn release(&mut self, node: &Node, expected: &Reservation) -> Result<Guarded, CallError> {
        let name = &expected.node;
        self.write(
            "release",
            name,
            |world| world.release(node, expected),
            |watched| match watched.page(name).reserved_ms.take() {
                Some(since_ms) => watched.has_passed(name, since_ms),
                None => watched.breach(format!("{name}: wrong release")),
            },
        )
    }
}
