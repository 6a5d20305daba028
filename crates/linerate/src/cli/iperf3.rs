//! `linerate iperf3`: hands over to `linerate-node`, which makes all the load.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;

use linerate_model::exit::ExitCode;

use linerate_fleet::programs::OwnNode;

/// Run an iperf3-compatible client or server (runs linerate-node).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = "Example:\n  linerate iperf3 -c nas.example -R -t 5")]
pub(super) struct Args {
    /// iperf3 flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAG")]
    flags: Vec<OsString>,
}

/// Becomes `linerate-node iperf3`; comes back only when that fails.
pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let node = OwnNode::find()?;
    let mut command = std::process::Command::new(&node.path);
    let error = command.args(node.role).arg("iperf3").args(&args.flags).exec();
    anyhow::bail!("cannot start {}: {error}", node.path.display())
}
