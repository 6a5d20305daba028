//! `linerate check install`: what a host needs to check itself is shown, and with `--yes` written, through
//! the journal of the host. What was installed before is undone first, so that one undo gives back what was
//! there.

use std::collections::BTreeMap;
use std::path::PathBuf;

use linerate_fleet::Fleet;
use linerate_fleet::progress::Progress;
use linerate_fleet::slurm::Scontrol;
use linerate_kept::KeptSet;
use linerate_model::drift::KeptSetting;
use linerate_model::exit::ExitCode;
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::printable::{lines_of_error, one_line};
use linerate_model::step::{HostQuery, Step};
use linerate_report::steps;
use linerate_storage::drbd::On;

use super::files::{self, Runner};
use crate::cli::drift::{ChosenProfiles, KeptLocation};
use crate::cli::hosts::{Hosts, Needs};
use crate::cli::{builds, out, progress};
use linerate_operator::build::{self, CHECK, OnLoss};
use linerate_operator::observe::run::read_facts;

/// Have hosts check themselves: by a timer, or by Slurm (dry run).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate check install arc-1 arc-2          show every file\n  linerate check install --yes arc-1 arc-2    write them\n  linerate check install --slurm --yes -i cluster.toml\n\nNothing listens on a network. The kept set is handed over with it: install again after it changed."
)]
pub(super) struct Args {
    #[command(flatten)]
    hosts: Hosts,
    /// For Slurm's HealthCheckProgram instead of a timer; slurmd waits for the kept set after a boot
    #[arg(long)]
    slurm: bool,
    /// Kept set to compare; defaults to kept.toml beside the inventory, else the one in PostgreSQL
    #[arg(long, value_name = "FILE")]
    kept: Option<PathBuf>,
    /// Act; without it nothing is written
    #[arg(long)]
    yes: bool,
}

/// What is to be done on a host.
struct Plan {
    host: HostName,
    steps: Vec<Step>,
    /// What is installed.
    old: Option<Vec<Step>>,
}

