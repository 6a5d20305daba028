//! `linerate disk survey`: all drives of all hosts beside their equals, by gentle reads, health and settings.

use std::time::Duration;

use linerate_diagnose::disks::{DrivePromise, DriveState, SurveyedDrive};
use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_model::inventory::Inventory;
use linerate_model::tuning::Tuning;

use super::super::via::Hosts;
use super::super::{open, out, progress, quantity};
use super::hosts::LoadedHosts;
use crate::cli::documents::SurveyedDrives;
use linerate_fleet::Fleet;
use linerate_operator::observe::context::Context;
use linerate_operator::observe::disk_survey::{self, DiskSurveyOrder, DiskSurveyed};
use linerate_report as report;
use linerate_store::Store;

/// Compare all drives of all hosts: read-only load, health, settings, one ranking against equals
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("inventory", |inventory| inventory.conflicts_with("via")),
    after_help = "Examples:\n  linerate disk survey store-1 store-2 store-3          all drives of three hosts, over ssh\n  linerate disk survey --inventory cluster.toml --promised 3000iops,125MB/s\n  linerate disk survey --device sdb --device sdc store-1\n\nNothing is written. Each drive is read for two tests of --time, at most --size each, around the cache; one\ndrive of a controller and two of a host at a time. A drive that other programs keep busy is not read. A slow\ndrive is measured three times before it is called slow."
)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    on: LoadedHosts,
    /// Survey devices of this name only; repeat for more. Without it: all drives, but no loop devices
    #[arg(short, long = "device", value_name = "NAME")]
    devices: Vec<String>,
    /// Performance promised of each drive, such as 3000iops,125MB/s
    #[arg(long, value_name = "RATES", value_parser = promise)]
    promised: Option<DrivePromise>,
    /// Time limit of each of the two tests of a drive
    #[arg(short, long, default_value = "1500ms", value_parser = quantity::duration)]
    time: Duration,
    /// Bytes read at most by each test
    #[arg(short, long, value_name = "BYTES", default_value = "256M", value_parser = quantity::file_size)]
    size: u64,
    /// Print all drives as JSON
    #[arg(long)]
    json: bool,
    /// Hide progress output
    #[arg(short, long)]
    quiet: bool,
}

/// Reads `3000iops`, `125MB/s`, or both with a comma between them.
pub(in crate::cli) fn promise(text: &str) -> Result<DrivePromise, String> {
    const HINT: &str = "such as 3000iops,125MB/s";
    let wrong = || format!("`{text}` is no promise\nhint: {HINT}");
    let mut promise = DrivePromise::default();
    for part in text.split(',').map(str::trim) {
        let number = |unit: &str, factor: f64| {
            let number = part.strip_suffix(unit)?.trim();
            number.parse::<f64>().ok().filter(|n| n.is_finite() && *n > 0.0).map(|n| n * factor)
        };
        let rates =
            [("MiB/s", f64::from(1 << 20)), ("GiB/s", f64::from(1 << 30)), ("MB/s", 1e6), ("GB/s", 1e9)];
        if let Some(rate) = number("iops", 1.0).or_else(|| number("IOPS", 1.0)) {
            promise.requests_per_s = Some(rate);
        } else if let Some(rate) = rates.iter().find_map(|(unit, factor)| number(unit, *factor)) {
            promise.bytes_per_s = Some(rate);
        } else {
            return Err(wrong());
        }
    }
    Ok(promise)
}

impl Args {
    fn order(&self) -> DiskSurveyOrder {
        let bare = |name: &String| name.strip_prefix("/dev/").unwrap_or(name).to_owned();
        DiskSurveyOrder {
            devices: self.devices.iter().map(bare).collect(),
            phase_ms: self.time.as_millis().clamp(1, 60_000) as u32,
            bytes_max: self.size,
            promise: self.promised.unwrap_or_default(),
            until: None,
        }
    }
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    open::runtime()?.block_on(async {
        let Some(Hosts { inventory, job, .. }) = args.on.open().await? else {
            return Ok(open::after_interrupt());
        };
        let done = survey_of(args, &inventory).await;
        Hosts::end(job).await;
        done
    })
}

async fn survey_of(args: &Args, inventory: &Inventory) -> anyhow::Result<ExitCode> {
    let progress = progress::start(args.quiet, args.json);
    let knowledge = open::knowledge_at_any_rate()?;
    let mut store = Store::open_default()?;
    let opened = Fleet::open_with_progress(inventory, |_| true, progress.as_ref());
    let Some(fleet) = open::unless_interrupted(opened).await else { return Ok(open::after_interrupt()) };
    fleet.notes.iter().for_each(|note| out::note(note));
    let tuning = Tuning::default();
    let mut context = Context { store: &mut store, progress: progress.as_ref(), tuning: &tuning };
    let order = args.order();
    let words: disk_survey::Words = (report::disk_survey::headline, report::disk_survey::sentences);
    let done = open::with_fleet(fleet, async |fleet| {
        anyhow::ensure!(!fleet.hosts().is_empty(), "no host can be surveyed: {}", Gap::reasons(&fleet.gaps));
        Ok(disk_survey::run(fleet, inventory, &order, &knowledge, words, &mut context).await?)
    });
    let Some(surveyed) = done.await? else { return Ok(open::after_interrupt()) };
    show(args, &surveyed, order.promise)?;
    Ok(code(&surveyed))
}

fn show(args: &Args, surveyed: &DiskSurveyed, promise: DrivePromise) -> anyhow::Result<()> {
    let DiskSurveyed { snapshot, diagnosis, drives } = surveyed;
    if args.json {
        let shown = SurveyedDrives {
            run: &snapshot.id,
            headline: &diagnosis.headline,
            promised: promise,
            drives,
            findings: &diagnosis.findings,
            gaps: &snapshot.gaps,
        };
        return out::document(report::verdict::of(snapshot, diagnosis), shown);
    }
    let verdict = report::text::verdict(diagnosis, &snapshot.inventory, report::heat::Style::detect());
    out::print(&format!("{}\n{verdict}", report::disk_survey::page(drives, promise)))?;
    for gap in &snapshot.gaps {
        out::note(&format!("not seen: {}: {}", gap.what, gap.reason));
    }
    out::note(&format!("run {}: kept", snapshot.id));
    Ok(())
}

fn code(surveyed: &DiskSurveyed) -> ExitCode {
    let drives = &surveyed.drives;
    if drives.is_empty() || drives.iter().all(|drive| matches!(drive.state, DriveState::Unknown(_))) {
        ExitCode::CouldNotRun
    } else if drives.iter().any(SurveyedDrive::is_finding) || !surveyed.diagnosis.findings.is_empty() {
        ExitCode::Findings
    } else if drives.iter().any(SurveyedDrive::is_unread) || !surveyed.snapshot.gaps.is_empty() {
        ExitCode::PartlyBlind
    } else {
        ExitCode::Ok
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promise_is_read_with_its_units() {
        let both = DrivePromise { requests_per_s: Some(3000.0), bytes_per_s: Some(125e6) };
        assert_eq!(promise("3000iops,125MB/s"), Ok(both));
        assert_eq!(promise("125MB/s, 3000 IOPS"), Ok(both));
        assert_eq!(promise("1GiB/s").unwrap().bytes_per_s, Some(f64::from(1 << 30)));
        for bad in ["", "3000", "fast", "-1iops", "0iops", "nanMB/s", "3000iops,", "125MB"] {
            assert!(promise(bad).is_err(), "{bad}");
        }
    }
}
