//! A survey of the drives of many hosts: facts, an interval without load, then small reads of one drive of a
//! controller at a time, and what seems slow once more. Stored as a run.
//!
//! In: open sessions, an order. Out: the snapshot, its diagnosis, a row per drive. Nothing is written; reads
//! go around the cache and end by time, bytes or requests. A drive that others load is left alone. A host
//! that does not answer is a gap.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;

use linerate_diagnose::diagnose;
use linerate_diagnose::disks::{self, DrivePromise, SurveyedDrive};
use linerate_knowledge::Knowledge;
use linerate_model::disk::DiskInterval;
use linerate_model::disk_load::{DiskPhase, DiskTarget, Durable};
use linerate_model::fact::{FactValue, Gap, HostFacts};
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::kind::{DiskPlan, TestKind};
use linerate_model::plan::Test;
use linerate_model::sample::Sample;
use linerate_model::snapshot::Snapshot;
use tokio::sync::Semaphore;
use tokio::time::{Duration, Instant};

use super::begin::begin;
use super::context::Context;
use super::run::read_facts;
use super::{join, measure};
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_fleet::{Fleet, clock};
use linerate_store::{Store, StoreError};

/// What is read of every host.
const WANTED: [&str; 6] = ["disk.", "disk_health.", "disk_limit.", "nfs.", "mount.", "machine."];
/// How long the counters are watched before the load.
const QUIET: Duration = Duration::from_secs(1);
/// Drives of one host that are read at the same time, each at a controller of its own.
const AT_ONCE: usize = 2;
/// Requests in flight: enough for what providers promise of a volume, few for a drive.
const DEPTH: u16 = 8;
/// Size of a request at random offsets, and of one in a row.
const SMALL: u32 = 4 << 10;
const LARGE: u32 = 1 << 20;
/// Most requests of a test: fast drives end by it.
const REQUESTS_MAX: u64 = 20_000;
/// The same where a drive is in doubt: a test that is over in a moment proves no slow drive.
const REQUESTS_MAX_AGAIN: u64 = 1_000_000;

/// What is asked for.
#[derive(Debug, Clone)]
pub struct DiskSurveyOrder {
    /// Devices by name; empty for all drives.
    pub devices: Vec<String>,
    /// Longest time of each of the two tests of a drive, milliseconds.
    pub phase_ms: u32,
    /// Most bytes of each test.
    pub bytes_max: u64,
    /// What was promised of each drive.
    pub promise: DrivePromise,
    /// No test begins after it.
    pub until: Option<Instant>,
}

/// Longest time of a test of a drive, milliseconds, and most bytes of it: what a drive in use does not feel.
pub const PHASE_MS: u32 = 1500;
/// See [`PHASE_MS`].
pub const BYTES_MAX: u64 = 256 << 20;

impl DiskSurveyOrder {
    /// All drives within the usual limits.
    #[must_use]
    pub fn usual(until: Option<Instant>) -> Self {
        let promise = DrivePromise::default();
        Self { devices: Vec::new(), phase_ms: PHASE_MS, bytes_max: BYTES_MAX, promise, until }
    }
}

/// What a survey found.
pub struct DiskSurveyed {
    /// Everything that was seen.
    pub snapshot: Snapshot,
    /// Causes and remedies.
    pub diagnosis: Diagnosis,
    /// The drives, the worst first.
    pub drives: Vec<SurveyedDrive>,
}

/// What makes the sentence of a run, and those of its drives.
pub type Words = (fn(&[SurveyedDrive]) -> String, fn(&[SurveyedDrive]) -> Vec<String>);

type BoxedFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Surveys the drives of all hosts that answer.
///
/// # Errors
/// The store cannot be written.
pub async fn run(
    fleet: &Fleet,
    inventory: &Inventory,
    order: &DiskSurveyOrder,
    knowledge: &Knowledge,
    words: Words,
    context: &mut Context<'_>,
) -> Result<DiskSurveyed, StoreError> {
    let mut snapshot = begin(fleet, inventory, context.store)?;
    let part = DrivePart { fleet, inventory, order, progress: context.progress };
    part.read(&mut snapshot, context.store).await?;
    let drives = disks::survey(&snapshot, &order.devices, order.promise);
    let mut diagnosis = diagnose(&snapshot, knowledge);
    diagnosis = linerate_report::words::written(diagnosis);
    let (headline, sentences) = words;
    diagnosis.headline = headline(&drives);
    diagnosis.notes = sentences(&drives);
    diagnosis.blind.clone_from(&snapshot.gaps);
    context.store.finish(&snapshot, &diagnosis)?;
    Ok(DiskSurveyed { snapshot, diagnosis, drives })
}

/// The drives as a part of a run.
pub(super) struct DrivePart<'a> {
    /// Open sessions.
    pub fleet: &'a Fleet,
    /// Who.
    pub inventory: &'a Inventory,
    /// What is asked for.
    pub order: &'a DiskSurveyOrder,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
}

impl DrivePart<'_> {
    /// Reads facts and drives of all hosts into a run.
    ///
    /// # Errors
    /// The store cannot be written.
    pub(super) async fn read(&self, snapshot: &mut Snapshot, store: &mut Store) -> Result<(), StoreError> {
        let gaps = observe(self.fleet, self.inventory, snapshot, self.progress).await;
        for gap in gaps {
            store.add_gap(&snapshot.id, &gap)?;
            snapshot.gaps.push(gap);
        }
        store.add_facts(&snapshot.id, &snapshot.facts)?;
        let DiskSurveyOrder { devices, promise, .. } = self.order;
        let mut surveyor = Surveyor { part: self, requests_max: REQUESTS_MAX };
        let mut asked: Vec<(HostName, String)> = Vec::new();
        for (host, facts) in disks::hosts_with_drives(snapshot) {
            let drives = disks::surveyed(facts, devices);
            asked.extend(drives.into_iter().map(|drive| (host.clone(), drive)));
        }
        asked.retain(|(host, drive)| !disks::is_busy(snapshot, host, drive));
        let mut name = "reading drives";
        while !asked.is_empty() {
            let mut samples = surveyor.measure(snapshot, &asked, name).await;
            let missing = asked.len() - samples.len();
            store.add_samples(&snapshot.id, &samples)?;
            snapshot.samples.append(&mut samples);
            if missing > 0 {
                let left_out = format!("{missing} drives of the part `{name}`: the time was used up");
                snapshot.left_out.push(left_out);
                break;
            }
            asked = disks::again(&disks::survey(snapshot, devices, *promise));
            name = "reading drives in doubt once more";
            surveyor.requests_max = REQUESTS_MAX_AGAIN;
        }
        Ok(())
    }
}

/// Facts of all hosts, and what their drives do without us.
async fn observe(
    fleet: &Fleet,
    inventory: &Inventory,
    snapshot: &mut Snapshot,
    progress: &dyn Progress,
) -> Vec<Gap> {
    let hosts = fleet.hosts();
    progress.begin(&ProgressPhase {
        name: "reading facts",
        unit: "hosts",
        total: hosts.len(),
        expected_s: None,
    });
    let done = Cell::new(0);
    let read = async |host: HostName| {
        let seen = of_host(fleet, inventory, &host).await;
        done.set(done.get() + 1);
        progress.step(done.get(), &host, None);
        (host, seen)
    };
    let reads: Vec<BoxedFuture<'_, (HostName, HostSeen)>> =
        hosts.into_iter().map(|host| Box::pin(read(host)) as BoxedFuture<'_, _>).collect();
    let mut gaps = Vec::new();
    for (host, seen) in join::all(reads).await {
        match seen {
            Ok((facts, interval)) => {
                // A survey knows more of its hosts already.
                let known = snapshot.facts.entry(host).or_default();
                known.readings.extend(facts.readings);
                let new = facts.gaps.into_iter().filter(|gap| !known.gaps.contains(gap)).collect::<Vec<_>>();
                known.gaps.extend(new);
                snapshot.disks.extend(interval);
            }
            Err(reason) => gaps.push(Gap { what: format!("facts of {host}").into(), reason }),
        }
    }
    progress.end();
    gaps
}

/// Facts of a host and what its drives did for a moment, or why nothing is known.
type HostSeen = Result<(HostFacts, Option<DiskInterval>), String>;

async fn of_host(fleet: &Fleet, inventory: &Inventory, host: &str) -> HostSeen {
    let wanted = WANTED.map(str::to_owned);
    let mut facts = read_facts(fleet, inventory, host, &wanted).await?;
    let before = std::mem::take(&mut facts.counters);
    tokio::time::sleep(QUIET).await;
    let after = read_facts(fleet, inventory, host, &["disk.".to_owned()]).await?.counters;
    let interval = disks::between(&before, &after).map(|(seconds, disks)| DiskInterval {
        host: host.to_owned(),
        at_ms: clock::now_ms(),
        seconds,
        disks,
        times_missing: None,
    });
    Ok((facts, interval))
}

/// Who reads drives.
struct Surveyor<'a> {
    part: &'a DrivePart<'a>,
    requests_max: u64,
}

