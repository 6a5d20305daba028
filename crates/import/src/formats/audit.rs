//! JSON of `linerate disk durability --audit DIR --json`: what power cuts have left in a data node of Hadoop
//! or a brick of Gluster. The report of one folder comes in; the number of files of each class of losses goes
//! out, as a fact.

use linerate_model::audit::{AuditReport, Harm};
use linerate_model::fact::FactValue;

use super::json;
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Audit;

impl Reader for Audit {
    fn name(&self) -> &'static str {
        "audit-json"
    }

    fn describes(&self) -> &'static str {
        "linerate disk durability --audit DIR --json"
    }

    fn takes_long_lines(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        json::has_keys(block, '{', &["\"schema\"", "\"host\"", "\"folder\"", "\"sums\"", "\"found\""])
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        json::read(block, out, "an audit", |value, out| {
            match serde_json::from_value::<AuditReport>(value.clone()) {
                Ok(report) => facts(&report, block, out),
                Err(error) => out.unread(0, format!("no audit: {error}")),
            }
        })
    }
}

fn facts(report: &AuditReport, block: &Block<'_>, out: &mut Sink) {
    out.speaks_of(block.at, &report.host);
    let (kind, folder) =
        (&report.found.kind, report.folder.to_string_lossy().replace(char::is_whitespace, "_"));
    for (name, class) in report.found.classes.iter().filter(|(_, class)| class.harm == Harm::Loss) {
        let count = i64::try_from(class.count).unwrap_or(i64::MAX);
        out.fact(format!("audit.{kind}.{name}.{folder}"), FactValue::Int(count));
    }
    for gap in &report.found.gaps {
        out.note(format!(
            "the audit of {} could not see everything: {}",
            report.folder.display(),
            gap.reason
        ));
    }
}
