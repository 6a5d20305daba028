//! `linerate knowledge`: the causes that are known: listed, searched, told, and a file of one's own tested.

mod search;
mod test;

use std::path::PathBuf;

use clap::Subcommand;
use linerate_knowledge::{Cause, Knowledge};
use linerate_model::exit::ExitCode;

use super::{open, out};
use linerate_report as report;
pub(super) use test::Tested;

/// List, search and show known causes; test a custom cause file.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  linerate knowledge                          all causes\n  linerate knowledge nic-gro-overlay          show one cause\n  linerate knowledge search rx_missed ring    search causes, keys and counters\n  linerate knowledge test my-cause.toml       test a custom file against all cases\n\nCustom files are read from XDG_CONFIG_HOME/linerate/knowledge (~/.config/linerate/knowledge), or from the folder or file in LINERATE_KNOWLEDGE; every command that diagnoses uses them."
)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// ID of the cause to show
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Folder or file with custom causes, in addition to the built-in ones
    #[arg(long, value_name = "PATH", global = true)]
    knowledge: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List causes by area, with their proofs
    List {
        /// List only this area: offload, mtu, rate, loss, tcp, cpu, queue, storage
        #[arg(long)]
        area: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Find causes that match all words in name, title, mechanism, keys, counters, fix or sources
    Search {
        /// Words, keys or counter names
        #[arg(required = true)]
        words: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a cause in full
    Show {
        /// ID of the cause
        id: String,
        /// Print as a Markdown page of the reference
        #[arg(long, conflicts_with = "json")]
        markdown: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Validate a custom cause file against all recorded cases, and report changed verdicts
    Test(test::Args),
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let own = args.knowledge.as_deref();
    match (&args.action, &args.id) {
        (Some(Action::Test(given)), _) => test::run(given, own),
        (Some(Action::List { area, json }), _) => list(&open::knowledge_with(own)?, area.as_deref(), *json),
        (Some(Action::Search { words, json }), _) => found(&open::knowledge_with(own)?, words, *json),
        (Some(Action::Show { id, markdown, json }), _) => {
            show(&open::knowledge_with(own)?, id, *json, *markdown)
        }
        (None, Some(id)) => show(&open::knowledge_with(own)?, id, args.json, false),
        (None, None) => list(&open::knowledge_with(own)?, None, args.json),
    }
}

pub(super) fn list(knowledge: &Knowledge, area: Option<&str>, json: bool) -> anyhow::Result<ExitCode> {
    let causes: Vec<&Cause> = knowledge.causes().filter(|c| area.is_none_or(|a| c.area == a)).collect();
    if let Some(area) = area.filter(|_| causes.is_empty()) {
        let mut areas: Vec<&str> = knowledge.causes().map(|c| c.area.as_str()).collect();
        areas.sort_unstable();
        areas.dedup();
        anyhow::bail!("no area `{area}`\nhint: there are {}", areas.join(", "));
    }
    if json {
        out::json(&causes)?;
    } else {
        out::print(&report::cause::table(&causes))?;
    }
    Ok(ExitCode::Ok)
}

pub(super) fn found(knowledge: &Knowledge, words: &[String], json: bool) -> anyhow::Result<ExitCode> {
    let causes = search::search(knowledge, words);
    if json {
        out::json(&causes)?;
        return Ok(ExitCode::Ok);
    }
    anyhow::ensure!(
        !causes.is_empty(),
        "no cause has all of: {}\nhint: fewer words, or `linerate explain` for all causes",
        words.join(" ")
    );
    out::print(&report::cause::table(&causes))?;
    Ok(ExitCode::Ok)
}

pub(super) fn show(knowledge: &Knowledge, id: &str, json: bool, markdown: bool) -> anyhow::Result<ExitCode> {
    let cause = knowledge.get(id).ok_or_else(|| {
        let near = search::search(knowledge, &[id.to_owned()]);
        let near: Vec<&str> = near.iter().take(3).map(|c| c.id.as_str()).collect();
        let hint = if near.is_empty() {
            "`linerate explain` lists all causes".to_owned()
        } else {
            format!("perhaps {}", near.join(", "))
        };
        anyhow::anyhow!("no cause `{id}`\nhint: {hint}")
    })?;
    if json {
        out::json(cause)?;
    } else if markdown {
        out::print(&report::cause::markdown(cause))?;
    } else {
        out::print(&report::cause::text(cause))?;
    }
    Ok(ExitCode::Ok)
}
