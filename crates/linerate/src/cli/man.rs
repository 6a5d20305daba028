//! `linerate man`: the man page, made from the same description as the help.

use linerate_model::exit::ExitCode;

use super::out;

/// Print the man page (roff).
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  linerate man > linerate.1")]
pub(super) struct Args {
    /// Print the page of this command instead
    command: Option<String>,
}

pub(super) fn run(args: &Args, mut root: clap::Command) -> anyhow::Result<ExitCode> {
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
