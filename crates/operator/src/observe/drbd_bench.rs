//! A replica beside its own disk and beside the transports under it, in turns: what each carries, so that it
//! is known where the difference is lost.
//!
//! What comes in: open sessions and what to load. What goes out: a run with its samples, the middle of the
//! rounds as figures, and a diagnosis of these alone. The peer is left only when that was asked for, as a
//! change with a journal: the node looks for it again by itself when its operator is gone.

use std::time::Duration;

use linerate_knowledge::Knowledge;
use linerate_model::change::Change;
use linerate_model::disk_load::{DiskResult, DiskTarget};
use linerate_model::drbd_bench::{BenchRequest, LocalDisk, PHASES};
use linerate_model::fact::{FactValue, Gap};
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{Inventory, Layer};
use linerate_model::kind::{DiskPlan, RttPlan, TcpPlan, TestKind, TestPlan};
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::{Snapshot, StorageFigure, StoragePattern, StorageSubject};
use tokio::time::Instant;

use super::begin::begin;
use super::context::{Context, with_progress};
use super::drbd;
use super::measure::{self, Patience};
use super::run::read_facts;
use linerate_fleet::Fleet;
use linerate_fleet::changes::FleetChanges;
use linerate_fleet::progress::ProgressPhase;
use linerate_store::StoreError;

/// Requests of the measurement of the way there and back.
const RTT_COUNT: u16 = 40;
/// Beyond the load itself: making ready, and a host that is slow to answer. Then the node looks for the peer
/// by itself.
const APART_SLACK: Duration = Duration::from_secs(60);
/// How long both sides may take to hold the same again.
const TOGETHER_LIMIT: Duration = Duration::from_secs(600);
/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A single stream is what DRBD sends its data on.
const STREAMS: u16 = 1;

/// Why a bench ended before it began, or in the middle.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A host.
    #[error("{0}")]
    Host(String),
}

/// The load on a disk.
fn plan(request: &BenchRequest, target: &DiskTarget) -> DiskPlan {
    DiskPlan {
        target: target.clone(),
        phases: PHASES.iter().map(|(_, phase)| *phase).collect(),
        phase_ms: request.time.as_millis().min(600_000) as u32,
        bytes_max: None,
        requests_max: None,
        way: None,
    }
}

fn test(request: &BenchRequest, round: u32, layer: Layer, kind: TestKind) -> Test {
    let to = if kind.plan().has_one_end() { &request.primary } else { &request.peer };
    Test { repeat: round as u16, ..Test::new(request.primary.clone(), to.clone(), layer, kind) }
}

/// Layers in which both hosts have an address.
fn layers(request: &BenchRequest, inventory: &Inventory) -> Vec<Layer> {
    let has = |layer: &Layer| {
        [&request.primary, &request.peer].iter().all(|h| inventory.endpoint(h, *layer).is_some())
    };
    [Layer::Underlay, Layer::Overlay].into_iter().filter(has).collect()
}

/// Time that all of it should take.
fn expected(request: &BenchRequest, layers: usize) -> Duration {
    let disk = plan(request, &request.replica).expected();
    let disks = if request.local == LocalDisk::Skipped { 1 } else { 2 };
    (disk * disks + (request.time + Duration::from_secs(1)) * layers as u32) * request.rounds
}

/// What a sample of a bench stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Replicated,
    Local,
    Transport(Layer),
}

/// The name of the transport that the resource uses: the layer in which the primary has its address.
fn variant(snapshot: &Snapshot, request: &BenchRequest) -> Option<Layer> {
    let key = format!("drbd.{}.address", request.resource.replace('.', "/"));
    let address = snapshot.facts.get(&request.primary)?.readings.get(&key)?.to_string();
    let is_it = |layer: &Layer| {
        let endpoint = snapshot.inventory.endpoint(&request.primary, *layer);
        endpoint.is_some_and(|e| {
            let own = e.address.to_string();
            address.starts_with(&format!("{own}:")) || address.starts_with(&format!("[{own}]:"))
        })
    };
    [Layer::Underlay, Layer::Overlay].into_iter().find(is_it)
}

