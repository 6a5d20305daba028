//! `linerate check`: hands over to `linerate-node`, which checks the host that it runs on.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use linerate_model::exit::ExitCode;

use linerate_fleet::programs::OwnNode;

/// Check this host without load, for people, Slurm, Nagios (runs linerate-node).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = "Example:\n  linerate check --as nagios")]
pub(super) struct Args {
    /// Flags of linerate-node check
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAG")]
    flags: Vec<OsString>,
}

/// Becomes `linerate-node check`; comes back only when that fails.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let node = OwnNode::find()?;
    let mut command = std::process::Command::new(&node.path);
    let error = command.args(node.role).arg("check").args(&args.flags).exec();
    anyhow::bail!("cannot start {}: {error}", node.path.display())
}
