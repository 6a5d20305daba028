//! What hosts stand on, in sentences and lists: `arc-1, arc-2 and arc-4 run on vs-4`, `arc-3: vs-3`. Lines
//! come in, memberships go out. Names have a number in them, so that no other words are taken for hosts.

use crate::context::{TOOLS, is_host};
use crate::prompt::NO_HOSTS;
use crate::reader::{Block, Reader};
use crate::sink::{Membership, Sink};

/// The format.
pub(crate) struct Groups;

/// Words between the hosts and what they stand on.
const ON: [&str; 4] = ["on", "at", "in", "behind"];
/// Words that may stand around these.
const BESIDE: [&str; 18] = [
    "are", "is", "run", "runs", "running", "live", "lives", "sit", "sits", "hosted", "vm", "vms", "the",
    "and", "both", "all", "node", "nodes",
];
/// Kinds of what they stand on.
const KINDS: [&str; 8] = ["hypervisor", "rack", "switch", "chassis", "leaf", "blade", "enclosure", "machine"];

/// A name with letters and a number.
fn is_name(word: &str) -> bool {
    let letters = word.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default().to_lowercase();
    !TOOLS.contains(&word)
        && !NO_HOSTS.contains(&letters.as_str())
        && is_host(word)
        && word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.contains(|c: char| c.is_ascii_digit())
        && word.len() <= 64
        && !word.contains(':')
}

/// `arc-1/2/4` as three names; any other word as itself.
fn names(word: &str) -> Vec<String> {
    let mut parts = word.split('/');
    let Some(first) = parts.next().filter(|first| is_name(first)) else { return Vec::new() };
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let rest: Vec<&str> = parts.collect();
    if rest.iter().any(|part| part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit())) {
        return Vec::new();
    }
    std::iter::once(first.to_owned()).chain(rest.into_iter().map(|part| format!("{stem}{part}"))).collect()
}

/// Hosts and what they stand on, of all parts of a sentence, with the kind where a word names it.
fn members(text: &str) -> Vec<(String, String, &'static str)> {
    let mut found = Vec::new();
    let mut hosts: Vec<String> = Vec::new();
    let mut kind = "hypervisor";
    let mut is_on = false;
    for word in text.split_whitespace() {
        let bare = word.trim_matches([',', '.', ';', '(', ')', '*', '`']);
        let (bare, has_colon) = bare.strip_suffix(':').map_or((bare, false), |bare| (bare, true));
        let lower = bare.to_lowercase();
        if let Some(known) = KINDS.iter().find(|known| lower == **known) {
            kind = known;
        } else if ON.contains(&lower.as_str()) {
            is_on = !hosts.is_empty();
        } else if is_on && is_name(bare) {
            found.extend(
                hosts.drain(..).filter(|host| host != bare).map(|host| (host, bare.to_owned(), kind)),
            );
            is_on = false;
        } else if !names(bare).is_empty() {
            hosts.extend(names(bare));
            is_on = has_colon;
        } else if !BESIDE.contains(&lower.as_str()) && !bare.is_empty() {
            hosts.clear();
            is_on = false;
        }
    }
    found
}

/// The lines of a paragraph as one text: a sentence may go on in the next line.
fn paragraph(block: &Block<'_>) -> (String, usize) {
    let lines: Vec<&str> =
        block.lines.iter().take(LINES_MAX).take_while(|line| !line.trim().is_empty()).copied().collect();
    (lines.join(" "), lines.len())
}

/// Longest paragraph, lines.
const LINES_MAX: usize = 12;

impl Reader for Groups {
    fn name(&self) -> &'static str {
        "groups"
    }

    fn describes(&self) -> &'static str {
        "sentences and lists: which host stands on which hypervisor"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn is_prose(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        // A pair alone may be anything: a sentence names at least two hosts.
        block.first().len() < 400 && members(block.first()).len() >= 2
            || list(block.first()).is_some() && list(block.line(1)).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let is_list = list(block.first()).is_some();
        let (text, lines) = if is_list {
            let lines = block.lines.iter().take_while(|line| list(line).is_some()).count();
            (String::new(), lines)
        } else {
            paragraph(block)
        };
        let listed = block.lines.iter().take(if is_list { lines } else { 0 }).filter_map(|line| list(line));
        for (host, group, kind) in members(&text).into_iter().chain(listed.flatten()) {
            out.member(Membership { host, group, kind: kind.to_owned() });
        }
        if is_list { lines.max(1) } else { 1 }
    }
}

/// A line `arc-1 arc-2: vs-4` and nothing else.
fn list(line: &str) -> Option<Vec<(String, String, &'static str)>> {
    let (hosts, group) = line.trim().split_once(": ")?;
    let group = group.trim();
    let all: Vec<String> =
        hosts.split([' ', ',']).filter(|word| !word.is_empty() && *word != "and").flat_map(names).collect();
    let count = hosts.split([' ', ',']).filter(|word| !word.is_empty() && *word != "and").count();
    let fits = is_name(group) && !all.is_empty() && all.len() >= count;
    fits.then(|| all.into_iter().map(|host| (host, group.to_owned(), "hypervisor")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        members(text).into_iter().map(|(host, group, _)| (host, group)).collect()
    }

    #[test]
    fn sentences_about_hosts() {
        let pair = |host: &str, group: &str| (host.to_owned(), group.to_owned());
        assert_eq!(
            read("arc-1, arc-2 and arc-4 run on vs-4 (KVM, Broadcom), arc-3 is on vs-3."),
            [pair("arc-1", "vs-4"), pair("arc-2", "vs-4"), pair("arc-4", "vs-4"), pair("arc-3", "vs-3")]
        );
        assert_eq!(read("arc-1/2 on vs-4, arc-3 on vs-3").len(), 3);
        assert_eq!(list("arc-1 arc-2: vs-4").map(|found| found.len()), Some(2));
        for text in ["iperf3 on node1 shows 3 errors", "eth0 is up at 1000 Mbit", "we measured on 3 days"] {
            assert_eq!(read(text), [], "{text}");
        }
    }
}
