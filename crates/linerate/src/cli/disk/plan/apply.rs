//! A plan built on its host: the drives are looked at, one of them is measured, the steps are done, the first
//! synchronisation is waited for, the volume is measured beside the plan, and its filesystem is made last.
//!
//! In: a plan and a host. Out: a volume with its journal, and a table. The filesystem comes last because only
//! a volume that holds nothing may be written by a measurement. What is broken off goes on with the same
//! command.

use linerate_model::exit::ExitCode;
use linerate_model::step::Step;
use linerate_model::verdict::VerdictItem;
use linerate_storage::drbd::On;
use linerate_storage::plan::{LayoutComparison, LayoutPlan};

use super::args::{Args, document};
use super::measure::{self, Place};
use super::sync;
use crate::cli::builds::stop;
use crate::cli::documents::DiskApplied;
use crate::cli::hosts::really;
use crate::cli::{out, progress};
use linerate_fleet::Fleet;
use linerate_fleet::progress::Progress;
use linerate_operator::build::{self, Begun, DISK, OnLoss};
use linerate_report::disk_built::{self, Built};
use linerate_report::heat::Style;

/// Drives that are named in a refusal.
const NAMED: usize = 8;

/// Refuses drives of which one is not empty, with all of them.
async fn all_empty(place: &Place<'_>, drives: &[String]) -> anyhow::Result<()> {
    let refused = build::not_empty(place.fleet, place.host, drives).await?;
    if refused.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = refused.iter().take(NAMED).map(|r| format!("{}: {}", r.device, r.why)).collect();
    let more = refused.len().saturating_sub(NAMED);
    anyhow::bail!(
        "{}: {} of {} drives cannot be taken: {}{}\nhint: nothing was written; name other drives, or empty these yourself after you looked at them",
        place.host,
        refused.len(),
        drives.len(),
        named.join("; "),
        if more > 0 { format!("; and {more} others") } else { String::new() }
    )
}

/// Builds the chosen layout.
pub(super) async fn apply(
    args: &Args,
    place: &Place<'_>,
    plan: &LayoutComparison,
    chosen: &LayoutPlan,
) -> anyhow::Result<ExitCode> {
    let (fleet, host) = (place.fleet, place.host);
    let build = format!("{DISK}{}", args.name);
    let steps: Vec<On> =
        chosen.steps.iter().map(|step| On { host: host.to_owned(), step: step.clone() }).collect();
    let drives = &chosen.devices;
    let Some(Begun { done, is_begun }) = build::begun_of(fleet, host, &build, &chosen.steps).await? else {
        anyhow::bail!(
            "{host} has a build `{build}` with other steps than these\nhint: `{}` takes it back, or take another --name",
            build::undo_command(&build, &fleet.arguments(&[host]))
        );
    };
    let warning = format!("{} drives of {host} become {}", drives.len(), chosen.device);
    really(&args.name, args.live.building.really.as_deref(), &warning)?;
    let progress = progress::start(false, args.json);
    let is_measured = !args.live.building.no_measure && !args.live.building.no_wait;
    let mut alone = None;
    if is_begun {
        out::note(&format!("{build} stands on {host}: it goes on behind step {done}"));
    } else {
        all_empty(place, drives).await?;
        if is_measured {
            alone = Some(measure::drive(args, place, plan, drives, progress.as_ref()).await?);
        }
    }
    // The filesystem has to wait for the measurement.
    let volume = chosen.steps.iter().take_while(|step| !matches!(step, Step::Filesystem(_))).count();
    if done < volume
        && let Err(stopped) =
            build::go_on(fleet, &build, &steps[..volume], done, OnLoss::TakeBack, progress.as_ref()).await
    {
        return Ok(stop(&stopped));
    }
    let mut built = Built {
        host: host.to_owned(),
        build: build.clone(),
        device: chosen.device.clone(),
        drives: drives.len(),
        class: plan.class.name,
        sync_s: None,
        run: None,
        rows: Vec::new(),
    };
    if !args.live.building.no_wait {
        built.sync_s = sync::wait(fleet, host, chosen, progress.as_ref()).await?;
    }
    // A filesystem that is there is not measured through.
    if is_measured && built.sync_s.is_some() && done <= volume {
        match measure::volume(args, place, (plan, chosen), progress.as_ref()).await {
            Ok(measured) => {
                let alone = alone.as_ref().map(|alone| &alone.end);
                let of = measured.volume.as_ref();
                built.rows = disk_built::rows(chosen.rates, chosen.shape, alone, &measured.end, of);
                built.run = Some(measured.run);
            }
            // The volume is there and whole.
            Err(error) => out::say_error(&error),
        }
    }
    let whole = finish(place, &build, &steps[volume.max(done)..], progress.as_ref()).await;
    show(args, place.fleet, &built, plan, chosen, &whole)?;
    Ok(match whole {
        Err(_) => ExitCode::CouldNotRun,
        Ok(()) if built.is_low() => ExitCode::Findings,
        Ok(()) if built.is_blind() || is_measured && built.rows.is_empty() => ExitCode::PartlyBlind,
        Ok(()) => ExitCode::Ok,
    })
}

/// The steps behind the volume. When one fails the volume stays: it may have taken hours to synchronise.
async fn finish(place: &Place<'_>, build: &str, steps: &[On], progress: &dyn Progress) -> Result<(), String> {
    for on in steps {
        progress.note(&on.step.operation().says());
        build::step(place.fleet, place.host, build, &on.step).await.map_err(|why| {
            format!(
                "{why}\nhint: the volume stands without it; fix that and give the same command again, which goes on here, or take all of it back: `{}`",
                build::undo_command(build, &place.fleet.arguments(&[place.host]))
            )
        })?;
    }
    Ok(())
}

fn show(
    args: &Args,
    fleet: &Fleet,
    built: &Built,
    plan: &LayoutComparison,
    chosen: &LayoutPlan,
    whole: &Result<(), String>,
) -> anyhow::Result<()> {
    let undo = build::undo_command(&built.build, &fleet.arguments(&[&built.host]));
    if args.json {
        let (planned, failed) = (document(plan, chosen), whole.as_ref().err().map(String::as_str));
        let mut summary = disk_built::verdict(built);
        if let Some(why) = failed {
            let item = VerdictItem::stated(Some(&built.host), &built.device, why.to_owned());
            summary.findings.insert(0, item);
        }
        out::document(summary, DiskApplied { planned, built, failed, undo: &undo })?;
    } else {
        out::print(&disk_built::text(built, Style::detect()))?;
        if whole.is_ok() {
            out::note(&format!("{} is there; `{undo}` takes it back", built.device));
        }
    }
    if let Err(why) = whole {
        out::say_error(&anyhow::anyhow!(why.clone()));
    }
    Ok(())
}
