//! NetworkManager: keyfiles of the connections that it brings up at boot (nm-settings-keyfile(5)). What such
//! a file sets is set after `.link` files; what it does not name is left as it is.

use super::super::view::split_key;
use super::nic_words;
use super::owner::{HostFiles, Kept, Line, Owner, fields, shown};
use crate::change::setting::{FileSyntax, Persist};

/// The owner.
pub(super) struct NetworkManager;

/// Where its profiles are, below `/etc`.
const FOLDER: &str = "NetworkManager/system-connections";
/// Older names of sections, and of types of connections.
const ETHERNET: [&str; 2] = ["ethernet", "802-3-ethernet"];

impl Owner for NetworkManager {
    fn name(&self) -> &'static str {
        "NetworkManager"
    }

    fn sets(&self) -> &'static str {
        "nic.*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let profiles = profiles(host)?;
        let mut lines = Vec::new();
        for (key, now) in &host.settings {
            let Some((nic, field)) = split_key(key) else { continue };
            let Some((section, word)) = nic_words::network_manager(field, now) else { continue };
            for profile in of_nic(host, &profiles, &nic) {
                let set = in_section(&profile.text, section).filter(|(_, name, _)| *name == word.name).last();
                lines.extend(set.map(|(number, _, value)| Line {
                    key: key.clone(),
                    value: shown(value, word.value.as_deref().unwrap_or_default(), now),
                    at: format!("{}:{number}", profile.path),
                }));
            }
        }
        Ok(lines)
    }

    /// In the profile of the device.
    fn persist(&self, host: &HostFiles<'_>, kept: &Kept<'_>) -> Result<Option<Persist>, String> {
        let Some((nic, field)) = split_key(kept.key) else { return Ok(None) };
        let Some((section, word)) = nic_words::network_manager(field, kept.value) else { return Ok(None) };
        let profiles = profiles(host)?;
        let mut of_nic = of_nic(host, &profiles, &nic);
        let (Some(profile), None) = (of_nic.pop(), of_nic.pop()) else {
            // None, or which one it takes is not known from here: a line of one of them then refuses the
            // value.
            return Ok(None);
        };
        let is_own =
            profile.is_bound && host.tree.below_etc(&profile.path).is_some_and(|p| p.starts_with(FOLDER));
        let (Some(value), true) = (word.value, is_own) else { return Ok(None) };
        let path = host.tree.below_etc(&profile.path).unwrap_or_default();
        // A profile of an old version names its section as that did.
        let old = format!("[{}]", ETHERNET[1]);
        let section = if section == "[ethernet]" && profile.text.lines().any(|l| l.trim() == old) {
            &old
        } else {
            section
        };
        Ok(Some(Persist::File {
            path,
            preamble: String::new(),
            section: Some(section.to_owned()),
            syntax: FileSyntax::Assign,
            line: format!("{}={value}", word.name),
            name: word.name,
        }))
    }
}

/// The devices that it brings up at boot.
pub(super) fn devices(host: &HostFiles<'_>) -> Result<Vec<String>, String> {
    let profiles = profiles(host)?;
    let names = host.view.links().iter().map(|link| link.name.clone());
    Ok(names.filter(|nic| !of_nic(host, &profiles, nic).is_empty()).collect())
}

/// A connection that comes up at boot.
struct Profile {
    path: String,
    text: String,
    /// Whether it is for one device.
    is_bound: bool,
}

/// Connections of wired devices that come up by themselves.
fn profiles(host: &HostFiles<'_>) -> Result<Vec<Profile>, String> {
    if !host.starts("NetworkManager.service")? {
        return Ok(Vec::new());
    }
    let mut profiles = Vec::new();
    for path in host.tree.merged(FOLDER, ".nmconnection")? {
        let text = host.tree.read(&path)?.unwrap_or_default();
        let field =
            |section, wanted: &str| in_section(&text, section).filter(|(_, name, _)| *name == wanted).last();
        let kind = field("[connection]", "type").map_or("", |(_, _, value)| value);
        let is_wired = ETHERNET.contains(&kind) || ["bond", "bridge", "team", "vlan"].contains(&kind);
        let is_automatic = field("[connection]", "autoconnect").is_none_or(|(_, _, value)| value != "false");
        let is_bound =
            field("[connection]", "interface-name").is_some() || field("[ethernet]", "mac-address").is_some();
        if is_wired && is_automatic {
            profiles.push(Profile { path, text, is_bound });
        }
    }
    Ok(profiles)
}

/// The profiles that may be those of a device; where some are for it alone, only these.
fn of_nic<'p>(host: &HostFiles<'_>, profiles: &'p [Profile], nic: &str) -> Vec<&'p Profile> {
    let address = host.link(nic).and_then(|link| link.permanent_address.as_ref().or(link.address.as_ref()));
    let fits = |profile: &&Profile| {
        let value = |section, wanted: &str| {
            in_section(&profile.text, section)
                .filter(|(_, name, _)| *name == wanted)
                .map(|(_, _, value)| value)
                .last()
        };
        let name = value("[connection]", "interface-name");
        let hardware = value("[ethernet]", "mac-address");
        let has_address = |wanted: &str| address.is_some_and(|own| own.eq_ignore_ascii_case(wanted));
        name.is_none_or(|name| name == nic) && hardware.is_none_or(has_address)
    };
    let all: Vec<&Profile> = profiles.iter().filter(fits).collect();
    let bound: Vec<&Profile> = all.iter().copied().filter(|profile| profile.is_bound).collect();
    if bound.is_empty() { all } else { bound }
}

/// Number, name and value of the lines of a section, by its name of today or of old.
fn in_section<'t>(text: &'t str, section: &'static str) -> impl Iterator<Item = (usize, &'t str, &'t str)> {
    let old = if section == "[ethernet]" { "[802-3-ethernet]" } else { section };
    let older = fields(text, old).filter(move |_| old != section);
    fields(text, section).chain(older)
}
