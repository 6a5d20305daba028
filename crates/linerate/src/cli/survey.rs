//! `linerate survey`: measure all pairs, read all settings, name the culprit.

use std::path::PathBuf;
use std::time::Duration;

use linerate_diagnose::disks::{self, SurveyedDrive};
use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_model::inventory::Inventory;

use super::place::{self, End};
use super::targets::{Targets, Ways};
use super::via::{self, Hosts, Via};
use super::{open, out, progress, quantity};
use linerate_fleet::Fleet;
use linerate_fleet::progress::Progress;
use linerate_operator::observe::run::{SurveyRequest, survey};
use linerate_report as report;
use linerate_store::Store;

/// Measure every pair against its ceiling, read every setting, name the root cause.
#[derive(Debug, clap::Args)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
#[command(
    after_help = "Examples:\n  linerate survey arc-1 arc-2 ops@arc-3\n  linerate survey -i cluster.toml\n  linerate survey -i cluster.toml --time 1m --json > result.json\n  linerate survey -i cluster.toml --gentle             at most 10 % of each link\n  linerate survey --via slurm -p compute -N 16 --time 5m\n  linerate survey --disks store-1 store-2 store-3    the drives too, after the pairs",
    mut_arg("hosts", |hosts| hosts.conflicts_with("via")),
    mut_arg("inventory", |inventory| inventory.conflicts_with("via"))
)]
pub(super) struct Args {
    #[command(flatten)]
    targets: Targets,
    #[command(flatten)]
    ways: Ways,
    #[command(flatten)]
    via: Via,
    /// Time budget, e.g. 30s, 5m, 1h; skipped measurements are reported
    #[arg(short, long, alias = "budget", value_parser = quantity::duration)]
    time: Option<Duration>,
    /// Use at most this share of each link, for clusters in production [default: 10 %]
    #[arg(long, value_name = "PERCENT", value_parser = share, num_args = 0..=1, require_equals = true, default_missing_value = "10")]
    gentle: Option<f64>,
    /// Also read the drives of all hosts, gently, and compare each with its equals
    #[arg(long)]
    disks: bool,
    /// Seed; repeats the choice of pairs of an earlier survey
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Parent run of the new run
    #[arg(long, value_name = "RUN")]
    parent: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Also write the snapshot to this file
    #[arg(long, value_name = "FILE")]
    snapshot: Option<PathBuf>,
    /// Hide progress output
    #[arg(short, long)]
    quiet: bool,
    /// Print everything: evidence, other causes, advice, unused tests, all that could not be seen
    #[arg(short, long, conflicts_with = "json")]
    verbose: bool,
}

/// Reads `10` or `10%` as a share.
fn share(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches(['%', ' ']).parse::<f64>().ok();
    let percent = number.filter(|percent| (0.1..=100.0).contains(percent));
    Ok(percent.ok_or_else(|| format!("`{text}` is no share of a link\nhint: 0.1 to 100 percent"))? / 100.0)
}

/// Hosts that are named when none answered.
const HOSTS_NAMED: usize = 10;

/// Opens the sessions, settles how the hosts are measured and works with them; ends them in every case.
async fn on<T>(
    ways: &Ways,
    inventory: &mut Inventory,
    ends: &[End],
    needs_no_pair: bool,
    progress: &dyn Progress,
    work: impl AsyncFnOnce(&Fleet, &Inventory) -> anyhow::Result<T>,
) -> anyhow::Result<Option<T>> {
    ways.without_sudo(inventory);
    anyhow::ensure!(
        inventory.hosts.len() != 1 || needs_no_pair,
        "one host is no pair: a survey measures between at least two\nhint: for one host: `linerate measure tcp local`, `linerate measure disk`, `linerate facts local`"
    );
    let opened = open::unless_interrupted(async {
        let mut fleet = Fleet::open_with_progress(inventory, |_| true, progress).await;
        if !fleet.hosts().is_empty() && ends.is_empty() {
            ways.settle(&mut fleet, inventory).await;
        }
        fleet
    });
    let Some(fleet) = opened.await else { return Ok(None) };
    if fleet.hosts().is_empty() {
        return Err(none_answered(&fleet.gaps));
    }
    open::with_fleet(fleet, async |fleet| {
        if !ends.is_empty() {
            *inventory = place::with_endpoints(fleet, inventory, ends).await?;
        }
        work(fleet, inventory).await
    })
    .await
}

