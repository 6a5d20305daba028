//! `/etc/linerate/checks.toml`: kill switches and thresholds, checked strictly.
//!
//! In: the text of the file. Out: settings by check, or all flaws with their lines. Unknown names are
//! errors: a misspelled kill switch must not be silently without effect.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kind::{About, Check};
use super::settings::{RULE_KEYS, Settings};

/// Most flaws that are reported.
const FLAWS_MAX: usize = 20;
/// Most subjects in a list.
const LIST_MAX: usize = 1024;

/// All of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Config {
    /// Whether what fails has consequences (exit codes of contexts that drain a node).
    pub(super) enforce: Option<bool>,
    settings: BTreeMap<String, Settings>,
}

impl Config {
    /// Settings of a check.
    pub(super) fn of(&self, check: &str) -> Settings {
        self.settings.get(check).cloned().unwrap_or_default()
    }
}

/// A flaw with its offset in the text.
struct Flaw(usize, String);

/// Reads a file; an error has a `line N: flaw` for each flaw.
pub(super) fn parse(text: &str, checks: &[&dyn Check]) -> Result<Config, Vec<String>> {
    let line = |Flaw(at, flaw): Flaw| format!("line {}: {flaw}", line_of(text, at));
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        vec![line(Flaw(at, error.message().replace('\n', ", ")))]
    })?;
    let mut flaws = Vec::new();
    let config = read(table.get_ref(), checks, &mut flaws);
    flaws.sort_by_key(|Flaw(at, _)| *at);
    if flaws.is_empty() { Ok(config) } else { Err(flaws.into_iter().take(FLAWS_MAX).map(line).collect()) }
}

fn line_of(text: &str, at: usize) -> usize {
    1 + text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
}

/// What can be understood.
fn read(table: &DeTable<'_>, checks: &[&dyn Check], flaws: &mut Vec<Flaw>) -> Config {
    let mut config = Config::default();
    for (name, value) in table {
        let at = name.span().start;
        let name: &str = name.get_ref();
        if name == "enforce" {
            config.enforce = understood(flag(value), flaws);
            continue;
        }
        let about = checks.iter().map(|check| check.about()).find(|about| about.id == name);
        let Some(about) = about else {
            let ids: Vec<&str> = checks.iter().map(|check| check.about().id).collect();
            flaws.push(Flaw(at, format!("unknown check `{name}`; known: {}", ids.join(", "))));
            continue;
        };
        let DeValue::Table(inner) = value.get_ref() else {
            flaws.push(Flaw(at, format!("`{name}` is not a table; write [{name}]")));
            continue;
        };
        config.settings.insert(name.to_owned(), settings(inner, about, flaws));
    }
    config
}

fn settings(table: &DeTable<'_>, about: &About, flaws: &mut Vec<Flaw>) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in table {
        let at = name.span().start;
        let name: &str = name.get_ref();
        match name {
            "off" => settings.off = understood(flag(value), flaws),
            "warn_only" => settings.warn_only = understood(flag(value), flaws).unwrap_or_default(),
            "except" => settings.except = understood(list(value), flaws).unwrap_or_default(),
            "expect" if about.takes_expected => {
                settings.expect = understood(list(value), flaws).unwrap_or_default();
            }
            _ if RULE_KEYS.contains(&name) || about.thresholds.iter().any(|known| known.name == name) => {
                settings
                    .numbers
                    .extend(understood(number(value), flaws).map(|number| (name.to_owned(), number)));
            }
            _ => flaws.push(Flaw(at, format!("unknown key `{name}` of check `{}`", about.id))),
        }
    }
    settings
}

/// The value, or its flaw beside the others.
fn understood<T>(value: Result<T, Flaw>, flaws: &mut Vec<Flaw>) -> Option<T> {
    value.map_err(|flaw| flaws.push(flaw)).ok()
}

fn flag(value: &Spanned<DeValue<'_>>) -> Result<bool, Flaw> {
    value.get_ref().as_bool().ok_or_else(|| Flaw(value.span().start, "not true or false".to_owned()))
}

/// A number from 0 on; as large as a float holds exactly.
fn number(value: &Spanned<DeValue<'_>>) -> Result<f64, Flaw> {
    let parsed = match value.get_ref() {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse::<f64>().ok(),
        DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
        _ => None,
    };
    parsed
        .filter(|number| (0.0..=1e15).contains(number))
        .ok_or_else(|| Flaw(value.span().start, "not a number from 0 to 1e15".to_owned()))
}

fn list(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Flaw> {
    let flaw = || Flaw(value.span().start, "not a list of texts".to_owned());
    let items = value.get_ref().as_array().filter(|items| items.len() <= LIST_MAX).ok_or_else(flaw)?;
    items.iter().map(|item| item.get_ref().as_str().map(str::to_owned).ok_or_else(flaw)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::list::CHECKS;
    use super::*;

    #[test]
    fn switches_and_thresholds_are_read() {
        let text = "enforce = true\n[link-speed]\noff = true\n[mounts]\nexcept = [\"/old\"]\nstrikes = 3\n\
                    [mount-points]\nexpect = [\"/scratch\"]\nwarn_only = true\n";
        let config = parse(text, CHECKS).unwrap();
        assert!(config.enforce == Some(true) && config.of("link-speed").off == Some(true));
        assert_eq!(config.of("mounts").numbers["strikes"].to_string(), "3");
        assert!(config.of("mount-points").warn_only && config.of("mount-points").expect == ["/scratch"]);
        assert_eq!(config.of("frame-errors"), Settings::default());
        assert_eq!(parse("", CHECKS), Ok(Config::default()));
    }

    #[test]
    fn flaws_are_named_with_their_line() {
        for (text, words) in [
            ("[link-sped]\noff = true\n", "line 1: unknown check `link-sped`"),
            ("\n\n[link-speed]\nof = true\n", "line 4: unknown key `of` of check `link-speed`"),
            ("[link-speed]\noff = 1\n", "line 2: not true or false"),
            ("[link-speed]\nexpect = []\n", "line 2: unknown key `expect`"),
            ("[mounts]\nstrikes = -1\n", "line 2: not a number"),
            ("[mounts]\nstrikes = nan\n", "line 2: not a number"),
            ("[mounts]\nexcept = [1]\n", "line 2: not a list of texts"),
            ("link-speed = true\n", "line 1: `link-speed` is not a table"),
            ("[mounts]\n\noff = \n", "line 3: "),
            ("[mounts]\n[mounts]\n", "line 2: "),
        ] {
            let flaws = parse(text, CHECKS).unwrap_err();
            assert!(matches!(&flaws[..], [flaw] if flaw.starts_with(words)), "{text:?}: {flaws:?}");
        }
    }

    #[test]
    fn all_flaws_are_named_in_the_order_of_the_file() {
        let flaws = parse("[mounts]\nstrikes = -1\noff = 1\n[link-sped]\n", CHECKS).unwrap_err();
        let lines: Vec<&str> = flaws.iter().filter_map(|flaw| flaw.split(':').next()).collect();
        assert_eq!(lines, ["line 2", "line 3", "line 4"]);
    }
}
