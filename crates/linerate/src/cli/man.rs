//! `linerate man`: the man pages, made from the same description as the help.

use std::path::PathBuf;

use anyhow::Context as _;
use linerate_model::exit::ExitCode;

use super::out;

/// Print the man page (roff), or write the pages of all commands into a folder.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate man > linerate.1\n  linerate man --all /usr/local/share/man/man1"
)]
pub(super) struct Args {
    /// Print the page of this command instead
    command: Option<String>,
    /// Write a page for each command into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    all: Option<PathBuf>,
}

pub(super) fn run(args: &Args, mut root: clap::Command) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &args.all {
        clap_mangen::generate_to(root, folder)
            .with_context(|| format!("cannot write to {}", folder.display()))?;
        return Ok(ExitCode::Ok);
    }
    root.build();
    let command = match &args.command {
        None => root,
        Some(name) => root
            .find_subcommand(name)
            .cloned()
            .ok_or_else(|| anyhow::anyhow!("no command `{name}`\nhint: `linerate --help` lists them"))?,
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    out::print(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::Ok)
}
