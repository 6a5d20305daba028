//! A volume that `linerate disk plan --apply` built is undone, from the journal on the host,
//! and the drives are looked at again.

use linerate_model::exit::ExitCode;
use linerate_model::step::{DeviceRefusal, Step, given};
use linerate_model::verdict::{Verdict, VerdictItem};

use super::args::Args;
use crate::cli::documents::{DiskUndone, LeftDrives};
use crate::cli::hosts::Needs;
use crate::cli::{builds, out};
use linerate_fleet::Fleet;
use linerate_operator::build::{self, DISK};
use linerate_report::builds as shown;

/// Drives of a host that its build was given.
async fn drives(fleet: &Fleet, build: &str) -> anyhow::Result<Vec<(String, Vec<String>)>> {
    let mut all = Vec::new();
    for host in fleet.hosts() {
        let entries = build::list(fleet, &host).await?;
        let steps = entries.into_iter().filter(|entry| entry.build == build).flat_map(|entry| entry.steps);
        all.push((host, given(&steps.collect::<Vec<Step>>())));
    }
    Ok(all)
}

pub(super) fn run(args: &Args, name: &str) -> anyhow::Result<ExitCode> {
    let discard = args.discard.as_deref();
    let warning = format!(
        "the volume {name} is gone after this; where anything stands on it that the build did not make, it is left as it is"
    );
    builds::confirm(name, args.yes.as_deref(), discard, &warning)?;
    let build = format!("{DISK}{name}");
    args.hosts.with(Needs::Sessions, async |fleet, _| {
        let drives = drives(fleet, &build).await?;
        let taken = builds::take_back(fleet, &build, discard).await?;
        let mut held: Vec<(String, usize, Vec<DeviceRefusal>)> = Vec::new();
        for (host, devices) in drives.iter().filter(|(_, devices)| !devices.is_empty()) {
            if taken.failures.is_empty() {
                let refused = build::not_empty(fleet, host, devices).await?;
                held.push((host.clone(), devices.len(), refused));
            }
        }
        if args.json {
            let left = |(host, drives, not_empty): &'_ (String, usize, Vec<DeviceRefusal>)| LeftDrives {
                host: host.clone(),
                drives: *drives,
                not_empty: not_empty.clone(),
            };
            let drives = held.iter().map(left).collect();
            let failed = taken.failures.iter().map(|why| VerdictItem::stated(None, name, why.clone()));
            let document = DiskUndone { taken_back: &taken, drives };
            out::document(Verdict::stating(failed, Vec::new()), document)?;
        } else {
            taken.show()?;
            held.iter()
                .try_for_each(|(host, count, refused)| out::print(&shown::drives(host, *count, refused)))?;
        }
        Ok(taken.code())
    })
}
