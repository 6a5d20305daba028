//! What is left after a power cut, as text: a line per pattern, what it means, some of the files. Fits 100
//! columns.

use std::fmt::Write as _;

use linerate_model::durability::{
    DurabilityReport, DurabilityVerdict, Fate, FolderLocation, Pattern, PatternFate, Promised, Promises,
};
use linerate_model::fact::Gap;
use linerate_model::printable::one_line;
use linerate_model::verdict::{Verdict, VerdictItem};

use super::names::cut;
use super::wrap::wrap;

const NAME: usize = 22;
/// Lost files that are shown.
const LOST_SHOWN: usize = 12;

/// What a folder lies on, in a line.
#[must_use]
pub fn place(place: &FolderLocation) -> String {
    let shown = [&place.filesystem, &place.source, &place.mount, &place.options].map(|text| one_line(text));
    let [filesystem, source, mount, options] = shown;
    format!("{filesystem} on {source} at {mount} ({})", cut(&options, 60))
}

/// A word for what is promised.
fn promised(pattern: &Pattern) -> &'static str {
    match pattern.promised {
        Promised::Nothing => "nothing",
        Promised::Content => "data",
        Promised::All => "all",
    }
}

/// The word above a column.
fn head(fate: Fate) -> &'static str {
    match fate {
        Fate::Kept => "kept",
        Fate::Empty => "empty",
        Fate::Short => "short",
        Fate::Zeros => "zeros",
        Fate::Corrupt => "corrupt",
        Fate::Stale => "stale",
        Fate::Missing => "missing",
        Fate::NameLost => "no name",
        Fate::UnderWay => "open",
    }
}

/// Width of a column: a number below a hundred thousand, or its word, and a gap.
fn width(fate: Fate) -> usize {
    (head(fate).len() + 1).max(6)
}

/// The whole page of a check.
#[must_use]
pub fn page(report: &DurabilityReport) -> String {
    let promises = &report.promises;
    let mut text = String::new();
    let folder = promises.folder.display();
    for line in [format!("host {}, {folder}: {}", promises.host, place(&report.place)), told(promises)] {
        let _ = writeln!(text, "{}", wrap(&one_line(&line), 98).join("\n  "));
    }
    text.push('\n');
    let columns: Vec<Fate> = [Fate::Kept].into_iter().chain(Fate::LOSSES).chain([Fate::UnderWay]).collect();
    // A column without a number says nothing; kept is always there.
    let has = |fate: &Fate| *fate == Fate::Kept || report.patterns.iter().any(|p| p.fates.contains_key(fate));
    let columns: Vec<Fate> = columns.into_iter().filter(has).collect();
    let _ = write!(text, "{:NAME$}{:>9}{:>7}", "pattern", "promised", "files");
    for fate in &columns {
        let _ = write!(text, "{:>1$}", head(*fate), width(*fate));
    }
    text.push('\n');
    for pattern in &report.patterns {
        let _ = writeln!(text, "{}", row(pattern, &columns));
    }
    text.push('\n');
    for sentence in &report.sentences {
        let _ = writeln!(text, "{}", wrap(sentence, 98).join("\n  "));
    }
    if !report.lost.is_empty() {
        text.push_str("\nSome of the files:\n");
        for lost in report.lost.iter().take(LOST_SHOWN) {
            let broken = if lost.promised { "promised, " } else { "" };
            let line = format!("{}: {broken}{}: {}", lost.file, head(lost.fate), lost.sentence);
            let _ = writeln!(text, "  {}", cut(&one_line(&line), 98));
        }
    }
    text
}

/// Patterns with files that are not as the kernel had promised.
#[must_use]
pub fn verdict(report: &DurabilityReport) -> Verdict {
    let host = &report.promises.host;
    let item = |fate: &PatternFate| {
        let (folder, name) = (report.promises.folder.display(), &fate.pattern.name);
        let sentence = format!(
            "{host}, {folder}: {} of {} files of {name} are not as was acknowledged",
            fate.broken, fate.files
        );
        VerdictItem::stated(Some(host), name, sentence)
    };
    let broken = report.patterns.iter().filter(|fate| fate.broken > 0).map(item);
    let not_restarted = (report.verdict == DurabilityVerdict::NotRestarted)
        .then(|| Gap { what: "what a power cut leaves".into(), reason: format!("{host} was not restarted") });
    Verdict::stating(broken, not_restarted.into_iter().collect())
}

