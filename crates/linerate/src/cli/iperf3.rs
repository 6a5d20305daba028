//! `linerate iperf3`: hands over to `linerate-node`, which makes all the load.

use std::ffi::OsString;

use linerate_model::exit::ExitCode;

use super::hand_over;

/// Run an iperf3-compatible client or server (runs linerate-node).
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = "Example:\n  linerate iperf3 -c nas.example -R -t 5")]
pub(super) struct Args {
    /// iperf3 flags
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "FLAG")]
    flags: Vec<OsString>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    hand_over::to_node("iperf3", &args.flags)
}
