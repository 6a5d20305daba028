//! `linerate knowledge`: the causes that are known, or all about one of them.

use std::fmt::Write;

use linerate_diagnose::Cause;
use linerate_model::exit::ExitCode;

use super::{open, out};

/// List the known causes, or tell all about one.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  linerate knowledge\n  linerate knowledge nic-gro-overlay")]
pub(super) struct Args {
    /// Cause
    id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let knowledge = open::knowledge()?;
    let Some(id) = &args.id else {
        let all: Vec<&Cause> = knowledge.causes().collect();
        if args.json {
            out::json(&all)?;
        } else {
            let lines = all.iter().map(|c| format!("{:<28}{}", c.id, c.title));
            out::print(&lines.collect::<Vec<_>>().join("\n"))?;
        }
        return Ok(ExitCode::Ok);
    };
    let cause = knowledge
        .get(id)
        .ok_or_else(|| anyhow::anyhow!("no cause `{id}`\nhint: `linerate knowledge` lists what is known"))?;
    if args.json {
        out::json(cause)?;
    } else {
        out::print(&told(cause))?;
    }
    Ok(ExitCode::Ok)
}

/// A cause in words.
fn told(cause: &Cause) -> String {
    let mut text = format!("{}: {}\n\n{}\n", cause.id, cause.title, cause.mechanism.trim());
    let mut list = |heading: &str, lines: &[String]| {
        if !lines.is_empty() {
            let _ = write!(text, "\n{heading}:\n  {}\n", lines.join("\n  "));
        }
    };
    let betrayed: Vec<String> = cause.betrays.iter().flat_map(|b| b.keys.clone()).collect();
    list("Betrayed by", &betrayed);
    if let Some(remedy) = &cause.remedy {
        list("Remedy", &[remedy.title.clone(), remedy.instruction.clone(), format!("risk: {}", remedy.risk)]);
    }
    list("Proven by", &cause.proof);
    list("Sources", &cause.sources);
    text
}
