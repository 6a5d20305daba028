//! `linerate profile …`: published sets of settings: listed, shown, compared with hosts, and tried group by
//! group. One file per command that reaches hosts beside this one.

mod diff;
pub(in crate::cli) mod named;
mod tried;

use linerate_model::exit::ExitCode;

use super::documents::{ProfileList, ProfileShown};
use super::out;
pub(in crate::cli) use diff::read as read_facts_of;
use linerate_report as report;

/// List tuning profiles, compare them with hosts, try them group by group
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  linerate profile                                          list all\n  linerate profile show esnet-transfer-100g                 values, reasons, sources\n  linerate profile diff esnet-transfer-100g dtn-1 dtn-2     compare with what is in force\n  linerate profile try esnet-transfer-100g --on dtn-1 dtn-2\n\nA NAME that ends in .toml is a file of your own."
)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List all profiles
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a profile: each value with its conditions, reason and source
    Show {
        /// Name of the profile
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Diff(diff::Args),
    Try(Box<tried::Args>),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match &args.action {
        None => list(args.json),
        Some(Action::List { json }) => list(*json),
        Some(Action::Show { name, json }) => show(name, *json),
        Some(Action::Diff(args)) => diff::run(args),
        Some(Action::Try(args)) => tried::run(args),
    }
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let profiles = named::builtin()?;
    if json {
        out::listing(ProfileList { profiles: profiles.iter().collect() })?;
    } else {
        out::print(&report::profile::list(profiles.iter(), report::heat::Style::detect()))?;
    }
    Ok(ExitCode::Ok)
}

fn show(name: &str, json: bool) -> anyhow::Result<ExitCode> {
    let profile = named::find(name)?;
    if json {
        out::listing(ProfileShown { profile: &profile })?;
    } else {
        out::print(&report::profile::show(&profile, report::heat::Style::detect()))?;
    }
    Ok(ExitCode::Ok)
}
