//! `.link` files of systemd: the first one that matches a device is the only one that counts
//! (systemd.link(5)). Those that netplan's generator writes below `/run` are read like all others.

use std::path::Path;

use linerate_sys::rtnetlink::NetDevice;

use super::super::view::split_key;
use super::super::{boot, setting_for};
use super::owner::{HostFiles, Kept, Line, Owner, fields, glob, shown};
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
        let files = files(host)?;
        let mut lines = Vec::new();
        for (key, now) in &host.settings {
            let Some((nic, _)) = split_key(key) else { continue };
            let Some((path, text)) = first(host, &files, &nic) else { continue };
            // A file that sets nothing but names is asked no further: it is the usual one.
            if !fields(text, "[Link]").any(|(_, name, _)| !NAMES.contains(&name)) {
                continue;
            }
            let Some(Persist::File { name: field, line, .. }) = setting_for(key).map(|s| s.persist(key, now))
            else {
                continue;
            };
            let set = fields(text, "[Link]").filter(|(_, name, _)| *name == field).last();
            lines.extend(set.map(|(number, _, value)| Line {
                key: key.clone(),
                value: shown(value, line.split_once('=').map_or("", |(_, own)| own.trim()), now),
                at: format!("{path}:{number}"),
            }));
        }
        Ok(lines)
    }

    /// The file of this program stands before all others, with what the one has that matches now.
    fn persist(&self, host: &HostFiles<'_>, kept: &Kept<'_>) -> Result<Option<Persist>, String> {
        let Persist::File { path, section, syntax, name, line, .. } = kept.usual else { return Ok(None) };
        let (true, Some((nic, _))) = (path.starts_with(FOLDER), split_key(kept.key)) else { return Ok(None) };
        let files = files(host)?;
        let Some((other, text)) = first(host, &files, &nic) else { return Ok(None) };
        let file_name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (own, found) = (file_name(path), file_name(Path::new(other)));
        let early = own.replacen("10-", "00-", 1);
        if found == own {
            return Ok(None);
        }
        if found == early {
            let (section, syntax, name, line) = (section.clone(), *syntax, name.clone(), line.clone());
            let path = Path::new(FOLDER).join(early);
            return Ok(Some(Persist::File { path, preamble: String::new(), section, syntax, name, line }));
        }
        let own = if own < found { own } else { early };
        if own >= found {
            return Err(format!("{other} matches {nic} before every file of this program"));
        }
        let (section, syntax, name, line) = (section.clone(), *syntax, name.clone(), line.clone());
        let preamble =
            boot::link_preamble(&nic, fields(text, "[Link]").map(|(_, name, value)| (name, value)));
        let path = Path::new(FOLDER).join(own);
        Ok(Some(Persist::File { path, preamble, section, syntax, name, line }))
    }
}

/// Where the files are.
const FOLDER: &str = "systemd/network";

/// Path and text of all files, in their order.
fn files(host: &HostFiles<'_>) -> Result<Vec<(String, String)>, String> {
    let read = |path: String| Ok((path.clone(), host.tree.read(&path)?.unwrap_or_default()));
    host.tree.merged(FOLDER, ".link")?.into_iter().map(read).collect()
}

/// The first file that matches a device.
fn first<'f>(host: &HostFiles<'_>, files: &'f [(String, String)], nic: &str) -> Option<&'f (String, String)> {
    let link = host.link(nic)?;
    let driver = host.view.nics().get(nic).and_then(|nic| nic.driver.as_ref()).map(|d| d.name.as_str());
    files.iter().find(|(_, text)| matches(text, link, driver))
}

/// Fields about names.
const NAMES: [&str; 6] =
    ["Name", "NamePolicy", "AlternativeName", "AlternativeNamesPolicy", "MACAddressPolicy", "Description"];

/// Whether all conditions of a file hold for a device. One that cannot be judged from here does not hold.
fn matches(text: &str, link: &NetDevice, driver: Option<&str>) -> bool {
    let mut conditions = fields(text, "[Match]").peekable();
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
