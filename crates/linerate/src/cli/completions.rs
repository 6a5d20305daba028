//! `linerate completions`: what a shell needs to complete our arguments.

use linerate_model::exit::ExitCode;

use super::out;

/// Print a shell completion script.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linerate completions bash > /etc/bash_completion.d/linerate")]
pub(super) struct Args {
    /// Shell to print the script for
    shell: clap_complete::Shell,
}

pub(super) fn run(args: &Args, mut root: clap::Command) -> anyhow::Result<ExitCode> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut root, "linerate", &mut text);
    out::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::Ok)
}