impl Plan {
    fn is_done(&self) -> bool {
        self.old.as_ref() == Some(&self.steps)
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runner = if args.slurm { Runner::Slurm } else { Runner::Timer };
    let slurm_conf = args.slurm.then(slurm_conf);
    args.hosts.with(Needs::Sessions, async |fleet, inventory| {
        let named = args.kept.as_deref();
        let location = KeptLocation::find(named, args.hosts.given(), &inventory.name)?;
        let kept = match named {
            Some(_) => Some(location.load()?),
            None => location.load_if_any()?,
        };
        if let Some(set) = &kept {
            out::note(&format!("kept settings: {}", set.file));
        }
        let (mut plans, mut code) = (Vec::new(), ExitCode::Ok);
        for host in &inventory.hosts {
            match plan(fleet, inventory, &host.name, runner, kept.as_ref()).await {
                Ok(plan) => plans.push(plan),
                Err(error) => {
                    out::say_error(&error);
                    code = ExitCode::CouldNotRun;
                }
            }
        }
        show(&plans)?;
        if let Some(text) = slurm_conf.as_ref().filter(|_| !plans.is_empty()) {
            out::print(text)?;
        }
        plans.retain(|plan| !plan.is_done());
        let hosts: Vec<&str> = plans.iter().map(|plan| plan.host.as_str()).collect();
        let words = fleet.arguments(&hosts);
        if !args.yes {
            if !hosts.is_empty() {
                out::note("dry run: nothing was written; --yes writes it");
            }
            return Ok(code);
        }
        let progress = progress::start(false, false);
        let mut installed = false;
        for plan in &plans {
            match install(fleet, plan, progress.as_ref()).await {
                ExitCode::Ok => installed = true,
                failed => code = worst(code, failed),
            }
        }
        if installed {
            out::note(&format!("installed; `{}` undoes it", build::undo_command(CHECK, &words)));
        }
        Ok(code)
    })
}

/// What is to be done to `slurm.conf`, which no host has for itself.
fn slurm_conf() -> String {
    let read = Scontrol::new(None).map_err(anyhow::Error::from).and_then(|mut slurm| Ok(slurm.config()?));
    let (in_force, unknown) = match read {
        Ok(in_force) => (in_force, String::new()),
        Err(error) => {
            let why = lines_of_error(&error.to_string());
            (BTreeMap::new(), format!("what slurm.conf has is not known: {why}\n"))
        }
    };
    let diff = files::slurm_conf(&in_force);
    if diff.is_empty() {
        return "slurm.conf needs no change: slurmd runs the checks".to_owned();
    }
    let other = files::other_program(&in_force).map_or_else(String::new, |other| {
        format!(
            "{} is not run any more; call it from /etc/linerate/checks.d, or leave --slurm out\n",
            one_line(other)
        )
    });
    format!(
        "{unknown}by hand, where slurm.conf is managed (one file for the controller and all nodes), then \
         `scontrol reconfigure`:\n{diff}{other}"
    )
}

/// The larger code is about what is left on hosts.
fn worst(one: ExitCode, other: ExitCode) -> ExitCode {
    if one as u8 > other as u8 { one } else { other }
}

async fn plan(
    fleet: &Fleet,
    inventory: &Inventory,
    host: &HostName,
    runner: Runner,
    kept: Option<&KeptSet>,
) -> anyhow::Result<Plan> {
    build::knows_checks(fleet, host)?;
    anyhow::ensure!(
        fleet.link(host)?.hello().root,
        "{host}: the node program is not root there, and cannot install checks\nhint: log in as root, or leave --no-sudo out"
    );
    let sha256 = build::look(fleet, host, HostQuery::Program).await?.out;
    let kept = match kept {
        Some(set) => of_host(fleet, inventory, host, set).await?,
        None => Vec::new(),
    };
    let entries = build::list(fleet, host).await?;
    let old = entries.into_iter().find(|entry| entry.build == CHECK).map(|entry| entry.steps);
    Ok(Plan { host: host.clone(), steps: files::steps(runner, &sha256, &kept), old })
}

async fn of_host(
    fleet: &Fleet,
    inventory: &Inventory,
    host: &HostName,
    set: &KeptSet,
) -> anyhow::Result<Vec<KeptSetting>> {
    let profiles = ChosenProfiles(inventory);
    let prefixes = linerate_kept::prefixes(set, inventory, host, &profiles);
    if prefixes.is_empty() {
        return Ok(Vec::new());
    }
    let facts = read_facts(fleet, inventory, host, &prefixes).await.map_err(anyhow::Error::msg)?;
    Ok(linerate_kept::of_host(set, inventory, host, Some(&facts), &profiles)?)
}

/// Every file and command; hosts with the same ones stand together.
fn show(plans: &[Plan]) -> anyhow::Result<()> {
    let mut groups: Vec<(Vec<&str>, &Plan)> = Vec::new();
    for plan in plans {
        match groups.iter_mut().find(|(_, first)| first.steps == plan.steps && first.old == plan.old) {
            Some((hosts, _)) => hosts.push(&plan.host),
            None => groups.push((vec![&plan.host], plan)),
        }
    }
    for (hosts, plan) in groups {
        let state = match (&plan.old, plan.is_done()) {
            (_, true) => ": installed already",
            (Some(_), false) => ": what was installed is undone first",
            (None, false) => ":",
        };
        out::print(&format!("{}{state}\n", hosts.join(", ")))?;
        if !plan.is_done() {
            out::print(&steps::text(&plan.steps))?;
        }
    }
    Ok(())
}

async fn install(fleet: &Fleet, plan: &Plan, progress: &dyn Progress) -> ExitCode {
    if plan.old.is_some()
        && let Err(error) = build::undo(fleet, &plan.host, CHECK, false).await
    {
        out::say_error(&error.into());
        return ExitCode::RollbackFailed;
    }
    let on = |step: &Step| On { host: plan.host.clone(), step: step.clone() };
    let steps: Vec<On> = plan.steps.iter().map(on).collect();
    match build::run(fleet, CHECK, &steps, OnLoss::TakeBack, progress).await {
        Ok(()) => ExitCode::Ok,
        Err(stopped) => builds::stop(&stopped),
    }
}
