//! `linerate check`: hands over to `linerate-node`, which checks the host that it runs on.

use std::ffi::OsString;

use linerate_model::exit::ExitCode;

use super::hand_over;

/// Check this host without load, for people, Slurm, Nagios (runs linerate-node).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = "Example:\n  linerate check --as nagios")]
pub(super) struct Args {
    /// Flags of linerate-node check
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAG")]
    flags: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    hand_over::to_node("check", &args.flags)
}
