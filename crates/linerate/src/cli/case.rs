//! `linerate show --anonymize`: a stored run as a file that can be given away, and that the tests of the
//! diagnosis read.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context;
use linerate_model::exit::ExitCode;
use linerate_model::finding::Diagnosis;

use super::{open, out};
use linerate_cases::anonymous;
use linerate_store::Store;

/// Writes a run, or the last one, as a case.
pub(super) fn record(
    run: Option<&str>,
    output: Option<&Path>,
    title: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let store = Store::open_to_read()?;
    let row = open::run_to_diagnose(&store, run)?;
    let (snapshot, renamer) = anonymous::anonymous(&store.load_snapshot(&row.id)?);
    let diagnosis = linerate_report::words::diagnose(&snapshot, &open::knowledge()?);
    let title = title.unwrap_or(&diagnosis.headline);
    let json = serde_json::to_string(&snapshot).context("the snapshot cannot be written")?;
    let text = file(title, &json, &diagnosis);
    let left = renamer.left_in(&text);
    if !left.is_empty() {
        // Names that are words of the vocabulary, such as a host called `tcp`, stand there with another
        // meaning.
        out::note(&format!(
            "these words of the original are still in the file; look whether they mean somebody: {}",
            left.join(", ")
        ));
    }
    linerate_cases::parse("recorded.toml", &text)?;
    match output {
        Some(path) => {
            std::fs::write(path, &text).with_context(|| format!("cannot write {}", path.display()))?;
            out::note(&format!("wrote {}; check [expect] before it becomes a test", path.display()));
        }
        None => out::print(&text)?,
    }
    Ok(ExitCode::Ok)
}

/// The file: what is said now is what is expected.
fn file(title: &str, json: &str, diagnosis: &Diagnosis) -> String {
    let quoted = |text: &str| serde_json::Value::String(text.to_owned()).to_string();
    let mut text = format!("title = {}\nsource = \"recorded by linerate\"\n\n", quoted(title));
    // What the diagnosis says today; a person has to say whether it is right.
    text += "# A literal string ends at three quotes; those in the text are written as \\u0027.\n";
    let _ = write!(text, "snapshot = '''\n{}\n'''\n\n[expect]\n", json.replace('\'', "\\u0027"));
    let _ = writeln!(text, "findings_max = {}", diagnosis.findings.len());
    for finding in &diagnosis.findings {
        text += "\n[[expect.finding]]\n";
        if let Some(place) = finding.places.first() {
            let _ = writeln!(text, "place = {}", quoted(&place.suspect.label(place.direction)));
        }
        if let Some(cause) = finding.causes.first() {
            let _ = writeln!(text, "causes = [{}]", quoted(&cause.id));
        }
    }
    text
}