/// Why there is no host: of several each on a line of its own, with its hint.
fn none_answered(gaps: &[Gap]) -> anyhow::Error {
    if let [only] = gaps {
        return anyhow::anyhow!("no host answered: {}: {}", only.what, only.reason);
    }
    gaps.iter().take(HOSTS_NAMED).for_each(|gap| out::note(&format!("{}: {}", gap.what, gap.reason)));
    anyhow::anyhow!("no host answered, {} were asked", gaps.len())
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(args.quiet, args.json);
    let named = if args.via.is_asked() { None } else { Some(args.targets.chosen()?) };
    let ends = named.as_ref().filter(|chosen| chosen.has_netns()).map(|chosen| chosen.ends.clone());
    let ends = ends.unwrap_or_default();
    let knowledge = open::knowledge()?;
    let mut store = Store::open_default()?;
    let parent = match &args.parent {
        Some(id) => Some(store.find_run(Some(id))?.id),
        None => None,
    };
    let surveyed = open::runtime()?.block_on(async {
        let hosts = match named {
            Some(chosen) => Some(Hosts::from(chosen)),
            None => via::hosts(&args.via, args.time).await?,
        };
        let Some(Hosts { mut inventory, path, job }) = hosts else { return Ok(None) };
        let surveyed =
            on(&args.ways, &mut inventory, &ends, args.disks, progress.as_ref(), async |fleet, inventory| {
                let order = SurveyRequest {
                    inventory,
                    inventory_path: path,
                    parent,
                    budget: args.time,
                    seed: args.seed,
                    share: args.gentle,
                    drives: args.disks,
                };
                Ok(survey(&order, fleet, &mut store, &knowledge, progress.as_ref()).await?)
            })
            .await;
        Hosts::end(job).await;
        surveyed
    })?;
    progress.end();
    let Some((snapshot, diagnosis)) = surveyed else { return Ok(open::after_interrupt()) };
    if let Some(path) = &args.snapshot {
        // A very large run keeps less in memory than in the store.
        let stored = (!snapshot.id.is_empty()).then(|| store.load_snapshot(&snapshot.id)).transpose()?;
        std::fs::write(path, serde_json::to_vec_pretty(stored.as_ref().unwrap_or(&snapshot))?)
            .map_err(|e| anyhow::anyhow!("cannot write {}: {e}", path.display()))?;
    }
    if args.json {
        let path = args.snapshot.as_ref().map(|p| p.display().to_string());
        out::print(&report::json::page(&snapshot, &diagnosis, path.as_deref()))?;
    } else {
        open::print_verdict(&snapshot, &diagnosis, args.verbose, "linerate diagnose -v")?;
        if !snapshot.id.is_empty() {
            out::note(&format!("run {0}; all of it: linerate show {0}", snapshot.id));
        }
    }
    Ok(code(&disks::surveyed_in(&snapshot), open::verdict_code(&snapshot, &diagnosis)))
}

/// The code of a survey with drives, from that of its pairs.
fn code(drives: &[SurveyedDrive], of_pairs: ExitCode) -> ExitCode {
    if drives.iter().any(SurveyedDrive::is_finding) {
        ExitCode::Findings
    } else if of_pairs == ExitCode::Ok && drives.iter().any(SurveyedDrive::is_unread) {
        ExitCode::PartlyBlind
    } else {
        of_pairs
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::{FactValue, HostFacts};
    use linerate_model::snapshot::Snapshot;

    use super::*;

    #[test]
    fn a_blamed_drive_is_a_finding_and_one_that_was_not_read_leaves_the_survey_partly_blind() {
        let key = |name: &str| format!("disk.sda.{name}");
        let mut facts = HostFacts::default();
        facts.readings.insert(key("size_bytes"), FactValue::Int(1 << 40));
        let mut snapshot = Snapshot::default();
        snapshot.facts.insert("a".to_owned(), facts);
        let drives = |snapshot: &Snapshot| disks::survey(snapshot, &[], disks::DrivePromise::default());
        assert_eq!(code(&[], ExitCode::Ok), ExitCode::Ok);
        assert_eq!(code(&drives(&snapshot), ExitCode::Ok), ExitCode::PartlyBlind);
        assert_eq!(code(&drives(&snapshot), ExitCode::Findings), ExitCode::Findings);
        let facts = snapshot.facts.get_mut("a").unwrap();
        facts.readings.insert("disk_health.sda.media_errors".to_owned(), FactValue::Int(3));
        assert_eq!(code(&drives(&snapshot), ExitCode::Ok), ExitCode::Findings);
    }
}
