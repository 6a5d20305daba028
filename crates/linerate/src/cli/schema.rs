//! `linerate schema`: the JSON schemas of what commands print with `--json`.

use linerate_model::exit::ExitCode;

use super::documents::{DOCUMENTS, Kind, schemas};
use super::out;

/// Print the JSON schema of a document, or of all
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  linerate schema --list\n  linerate schema run > run.schema.json")]
pub(super) struct Args {
    /// Name of the document; defaults to all in one schema
    document: Option<String>,
    /// List the documents with the commands that print them
    #[arg(long, conflicts_with = "document")]
    list: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.list {
        let line = |kind: &Kind| format!("{:<20} {}", kind.name, kind.of);
        out::print(&DOCUMENTS.iter().map(line).collect::<Vec<_>>().join("\n"))?;
        return Ok(ExitCode::Ok);
    }
    let wanted = |kind: &&Kind| args.document.as_ref().is_none_or(|name| name == kind.name);
    let kinds: Vec<Kind> = DOCUMENTS.iter().filter(wanted).copied().collect();
    anyhow::ensure!(
        !kinds.is_empty(),
        "no document `{}`\nhint: `linerate schema --list` lists them",
        args.document.as_deref().unwrap_or_default()
    );
    out::json(&schemas(&kinds))?;
    Ok(ExitCode::Ok)
}
