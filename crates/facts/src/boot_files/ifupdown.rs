//! ifupdown: options of the stanzas of `/etc/network/interfaces` (interfaces(5)) and of ethtool's scripts for
//! it, commands there, and the scripts of `if-pre-up.d` and `if-up.d`, for devices that it brings up at boot.

use super::super::view::split_key;
use super::flow::Variables;
use super::hooks;
use super::nic_words;
use super::owner::{HostFiles, Kept, Line, Owner, Unclear, glob, shown};
use super::script::Script;
use crate::change::lines;
use crate::change::setting::{FileSyntax, Persist};

/// The owner.
pub(super) struct Ifupdown;

/// Below `/etc`.
const FILE: &str = "network/interfaces";
/// Files that one may source, in turn.
const FILES_MAX: usize = 64;
/// Methods that know the option `mtu` (interfaces(5)).
const WITH_MTU: [&str; 3] = ["static", "manual", "dhcp"];

/// What is run before the device is up, and after: options with commands, then a folder of scripts.
const BEFORE: Phase = Phase { options: &["pre-up"], folder: "network/if-pre-up.d", name: "pre-up" };
const AFTER: Phase = Phase { options: &["up", "post-up"], folder: "network/if-up.d", name: "post-up" };
struct Phase {
    options: &'static [&'static str],
    /// Below `/etc`.
    folder: &'static str,
    /// As scripts see it.
    name: &'static str,
}

impl Owner for Ifupdown {
    fn name(&self) -> &'static str {
        "ifupdown"
    }

    fn sets(&self) -> &'static str {
        "*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let mut found = Vec::new();
        for stanza in stanzas(host)? {
            found.extend(stanza.run(host, &BEFORE)?.lines);
            for (key, now) in &host.settings {
                let Some((nic, field)) = split_key(key) else { continue };
                if nic != stanza.device {
                    continue;
                }
                let Some(word) = nic_words::ifupdown(field, now) else { continue };
                let set = stanza.options.iter().filter(|option| option.name == word.name);
                found.extend(set.map(|option| Line {
                    key: key.clone(),
                    value: shown(&option.value, word.value.as_deref().unwrap_or_default(), now),
                    at: format!("{}:{}", stanza.path, option.number),
                }));
            }
            found.extend(stanza.run(host, &AFTER)?.lines);
        }
        Ok(found)
    }

    fn unclear(&self, host: &HostFiles<'_>) -> Result<Vec<Unclear>, String> {
        let mut whole = Script::default();
        for stanza in stanzas(host)? {
            whole.extend(stanza.run(host, &BEFORE)?);
            whole.extend(stanza.run(host, &AFTER)?);
        }
        Ok(whole.unclear)
    }

    /// In the stanza that sets it, the MTU in the first one of the device.
    fn persist(&self, host: &HostFiles<'_>, kept: &Kept<'_>) -> Result<Option<Persist>, String> {
        let Some((nic, field)) = split_key(kept.key) else { return Ok(None) };
        let Some(word) = nic_words::ifupdown(field, kept.value) else { return Ok(None) };
        let stanzas = stanzas(host)?;
        let mut own = stanzas.iter().filter(|stanza| stanza.device == nic);
        let sets = |stanza: &&Stanza| stanza.options.iter().any(|option| option.name == word.name);
        let takes_mtu = |stanza: &&Stanza| {
            field == "mtu" && stanza.family == "inet" && WITH_MTU.contains(&stanza.method.as_str())
        };
        let last = own.clone().rfind(sets).or_else(|| own.find(takes_mtu));
        let (Some(stanza), Some(value)) = (last, word.value) else { return Ok(None) };
        let Some(path) = host.tree.below_etc(&stanza.path) else {
            return Err(format!("{} is not below the folder of settings", stanza.path));
        };
        Ok(Some(Persist::File {
            path,
            preamble: String::new(),
            section: Some(stanza.head.clone()),
            syntax: FileSyntax::Stanza,
            line: format!("    {} {value}", word.name),
            name: word.name,
        }))
    }
}

/// What a stanza sets.
struct Stanza {
    path: String,
    /// Its first line.
    head: String,
    device: String,
    family: String,
    method: String,
    options: Vec<StanzaOption>,
    /// Whether the scripts of the folders are run for it.
    has_scripts: bool,
}

impl Stanza {
    /// What is run in a phase.
    fn run(&self, host: &HostFiles<'_>, phase: &Phase) -> Result<Script, String> {
        let (mut whole, variables) = (Script::default(), self.variables(phase));
        for option in self.options.iter().filter(|option| phase.options.contains(&option.name.as_str())) {
            whole.extend(Script::read(host, &option.value, &self.path, option.number - 1, &variables)?);
        }
        if self.has_scripts {
            whole.extend(hooks::read(host, &[host.tree.etc(phase.folder)], hooks::is_run_part, &variables)?);
        }
        Ok(whole)
    }

