//! A survey from beginning to end: facts, plan, rounds, repetitions, second stage, diagnosis.
//!
//! What comes in: an inventory, its open sessions, the store. What goes out: the snapshot and its diagnosis;
//! every sample is in the store as soon as it is there. A host that dies makes gaps and nothing else. It
//! changes no setting.

mod beside;
mod compare;
mod drives;
mod lean;
mod mark;
mod repeat;
mod take_up;
mod unreachable;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::time::Duration;

use linerate_knowledge::Knowledge;
use linerate_model::fact::{Gap, HostFacts};
use linerate_model::fact_change::SeenBy;
use linerate_model::fact_map::KeyLists;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::kind::TcpPlan;
use linerate_model::plan::{Plan, Round, Test};
use linerate_model::run_id::RunId;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use linerate_model::statistics::median;
use linerate_wire::message::{Event, ObserveRequest};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use self::unreachable::Unreachable;
use super::limits::{Limits, LoadLedger};
use super::measure::Patience;
use super::methods::Question;
use super::slow::SmallTestTimes;
use super::{begin, disturb, gather, join, measure, methods, nic, owned, plan};
use linerate_fleet::clock;
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_fleet::{Fleet, NodeLink};
use linerate_store::{FactReading, ReadScope, Store, StoreError};

/// Longest wait for the facts of a host.
const FACTS_WAIT: Duration = Duration::from_secs(20);
/// Hosts whose facts are on the way at the same time: each answer is some hundred kilobytes.
const FACTS_AT_ONCE: usize = 128;
/// Longest second stage of a survey without a budget.
const SECOND_STAGE_MAX: Duration = Duration::from_secs(30);
/// Diagnose and test again at most so often.
const SECOND_STAGE_ROUNDS_MAX: usize = 3;

/// What a survey is asked to do.
#[derive(Debug)]
pub struct SurveyRequest<'a> {
    /// Who.
    pub inventory: &'a Inventory,
    /// Where the inventory came from, for later commands.
    pub inventory_path: Option<PathBuf>,
    /// Run that this one follows.
    pub parent: Option<RunId>,
    /// Time for everything.
    pub budget: Option<Duration>,
    /// Chooses pairs and breaks ties.
    pub seed: u64,
    /// Share of each link that tests may use, 0 to 1; `None`: all of it.
    pub share: Option<f64>,
    /// Whether the drives of all hosts are read as well.
    pub drives: bool,
}

/// Why a survey ended without a verdict.
#[derive(Debug, thiserror::Error)]
pub enum SurveyError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The inventory and the hosts disagree about addresses.
    #[error(transparent)]
    Addresses(#[from] owned::WrongAddresses),
}

/// Runs a survey.
pub async fn survey(
    order: &SurveyRequest<'_>,
    fleet: &Fleet,
    store: &mut Store,
    knowledge: &Knowledge,
    progress: &dyn Progress,
) -> Result<(Snapshot, Diagnosis), SurveyError> {
    let snapshot = Snapshot {
        schema: linerate_model::SCHEMA,
        id: crate::run_id::new_id(),
        parent: order.parent.clone(),
        start_ms: clock::now_ms(),
        inventory: order.inventory.clone(),
        ..Snapshot::default()
    };
    store.begin_run(&snapshot, order.inventory_path.as_deref())?;
    let mut survey = Survey {
        order,
        fleet,
        progress,
        snapshot,
        ended_ms: Vec::new(),
        transfers: HashMap::new(),
        store,
        started: Instant::now(),
        kept: Duration::ZERO,
        known_lost: BTreeSet::new(),
        unreachable: Unreachable::default(),
        postponed: Vec::new(),
        slow: SmallTestTimes::default(),
        strict: true,
        for_drives: Duration::ZERO,
        limits: None,
        ledger: LoadLedger::default(),
        knowledge,
    };
    for gap in &fleet.gaps {
        survey.gap(gap.clone())?;
    }
    survey.plain_hosts()?;
    survey.facts().await?;
    if let Err(wrong) = owned::check(order.inventory, &survey.snapshot.facts) {
        // Nothing was measured: a run without a verdict would stand in the list for good.
        survey.store.discard(&survey.snapshot.id)?;
        return Err(wrong.into());
    }
    survey.log_changes()?;
    survey.keep_time_for_drives();
    survey.first_stage().await?;
    survey.confirm_unreachable().await?;
    survey.again().await?;
    survey.own_limits().await?;
    survey.second_stage().await?;
    survey.lost_hosts().await?;
    survey.drives().await?;
    survey.snapshot.left_out.extend(survey.slow.left_out().chain(survey.ledger.left_out()));
    let mut diagnosis = linerate_report::words::diagnose(&survey.snapshot, knowledge);
    let mut snapshot = survey.snapshot;
    let has_failed = !order.drives && shows_nothing(&snapshot, &diagnosis);
    begin::end(store, &mut snapshot, &mut diagnosis, has_failed)?;
    Ok((snapshot, diagnosis))
}

