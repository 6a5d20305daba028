//! `linerate demo`: hands over to `linerate-lab demo`.

use std::ffi::OsString;

use linerate_model::exit::ExitCode;

use super::hand_over;

/// Break a virtual cluster, diagnose it and fix it (needs the package linerate-lab).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = "Example:\n  linerate demo --seed 7")]
pub(super) struct Args {
    /// Arguments passed to linerate-lab demo
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    hand_over::to_lab(std::iter::once("demo".into()).chain(args.arguments.iter().cloned()))
}
