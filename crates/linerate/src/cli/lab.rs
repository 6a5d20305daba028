//! `linerate lab`: hands over to `linerate-lab`, which is a program of its own because it breaks things.

use std::ffi::OsString;

use linerate_model::exit::ExitCode;

use super::hand_over;

/// Run virtual clusters with injected faults (runs linerate-lab).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = "Example:\n  linerate lab up labs/casebook-a.toml")]
pub(super) struct Args {
    /// Arguments passed to linerate-lab
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    hand_over::to_lab(args.arguments.iter().cloned())
}