/// Measures all of it.
///
/// # Errors
/// The store cannot be written, a host cannot be asked, or the peer could not be left or found again.
pub async fn run(
    fleet: &Fleet,
    inventory: &Inventory,
    request: &BenchRequest,
    knowledge: &Knowledge,
    context: &mut Context<'_>,
) -> Result<(Snapshot, Diagnosis), BenchError> {
    let mut snapshot = begin(fleet, inventory, context.store)?;
    for host in [&request.primary, &request.peer] {
        let wanted = ["drbd.", "disk.", "mount."].map(str::to_owned);
        match read_facts(fleet, inventory, host, &wanted).await {
            Ok(mut facts) => {
                facts.counters.clear();
                snapshot.facts.insert(host.clone(), facts);
            }
            Err(reason) => {
                let gap = Gap { what: format!("facts of {host}").into(), reason };
                context.store.add_gap(&snapshot.id, &gap)?;
                snapshot.gaps.push(gap);
            }
        }
    }
    context.store.add_facts(&snapshot.id, &snapshot.facts)?;
    let layers = layers(request, inventory);
    let all = rounds(fleet, inventory, request, &layers, (&snapshot.id, context)).await?;
    snapshot.storage = figures(&all, request, variant(&snapshot, request));
    snapshot.samples = all.into_iter().map(|(_, sample)| sample).collect();
    context.store.set_shell(&snapshot)?;
    // Of the transport one pair was measured, with nothing to compare it to: it is a figure here, and no
    // survey.
    let alone = Snapshot { samples: Vec::new(), ..snapshot.clone() };
    let diagnosis = linerate_report::words::diagnose(&alone, knowledge);
    context.store.finish(&snapshot, &diagnosis)?;
    Ok((snapshot, diagnosis))
}

async fn rounds(
    fleet: &Fleet,
    inventory: &Inventory,
    request: &BenchRequest,
    layers: &[Layer],
    (run, context): (&str, &mut Context<'_>),
) -> Result<Vec<(Place, Sample)>, BenchError> {
    let expected = expected(request, layers.len());
    let until = Instant::now() + expected;
    let total = request.rounds as usize;
    context.progress.begin(&ProgressPhase {
        name: "measuring",
        unit: "rounds",
        total,
        expected_s: Some(expected.as_secs_f64()),
    });
    let mut all: Vec<(Place, Sample)> = Vec::new();
    for round in 0..request.rounds {
        let progress = context.progress;
        // How long the copying of what was written without the peer takes, nobody knows: then nothing is said
        // of the time.
        let says = |what: &'static str| {
            move |left_s: f64| progress.step(round as usize, what, Some(left_s).filter(|s| *s >= 1.0))
        };
        let mut turns: Vec<(Place, Test)> = Vec::new();
        let disk = |target: &DiskTarget| TestKind::from(plan(request, target));
        turns.push((Place::Replicated, test(request, round, Layer::Underlay, disk(&request.replica))));
        for layer in layers {
            let stream =
                TestKind::from(TcpPlan { streams: STREAMS, duration_ms: request.time.as_millis() as u32 });
            for kind in [stream, TestKind::from(RttPlan { count: RTT_COUNT })] {
                turns.push((Place::Transport(*layer), test(request, round, *layer, kind)));
            }
        }
        match &request.local {
            LocalDisk::SameFile => {
                turns.push((Place::Local, test(request, round, Layer::Underlay, disk(&request.replica))));
            }
            LocalDisk::Beside(target) => {
                turns.push((Place::Local, test(request, round, Layer::Underlay, disk(target))));
            }
            LocalDisk::Skipped => {}
        }
        for (place, mut test) in turns {
            test.id = all.len() as u32 + 1;
            let sample = match place {
                Place::Replicated => {
                    with_progress(measure::alone(fleet, inventory, &test), until, says("replicated")).await
                }
                Place::Transport(_) => {
                    let running = measure::measure(fleet, inventory, &test, Patience::Usual);
                    with_progress(running, until, says("the transport alone")).await
                }
                Place::Local if request.local == LocalDisk::SameFile => with_progress(
                    apart(fleet, inventory, request, &test),
                    until,
                    says("the disk without its peer, and both alike again"),
                )
                .await
                .map_err(BenchError::Host)?,
                Place::Local => {
                    with_progress(measure::alone(fleet, inventory, &test), until, says("the disk beside"))
                        .await
                }
            };
            context.store.add_samples(run, std::slice::from_ref(&sample))?;
            all.push((place, sample));
        }
        context.progress.step(round as usize + 1, "", None);
    }
    context.progress.end();
    Ok(all)
}

