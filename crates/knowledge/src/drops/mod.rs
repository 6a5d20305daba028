//! Classes of dropped packets as data: which reasons of the kernel and which counters belong together, what
//! they mean, and whether they are harmless. One TOML file per area, embedded from `knowledge/drops/`.
//!
//! Text comes in, checked classes go out. A reason that no class has is reported by its name alone.

use include_dir::{Dir, File};
use linerate_model::drops::DropMeaning;
use linerate_model::fact::pattern_fits;
use serde::Deserialize;

use super::builtin::{BUILTIN, utf8};
use super::check::{is_id, line_of, parse};
use super::error::KnowledgeError;
use super::keys::is_fact;

/// Folder of the classes below `knowledge/`.
pub(super) const FOLDER: &str = "drops";
/// Characters of a title: it has the rest of a line of 100 columns.
const TITLE_MAX: usize = 40;

/// A class of drops.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropClass {
    /// Stable name: lower case, digits and dashes.
    pub id: String,
    /// What it means, at most 40 characters.
    pub title: String,
    /// Whether hosts without a fault drop such packets.
    pub harmless: bool,
    /// Reasons of the kernel, without `SKB_DROP_REASON_`.
    #[serde(default)]
    pub reasons: Vec<String>,
    /// Only packets of these EtherTypes; all without.
    #[serde(default)]
    pub ether_types: Vec<u16>,
    /// Counters of the same drops, as patterns; read where the kernel's reasons are not, or where there are
    /// none.
    #[serde(default)]
    pub counters: Vec<String>,
    /// How it comes about.
    pub how: String,
    /// A command that shows more on the host.
    #[serde(default)]
    pub check: Option<String>,
    /// Facts that bear on it, as patterns: why some hosts drop such packets and others do not.
    #[serde(default)]
    pub facts: Vec<String>,
}

impl DropClass {
    /// What a report has of it.
    #[must_use]
    pub fn meaning(&self) -> DropMeaning {
        DropMeaning {
            id: self.id.clone(),
            title: self.title.clone(),
            harmless: self.harmless,
            check: self.check.clone(),
        }
    }
}

/// A file: the classes of an area.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Area {
    class: Vec<DropClass>,
}

/// All classes, in the order of the files.
#[derive(Debug, Clone, Default)]
pub struct DropClasses(Vec<DropClass>);

impl DropClasses {
    /// The classes that come with the program.
    pub fn builtin() -> Result<Self, KnowledgeError> {
        let all = BUILTIN.get_dir(FOLDER).into_iter().flat_map(Dir::files);
        let mut files: Vec<&File<'_>> =
            all.filter(|file| file.path().extension().is_some_and(|end| end == "toml")).collect();
        files.sort_by_key(|file| file.path());
        let mut classes = Self::default();
        for file in files {
            classes.add(&file.path().display().to_string(), utf8(file)?)?;
        }
        Ok(classes)
    }

    /// Adds one file: its name for messages, and its text.
    pub fn add(&mut self, file: &str, text: &str) -> Result<(), KnowledgeError> {
        let area: Area = parse(file, text, "knowledge/README.md lists every field")?;
        for class in area.class {
            let line = text.find(&format!("\"{}\"", class.id)).map_or(1, |at| line_of(text, at));
            if let Some((problem, hint)) = self.flaw(&class) {
                return Err(KnowledgeError { file: file.to_owned(), line, problem, hint: hint.to_owned() });
            }
            self.0.push(class);
        }
        Ok(())
    }

    /// The first flaw of a class, and what to do.
    fn flaw(&self, class: &DropClass) -> Option<(String, &'static str)> {
        let DropClass { id, title, .. } = class;
        if !is_id(id) {
            return Some((format!("invalid id: `{id}`"), "lower-case letters, digits and dashes"));
        }
        if self.0.iter().any(|other| other.id == *id) {
            return Some((format!("the id `{id}` is taken"), "every class has an id of its own"));
        }
        if title.is_empty() || title.chars().count() > TITLE_MAX {
            return Some((format!("title of {} characters", title.chars().count()), "1 to 40 characters"));
        }
        if class.reasons.is_empty() && class.counters.is_empty() {
            return Some((format!("`{id}` has neither reasons nor counters"), "name what it is counted by"));
        }
        let is_shared = |other: &&DropClass| {
            other.ether_types == class.ether_types && other.reasons.iter().any(|r| class.reasons.contains(r))
        };
        if let Some(other) = self.0.iter().find(is_shared) {
            return Some((format!("`{id}` and `{}` have a reason in common", other.id), "one class each"));
        }
        if let Some(key) = class.facts.iter().find(|key| !is_fact(key)) {
            return Some((format!("`{key}` is no key of a fact"), "docs/reference/facts.md lists them"));
        }
        None
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &DropClass> {
        self.0.iter()
    }

    /// The class of packets that were dropped for a reason: one for their EtherType before one for all.
    #[must_use]
    pub fn of_reason(&self, reason: &str, ether_type: u16) -> Option<&DropClass> {
        let of = |class: &&DropClass| class.reasons.iter().any(|name| name == reason);
        let for_type = |class: &&DropClass| class.ether_types.contains(&ether_type);
        let for_all = |class: &&DropClass| class.ether_types.is_empty();
        let find = |fits: &dyn Fn(&&DropClass) -> bool| self.0.iter().find(|class| of(class) && fits(class));
        find(&for_type).or_else(|| find(&for_all))
    }

    /// The class of a counter.
    #[must_use]
    pub fn of_counter(&self, key: &str) -> Option<&DropClass> {
        self.0.iter().find(|class| class.counters.iter().any(|pattern| pattern_fits(pattern, key)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_that_come_with_the_program_are_sound() {
        let classes = DropClasses::builtin().unwrap();
        assert!(classes.iter().count() > 20);
        let id = |class: Option<&DropClass>| class.map(|class| class.id.clone()).unwrap_or_default();
        assert_eq!(id(classes.of_reason("NO_SOCKET", 0x0800)), "closed-port");
        assert_eq!(id(classes.of_reason("UNHANDLED_PROTO", 0x88cc)), "lldp-unread");
        assert_eq!(id(classes.of_reason("UNHANDLED_PROTO", 0x88b5)), "unhandled-protocol");
        assert_eq!(id(classes.of_counter("nic.eth0.stat.rx_missed_errors")), "ring-overrun");
        assert!(classes.of_reason("SOMETHING_NEW", 0).is_none());
    }

    #[test]
    fn a_flaw_is_named_with_its_line() {
        let mut classes = DropClasses::default();
        let class = |id: &str, rest: &str| {
            format!("\n[[class]]\nid = \"{id}\"\ntitle = \"x\"\nharmless = true\nhow = \"x\"\n{rest}\n")
        };
        classes.add("a.toml", &class("a", "reasons = [\"X\"]")).unwrap();
        let mut flaw = |text: &str| {
            let error = classes.add("b.toml", text).unwrap_err();
            (error.line, error.problem)
        };
        assert_eq!(flaw(&class("a", "reasons = [\"Y\"]")), (3, "the id `a` is taken".to_owned()));
        assert!(flaw(&class("b", "")).1.contains("neither"));
        assert!(flaw(&class("b", "reasons = [\"X\"]")).1.contains("in common"));
        assert!(flaw(&class("b", "counters = [\"X\"]\nfacts = [\"nonsense\"]")).1.contains("no key"));
        assert_eq!(flaw(&class("b", "nonsense = 1")).0, 7);
    }
}
