//! What people write around the output of tools: which hosts stand on which machine, the speed of the links,
//! the words of the text.
//!
//! In: lines that no reader took. Out: memberships, speeds, words. It interprets no number but the speed of a
//! link.

use std::collections::BTreeSet;

use linerate_model::imported::WORDS_MAX;

use crate::context::is_host;
use crate::sink::Membership;

/// Longest word that is kept, characters.
const WORD_MAX: usize = 24;
/// Hosts that one sentence names.
const LIST_MAX: usize = 64;
/// Words between the hosts of a list and their machine.
const BETWEEN: [&str; 20] = [
    "and", "are", "is", "run", "runs", "running", "live", "lives", "sit", "sits", "stand", "stands",
    "hosted", "both", "all", "reside", "resides", "located", "&", "+",
];
/// Words behind which the machine stands.
const ON: [&str; 2] = ["on", "in"];
/// Speeds of links that people name, Gbit/s.
const SPEEDS: [&str; 10] = ["1", "2.5", "5", "10", "25", "40", "50", "100", "200", "400"];
/// Words that make a speed that of a link, not of a transfer.
const LINKS: [&str; 27] = [
    "line",
    "link",
    "links",
    "node",
    "nodes",
    "card",
    "cards",
    "nic",
    "nics",
    "switch",
    "switches",
    "port",
    "ports",
    "network",
    "lan",
    "ethernet",
    "hosts",
    "host",
    "between",
    "interface",
    "interfaces",
    "cable",
    "fabric",
    "uplink",
    "uplinks",
    "reach",
    "reaches",
];
/// Words from the speed within which one of [`LINKS`] stands.
const NEAR: usize = 3;

/// Words with which a thing is ruled out as the cause.
const RULES_OUT: [&[&str]; 25] = [
    &["exchanged"],
    &["replaced"],
    &["swapped"],
    &["ruled", "out"],
    &["rule", "out"],
    &["excluded"],
    &["healthy"],
    &["unplugged"],
    &["not", "connected"],
    &["no", "difference"],
    &["no", "change"],
    &["no", "effect"],
    &["not", "help"],
    &["didn't", "help"],
    &["doesn't", "help"],
    &["checked", "twice"],
    &["checked", "that"],
    &["everywhere"],
    &["is", "fine"],
    &["are", "fine"],
    &["is", "ok"],
    &["are", "ok"],
    &["not", "used"],
    &["nothing", "in"],
    &["no", "loss"],
];
/// Words with which such a sentence means something else: it began with the new cable.
const HEDGES: [&str; 8] = ["since", "after", "until", "when", "if", "unless", "before", "then"];
/// Longest sentence in which one word is enough, words.
const SHORT_MAX: usize = 4;
/// Longest sentence, words; a text without stops has none.
const SENTENCE_MAX: usize = 40;

/// The words of a text in small letters, each once, sorted; those of addresses on the web and of mails do not
/// count.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Vocabulary {
    /// All but those of the other list.
    pub(crate) words: Vec<String>,
    /// Words that stand only in sentences that rule something out.
    pub(crate) ruled_out: Vec<String>,
}

impl Vocabulary {
    /// That of some lines.
    pub(crate) fn of(lines: &[String]) -> Self {
        let (mut named, mut out) = (BTreeSet::new(), BTreeSet::new());
        for sentence in sentences(lines) {
            let into = if rules_out(&sentence) { &mut out } else { &mut named };
            into.extend(sentence.iter().flat_map(|part| words(part)));
        }
        let ruled_out = out.difference(&named).take(WORDS_MAX).cloned().collect();
        Self { words: named.into_iter().take(WORDS_MAX).collect(), ruled_out }
    }
}

/// The parts of each sentence: it ends with a stop, before `but`, and where an answer or a heading begins.
fn sentences(lines: &[String]) -> Vec<Vec<&str>> {
    let mut sentences = vec![Vec::new()];
    for part in lines.iter().flat_map(|line| line.split_whitespace()) {
        let is_full = sentences.last().is_some_and(|sentence: &Vec<&str>| sentence.len() >= SENTENCE_MAX);
        if is_full || part.eq_ignore_ascii_case("but") {
            sentences.push(Vec::new());
        }
        sentences.last_mut().into_iter().for_each(|sentence| sentence.push(part));
        if part.ends_with(['.', '!', '?', ';']) {
            sentences.push(Vec::new());
        }
    }
    sentences
}