/// Whether no test ran and nothing is blamed.
fn shows_nothing(snapshot: &Snapshot, diagnosis: &Diagnosis) -> bool {
    let has_run = |sample: &Sample| !matches!(sample.outcome, Outcome::Gap { .. });
    diagnosis.findings.is_empty() && !snapshot.samples.iter().any(has_run)
}

struct Survey<'a> {
    order: &'a SurveyRequest<'a>,
    fleet: &'a Fleet,
    progress: &'a dyn Progress,
    snapshot: Snapshot,
    /// End of each sample, Unix milliseconds.
    ended_ms: Vec<u64>,
    /// Where the samples of single-stream transfers of each pair stand in the snapshot.
    transfers: HashMap<(HostName, HostName, Layer), Vec<usize>>,
    store: &'a mut Store,
    started: Instant,
    /// What of the budget nothing before the second stage may use: repeating what was contended can take any
    /// time.
    kept: Duration,
    /// What of the budget the drives may use.
    for_drives: Duration,
    known_lost: BTreeSet<HostName>,
    /// Where no request is answered.
    unreachable: Unreachable,
    postponed: Vec<Test>,
    slow: SmallTestTimes,
    /// A load that waited for a CPU makes its test worthless. Not in the last repetition: a host that is
    /// always so busy is what there is to see.
    strict: bool,
    /// What tests may send; none before the facts were read.
    limits: Option<Limits<'a>>,
    ledger: LoadLedger,
    knowledge: &'a Knowledge,
}

impl<'a> Survey<'a> {
    /// What is left of the budget.
    fn left(&self) -> Option<Duration> {
        let kept = self.kept + self.for_drives;
        self.order.budget.map(|b| b.saturating_sub(self.started.elapsed() + kept))
    }

    fn gap(&mut self, gap: Gap) -> Result<(), StoreError> {
        self.store.add_gap(&self.snapshot.id, &gap)?;
        self.snapshot.gaps.push(gap);
        Ok(())
    }

    async fn facts(&mut self) -> Result<(), StoreError> {
        let hosts = self.fleet.hosts();
        let phase =
            ProgressPhase { name: "reading facts", unit: "hosts", total: hosts.len(), expected_s: None };
        self.progress.begin(&phase);
        let (progress, done) = (self.progress, Cell::new(0));
        let lists = RefCell::<KeyLists>::default();
        let (fleet, inventory) = (self.fleet, self.order.inventory);
        let at_once = Semaphore::new(FACTS_AT_ONCE);
        let wanted = lean::Wanted::new(inventory, self.knowledge);
        if wanted.is_part() {
            let why = "settings that no known cause speaks of: so many hosts would send more than a survey can hold";
            self.snapshot.left_out.push(why.to_owned());
        }
        let read = async |host: &HostName| {
            let _turn = at_once.acquire().await;
            let mut facts = read_facts(fleet, inventory, host, &wanted.prefixes).await;
            if let Ok(facts) = &mut facts {
                wanted.strip(facts);
                lists.borrow_mut().share(&mut facts.readings);
            }
            done.set(done.get() + 1);
            progress.step(done.get(), host, None);
            facts
        };
        let reads = hosts.iter().map(|host| boxed(read(host))).collect();
        for (host, read) in hosts.iter().zip(join::all(reads).await) {
            match read {
                Ok(facts) => {
                    self.snapshot.facts.insert(host.clone(), facts);
                }
                Err(reason) => self.gap(Gap { what: format!("facts of {host}").into(), reason })?,
            }
        }
        self.store.add_facts(&self.snapshot.id, &self.snapshot.facts)?;
        self.progress.end();
        Ok(())
    }

