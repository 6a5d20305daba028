//! `~/.ssh/config`: every name behind `Host` without wildcards is a host. `HostName`, `User` and `Port` are
//! taken as `ssh` does: the first value that fits counts, also from blocks with wildcards. `Include` is
//! followed.
//!
//! What comes in: a text and a reader of its included files. What goes out: hosts over ssh. A `Match` block
//! cannot be judged here and is remarked.
//!
//! `ssh -G HOST` would read the values too, but it runs the commands of `Match exec`, also those of a file
//! that is only converted, and it is a process for each of thousands of hosts.

use std::collections::BTreeMap;

use super::draft::{Draft, Understood};
use super::error::{Flaw, InventoryError};
use super::host_list::port;
use super::reader::{Reader, SourceText};

/// The format.
pub(super) struct SshConfig;

/// Files that include each other.
const DEPTH_MAX: usize = 8;
/// Included files in all.
const FILES_MAX: usize = 256;
/// Blocks in all: each host searches them.
const BLOCKS_MAX: usize = 20_000;
/// What only `ssh` itself can use; lost where the file is not its own.
const ONLY_FOR_SSH: [&str; 5] =
    ["proxyjump", "proxycommand", "identityfile", "certificatefile", "hostkeyalias"];

impl Reader for SshConfig {
    fn name(&self) -> &'static str {
        "ssh-config"
    }

    fn describes(&self) -> &'static str {
        "~/.ssh/config"
    }

    fn detects(&self, text: &str) -> bool {
        // The keyword stands alone: `host: …` is YAML, and a list of hosts has no word `Host` at the start of
        // a line.
        text.lines()
            .filter_map(keyword)
            .any(|(word, value)| ["host", "match", "include"].contains(&word.as_str()) && !value.is_empty())
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let mut reading = Reading::default();
        reading.begin(vec!["*".to_owned()]);
        reading.file(source, 0)?;
        reading.resolve(source.known_to_ssh).map_err(|flaw| source.at(0, flaw))?;
        let draft = reading.draft;
        draft.finish(self.name()).map_err(|(line, flaw)| source.at(line, flaw))
    }
}

/// A line as keyword in small letters and value.
fn keyword(line: &str) -> Option<(String, &str)> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let end = line.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(line.len());
    let value = line[end..].trim_start();
    let value = value.strip_prefix('=').unwrap_or(value).trim();
    Some((line[..end].to_ascii_lowercase(), value))
}

/// Words of a value, with quotes taken off.
fn words(value: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = value.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

/// A line of a block.
struct Setting {
    word: String,
    value: String,
    line: usize,
    /// Where it stands, when that is an included file.
    file: Option<String>,
}

/// A `Host` block, or the part of one before or after an `Include`.
struct Block {
    patterns: Vec<String>,
    settings: Vec<Setting>,
}

impl Block {
    /// Whether the block is for this host: a pattern fits and no negated one does.
    fn is_for(&self, host: &str) -> bool {
        let fits = |negated: bool| {
            self.patterns
                .iter()
                .filter(|pattern| pattern.starts_with('!') == negated)
                .any(|pattern| like(pattern.trim_start_matches('!').as_bytes(), host.as_bytes()))
        };
        fits(false) && !fits(true)
    }
}

/// Whether a name is like a pattern with `*` and `?`; goes back to the last `*` only, so that its time is
/// bounded.
pub(super) fn like(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n, mut star) = (0, 0, None);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(c) if *c == b'?' || *c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((at, from)) = star else { return false };
                star = Some((at, from + 1));
                p = at + 1;
                n = from + 1;
            }
        }
    }
    pattern[p..].iter().all(|c| *c == b'*')
}

#[derive(Default)]
struct Reading {
    draft: Draft,
    blocks: Vec<Block>,
    files: usize,
}

impl Reading {
    fn begin(&mut self, patterns: Vec<String>) -> usize {
        self.blocks.push(Block { patterns, settings: Vec::new() });
        self.blocks.len() - 1
    }

    fn file(&mut self, source: &SourceText<'_>, depth: usize) -> Result<(), InventoryError> {
        // `None` inside of a `Match`.
        let mut block = Some(self.blocks.len() - 1);
        for (line, text) in source.lines() {
            let Some((word, value)) = keyword(text) else { continue };
            if self.blocks.len() >= BLOCKS_MAX {
                let flaw = Flaw::new(format!("more than {BLOCKS_MAX} blocks"), "split the file");
                return Err(source.at(line, flaw));
            }
            match word.as_str() {
                "host" => {
                    let patterns = words(value);
                    for name in patterns.iter().filter(|p| !p.contains(['*', '?', '!'])) {
                        self.draft.host(name).map_err(|flaw| source.at(line, flaw))?;
                    }
                    block = Some(self.begin(patterns));
                }
                "match" => {
                    block = None;
                    let why = "whether it fits is known only when ssh connects; its settings are left to ssh";
                    self.draft.ignore(line, format!("Match {value}"), why);
                }
                "include" => {
                    let patterns = block.map_or(Vec::new(), |block| self.blocks[block].patterns.clone());
                    for pattern in words(value) {
                        self.include(source, line, &pattern, &patterns, depth)?;
                    }
                    // The block goes on behind the files.
                    block = block.map(|_| self.begin(patterns));
                }
                _ => {
                    let value = words(value).into_iter().next().unwrap_or_default();
                    if word == "port" {
                        port(&value).map_err(|flaw| source.at(line, flaw))?;
                    }
                    if let Some(block) = block {
                        let file = (depth > 0).then(|| source.file.to_owned());
                        self.blocks[block].settings.push(Setting { word, value, line, file });
                    }
                }
            }
        }
        Ok(())
    }

