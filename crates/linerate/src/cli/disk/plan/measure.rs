//! One drive before a volume is built of it, and the volume before it gets a filesystem: measured by the load
//! of `linerate measure disk`, which writes only what holds nothing and leaves it so.
//!
//! In: the place and the drives of a plan. Out: four figures each. Both get as many bytes and requests per
//! drive, so that they can be compared.

use std::collections::BTreeSet;

use linerate_diagnose::disks::{self, VolumeMembers};
use linerate_model::disk_load::{DiskEnd, DiskPhase, DiskTarget, Durable};
use linerate_model::fact::HostFacts;
use linerate_model::inventory::Inventory;
use linerate_model::kind::DiskPlan;
use linerate_model::sample::Outcome;
use linerate_model::tuning::Tuning;
use linerate_storage::plan::{DriveKind, LayoutComparison, LayoutPlan};

use super::args::Args;
use linerate_fleet::Fleet;
use linerate_fleet::progress::Progress;
use linerate_operator::observe::bench;
use linerate_operator::observe::context::Context;
use linerate_operator::observe::run::read_facts;
use linerate_store::Store;

/// Of each drive a quarter is used, but no more than that: longer ways of the heads change little, and
/// filling takes time.
const BYTES_MAX: u64 = 1 << 30;
/// Of a small drive a load needs that much.
const BYTES_MIN: u64 = 4 << 20;
/// Requests under way at each drive with rotating discs: more gain little (as `disks/ceiling.rs` has it);
/// others work on many at a time.
const ROTATING_DEPTH: u64 = 4;
const SOLID_DEPTH: u64 = 32;
/// In a row: MiB under way, for one drive and for each drive of a volume.
const ROW_DEPTH: u64 = 8;
/// Random requests a second that one thread is trusted with.
const THREAD_PER_S: f64 = 200_000.0;
const THREADS_MAX: f64 = 16.0;
/// Most that a load keeps under way.
const OUTSTANDING_MAX: u64 = 4096;

/// Where it is built.
pub(super) struct Place<'a> {
    pub(super) fleet: &'a Fleet,
    pub(super) inventory: &'a Inventory,
    pub(super) host: &'a str,
}

/// What was measured.
pub(super) struct Measured {
    pub(super) end: DiskEnd,
    /// What the volume is made of, by the facts of the host.
    pub(super) volume: Option<VolumeMembers>,
    /// Run in the store.
    pub(super) run: String,
}

/// The four tests for so many drives.
fn phases(plan: &LayoutComparison, drives: u64) -> Vec<DiskPhase> {
    let is_rotating = matches!(plan.class.name, DriveKind::Hdd | DriveKind::Sas);
    let each = if is_rotating { ROTATING_DEPTH } else { SOLID_DEPTH };
    let threads = (plan.class.requests_per_s * drives as f64 / THREAD_PER_S).ceil().clamp(1.0, THREADS_MAX);
    let phase = |random: bool, reads: u8| {
        let (threads, block_bytes, under_way) = if random {
            (threads as u64, 4 << 10, each * drives)
        } else {
            (1, 1 << 20, ROW_DEPTH.max(drives))
        };
        let depth = (under_way.min(OUTSTANDING_MAX) / threads).max(1);
        DiskPhase {
            random,
            reads,
            block_bytes,
            depth: u16::try_from(depth).unwrap_or(u16::MAX),
            threads: u16::try_from(threads).unwrap_or(1),
            direct: true,
            durable: Durable::Never,
            batch: 1,
        }
    };
    [(true, 100), (true, 0), (false, 100), (false, 0)].map(|(random, reads)| phase(random, reads)).to_vec()
}

/// Bytes of each drive.
fn bytes_each(plan: &LayoutComparison) -> u64 {
    (plan.drive_bytes / 4).clamp(BYTES_MIN, BYTES_MAX) >> 20 << 20
}

fn kernel_name(path: &str) -> &str {
    path.strip_prefix("/dev/").unwrap_or(path)
}

