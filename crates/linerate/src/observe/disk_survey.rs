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
use tokio::time::Duration;

use super::begin::begin;
use super::context::Context;
use super::run::read_facts;
use super::{join, measure};
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_fleet::{Fleet, clock};
use linerate_store::StoreError;

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
    let gaps = observe(fleet, inventory, &mut snapshot, context.progress).await;
    for gap in gaps {
        context.store.add_gap(&snapshot.id, &gap)?;
        snapshot.gaps.push(gap);
    }
    context.store.add_facts(&snapshot.id, &snapshot.facts)?;
    let mut surveyor = Surveyor { fleet, inventory, order, requests_max: REQUESTS_MAX };
    let mut asked: Vec<(HostName, String)> = Vec::new();
    for (host, facts) in &snapshot.facts {
        let drives = disks::surveyed(facts, &order.devices);
        asked.extend(drives.into_iter().map(|drive| (host.clone(), drive)));
    }
    asked.retain(|(host, drive)| !disks::is_busy(&snapshot, host, drive));
    let mut name = "reading drives";
    while !asked.is_empty() {
        let mut samples = surveyor.measure(&snapshot, &asked, name, context.progress).await;
        context.store.add_samples(&snapshot.id, &samples)?;
        snapshot.samples.append(&mut samples);
        asked = disks::again(&disks::survey(&snapshot, &order.devices, order.promise));
        name = "reading drives in doubt once more";
        surveyor.requests_max = REQUESTS_MAX_AGAIN;
    }
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
    let reads = hosts.into_iter().map(|host| Box::pin(read(host)) as BoxedFuture<'_, _>).collect();
    let mut gaps = Vec::new();
    for (host, seen) in join::all(reads).await {
        match seen {
            Ok((facts, interval)) => {
                snapshot.facts.insert(host, facts);
                snapshot.disks.extend(interval);
            }
            Err(reason) => gaps.push(Gap { what: format!("facts of {host}").into(), reason }),
        }
    }
    progress.end();
    gaps
}

async fn of_host(
    fleet: &Fleet,
    inventory: &Inventory,
    host: &str,
) -> Result<(HostFacts, Option<DiskInterval>), String> {
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
    fleet: &'a Fleet,
    inventory: &'a Inventory,
    order: &'a DiskSurveyOrder,
    requests_max: u64,
}

impl Surveyor<'_> {
    /// Reads drives of all hosts at the same time: of a host one drive of a controller, and few controllers.
    async fn measure(
        &self,
        snapshot: &Snapshot,
        asked: &[(HostName, String)],
        name: &'static str,
        progress: &dyn Progress,
    ) -> Vec<Sample> {
        let mut queues: BTreeMap<(&str, String), Vec<Test>> = BTreeMap::new();
        for ((host, drive), number) in asked.iter().zip(1..) {
            let controller = snapshot.facts.get(host).and_then(|facts| controller(facts, drive));
            let id = u32::try_from(snapshot.samples.len()).unwrap_or(u32::MAX).saturating_add(number);
            let test =
                Test::new(host.clone(), host.clone(), Layer::Underlay, TestKind::from(self.plan(drive)));
            queues.entry((host, controller.unwrap_or_default())).or_default().push(Test { id, ..test });
        }
        let longest = queues.values().map(Vec::len).max().unwrap_or(0);
        let expected_s = Some(longest as f64 * 2.0 * f64::from(self.order.phase_ms) / 1e3);
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
                samples.push(measure::alone(self.fleet, self.inventory, &test).await);
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
            phase_ms: self.order.phase_ms,
            bytes_max: Some(self.order.bytes_max),
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
