//! `.link` files of systemd: the first one that matches a device is the only one that counts
//! (systemd.link(5)). Those that netplan's generator writes below `/run` are read like all others.

use linerate_model::fact::FactValue;
use linerate_sys::rtnetlink::NetDevice;

use super::super::setting_for;
use super::super::view::split_key;
use super::owner::{HostFiles, Line, Owner};
use crate::change::setting::Persist;

/// The owner.
pub(super) struct LinkFiles;

impl Owner for LinkFiles {
    fn name(&self) -> &'static str {
        "link"
    }

    fn sets(&self) -> &'static str {
        "nic.*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let mut files = Vec::new();
        for path in host.tree.merged("systemd/network", ".link")? {
            let text = host.tree.read(&path)?.unwrap_or_default();
            files.push((path, text));
        }
        let mut lines = Vec::new();
        for (key, now) in &host.settings {
            let Some((nic, _)) = split_key(key) else { continue };
            let Some(link) = host.view.links().iter().find(|link| link.name == nic) else { continue };
            let driver =
                host.view.nics().get(&nic).and_then(|nic| nic.driver.as_ref()).map(|d| d.name.as_str());
            let Some((path, text)) = files.iter().find(|(_, text)| matches(text, link, driver)) else {
                continue;
            };
            // A file that sets nothing but names is asked no further: it is the usual one.
            if !section(text, "[Link]").any(|(_, name, _)| !NAMES.contains(&name)) {
                continue;
            }
            let Some(Persist::File { name: field, line, .. }) = setting_for(key).map(|s| s.persist(key, now))
            else {
                continue;
            };
            let set = section(text, "[Link]").filter(|(_, name, _)| *name == field).last();
            lines.extend(set.map(|(number, _, value)| Line {
                key: key.clone(),
                value: shown(value, &line, now),
                at: format!("{path}:{number}"),
            }));
        }
        Ok(lines)
    }
}

/// Fields about names.
const NAMES: [&str; 6] =
    ["Name", "NamePolicy", "AlternativeName", "AlternativeNamesPolicy", "MACAddressPolicy", "Description"];

/// Number, name and value of the lines of a section.
fn section<'t>(text: &'t str, wanted: &'t str) -> impl Iterator<Item = (usize, &'t str, &'t str)> {
    let mut is_in = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let line = line.trim();
        if line.starts_with('[') {
            is_in = line == wanted;
            return None;
        }
        let (name, value) = line.split_once('=').filter(|_| is_in && !line.starts_with(['#', ';']))?;
        Some((at + 1, name.trim(), value.trim()))
    })
}

/// Whether all conditions of a file hold for a device. One that cannot be judged from here does not hold.
fn matches(text: &str, link: &NetDevice, driver: Option<&str>) -> bool {
    let mut conditions = section(text, "[Match]").peekable();
    // A file without conditions is refused by systemd.
    conditions.peek().is_some()
        && conditions.all(|(_, name, patterns)| {
            let seen = match name {
                "OriginalName" => Some(link.name.as_str()),
                "Driver" => driver,
                "MACAddress" => link.address.as_deref(),
                "PermanentMACAddress" => link.permanent_address.as_deref(),
                "Kind" => link.kind.as_deref(),
                _ => None,
            };
            let is_address = name.ends_with("MACAddress");
            seen.is_some_and(|seen| fits(patterns, seen, is_address))
        })
}

/// Whether one of several patterns fits; with `!` in front none may.
fn fits(patterns: &str, seen: &str, is_address: bool) -> bool {
    let (is_inverse, patterns) = patterns.strip_prefix('!').map_or((false, patterns), |rest| (true, rest));
    let plain = |text: &str| text.to_ascii_lowercase().replace('-', ":");
    let fits = |pattern: &str| {
        if is_address { plain(pattern) == plain(seen) } else { glob(pattern.as_bytes(), seen.as_bytes()) }
    };
    patterns.split_whitespace().any(fits) != is_inverse
}

/// `*` and `?` as the shell has them.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|at| glob(rest, &text[at..])),
        Some((b'?', rest)) => !text.is_empty() && glob(rest, &text[1..]),
        Some((c, rest)) => text.first() == Some(c) && glob(rest, &text[1..]),
    }
}

/// A value of a file as a fact has it: the value in force where the file has the line that this program would
/// write for it.
fn shown(value: &str, line: &str, now: &FactValue) -> String {
    if line.split_once('=').is_some_and(|(_, own)| own.trim() == value) {
        return now.to_string();
    }
    match value.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" => "on".to_owned(),
        "no" | "false" | "off" => "off".to_owned(),
        "1" if matches!(now, FactValue::Flag(_)) => "on".to_owned(),
        "0" if matches!(now, FactValue::Flag(_)) => "off".to_owned(),
        other => other.strip_suffix("us").map_or_else(|| value.to_owned(), str::to_owned),
    }
}
