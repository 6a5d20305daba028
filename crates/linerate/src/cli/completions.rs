//! `linerate completions`: what a shell needs to complete our arguments.

use clap::CommandFactory;
use linerate_model::exit::ExitCode;

use super::{Cli, out};

/// Print completions for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linerate completions bash > /etc/bash_completion.d/linerate")]
pub(super) struct Args {
    /// Shell
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "linerate", &mut text);
    out::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::Ok)
}