    /// What commands and scripts see of the stanza (interfaces(5)).
    fn variables(&self, phase: &Phase) -> Variables {
        let mut known = Variables::new([
            ("IFACE", self.device.as_str()),
            ("LOGICAL", &self.device),
            ("ADDRFAM", &self.family),
            ("METHOD", &self.method),
            ("MODE", "start"),
            ("PHASE", phase.name),
            ("VERBOSITY", "0"),
        ]);
        for option in &self.options {
            let name = option.name.to_ascii_uppercase().replace('-', "_");
            known.insert(format!("IF_{name}"), option.value.clone());
        }
        known.others_empty("IF_")
    }
}

struct StanzaOption {
    number: usize,
    name: String,
    value: String,
}

/// Stanzas of the devices that are brought up at boot, in the order in which they count.
fn stanzas(host: &HostFiles<'_>) -> Result<Vec<Stanza>, String> {
    let mut found = Vec::new();
    if !host.starts("networking.service")? {
        return Ok(found);
    }
    let (mut up, mut plain, mut files) = (Vec::new(), Vec::new(), vec![host.tree.etc(FILE)]);
    let mut read = 0;
    while let Some(path) = files.pop() {
        read += 1;
        if read > FILES_MAX {
            return Err(format!("{path}: more than {FILES_MAX} files source each other"));
        }
        let text = host.tree.read(&path)?.unwrap_or_default();
        for (at, line) in whole_lines(&text) {
            let line = line.as_str();
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[..] {
                ["iface", device, family, method, ..] => found.push(Stanza {
                    path: path.clone(),
                    head: line.trim().to_owned(),
                    device: device.to_owned(),
                    family: family.to_owned(),
                    method: method.to_owned(),
                    options: Vec::new(),
                    has_scripts: true,
                }),
                ["auto" | "allow-auto" | "allow-hotplug", ref devices @ ..] => {
                    up.extend(devices.iter().map(|device| (*device).to_owned()));
                }
                ["no-scripts", ref devices @ ..] => {
                    plain.extend(devices.iter().map(|device| (*device).to_owned()));
                }
                ["source", pattern] => files.extend(sourced(host, pattern)?),
                ["source-directory", folder] => files.extend(sourced(host, &format!("{folder}/*"))?),
                [name, ..] if !lines::begins_section(line, FileSyntax::Stanza) && !name.starts_with('#') => {
                    let value = line.trim().strip_prefix(name).unwrap_or_default().trim().to_owned();
                    let option = StanzaOption { number: at + 1, name: name.to_owned(), value };
                    if let Some(stanza) = found.last_mut().filter(|stanza| stanza.path == path) {
                        stanza.options.push(option);
                    }
                }
                _ => {}
            }
        }
    }
    let is_of = |patterns: &[String], stanza: &Stanza| {
        patterns.iter().any(|pattern| glob(pattern.as_bytes(), stanza.device.as_bytes()))
    };
    found.retain(|stanza| is_of(&up, stanza));
    for stanza in &mut found {
        stanza.has_scripts = !is_of(&plain, stanza);
    }
    Ok(found)
}

/// The lines of a file, each with those that a `\` at its end joins to it, and the index of its first one.
fn whole_lines(text: &str) -> Vec<(usize, String)> {
    let mut whole: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    for (at, line) in text.lines().enumerate() {
        let (part, continues) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match whole.last_mut().filter(|_| is_open) {
            Some((_, begun)) => begun.push_str(part),
            None => whole.push((at, part.to_owned())),
        }
        is_open = continues;
    }
    whole
}

/// Files of a pattern whose last part alone has wildcards; those of a relative one are beside the main file.
fn sourced(host: &HostFiles<'_>, pattern: &str) -> Result<Vec<String>, String> {
    let below = match pattern.strip_prefix("/etc/") {
        Some(below) => below.to_owned(),
        None if pattern.starts_with('/') => return Ok(Vec::new()),
        None => format!("network/{pattern}"),
    };
    let (folder, name) = below.rsplit_once('/').unwrap_or(("", &below));
    let folder = host.tree.etc(folder);
    let mut names = host.tree.list(&folder)?;
    names.retain(|own| glob(name.as_bytes(), own.as_bytes()) && !own.starts_with('.'));
    // They are taken from the end.
    names.sort_unstable_by(|a, b| b.cmp(a));
    Ok(names.into_iter().map(|name| format!("{folder}/{name}")).collect())
}