/// The first drive alone.
pub(super) async fn drive(
    args: &Args,
    place: &Place<'_>,
    plan: &LayoutComparison,
    drives: &[String],
    progress: &dyn Progress,
) -> anyhow::Result<Measured> {
    let path = drives.first().ok_or_else(|| anyhow::anyhow!("no drive"))?;
    progress.note(&format!("measuring {path} alone first"));
    run(args, place, (kernel_name(path), bytes_each(plan)), phases(plan, 1), progress).await
}

/// The volume over the drives.
pub(super) async fn volume(
    args: &Args,
    place: &Place<'_>,
    (plan, chosen): (&LayoutComparison, &LayoutPlan),
    progress: &dyn Progress,
) -> anyhow::Result<Measured> {
    let drives = &chosen.devices;
    let wanted = ["disk.".to_owned()];
    let facts = read_facts(place.fleet, place.inventory, place.host, &wanted).await;
    let facts = facts.map_err(|reason| anyhow::anyhow!(reason))?;
    let name = over(&facts, drives).ok_or_else(|| {
        anyhow::anyhow!(
            "{} shows no volume over these {} drives\nhint: `linerate disk watch --all {}` shows what stands on what",
            place.host,
            drives.len(),
            place.host
        )
    })?;
    // A volume that takes a part of its drives is used by half of it at most.
    let bytes = (chosen.shape.data_drives() * bytes_each(plan)).min(chosen.capacity_bytes / 2) >> 20 << 20;
    run(args, place, (&name, bytes), phases(plan, chosen.shape.drives), progress).await
}

/// The device that stands over exactly these drives, and under nothing else.
fn over(facts: &HostFacts, drives: &[String]) -> Option<String> {
    let layout = disks::layout(facts);
    let wanted: BTreeSet<&str> = drives.iter().map(|path| kernel_name(path)).collect();
    let found = layout.tops().find(|top| !top.on.is_empty() && layout.drives_of(&top.device) == wanted);
    found.map(|top| top.device.clone())
}

async fn run(
    args: &Args,
    place: &Place<'_>,
    (name, bytes): (&str, u64),
    phases: Vec<DiskPhase>,
    progress: &dyn Progress,
) -> anyhow::Result<Measured> {
    let plan = DiskPlan {
        target: DiskTarget::Empty { path: format!("/dev/{name}").into(), really: name.to_owned(), bytes },
        phases,
        phase_ms: u32::try_from(args.live.building.time.as_millis()).unwrap_or(u32::MAX).min(3_600_000),
        bytes_max: None,
        requests_max: None,
        way: None,
    };
    let mut store = Store::open_default()?;
    let tuning = Tuning::default();
    let mut context = Context { store: &mut store, progress, tuning: &tuning };
    let (snapshot, _) = bench::run(
        place.fleet,
        place.inventory,
        &plan,
        linerate_report::single::disks_headline,
        &mut context,
    )
    .await?;
    let sample = snapshot.samples.into_iter().next();
    let outcome = sample.map(|sample| sample.outcome);
    let report = match outcome {
        Some(Outcome::Measured(measured)) => measured.tx,
        Some(Outcome::NothingThrough { reason } | Outcome::Invalid { reason } | Outcome::Gap { reason }) => {
            anyhow::bail!("{name} on {} was not measured: {reason}", place.host)
        }
        None => None,
    };
    let report = report.ok_or_else(|| anyhow::anyhow!("{name} on {} was not measured", place.host))?;
    if let Some(why) = &report.stopped {
        anyhow::bail!("{name} on {} was not measured: {why}", place.host);
    }
    let end = report.disk.ok_or_else(|| anyhow::anyhow!("{name} on {} was not measured", place.host))?;
    let facts = snapshot.facts.get(place.host);
    let volume = facts.and_then(|facts| disks::volume(&disks::layout(facts), facts, &end.device));
    let volume = volume.map(|volume| volume.under(&end.filesystem));
    Ok(Measured { end: *end, volume, run: snapshot.id })
}