    /// Logs what changed since the hosts were read last, and takes what findings may quote.
    fn log_changes(&mut self) -> Result<(), StoreError> {
        let is_part = lean::Wanted::new(self.order.inventory, self.knowledge).is_part();
        let reading = FactReading {
            cluster: &self.order.inventory.name,
            started_ms: self.snapshot.start_ms,
            ended_ms: clock::now_ms(),
            seen_by: SeenBy::Run(self.snapshot.id.clone()),
            // Which part of the facts of a very large cluster is kept depends on the knowledge of the day.
            scope: if is_part { ReadScope::Part } else { ReadScope::All },
            who: None,
        };
        self.store.log_facts(&reading, &self.snapshot.facts)?;
        self.snapshot.changes = self.store.changes_before(&self.snapshot)?;
        Ok(())
    }

    /// Whether a host only has iperf3.
    fn is_plain(&self, host: &str) -> bool {
        self.order.inventory.iperf3_port(host).is_some()
    }

    async fn first_stage(&mut self) -> Result<(), StoreError> {
        let mut present: BTreeSet<HostName> = self.fleet.hosts().into_iter().collect();
        present.retain(|host| self.fleet.link(host).is_ok());
        let hosts = &self.order.inventory.hosts;
        let absent: BTreeSet<HostName> = hosts
            .iter()
            .map(|h| h.name.clone())
            .filter(|h| !present.contains(h) && !self.is_plain(h))
            .collect();
        let spec = |budget| plan::SurveySpec {
            inventory: self.order.inventory,
            facts: &self.snapshot.facts,
            absent: &absent,
            budget,
            seed: self.order.seed,
        };
        let mut plan = plan::plan(&spec(self.left()));
        let limits = Limits::new(&self.snapshot, self.order.inventory, self.order.share);
        let known = self.known_methods(&limits, &plan.rounds)?;
        let budget_s = self.left().map(|left| left.as_secs_f64());
        let questions = methods::questions(&limits, &plan.rounds, &known, budget_s);
        if let Some(left) = self.left().filter(|_| !questions.is_empty()) {
            let compared = Duration::from_secs_f64(methods::most_s(&questions));
            plan = plan::plan(&spec(Some(left.saturating_sub(compared))));
        }
        self.announce(&mut plan, limits, &questions)?;
        for methods in known {
            self.use_methods(methods);
        }
        self.compare_methods(&questions).await?;
        let spare = |left: Duration| left.saturating_sub(Duration::from_secs_f64(plan.expected_s.max(0.0)));
        let longer = linerate_diagnose::longer_transfers(self.order.inventory, &self.snapshot.facts);
        let kept = |left| plan::reserve(left, longer).min(spare(left));
        self.kept = self.left().map_or(Duration::ZERO, kept);
        self.snapshot.left_out.extend(plan.left_out.iter().cloned());
        self.rounds("measuring", &plan.rounds, plan.expected_s).await
    }

    /// Keeps the planned tests to the share of each link, and announces what they and the comparison of
    /// methods send.
    fn announce(
        &mut self,
        plan: &mut Plan,
        limits: Limits<'a>,
        questions: &[Question],
    ) -> Result<(), StoreError> {
        if self.order.share.is_some() {
            plan.rounds = limits.rounds(std::mem::take(&mut plan.rounds));
            plan.expected_s = plan.rounds.iter().map(round_s).sum();
        }
        let compared = methods::rounds(questions);
        let (announced, ledger) = limits.announced(compared.iter().chain(&plan.rounds));
        for line in linerate_report::words::announced(&announced) {
            self.progress.note(&line);
        }
        self.snapshot.announced = Some(Box::new(announced));
        self.store.set_shell(&self.snapshot)?;
        (self.limits, self.ledger) = (Some(limits), ledger);
        Ok(())
    }

