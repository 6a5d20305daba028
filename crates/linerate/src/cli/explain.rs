//! `linerate explain`: the causes that are known: one in full, all of them, or those that match words.

use std::path::PathBuf;

use linerate_model::exit::ExitCode;

use super::{knowledge, open};

/// Explain a cause: how it is recognised, fixed and proven; list or search all causes
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate explain                            all causes\n  linerate explain nic-gro-overlay            one cause in full\n  linerate explain --search rx_missed ring    search causes, keys and counters\n\nCustom causes are read from ~/.config/linerate/knowledge (XDG_CONFIG_HOME), or from the folder or file in\nLINERATE_KNOWLEDGE; every command that diagnoses uses them."
)]
pub(super) struct Args {
    /// ID of the cause; without it, all causes are listed
    cause: Option<String>,
    /// List only this area: offload, mtu, rate, loss, tcp, cpu, queue, storage
    #[arg(long, conflicts_with = "cause")]
    area: Option<String>,
    /// Find causes that match all words in name, title, mechanism, keys, counters, fix or sources
    #[arg(long, value_name = "WORD", num_args = 1.., conflicts_with_all = ["cause", "area"])]
    search: Vec<String>,
    /// Folder or file with custom causes, in addition to the built-in ones
    #[arg(long, value_name = "PATH")]
    knowledge: Option<PathBuf>,
    /// Print the cause as Markdown
    #[arg(long, alias = "markdown", requires = "cause", conflicts_with = "json")]
    md: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let known = open::knowledge_with(args.knowledge.as_deref())?;
    match &args.cause {
        Some(id) => knowledge::show(&known, id, args.json, args.md),
        None if !args.search.is_empty() => knowledge::found(&known, &args.search, args.json),
        None => knowledge::list(&known, args.area.as_deref(), args.json),
    }
}