/// Whether a sentence rules out what it names as the cause.
fn rules_out(sentence: &[&str]) -> bool {
    let plain =
        |part: &&str| part.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase().replace('’', "'");
    let plain: Vec<String> = sentence.iter().map(plain).collect();
    let has = |words: &[&str]| plain.windows(words.len()).any(|some| some.iter().eq(words.iter()));
    let is_plain = !sentence.last().is_some_and(|part| part.ends_with('?'))
        && !plain.iter().any(|word| HEDGES.contains(&word.as_str()));
    // `DNS fine.`
    let is_short =
        plain.len() <= SHORT_MAX && plain.last().is_some_and(|word| ["fine", "ok"].contains(&word.as_str()));
    is_plain && (is_short || RULES_OUT.iter().any(|words| has(words)))
}

/// The words of a part of a line.
fn words(part: &str) -> impl Iterator<Item = String> + '_ {
    let text = without_address(part).split(|c: char| !(c.is_alphanumeric() || c == '-'));
    let short = text.map(|w| w.trim_matches('-')).filter(|w| (2..=WORD_MAX).contains(&w.chars().count()));
    short.filter(|w| w.starts_with(char::is_alphabetic)).map(str::to_lowercase)
}

/// What stands in front of an address within a part of a line: `[title](` of a link.
fn without_address(part: &str) -> &str {
    let begins = part.find("://").or_else(|| part.find("www.")).or_else(|| part.find('@'));
    let Some(at) = begins.filter(|at| part[*at..].contains('.') || part[*at..].starts_with("://")) else {
        return part;
    };
    let front = &part[..at];
    &front[..front.rfind(['(', '[', '<', '"', '\'', '=']).map_or(0, |sign| sign)]
}

/// Memberships that sentences state of known hosts: `arc-1, arc-2 and arc-4 run on vs-4`, `arc-1/2/4 on
/// vs-4`, `arc-3: vs-3`, `arc-3 (vs-3)`.
pub(crate) fn members(lines: &[String], ends: &BTreeSet<String>) -> Vec<Membership> {
    let mut found = Vec::new();
    let mut hosts: Vec<String> = Vec::new();
    let mut is_on = false;
    let marked = lines.iter().map(|line| line.replace('(', " ( ").replace(':', " : "));
    let tokens: Vec<String> =
        marked.flat_map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    for token in &tokens {
        let is_last = token.ends_with(['.', ';']);
        let word = token.trim_matches([',', '.', ';', ')', '!', '?']);
        let listed = expanded(word, ends);
        if is_on && listed.is_empty() && is_machine(word) {
            found.extend(hosts.drain(..).map(|host| Membership {
                host,
                group: word.to_owned(),
                kind: "hypervisor".to_owned(),
            }));
            is_on = false;
        } else if !listed.is_empty() {
            if is_on || hosts.len() + listed.len() > LIST_MAX {
                hosts.clear();
            }
            is_on = false;
            hosts.extend(listed);
        } else if ON.contains(&word) || word == ":" || word == "(" {
            is_on = !hosts.is_empty();
        } else if is_on && word == "the" {
        } else if !BETWEEN.contains(&word.to_lowercase().as_str()) {
            hosts.clear();
            is_on = false;
        }
        if is_last {
            hosts.clear();
            is_on = false;
        }
    }
    found
}

/// Known hosts that a word names: `arc-1`, `arc-1/2/4`.
fn expanded(word: &str, ends: &BTreeSet<String>) -> Vec<String> {
    if ends.contains(word) {
        return vec![word.to_owned()];
    }
    let mut parts = word.split('/');
    let first = parts.next().unwrap_or_default();
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let all: Vec<String> =
        std::iter::once(first.to_owned()).chain(parts.map(|number| format!("{stem}{number}"))).collect();
    if all.len() > 1 && all.iter().all(|host| ends.contains(host)) { all } else { Vec::new() }
}

/// A machine has a number in its name: `vs-4`, `hv03`.
fn is_machine(word: &str) -> bool {
    is_host(word)
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.ends_with(|c: char| c.is_ascii_digit())
        && word.len() > 2
}

/// Speeds of links that the text states, bit/s: `10 Gbit/s links`, `40G nodes`, `gigabit`.
pub(crate) fn speeds(lines: &[String]) -> Vec<f64> {
    let text: Vec<String> = lines.iter().flat_map(|l| l.split_whitespace().map(str::to_lowercase)).collect();
    let plain = |w: &String| w.trim_matches(|c: char| !c.is_alphanumeric()).to_owned();
    let words: Vec<String> = text.iter().map(plain).collect();
    let mut found: Vec<f64> = Vec::new();
    for at in 0..words.len() {
        let Some((gbit, width)) = speed(&words[at], words.get(at + 1).map_or("", String::as_str)) else {
            continue;
        };
        let around = &words[at.saturating_sub(NEAR)..(at + width + NEAR).min(words.len())];
        let is_link = around.iter().any(|w| LINKS.contains(&w.as_str()));
        if is_link && !found.contains(&(gbit * 1e9)) {
            found.push(gbit * 1e9);
        }
    }
    found
}