    /// The test at the rate that it has in this survey, if the announced load covers it.
    fn afforded(&mut self, test: &Test) -> Option<Test> {
        let test = self.with_rate(test);
        let Some(limits) = &self.limits else { return Some(test) };
        let test = limits.paced(test);
        (limits.allows(&test) && self.ledger.pays(limits, &test)).then_some(test)
    }

    /// Runs rounds one after the other. A budget that is used up ends them.
    async fn rounds(&mut self, part: &str, rounds: &[Round], expected_s: f64) -> Result<(), StoreError> {
        let total = rounds.iter().map(|r| r.tests.len()).sum();
        self.progress.begin(&ProgressPhase {
            name: part,
            unit: "tests",
            total,
            expected_s: Some(expected_s),
        });
        let mut done = 0;
        let begun = Instant::now();
        let planned: Vec<f64> = rounds.iter().map(round_s).collect();
        let all_s = planned.iter().sum::<f64>().max(1e-3);
        let mut done_s = 0.0;
        for (number, round) in rounds.iter().enumerate() {
            if self.left().is_some_and(|left| left.is_zero()) {
                let missing: usize = rounds[number..].iter().map(|r| r.tests.len()).sum();
                self.snapshot
                    .left_out
                    .push(format!("{missing} tests of the part `{part}`: the time was used up"));
                break;
            }
            let planned_tests = round.tests.len();
            let round = self.lightened(round);
            if round.tests.is_empty() {
                done_s += planned[number];
                done += planned_tests;
                continue;
            }
            // Scaled by what the rounds so far took, once there is something to go by.
            let pace = if done_s > 1.0 { begun.elapsed().as_secs_f64() / done_s } else { expected_s / all_s };
            self.progress.step(done, &describe(&round), Some((all_s - done_s) * pace));
            self.one_round(&round, Patience::Usual).await?;
            done_s += planned[number];
            done += planned_tests;
            self.progress.step(done, "", Some((all_s - done_s) * pace));
        }
        self.progress.end();
        Ok(())
    }

    /// The round without the tests from which nothing is expected, which are put off, and without what is not
    /// worth waiting for.
    fn lightened(&mut self, round: &Round) -> Round {
        let is_unreachable = |t: &&Test| !t.second_stage && self.unreachable.has(t);
        let (unreachable, tests): (Vec<&Test>, Vec<&Test>) = round.tests.iter().partition(is_unreachable);
        self.postponed.extend(unreachable.into_iter().cloned());
        let slow = &mut self.slow;
        Round { tests: tests.into_iter().filter(|t| t.second_stage || !slow.drops(t)).cloned().collect() }
    }

    /// Tests of the pairs between which nothing gets through: one of each kind, repeats tell nothing.
    async fn confirm_unreachable(&mut self) -> Result<(), StoreError> {
        let mut tests = std::mem::take(&mut self.postponed);
        tests.retain(|t| t.repeat == 0 && !t.kind.get().is_some_and(TcpPlan::is_parallel));
        if tests.is_empty() {
            return Ok(());
        }
        let rounds = self.packed(tests);
        let part = "confirming where nothing gets through";
        let total = rounds.iter().map(|r| r.tests.len()).sum();
        let expected_s = Some(rounds.len() as f64);
        self.progress.begin(&ProgressPhase { name: part, unit: "tests", total, expected_s });
        let mut done = 0;
        for (number, round) in rounds.iter().enumerate() {
            if self.left().is_some_and(|left| left.is_zero()) {
                let missing: usize = rounds[number..].iter().map(|r| r.tests.len()).sum();
                self.snapshot
                    .left_out
                    .push(format!("{missing} tests of the part `{part}`: the time was used up"));
                break;
            }
            self.progress.step(done, &describe(round), Some((rounds.len() - number) as f64));
            self.one_round(round, Patience::Short).await?;
            done += round.tests.len();
            self.progress.step(done, "", None);
        }
        self.progress.end();
        Ok(())
    }

