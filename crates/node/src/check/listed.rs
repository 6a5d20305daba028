//! All checks, their thresholds and the contexts as text: `check --list` for a terminal of 100 columns, and
//! the tables of the guide.

#[cfg(test)]
use std::fmt::Write as _;

use super::contexts::CONTEXTS;
use super::kind::About;
use super::list::CHECKS;
use super::rule::Severity;

const COLUMNS: usize = 100;
/// Indent of the lines about a check.
const INDENT: usize = 4;

fn abouts() -> impl Iterator<Item = &'static About> {
    CHECKS.iter().map(|check| check.about())
}

/// What a check does by itself, and its rule.
fn rule(about: &About) -> [String; 2] {
    let severity = if about.severity == Severity::Fail { "fails" } else { "warns" };
    let switch = if about.is_on { "" } else { ", off" };
    let rule = about.rule;
    [
        format!("{severity}{switch}"),
        format!("{} bad in {} s, over after {} good", rule.strikes, rule.window_s, rule.passes),
    ]
}

/// For a terminal: a paragraph for each check, then the contexts.
pub(super) fn text() -> String {
    let mut text = String::new();
    for about in abouts() {
        let [by_itself, rule] = rule(about);
        wrapped(&mut text, 0, &format!("{}: {}", about.id, about.title));
        wrapped(&mut text, INDENT, &format!("{by_itself}; {rule}"));
        wrapped(&mut text, INDENT, &format!("reads {}", about.reads));
        for one in about.thresholds {
            let line = format!("{} = {} {}: {}", one.name, one.default, one.unit, one.meaning);
            wrapped(&mut text, INDENT, &line);
        }
        text.push('\n');
    }
    text += "Exit codes of --as\n";
    for context in CONTEXTS {
        wrapped(&mut text, INDENT, &format!("{}: {}", context.word(), context.codes()));
    }
    text
}

/// Adds a line, broken between words; what follows the first part has two columns more.
fn wrapped(text: &mut String, indent: usize, line: &str) {
    let mut used = 0;
    for word in line.split_whitespace() {
        let length = word.chars().count();
        if used == 0 {
            *text += &" ".repeat(indent);
            used = indent;
        } else if used + 1 + length > COLUMNS {
            text.push('\n');
            *text += &" ".repeat(indent + 2);
            used = indent + 2;
        } else {
            text.push(' ');
            used += 1;
        }
        *text += word;
        used += length;
    }
    text.push('\n');
}

/// The same as tables of Markdown, with which the guide ends.
#[cfg(test)]
pub(super) fn markdown() -> String {
    let mut text =
        String::from("| check | bad when | reads | by itself | rule |\n| --- | --- | --- | --- | --- |\n");
    // Writing into a `String` cannot fail.
    for about in abouts() {
        let [by_itself, rule] = rule(about);
        let _ =
            writeln!(text, "| `{}` | {} | {} | {by_itself} | {rule} |", about.id, about.title, about.reads);
    }
    text += "\n| check | threshold | default | meaning |\n| --- | --- | --- | --- |\n";
    for (about, threshold) in abouts().flat_map(|about| about.thresholds.iter().map(move |one| (about, one)))
    {
        let (id, name, unit) = (about.id, threshold.name, threshold.unit);
        let _ =
            writeln!(text, "| `{id}` | `{name}` | {} {unit} | {} |", threshold.default, threshold.meaning);
    }
    text += "\n| `--as` | exit codes |\n| --- | --- |\n";
    for context in CONTEXTS {
        let _ = writeln!(text, "| `{}` | {} |", context.word(), context.codes());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_fits_a_terminal_and_leaves_nothing_out() {
        let text = text();
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= COLUMNS, "{widest}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for about in abouts() {
            for part in [about.id, about.title, about.reads] {
                assert!(words.contains(&part.split_whitespace().collect::<Vec<_>>().join(" ")), "{part}");
            }
        }
    }
}