/// Leaves the peer, measures, and finds the peer again; ends when both hold the same.
async fn apart(
    fleet: &Fleet,
    inventory: &Inventory,
    request: &BenchRequest,
    test: &Test,
) -> Result<Sample, String> {
    let trial = crate::run_id::new_id();
    let host = request.primary.as_str();
    let change = Change {
        host: host.to_owned(),
        key: format!("drbd.{}.peer", request.resource.replace('.', "/")),
        from: FactValue::Flag(true),
        to: FactValue::Flag(false),
    };
    let deadline =
        test.kind.plan().time_max().min(plan(request, &request.replica).expected() * 3) + APART_SLACK;
    let mut changes = FleetChanges::new(fleet, inventory);
    let left = changes.apply(host, &trial, &[change], deadline.as_secs() as u32).await;
    let sample = match &left {
        Ok(_) => Some(measure::alone(fleet, inventory, test).await),
        Err(_) => None,
    };
    // Also when it could not be left: what was half done is taken back.
    let found = changes.undo(host, &trial).await;
    changes.bye().await;
    let hint = format!(
        "hint: `linerate drbd status {}`; `drbdadm connect {}` on {host}",
        fleet.all_arguments(),
        request.resource
    );
    left.map_err(|e| format!("{host}: {} could not leave its peer: {}", request.resource, e.error))?;
    found.map_err(|e| {
        format!("{host}: {} does not look for its peer again: {}\n{hint}", request.resource, e.error)
    })?;
    together(fleet, request).await?;
    sample.ok_or_else(|| format!("{host}: nothing was measured"))
}

/// Waits until both sides are connected and nothing is copied any more.
async fn together(fleet: &Fleet, request: &BenchRequest) -> Result<(), String> {
    let begun = Instant::now();
    loop {
        let now = drbd::look(fleet).await;
        let sides: Vec<_> = now.all.iter().filter(|r| r.resource == request.resource).collect();
        let is_well = |side: &&linerate_model::drbd::Replica| {
            side.is_connected()
                && side.is_up_to_date()
                && side.peer_volumes().all(|v| v.replication == "Established" && v.disk == "UpToDate")
        };
        if sides.len() >= 2 && sides.iter().all(is_well) {
            return Ok(());
        }
        if begun.elapsed() > TOGETHER_LIMIT {
            return Err(format!(
                "{} of {}: both sides are not together again after {} s\nhint: `linerate drbd status {}` shows how far they are; nothing is left to undo",
                request.resource,
                request.primary,
                TOGETHER_LIMIT.as_secs(),
                fleet.all_arguments()
            ));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn measured(sample: &Sample) -> Option<&Measurement> {
    match &sample.outcome {
        Outcome::Measured(m) => Some(m),
        _ => None,
    }
}

/// The phases of a disk that may be used.
fn results(sample: &Sample) -> Vec<&DiskResult> {
    let end = measured(sample).and_then(|m| m.tx.as_ref()?.disk.as_deref());
    end.map_or(Vec::new(), |end| end.phases.iter().filter(|p| p.is_evidence()).collect())
}

/// The middle of the rounds of each test, as figures.
fn figures(all: &[(Place, Sample)], request: &BenchRequest, uses: Option<Layer>) -> Vec<StorageFigure> {
    let mut figures = Vec::new();
    let named = |layer: Layer| layer.to_string();
    let uses = uses.map_or_else(|| "its own network".to_owned(), named);
    for (place, what, name) in [
        (Place::Local, StorageSubject::LocalDisk, String::new()),
        (Place::Replicated, StorageSubject::Replicated, uses),
    ] {
        let of: Vec<&DiskResult> =
            all.iter().filter(|(p, _)| *p == place).flat_map(|(_, s)| results(s)).collect();
        for (pattern, phase) in PHASES {
            let of: Vec<&&DiskResult> = of.iter().filter(|r| r.phase == phase).collect();
            let Some(bytes_per_s) = middle(of.iter().map(|r| r.bytes_per_s())) else { continue };
            let wait = of.iter().filter_map(|r| r.took_ns().quantile(0.5)).map(|ns| ns as f64 / 1e6);
            figures.push(StorageFigure {
                host: request.primary.clone(),
                what,
                variant: name.clone(),
                pattern,
                bytes_per_s,
                requests_per_s: middle(of.iter().map(|r| r.requests_per_s())),
                wait_ms: middle(wait),
                ..StorageFigure::default()
            });
        }
    }
    for layer in [Layer::Underlay, Layer::Overlay] {
        let of = |read: fn(&Measurement) -> Option<f64>| {
            let ours = all.iter().filter(|(p, _)| *p == Place::Transport(layer));
            middle(ours.filter_map(|(_, s)| measured(s)).filter_map(read))
        };
        let figure = |pattern| StorageFigure {
            host: request.primary.clone(),
            what: StorageSubject::Transport,
            variant: named(layer),
            pattern,
            ..StorageFigure::default()
        };
        if let Some(bps) = of(|m| m.throughput_bps) {
            figures.push(StorageFigure { bytes_per_s: bps / 8.0, ..figure(StoragePattern::Stream) });
        }
        if let Some(us) = of(|m| m.rtt_idle_us) {
            figures.push(StorageFigure { wait_ms: Some(us / 1e3), ..figure(StoragePattern::RoundTrip) });
        }
    }
    figures
}

fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = values.get(half).copied()?;
    if values.len() % 2 == 1 { Some(upper) } else { Some(f64::midpoint(*values.get(half - 1)?, upper)) }
}