    async fn one_round(&mut self, round: &Round, patience: Patience) -> Result<(), StoreError> {
        let tests: Vec<Test> = round.tests.iter().filter_map(|t| self.afforded(t)).collect();
        let (fleet, inventory, limits) = (self.fleet, self.order.inventory, self.limits.as_ref());
        let running = tests.iter().map(|t| boxed(ended(fleet, inventory, t, patience, limits))).collect();
        let results = join::all(running).await;
        let back = self.lost_hosts().await?;
        self.mark_unanswered(&back)?;
        let spans = disturb::read(inventory.disturbances.as_deref());
        let first = self.snapshot.samples.len();
        for Ended { mut sample, at_ms, took_ms } in results {
            let facts = &self.snapshot.facts;
            let path_bps = |test: &Test| nic::path_bps(facts, inventory, &test.from, &test.to, test.layer);
            mark::mark(&mut sample, at_ms, &spans, path_bps);
            mark::mark_cut(&mut sample, &back);
            if let Some(reason) = gather::starved(&sample, || path_bps(&sample.test)).filter(|_| self.strict)
            {
                sample.outcome = Outcome::Invalid { reason };
            }
            let pair = (sample.test.from.clone(), sample.test.to.clone(), sample.test.layer);
            self.unreachable.saw(&sample, inventory);
            if sample.test.kind.get().is_some_and(TcpPlan::is_single) {
                self.transfers.entry(pair).or_default().push(self.snapshot.samples.len());
            }
            self.slow.saw(&sample.test, took_ms);
            self.snapshot.samples.push(sample);
            self.ended_ms.push(at_ms);
        }
        self.store.add_samples(&self.snapshot.id, &self.snapshot.samples[first..])?;
        if self.order.inventory.hosts.len() >= lean::FROM_HOSTS {
            for sample in &mut self.snapshot.samples[first..] {
                lean::strip(sample, self.knowledge);
            }
        }
        Ok(())
    }

    /// A UDP probe takes its share of what TCP reached on the pair, where that is less than the rate of the
    /// path; one that asks for packets has its own.
    fn with_rate(&self, test: &Test) -> Test {
        let path =
            nic::path_bps(&self.snapshot.facts, self.order.inventory, &test.from, &test.to, test.layer);
        let least = [self.tcp_median(test), path].into_iter().flatten().reduce(f64::min);
        let inner = self.order.inventory.same_machine(&test.from, &test.to);
        let kind = least.map_or_else(|| test.kind.clone(), |bps| plan::probe_of(&test.kind, bps, inner));
        Test { kind, ..test.clone() }
    }

    /// Median of the valid single-stream transfers so far between the hosts of a test.
    fn tcp_median(&self, test: &Test) -> Option<f64> {
        let places = self.transfers.get(&(test.from.clone(), test.to.clone(), test.layer))?;
        let values: Vec<f64> = places
            .iter()
            .filter_map(|place| match &self.snapshot.samples[*place].outcome {
                Outcome::Measured(m) => m.throughput_bps,
                _ => None,
            })
            .collect();
        median(&values)
    }

