//! `linerate lab`: hands over to `linerate-lab`, which is a program of its own because it breaks things.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use linerate_model::exit::ExitCode;

use linerate_fleet::programs::lab_program;

/// Run virtual clusters with injected faults (runs linerate-lab).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = "Example:\n  linerate lab up labs/casebook-a.toml")]
pub(super) struct Args {
    /// Arguments passed to linerate-lab
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    arguments: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    hand_over(args.arguments.iter().cloned())
}

/// Becomes `linerate-lab`; comes back only when that fails.
pub(super) fn hand_over(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let program = lab_program()?;
    let error = std::process::Command::new(&program).args(arguments).exec();
    anyhow::bail!("cannot start {}: {error}", program.display())
}