impl Surveyor<'_> {
    /// Reads drives of all hosts at the same time: of a host one drive of a controller, and few controllers.
    async fn measure(
        &self,
        snapshot: &Snapshot,
        asked: &[(HostName, String)],
        name: &'static str,
    ) -> Vec<Sample> {
        let DrivePart { fleet, inventory, order, progress } = *self.part;
        let mut queues: BTreeMap<(&str, String), Vec<Test>> = BTreeMap::new();
        for ((host, drive), number) in asked.iter().zip(1..) {
            let controller = snapshot.facts.get(host).and_then(|facts| controller(facts, drive));
            let id = u32::try_from(snapshot.samples.len()).unwrap_or(u32::MAX).saturating_add(number);
            let test =
                Test::new(host.clone(), host.clone(), Layer::Underlay, TestKind::from(self.plan(drive)));
            queues.entry((host, controller.unwrap_or_default())).or_default().push(Test { id, ..test });
        }
        let longest = queues.values().map(Vec::len).max().unwrap_or(0);
        let expected_s = Some(longest as f64 * 2.0 * f64::from(order.phase_ms) / 1e3);
        progress.begin(&ProgressPhase { name, unit: "drives", total: asked.len(), expected_s });
        let turns: BTreeMap<&str, Semaphore> =
            asked.iter().map(|(host, _)| (host.as_str(), Semaphore::new(AT_ONCE))).collect();
        let done = Cell::new(0);
        let run = async |host: &str, tests: Vec<Test>| {
            let mut samples = Vec::new();
            for test in tests {
                let _turn = match turns.get(host) {
                    Some(turns) => turns.acquire().await.ok(),
                    None => None,
                };
                if order.until.is_some_and(|until| Instant::now() >= until) {
                    break;
                }
                samples.push(measure::alone(fleet, inventory, &test).await);
                done.set(done.get() + 1);
                progress.step(done.get(), host, None);
            }
            samples
        };
        let queues = queues.into_iter();
        let running =
            queues.map(|((host, _), tests)| Box::pin(run(host, tests)) as BoxedFuture<'_, _>).collect();
        let samples = join::all(running).await.into_iter().flatten().collect();
        progress.end();
        samples
    }

    fn plan(&self, drive: &str) -> DiskPlan {
        let phase = |random: bool| DiskPhase {
            random,
            reads: 100,
            block_bytes: if random { SMALL } else { LARGE },
            depth: DEPTH,
            threads: 1,
            direct: true,
            durable: Durable::Never,
            batch: 1,
        };
        DiskPlan {
            target: DiskTarget::Existing { path: PathBuf::from("/dev").join(drive) },
            phases: vec![phase(true), phase(false)],
            phase_ms: self.part.order.phase_ms,
            bytes_max: Some(self.part.order.bytes_max),
            requests_max: Some(self.requests_max),
            way: None,
        }
    }
}

/// The controller that a drive is at, where its host knows it.
fn controller(facts: &HostFacts, drive: &str) -> Option<String> {
    let key = format!("disk.{}.controller", drive.replace('.', "/"));
    facts.readings.get(&key).map(FactValue::to_string)
}