    fn include(
        &mut self,
        source: &SourceText<'_>,
        line: usize,
        pattern: &str,
        patterns: &[String],
        depth: usize,
    ) -> Result<(), InventoryError> {
        let circle =
            |what: String| source.at(line, Flaw::new(what, "do they include each other in a circle?"));
        if depth >= DEPTH_MAX {
            return Err(circle(format!("files include each other more than {DEPTH_MAX} deep")));
        }
        let files = match (source.include)(pattern) {
            Ok(files) => files,
            Err(why) => {
                self.draft.ignore(line, format!("Include {pattern}"), why);
                return Ok(());
            }
        };
        for (file, text) in files {
            self.files += 1;
            if self.files > FILES_MAX {
                return Err(circle(format!("more than {FILES_MAX} included files")));
            }
            // What stands in the file before its first `Host` belongs to the block of the `Include`.
            self.begin(patterns.to_vec());
            self.file(&SourceText { file: &file, text: &text, ..*source }, depth + 1)?;
        }
        Ok(())
    }

    /// The first value of each keyword that fits a host. Blocks for one name are found by the name.
    fn settings(&self, name: &str, named: &BTreeMap<&str, Vec<usize>>, like: &[usize]) -> Vec<&Setting> {
        let mut blocks: Vec<usize> = named.get(name).into_iter().flatten().chain(like).copied().collect();
        blocks.sort_unstable();
        blocks.dedup();
        let mut found: Vec<&Setting> = Vec::new();
        for block in blocks.into_iter().map(|block| &self.blocks[block]).filter(|block| block.is_for(name)) {
            for setting in &block.settings {
                if found.iter().all(|known| known.word != setting.word) {
                    found.push(setting);
                }
            }
        }
        found
    }

    /// Gives every host what fits it.
    fn resolve(&mut self, known_to_ssh: bool) -> Result<(), Flaw> {
        let mut draft = std::mem::take(&mut self.draft);
        let (mut named, mut like) = (BTreeMap::<&str, Vec<usize>>::new(), Vec::new());
        for (number, block) in self.blocks.iter().enumerate() {
            if block.patterns.iter().any(|pattern| pattern.contains(['*', '?', '!'])) {
                like.push(number);
            } else {
                block.patterns.iter().for_each(|name| named.entry(name).or_default().push(number));
            }
        }
        for name in draft.host_names() {
            resolve_host(&mut draft, &name, &self.settings(&name, &named, &like), known_to_ssh)?;
        }
        self.draft = draft;
        Ok(())
    }
}

fn resolve_host(
    draft: &mut Draft,
    name: &str,
    settings: &[&Setting],
    known_to_ssh: bool,
) -> Result<(), Flaw> {
    let setting = |word: &str| settings.iter().find(|setting| setting.word == word);
    let line_of = |setting: &Setting| if setting.file.is_none() { setting.line } else { 0 };
    if let Some(setting) = setting("hostname") {
        let address = setting.value.replace("%h", name).replace("%%", "%");
        draft.reached_at(name, &address, line_of(setting))?;
    } else if let Ok(address) = name.parse() {
        draft.address(name, address, 0)?;
    }
    let user = setting("user").map(|user| user.value.clone()).filter(|user| !user.is_empty());
    let port_given = setting("port").map(|setting| port(&setting.value)).transpose()?;
    let reach = draft.reach(name)?;
    if known_to_ssh {
        // `ssh NAME` does all of it, and the jump hosts and keys of the block too.
        reach.address = None;
        return Ok(());
    }
    (reach.user, reach.port) = (user, port_given);
    for setting in settings.iter().filter(|setting| ONLY_FOR_SSH.contains(&setting.word.as_str())) {
        let origin =
            setting.file.as_ref().map_or(String::new(), |file| format!(" in {file}:{}", setting.line));
        let why = "only ssh itself can use it, when the host stands in ~/.ssh/config";
        draft.ignore(line_of(setting), format!("{}{origin} for {name}", setting.word), why);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_ssh() {
        let fits = |pattern: &str, name: &str| like(pattern.as_bytes(), name.as_bytes());
        assert!(fits("*", "a") && fits("n?", "n1") && fits("*.example.org", "a.example.org"));
        assert!(!fits("n?", "n12") && !fits("*.org", "a.com") && fits("a*b*c", "aXbYbZc") && !fits("", "a"));
        // No time that grows without bound.
        assert!(!fits(&"*a".repeat(2000), &"b".repeat(2000)));
    }

    #[test]
    fn words_lose_their_quotes() {
        assert_eq!(words("a \"b c\"  d # remark"), ["a", "b c", "d"]);
        assert_eq!(words("\"open"), ["open"]);
        assert_eq!(keyword("Port=22"), Some(("port".to_owned(), "22")));
        assert_eq!(keyword(" Port = 22"), Some(("port".to_owned(), "22")));
        assert_eq!(keyword("# Port 22"), None);
    }
}
