//! netplan: the MTU of devices in its YAML files, which its generator makes files of systemd-networkd or
//! NetworkManager of at every boot. Of two files that set the same, the one with the later name counts.

use std::path::{Path, PathBuf};

use super::super::boot::is_plain;
use super::super::view::split_key;
use super::owner::{HostFiles, Kept, Line, Owner};
use crate::change::setting::{FileSyntax, Persist};

/// The owner.
pub(super) struct Netplan;

const FOLDER: &str = "netplan";
/// Sections that hold devices.
const KINDS: [&str; 5] = ["ethernets", "bonds", "bridges", "vlans", "dummy-devices"];
const OWN: &str = "zz-linerate-";

impl Owner for Netplan {
    fn name(&self) -> &'static str {
        "netplan"
    }

    fn sets(&self) -> &'static str {
        "nic.*.mtu"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let fields = fields(host)?;
        let mut lines = Vec::new();
        for (key, _) in &host.settings {
            let Some((nic, "mtu")) = split_key(key) else { continue };
            let Some((kind, id)) = definition(host, &fields, &nic) else { continue };
            let set = fields.iter().filter(|f| f.path[..] == ["network", kind, id, "mtu"]);
            lines.extend(set.map(|f| Line { key: key.clone(), value: f.value.clone(), at: f.at.clone() }));
        }
        Ok(lines)
    }

    /// In a file whose name comes after all others.
    fn persist(&self, host: &HostFiles<'_>, kept: &Kept<'_>) -> Result<Option<Persist>, String> {
        let Some((nic, "mtu")) = split_key(kept.key) else { return Ok(None) };
        let fields = fields(host)?;
        let Some((kind, id)) = definition(host, &fields, &nic) else { return Ok(None) };
        if !is_plain(id) {
            return Err(format!("netplan's name '{id}' cannot stand in the name of a file"));
        }
        Ok(Some(Persist::File {
            path: PathBuf::from(format!("{FOLDER}/{OWN}{id}.yaml")),
            preamble: format!(
                "# Written by linerate; `linerate undo` takes its lines out.\nnetwork:\n  version: 2\n  {kind}:\n    {id}:\n"
            ),
            section: None,
            syntax: FileSyntax::Colon,
            name: "mtu".to_owned(),
            line: format!("      mtu: {}", kept.value),
        }))
    }
}

/// A value of a file, with the names of what it is in.
struct Field {
    path: Vec<String>,
    value: String,
    at: String,
}

/// Section and name under which a device stands: by its own name, its address, or the name that it is given.
fn definition<'f>(host: &HostFiles<'_>, fields: &'f [Field], nic: &str) -> Option<(&'f str, &'f str)> {
    let address = host.link(nic).and_then(|link| link.permanent_address.as_ref().or(link.address.as_ref()));
    let mut by_name = None;
    for field in fields {
        let [root, kind, id, rest @ ..] = &field.path[..] else { continue };
        if root != "network" || !KINDS.contains(&kind.as_str()) {
            continue;
        }
        let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
        let value = field.value.as_str();
        let is_given = match rest[..] {
            ["set-name"] | ["match", "name"] => value == nic,
            ["match", "macaddress"] => address.is_some_and(|own| own.eq_ignore_ascii_case(value)),
            _ => false,
        };
        if is_given {
            return Some((kind, id));
        }
        if id == nic {
            by_name = Some((kind.as_str(), id.as_str()));
        }
    }
    // One with conditions that do not fit is that of another device.
    let means_another = |(kind, id): &(&str, &str)| {
        fields
            .iter()
            .any(|f| f.path.len() > 3 && f.path[1] == *kind && f.path[2] == *id && f.path[3] == "match")
    };
    by_name.filter(|found| !means_another(found))
}

fn fields(host: &HostFiles<'_>) -> Result<Vec<Field>, String> {
    let mut fields = Vec::new();
    for path in files(host)? {
        let text = host.tree.read(&path)?.unwrap_or_default();
        read(&path, &text, &mut fields)?;
    }
    Ok(fields)
}

/// Files of the folders that netplan reads, by name; of one name that of `/run` counts before that of `/etc`.
fn files(host: &HostFiles<'_>) -> Result<Vec<String>, String> {
    let folders = [
        host.tree.beside(&format!("usr/lib/{FOLDER}")),
        Some(host.tree.etc(FOLDER)),
        host.tree.beside(&format!("run/{FOLDER}")),
    ];
    let mut files = std::collections::BTreeMap::new();
    for folder in folders.into_iter().flatten() {
        let is_yaml = |name: &String| Path::new(name).extension().is_some_and(|end| end == "yaml");
        for name in host.tree.list(&folder)?.into_iter().filter(is_yaml) {
            files.insert(name.clone(), format!("{folder}/{name}"));
        }
    }
    Ok(files.into_values().collect())
}

/// The part of YAML that people write for netplan: mappings by indentation, with plain or quoted values. What
/// stands in braces is not read: where it may hold an MTU, the file counts as one that cannot be read.
fn read(file: &str, text: &str, fields: &mut Vec<Field>) -> Result<(), String> {
    let mut above: Vec<(usize, String)> = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let content = line.split(" #").next().unwrap_or_default();
        let (indent, content) = (content.len() - content.trim_start().len(), content.trim());
        if content.is_empty() || content.starts_with(['#', '-']) {
            continue;
        }
        if content.contains('{') && content.contains("mtu") {
            return Err(format!("{file}:{}: a mapping in braces", at + 1));
        }
        let Some((name, value)) = content.split_once(':') else { continue };
        let plain = |text: &str| text.trim().trim_matches(['"', '\'']).to_owned();
        while above.last().is_some_and(|(outer, _)| *outer >= indent) {
            above.pop();
        }
        above.push((indent, plain(name)));
        let path = above.iter().map(|(_, name)| name.clone()).collect();
        fields.push(Field { path, value: plain(value), at: format!("{file}:{}", at + 1) });
    }
    Ok(())
}