fn row(pattern: &PatternFate, columns: &[Fate]) -> String {
    let name = cut(&one_line(&pattern.pattern.name), NAME - 1);
    let promised = promised(&pattern.pattern);
    let mut line = format!("{name:NAME$}{promised:>9}{:>7}", pattern.files);
    for fate in columns {
        let value = pattern.fates.get(fate).map_or_else(|| "-".to_owned(), u32::to_string);
        let _ = write!(line, "{value:>0$}", width(*fate));
    }
    if pattern.broken > 0 {
        line.push_str(" !");
    }
    line
}

/// How far the writing came.
#[must_use]
pub fn told(promises: &Promises) -> String {
    let seconds = promises.last_ms as f64 / 1e3;
    let ended = if promises.ended.is_empty() { "this program was cut off" } else { &promises.ended };
    format!(
        "{} records were acknowledged in {seconds:.1} s; then {}",
        promises.acknowledged,
        cut(&one_line(ended), 120)
    )
}

/// All patterns, as a table.
#[must_use]
pub fn patterns(patterns: &[Pattern]) -> String {
    let mut text = format!("{:NAME$}{:>9}  what is done\n", "pattern", "promised");
    for pattern in patterns {
        let calls = if pattern.calls.is_empty() { "no fsync" } else { &pattern.calls };
        let (name, promised) = (&pattern.name, promised(pattern));
        let mut lines = wrap(&one_line(&format!("{}; {calls}", pattern.doing)), 100 - NAME - 11).into_iter();
        let _ = writeln!(text, "{name:NAME$}{promised:>9}  {}", lines.next().unwrap_or_default());
        lines.for_each(|line| _ = writeln!(text, "{:1$}{line}", "", NAME + 11));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use linerate_model::SCHEMA;
    use linerate_model::durability::{DurabilityVerdict, LostFile, PatternRule, WritePlan};

    use super::*;

    #[test]
    fn a_page_fits_and_marks_what_was_promised() {
        let pattern = |name: &str, promised| Pattern {
            name: name.into(),
            doing: "new file, write, close".into(),
            calls: String::new(),
            shape: PatternRule::Fresh,
            promised,
        };
        let all: BTreeMap<Fate, u32> =
            Fate::LOSSES.into_iter().chain([Fate::Kept, Fate::UnderWay]).map(|fate| (fate, 99_999)).collect();
        let fate = |name: &str, promised, broken, fates| PatternFate {
            pattern: pattern(name, promised),
            records: 1_000_000,
            files: 1_000_000,
            fates,
            broken,
        };
        let patterns = vec![
            fate("create", Promised::Nothing, 0, all.clone()),
            fate("replace+fsync+folder", Promised::All, 7, BTreeMap::from([(Fate::Empty, 7)])),
        ];
        let promises = Promises {
            schema: SCHEMA,
            host: "arc-1".into(),
            folder: "/mnt/test".into(),
            plan: WritePlan { run: String::new(), patterns: Vec::new(), files: 1, records: 1 },
            patterns: Vec::new(),
            place: FolderLocation::default(),
            start_ms: 0,
            acknowledged: 1000,
            asked: 1000,
            last_ms: 12_345,
            ended: "the host is lost".into(),
        };
        let lost = LostFile {
            file: "create/00000001".into(),
            fate: Fate::Empty,
            promised: true,
            sentence: "it has no byte".into(),
        };
        let report = DurabilityReport {
            schema: SCHEMA,
            promises,
            place: FolderLocation {
                filesystem: "xfs".into(),
                options: "rw,".repeat(100),
                ..FolderLocation::default()
            },
            verdict: DurabilityVerdict::Broken,
            patterns,
            sentences: vec!["this disk lies about flush ".repeat(9)],
            lost: vec![lost],
        };
        let text = page(&report);
        let lines: Vec<&str> = text.lines().collect();
        assert!(text.contains("\n1000 records were acknowledged in 12.3 s; then the host is lost"));
        let at = lines.iter().position(|line| line.starts_with("pattern")).unwrap();
        assert!(lines[at].contains("empty") && lines[at + 2].ends_with(" !"), "{text}");
        assert!(text.contains("create/00000001: promised, empty: it has no byte"), "{text}");
        assert!(lines.iter().all(|line| line.chars().count() <= 100), "{text}");
    }
}
