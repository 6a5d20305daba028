//! Import of what other tools print: texts come in, a snapshot goes out, with an account of every line.
//!
//! Pure: no file, no clock, no socket. A text may hold several pieces in sequence, as in a pasted terminal
//! session; prompts between them name the host on which a command ran. Unrecognised lines are quoted and
//! never stop the import. One file per format in `formats`, and one line for each in `READERS` there. What
//! Prometheus stored of hosts is read in `prometheus`.
#![deny(missing_docs)]

mod aside;
mod assemble;
mod condition;
mod context;
mod document;
mod ends;
mod flood;
mod formats;
mod limits;
mod missing;
mod names;
mod options;
pub mod prometheus;
mod prompt;
mod prose;
mod reader;
mod sink;
mod states;
mod units;
mod walk;

use linerate_model::fact::Gap;
use linerate_model::imported::{Imported, Missing, UNREAD_MAX};
use linerate_model::snapshot::Snapshot;

pub use document::{BYTES_MAX, Document};
pub use formats::formats;
pub use names::is_wanted_of_sosreport;
pub use options::ImportOptions;

/// Reads texts into one snapshot. Its field `imported` accounts for every line; its gaps are what is missing.
pub fn read(documents: &[Document], options: &ImportOptions) -> Snapshot {
    let mut sink = sink::Sink::default();
    let mut account = Imported::default();
    let roots = names::Roots::of(documents);
    for document in documents {
        walk::document(document, options, &roots, &mut sink, &mut account);
    }
    account.unread.truncate(UNREAD_MAX);
    let text = std::mem::take(&mut sink.prose);
    let vocabulary = prose::Vocabulary::of(&text);
    (account.words, account.ruled_out) = (vocabulary.words, vocabulary.ruled_out);
    let mut snapshot = assemble::snapshot(sink, &text, options, &mut account);
    account.missing = missing::of(&snapshot);
    snapshot.gaps.extend(as_gaps(&account.missing));
    snapshot.imported = Some(Box::new(account));
    snapshot
}

/// What is missing, as gaps.
fn as_gaps(missing: &[Missing]) -> impl Iterator<Item = Gap> + '_ {
    missing
        .iter()
        .map(|m| Gap { what: m.what.clone().into(), reason: format!("not in what was read; {}", m.command) })
}
