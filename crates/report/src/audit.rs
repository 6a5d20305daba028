//! What a folder of data holds, as text: a line per class, what it means, some paths. Fits 100 columns.

use std::fmt::Write as _;

use linerate_model::audit::{AuditClass, AuditReport, Harm};
use linerate_model::printable::one_line;
use linerate_model::units;
use linerate_model::verdict::{Verdict, VerdictItem};

use super::names::cut;
use super::wrap::wrap;

/// Paths that are shown for each class.
const EXAMPLES_SHOWN: usize = 5;

/// The whole page.
#[must_use]
pub fn page(report: &AuditReport) -> String {
    let found = &report.found;
    let head = format!(
        "host {}, {}: {}, {} folders",
        report.host,
        report.folder.display(),
        found.kind,
        found.folders
    );
    let mut text = wrap(&one_line(&head), 98).join("\n  ") + "\n\n";
    let mut classes: Vec<(&String, &AuditClass)> = found.classes.iter().collect();
    classes.sort_by(|a, b| b.1.harm.cmp(&a.1.harm).then(b.1.count.cmp(&a.1.count)));
    if !classes.is_empty() {
        let _ = writeln!(text, "{:>12} {:>9}  {:<8}what", "files", "GB", "");
    }
    for (_, class) in &classes {
        let bytes = class.bytes as f64 / 1e9;
        let what = cut(&one_line(&class.words), 68);
        let _ = writeln!(text, "{:>12} {bytes:>9.1}  {:<8}{what}", class.count, harm(class.harm));
    }
    text.push('\n');
    for sentence in &report.sentences {
        let _ = writeln!(text, "{}", wrap(sentence, 98).join("\n  "));
    }
    for (name, class) in classes.iter().filter(|(_, class)| !class.examples.is_empty()) {
        let _ = writeln!(text, "\n{} ({}):", one_line(name), class.count);
        for example in class.examples.iter().take(EXAMPLES_SHOWN) {
            let _ = writeln!(text, "  {}", end(&one_line(example), 97));
        }
    }
    for gap in &found.gaps {
        let line = format!("not seen: {}: {}", gap.what, gap.reason);
        let _ = writeln!(text, "\n{}", wrap(&one_line(&line), 98).join("\n  "));
    }
    text
}

/// What is lost, the most files first.
#[must_use]
pub fn verdict(report: &AuditReport) -> Verdict {
    let found = &report.found;
    let mut lost: Vec<(&String, &AuditClass)> =
        found.classes.iter().filter(|(_, class)| class.harm == Harm::Loss).collect();
    lost.sort_by_key(|(_, class)| std::cmp::Reverse(class.count));
    let item = |(name, class): (&String, &AuditClass)| {
        let (host, folder) = (&report.host, report.folder.display());
        let files = units::counted(class.count as usize, "file");
        let sentence = format!("{host}, {folder}: {files}: {}", class.words);
        VerdictItem::stated(Some(host), name, sentence)
    };
    Verdict::stating(lost.into_iter().map(item), found.gaps.clone())
}

fn harm(harm: Harm) -> &'static str {
    match harm {
        Harm::Fine => "",
        Harm::Remark => "remark",
        Harm::Loss => "LOSS",
    }
}

/// The end of a path says more than its beginning.
fn end(text: &str, max: usize) -> String {
    let count = text.chars().count();
    if count <= max {
        return text.to_owned();
    }
    let kept: String = text.chars().skip(count - max + 1).collect();
    format!("…{kept}")
}

#[cfg(test)]
mod tests {
    use linerate_model::SCHEMA;
    use linerate_model::audit::{AuditKind, AuditPart};
    use linerate_model::fact::Gap;

    use super::*;

    #[test]
    fn a_page_fits_and_the_worst_comes_first() {
        let mut found = AuditPart { folders: 1_000_000, ..AuditPart::new(AuditKind::Hadoop) };
        let long = "a very long path/".repeat(20);
        found.add("whole", Harm::Fine, &"words ".repeat(30), 999_999_000_000_000, String::new);
        found.add("empty", Harm::Loss, "blocks of zero bytes", 0, || format!("{long}blk_1: 0 bytes"));
        found.gaps.push(Gap { what: long.clone().into(), reason: "no right".into() });
        let report = AuditReport {
            schema: SCHEMA,
            host: "dn-1".into(),
            folder: "/data/1".into(),
            sums: false,
            found,
            sentences: vec!["it says something long ".repeat(9)],
        };
        let text = page(&report);
        let line = |start: &str| text.lines().position(|l| l.contains(start)).unwrap();
        assert!(line("LOSS") < line("words words"), "{text}");
        assert!(text.contains("blk_1: 0 bytes\n"), "{text}");
        // A path without a space cannot be broken.
        assert!(text.lines().all(|l| l.chars().count() <= 100), "{text}");
    }
}
