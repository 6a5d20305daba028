//! What a pasted text is about, by its words, and which commands decide it: `knowledge/topics.toml`.
//!
//! Text comes in, checked topics go out. Rare words weigh more than any number of the others, so that a list
//! of words that stand in every text decides nothing.

use serde::Deserialize;

use super::builtin::{BUILTIN, utf8};
use super::check::{is_id, line_of, parse};
use super::error::KnowledgeError;
use super::keys::is_fact;

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
/// Weight of what was read of a text, over that of all its words.
const KEY: usize = 500;
/// Most commands of a topic: people do not read longer lists.
const COMMANDS_MAX: usize = 3;
/// Stands before a command whose output is for people: the import has no reader for it.
const BY_EYE: &str = "by eye: ";

/// A command of a table as it is typed.
#[must_use]
pub fn typed(command: &str) -> &str {
    command.strip_prefix(BY_EYE).unwrap_or(command)
}

/// Whether the import has a reader for what a command of a table prints.
#[must_use]
pub fn is_read(command: &str) -> bool {
    !command.starts_with(BY_EYE)
}

/// What a text complains of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Complaint {
    /// What does not arrive.
    Lost,
    /// What arrives too slowly.
    Slow,
}

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
    /// What a text about it complains of, if of one thing.
    pub when: Option<Complaint>,
    /// The commands as the file has them, the one that decides first.
    commands: Vec<String>,
    /// Where they run, and what decides.
    #[serde(default)]
    pub at: String,
    /// Patterns of keys: a text with one of them is about it.
    #[serde(default)]
    pub keys: Vec<String>,
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
    /// The commands, the one that decides first.
    pub fn commands(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(|command| typed(command))
    }

    /// Those whose output the import reads.
    pub fn commands_read(&self) -> impl Iterator<Item = &str> {
        self.commands.iter().map(String::as_str).filter(|command| is_read(command))
    }

    /// How much a text is about it, by a count of the words of a list that it has; 0: not at all.
    fn weight(&self, count: impl Fn(&[String]) -> usize) -> usize {
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
        if self.commands.len() > COMMANDS_MAX {
            let found = self.commands.len();
            return Some((format!("topic `{id}` asks for {found} commands"), "keep the three that decide"));
        }
        if let Some(key) = self.keys.iter().find(|key| !is_fact(key)) {
            return Some((
                format!("`{key}` is no key of a fact"),
                "ARCHITECTURE.md has the vocabulary of keys",
            ));
        }
        (words.next().is_none() && self.keys.is_empty())
            .then(|| (format!("topic `{id}` has no words"), "give `rare`, `plain` or `keys`"))
    }
}

/// All topics, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topics {
    /// Words of a text about what does not arrive.
    #[serde(default)]
    lost: Vec<String>,
    /// Words of a text about what arrives too slowly.
    #[serde(default)]
    slow: Vec<String>,
    topic: Vec<Topic>,
}

impl Topics {
    /// Each topic, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Topic> {
        self.topic.iter()
    }

    /// The topics that a text is about and how much, by a count of the words of a list that it has, and by
    /// whether a key of a topic was read.
    pub fn weighed(
        &self,
        count: impl Fn(&[String]) -> usize,
        has_key: impl Fn(&Topic) -> bool,
    ) -> impl Iterator<Item = (&Topic, usize)> {
        let complaint = match (count(&self.lost) > 0, count(&self.slow) > 0) {
            (true, false) => Some(Complaint::Lost),
            (false, true) => Some(Complaint::Slow),
            _ => None,
        };
        let is_of_other = move |topic: &Topic| complaint.is_some_and(|c| topic.when.is_some_and(|w| w != c));
        let weighed = self.topic.iter().map(move |topic| {
            let weight = topic.weight(&count);
            let words = if is_of_other(topic) { weight / 2 } else { weight };
            (topic, if has_key(topic) { KEY + words } else { words })
        });
        weighed.filter(|(_, weight)| *weight > 0)
    }
}

/// The topics that come with the program.
pub(super) fn builtin() -> Result<Topics, KnowledgeError> {
    BUILTIN.get_file(FILE).map_or(Ok(Topics::default()), |file| read(FILE, utf8(file)?))
}

/// Topics of a text.
fn read(file: &str, text: &str) -> Result<Topics, KnowledgeError> {
    let all: Topics = parse(file, text, "the head of knowledge/topics.toml lists every field")?;
    for (at, topic) in all.topic.iter().enumerate() {
        if let Some((problem, hint)) = topic.flaw(&all.topic[..at]) {
            let line = text.find(&format!("id = \"{}\"", topic.id)).map_or(1, |at| line_of(text, at));
            return Err(KnowledgeError { file: file.to_owned(), line, problem, hint: hint.to_owned() });
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The topic that weighs most, by the words of a text.
    fn first(words: &[&str]) -> String {
        let count = |known: &[String]| words.iter().filter(|word| known.iter().any(|k| k == *word)).count();
        let topics = builtin().unwrap();
        let mut heaviest: Vec<_> = topics.weighed(count, |_| false).collect();
        heaviest.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
        heaviest.first().map_or(String::new(), |(topic, _)| topic.id.clone())
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
    fn what_is_lost_is_asked_of_rules_and_what_is_slow_of_offloads() {
        assert_eq!(first(&["antrea", "timed"]), "container-paths");
        assert_eq!(first(&["antrea", "bandwidth"]), "overlay-offloads");
    }

    #[test]
    fn a_flaw_has_its_line() {
        let topic = |id: &str, words: &str| {
            format!("[[topic]]\nid = \"{id}\"\nwhat = \"x\"\ncommands = [\"y\"]\nplain = [{words}]\n")
        };
        assert_eq!(read("x", &topic("a", "\"b\"")).unwrap().iter().count(), 1);
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
            (topic("a", "\"b\"").replace("[\"y\"]", "[\"y\", \"y\", \"y\", \"y\"]"), 2, "4 commands"),
            (topic("a", "\"b\"") + "keys = [\"eth0.mtu\"]\n", 2, "no key of a fact"),
            ("[[topic]]\nwhom = 1\n".to_owned(), 2, "whom"),
        ] {
            let error = read("x", &text).unwrap_err();
            assert!(error.problem.contains(problem) && error.line == line, "{error}");
        }
    }
}
