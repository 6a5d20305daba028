//! What a pasted text is about, by its words, and which commands decide it: `knowledge/topics.toml`.
//!
//! Text comes in, checked topics go out. Rare words weigh more than any number of the others, so that a list
//! of words that stand in every text decides nothing.

use serde::Deserialize;

use super::builtin::{BUILTIN, utf8};
use super::check::{is_id, line_of, parse};
use super::error::KnowledgeError;

/// The file below `knowledge/`.
const FILE: &str = "topics.toml";

/// Weight of a word that hardly stands in a text about anything else.
const RARE: usize = 5;
/// Weight of a word of this topic that texts about others have too.
const PLAIN: usize = 2;
/// Weight of a word of many topics.
const BROAD: usize = 1;
/// A topic applies from this weight on: one plain word or two broad ones.
const LEAST: usize = 2;
/// All words that are not rare together.
const COMMON_MAX: usize = RARE - 1;

/// A topic.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topic {
    /// Stable name: lower case, digits and dashes.
    pub id: String,
    /// A text about it that names no network is about disks alone.
    #[serde(default)]
    pub of_disks: bool,
    /// What is asked for.
    pub what: String,
    /// The commands, the one that decides first.
    pub commands: Vec<String>,
    /// Further commands, whose output is for people: the import has no reader for them.
    #[serde(default)]
    pub by_eye: Vec<String>,
    /// Where they run, and what decides.
    #[serde(default)]
    pub at: String,
    /// Words that hardly stand in a text about anything else. A word with `*` is a beginning.
    #[serde(default)]
    pub rare: Vec<String>,
    /// Words of this topic that texts about others have too.
    #[serde(default)]
    pub plain: Vec<String>,
    /// Words of many topics.
    #[serde(default)]
    pub broad: Vec<String>,
}

impl Topic {
    /// How much a text is about it, by a count of the words of a list that it has; 0: not at all.
    pub fn weight(&self, count: impl Fn(&[String]) -> usize) -> usize {
        let common = PLAIN * count(&self.plain) + BROAD * count(&self.broad);
        let weight = RARE * count(&self.rare) + common.min(COMMON_MAX);
        if weight < LEAST { 0 } else { weight }
    }

    /// The first flaw, and what to do.
    fn flaw(&self, before: &[Self]) -> Option<(String, &'static str)> {
        let Self { id, rare, plain, broad, .. } = self;
        let is_word = |word: &String| !word.is_empty() && *word == word.to_lowercase() && !word.contains(' ');
        if !is_id(id) {
            return Some((format!("invalid id: `{id}`"), "lower-case letters, digits and dashes"));
        }
        if before.iter().any(|other| other.id == *id) {
            return Some((format!("the id `{id}` is taken"), "every topic has an id of its own"));
        }
        if self.what.is_empty() || self.commands.is_empty() {
            return Some((format!("topic `{id}` asks for nothing"), "give `what` and `commands`"));
        }
        let mut words = rare.iter().chain(plain).chain(broad);
        if let Some(word) = words.clone().find(|word| !is_word(word)) {
            return Some((format!("`{word}` is no word"), "small letters, without spaces"));
        }
        words.next().is_none().then(|| (format!("topic `{id}` has no words"), "give `rare` or `plain`"))
    }
}

/// The file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Topics {
    topic: Vec<Topic>,
}

/// The topics that come with the program, in their order.
pub(super) fn builtin() -> Result<Vec<Topic>, KnowledgeError> {
    BUILTIN.get_file(FILE).map_or(Ok(Vec::new()), |file| read(FILE, utf8(file)?))
}

/// Topics of a text.
fn read(file: &str, text: &str) -> Result<Vec<Topic>, KnowledgeError> {
    let all: Topics = parse(file, text, "the head of knowledge/topics.toml lists every field")?;
    for (at, topic) in all.topic.iter().enumerate() {
        if let Some((problem, hint)) = topic.flaw(&all.topic[..at]) {
            let line = text.find(&format!("id = \"{}\"", topic.id)).map_or(1, |at| line_of(text, at));
            return Err(KnowledgeError { file: file.to_owned(), line, problem, hint: hint.to_owned() });
        }
    }
    Ok(all.topic)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The topic that weighs most, by the words of a text.
    fn first(words: &[&str]) -> String {
        let count = |known: &[String]| words.iter().filter(|word| known.iter().any(|k| k == *word)).count();
        let topics = builtin().unwrap();
        let heaviest = topics.iter().rev().max_by_key(|topic| topic.weight(count));
        heaviest.filter(|topic| topic.weight(count) > 0).map_or(String::new(), |topic| topic.id.clone())
    }

    #[test]
    fn a_rare_word_weighs_more_than_all_broad_ones() {
        let broad = ["ssd", "drive", "storage", "disk", "cache", "controller", "cloud", "driver", "home"];
        assert_eq!(first(&[&broad[..], &["rsize"]].concat()), "nfs");
        assert_eq!(first(&[&broad[..], &["mdio"]].concat()), "phy");
        assert_eq!(first(&broad), "drives");
    }

    #[test]
    fn one_broad_word_is_about_nothing() {
        assert!(["large", "controller", "seconds"].iter().all(|word| first(&[word]).is_empty()));
        assert!(!first(&["cache", "controller"]).is_empty() && !first(&["driver"]).is_empty());
    }

    #[test]
    fn a_flaw_has_its_line() {
        let topic = |id: &str, words: &str| {
            format!("[[topic]]\nid = \"{id}\"\nwhat = \"x\"\ncommands = [\"y\"]\nplain = [{words}]\n")
        };
        assert_eq!(read("x", &topic("a", "\"b\"")).unwrap().len(), 1);
        for (text, line, problem) in [
            (topic("a", "\"b\"") + &topic("a", "\"b\""), 2, "taken"),
            (topic("a", "\"B\""), 2, "`B` is no word"),
            (topic("a", ""), 2, "no words"),
            (topic("A", "\"b\""), 2, "invalid id"),
            (
                "[[topic]]\nid = \"a\"\nwhat = \"x\"\ncommands = []\nplain = [\"b\"]\n".to_owned(),
                2,
                "nothing",
            ),
            ("[[topic]]\nwhom = 1\n".to_owned(), 2, "whom"),
        ] {
            let error = read("x", &text).unwrap_err();
            assert!(error.problem.contains(problem) && error.line == line, "{error}");
        }
    }
}
