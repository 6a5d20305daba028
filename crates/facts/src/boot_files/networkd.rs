//! systemd-networkd: the MTU of `.network` files, set after that of `.link` files. The first file that
//! matches a device is the only one that counts (systemd.network(5)). Those that netplan makes are netplan's.

use std::path::Path;

use super::super::view::split_key;
use super::owner::{HostFiles, Kept, Line, Owner, fields, glob};
use crate::change::setting::{FileSyntax, Persist};

/// The owner.
pub(super) struct Networkd;

const FOLDER: &str = "systemd/network";
/// Beginning of the names of the files that netplan makes.
const OF_NETPLAN: &str = "10-netplan-";
/// Name of the file of this program in the folder of a `.network` file.
const OWN: &str = "90-linerate.conf";

impl Owner for Networkd {
    fn name(&self) -> &'static str {
        "networkd"
    }

    fn sets(&self) -> &'static str {
        "nic.*.mtu"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let mut lines = Vec::new();
        for (key, _) in &host.settings {
            let Some((nic, "mtu")) = split_key(key) else { continue };
            let Some(file) = matching(host, &nic)? else { continue };
            for (path, text) in file.parts {
                let set = fields(&text, "[Link]").filter(|(_, name, _)| *name == "MTUBytes").last();
                lines.extend(set.map(|(number, _, value)| Line {
                    key: key.clone(),
                    value: value.to_owned(),
                    at: format!("{path}:{number}"),
                }));
            }
        }
        Ok(lines)
    }

    /// In a file beside the one that sets it, for a device alone.
    fn persist(&self, host: &HostFiles<'_>, kept: &Kept<'_>) -> Result<Option<Persist>, String> {
        let Some((nic, "mtu")) = split_key(kept.key) else { return Ok(None) };
        let Some(at) = self.lines(host)?.pop().map(|line| line.at) else { return Ok(None) };
        let Some(file) = matching(host, &nic)?.filter(|file| file.is_exact) else {
            return Err(format!("{at} sets it for more devices than {nic}"));
        };
        Ok(Some(Persist::File {
            path: Path::new(FOLDER).join(format!("{}.d", file.name)).join(OWN),
            preamble: "# Written by linerate; `linerate undo` takes its lines out.\n[Link]\n".to_owned(),
            section: Some("[Link]".to_owned()),
            syntax: FileSyntax::Assign,
            name: "MTUBytes".to_owned(),
            line: format!("MTUBytes={}", kept.value),
        }))
    }
}

/// The devices that it configures, also with files that netplan makes.
pub(super) fn devices(host: &HostFiles<'_>) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    if !host.starts("systemd-networkd.service")? {
        return Ok(found);
    }
    let mut patterns = Vec::new();
    for path in host.tree.merged(FOLDER, ".network")? {
        let text = host.tree.read(&path)?.unwrap_or_default();
        let names = fields(&text, "[Match]").filter(|(_, name, _)| *name == "Name");
        patterns.extend(names.flat_map(|(_, _, value)| value.split_whitespace()).map(str::to_owned));
    }
    let fits = |name: &str| patterns.iter().any(|pattern| glob(pattern.as_bytes(), name.as_bytes()));
    found.extend(host.view.links().iter().map(|link| link.name.clone()).filter(|name| fits(name)));
    Ok(found)
}

/// A file with what is beside it.
struct NetworkFile {
    name: String,
    /// Path and text, the file itself first.
    parts: Vec<(String, String)>,
    /// Whether it is for this device alone.
    is_exact: bool,
}

fn matching(host: &HostFiles<'_>, nic: &str) -> Result<Option<NetworkFile>, String> {
    if !host.starts("systemd-networkd.service")? {
        return Ok(None);
    }
    for path in host.tree.merged(FOLDER, ".network")? {
        let text = host.tree.read(&path)?.unwrap_or_default();
        let mut names = fields(&text, "[Match]").filter(|(_, name, _)| *name == "Name");
        let patterns = names.next().map_or("", |(_, _, value)| value);
        if !patterns.split_whitespace().any(|pattern| glob(pattern.as_bytes(), nic.as_bytes())) {
            continue;
        }
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        if name.starts_with(OF_NETPLAN) {
            return Ok(None);
        }
        let mut parts = vec![(path, text.clone())];
        for beside in host.tree.merged(&format!("{FOLDER}/{name}.d"), ".conf")? {
            let text = host.tree.read(&beside)?.unwrap_or_default();
            parts.push((beside, text));
        }
        return Ok(Some(NetworkFile { name, parts, is_exact: patterns == nic }));
    }
    Ok(None)
}