    /// While time is left: what the evidence cannot tell apart is tested serially, then judged again.
    async fn second_stage(&mut self) -> Result<(), StoreError> {
        let begun = Instant::now();
        self.kept = Duration::ZERO;
        for _ in 0..SECOND_STAGE_ROUNDS_MAX {
            let room =
                self.left().unwrap_or_else(|| SECOND_STAGE_MAX.saturating_sub(begun.elapsed())).as_secs_f64();
            let next_id = self.snapshot.samples.iter().map(|s| s.test.id).max().unwrap_or(0) + 1;
            let mut wanted = linerate_diagnose::second_stage(&self.snapshot, self.knowledge, next_id);
            for test in &mut wanted {
                test.second_stage = true;
            }
            let asked = wanted.len();
            wanted.retain(|test| {
                let covers = |limits: &Limits<'_>| {
                    let test = limits.paced(self.with_rate(test));
                    limits.allows(&test) && self.ledger.affords(limits, &test)
                };
                self.limits.as_ref().is_none_or(covers)
            });
            if wanted.is_empty() {
                self.ledger.refuse(asked);
                return Ok(());
            }
            let mut rounds = Vec::new();
            let mut expected_s = 0.0;
            for (test, id) in wanted.into_iter().filter(|t| self.alive(t)).zip(next_id..) {
                let round = Round { tests: vec![Test { id, serial: true, second_stage: true, ..test }] };
                expected_s += round_s(&round);
                if expected_s > room {
                    break;
                }
                rounds.push(round);
            }
            if rounds.is_empty() {
                return Ok(());
            }
            self.rounds("second stage: telling alternatives apart", &rounds, expected_s).await?;
            self.again_of_second_stage().await?;
        }
        Ok(())
    }

    fn alive(&self, test: &Test) -> bool {
        let alive = |host: &str| self.is_plain(host) || self.fleet.link(host).is_ok();
        alive(&test.from)
            && alive(&test.to)
            && measure::is_possible(self.order.inventory, &test.from, &test.to, &test.kind)
    }
}

fn boxed<'a, T>(future: impl Future<Output = T> + 'a) -> std::pin::Pin<Box<dyn Future<Output = T> + 'a>> {
    Box::pin(future)
}

/// A sample, when its test ended (Unix milliseconds), and how long that took by a clock that nobody sets.
struct Ended {
    sample: Sample,
    at_ms: u64,
    took_ms: u64,
}

async fn ended(
    fleet: &Fleet,
    inventory: &Inventory,
    test: &Test,
    patience: Patience,
    limits: Option<&Limits<'_>>,
) -> Ended {
    let begun = Instant::now();
    let tuning = limits.map(|limits| limits.tuning(test)).unwrap_or_default();
    let plain = limits.map(|limits| limits.plain_tuning(test)).unwrap_or_default();
    let mut sample = measure::or_plain(fleet, inventory, test, patience, &tuning, &plain).await;
    if let (Some(pace), Outcome::Measured(m)) =
        (limits.and_then(|limits| limits.pace_bps(test)), &mut sample.outcome)
    {
        m.asked_bps = Some(pace);
    }
    Ended { sample, at_ms: clock::now_ms(), took_ms: begun.elapsed().as_millis() as u64 }
}

fn round_s(round: &Round) -> f64 {
    round.tests.iter().map(|t| t.kind.plan().expected().as_secs_f64()).fold(0.0, f64::max)
}

fn describe(round: &Round) -> String {
    let Some(first) = round.tests.first() else { return String::new() };
    let pairs: Vec<String> = round.tests.iter().take(3).map(|t| format!("{} > {}", t.from, t.to)).collect();
    let more = round.tests.len().saturating_sub(3);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let kind = first.kind.plan().title();
    format!("{kind} {}: {}{more}", first.layer, pairs.join(", "))
}

/// Facts of one host, also in the namespaces of its endpoints; all of them when no prefix is given.
pub async fn read_facts(
    fleet: &Fleet,
    inventory: &Inventory,
    host: &str,
    prefixes: &[String],
) -> Result<HostFacts, String> {
    let netns = inventory
        .host(host)
        .map_or(Vec::new(), |h| h.endpoints.iter().filter_map(|e| e.netns.clone()).collect());
    let link = fleet.link(host).map_err(|e| e.to_string())?;
    facts_over(&link, netns, prefixes).await
}

/// The same over a session, with the namespaces of the host that are looked into.
pub async fn facts_over(
    link: &NodeLink,
    netns: Vec<PathBuf>,
    prefixes: &[String],
) -> Result<HostFacts, String> {
    let request = ObserveRequest::Facts { prefixes: prefixes.to_vec(), netns };
    let events = link.request(request, FACTS_WAIT).await.map_err(|e| e.to_string())?;
    events
        .into_iter()
        .find_map(|event| if let Event::Facts(facts) = event { Some(*facts) } else { None })
        .ok_or_else(|| format!("host {} sent no facts", link.host()))
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