/// A speed in Gbit/s that begins with a word, and how many words it has.
fn speed(word: &str, next: &str) -> Option<(f64, usize)> {
    let units = ["g", "gbe", "gbit", "gbit/s", "gbps", "gb/s", "gige", "gigabit"];
    if word == "gigabit" || word == "gbe" {
        return Some((1.0, 1));
    }
    // `1000 full`, `1000M`, `100 Mbit`
    let megabits = ["m", "mb", "mbit", "mbit/s", "mbps", "full", "base-t", "baset"];
    let digits = word.trim_end_matches(|c: char| c.is_alphabetic() || c == '/');
    let unit = word.strip_prefix(digits).unwrap_or_default();
    if let Some((gbit, _)) = [(1.0, "1000"), (0.1, "100")].into_iter().find(|(_, known)| *known == digits) {
        let width = if megabits.contains(&unit) { 1 } else { 2 };
        if width == 1 || unit.is_empty() && megabits.contains(&next) {
            return Some((gbit, width));
        }
    }
    let end = word.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(word.len());
    let (number, unit) = word.split_at(end);
    let unit = unit.trim_start_matches('-');
    if !SPEEDS.contains(&number) {
        return None;
    }
    let width = if units.contains(&unit) {
        1
    } else if unit.is_empty() && units.contains(&next) {
        2
    } else {
        return None;
    };
    number.parse().ok().map(|gbit| (gbit, width))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn of(text: &str) -> Vec<String> {
        let ends: BTreeSet<String> = ["db-1", "db-2", "db-3", "db-4", "web"].map(str::to_owned).into();
        members(&lines(text), &ends).into_iter().map(|m| format!("{}>{}", m.host, m.group)).collect()
    }

    #[test]
    fn sentences_name_machines() {
        assert_eq!(
            of("db-1, db-2 and db-4 run on hv01 (KVM), db-3 is\non hv02."),
            ["db-1>hv01", "db-2>hv01", "db-4>hv01", "db-3>hv02"]
        );
        assert_eq!(of("(Mbit/s, db-1/2/4 on hv01)"), ["db-1>hv01", "db-2>hv01", "db-4>hv01"]);
        assert_eq!(of("db-1 db-2: hv01\nweb (hv02)"), ["db-1>hv01", "db-2>hv01", "web>hv02"]);
        for text in ["db-1 is on fire", "I logged in on hv01", "db-1. On hv01 it is slow", "db-1 on db-2"] {
            assert_eq!(of(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn links_have_the_stated_speed() {
        let of = |text: &str| speeds(&lines(text));
        assert_eq!(of("All of them have 10 Gbit/s links"), [10e9]);
        assert_eq!(of("the 40G nodes, same switch"), [40e9]);
        assert_eq!(of("1000M line; link is 1000 full"), [1e9]);
        assert_eq!(of("over a gigabit switch and a 25GbE card"), [1e9, 25e9]);
        assert_eq!(of("we get 10 Gbit/s in the test, 2.4 Gbit/s over the link, 10 GB of data"), [0.0; 0]);
    }

    #[test]
    fn words_are_kept_once() {
        let words = |text: &str| Vocabulary::of(&lines(text)).words;
        assert_eq!(words("NFS is slow, slow-path nfs! 42"), ["is", "nfs", "slow", "slow-path"]);
        let linked = "see [nfs](https://a.example/drive) and https://b.example/raid, www.c.example/ssd <d@usb.example>";
        assert_eq!(words(linked), ["and", "nfs", "see"]);
        assert_eq!(words("root@nas"), ["nas", "root"]);
    }

    #[test]
    fn a_sentence_can_rule_its_words_out() {
        let out = |text: &str| Vocabulary::of(&lines(text)).ruled_out;
        let has = |text: &str, word: &str| out(text).iter().any(|w| w == word);
        for (text, word) in [
            ("I have exchanged the SATA cable, no\nchange. It is slow.", "cable"),
            ("wlan0 is not connected. eth0 hangs", "wlan0"),
            ("It hangs. DNS fine. Why?", "dns"),
            ("Nothing in syslog", "syslog"),
            ("the MTU is 9000 everywhere, on both.", "mtu"),
            ("Another cable didn't help; the drive is slow", "cable"),
            ("The drives are ok but the pool is slow", "drives"),
        ] {
            assert!(has(text, word), "{text}: {:?}", out(text));
        }
        for (text, word) in [
            ("It is slow since I replaced the cable.", "cable"),
            ("Is the cable replaced?", "cable"),
            ("wlan0 is slow. wlan0 is not connected.", "wlan0"),
            ("The drives are ok but the pool is slow", "pool"),
            ("the cable is new", "cable"),
        ] {
            assert!(!has(text, word), "{text}: {:?}", out(text));
        }
    }
}
