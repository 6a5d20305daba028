//! tuned: what its active profile and those that it includes set, where the service is enabled: sysctls, and
//! what its plugins for NICs, drives and CPUs do. Sections with conditions are not read.

use std::path::PathBuf;

use linerate_model::fact::FactValue;

use super::nic_words;
use super::owner::{HostFiles, Kept, Line, Owner, fields, glob, shown};
use super::sysctl_d;
use super::tree::Tree;
use crate::change::setting::{FileSyntax, Persist};
use crate::view::split_key;

/// The owner.
pub(super) struct Tuned;

/// Profiles that include each other: a bound against a circle.
const PROFILES_MAX: usize = 32;
/// Where it searches for a profile first, below `/etc`; the first folder is that of newer versions.
const FOLDERS: [&str; 2] = ["tuned/profiles", "tuned"];

impl Owner for Tuned {
    fn name(&self) -> &'static str {
        "tuned"
    }

    fn sets(&self) -> &'static str {
        "*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let mut lines = Vec::new();
        let mut read = Vec::new();
        for profile in active(host)? {
            read_profile(&host.tree, &profile, &mut read)?;
        }
        for (path, text) in &read {
            lines.extend(sysctls(path, text));
            lines.extend(of_devices(host, path, text));
        }
        // By default tuned applies the sysctls of the administrator again after its own (tuned-main.conf(5)).
        let has_sysctls = lines.iter().any(|line| line.key.starts_with("sysctl."));
        let wanted = |line: &Line| host.wants(&line.key) && !line.value.contains("${");
        lines.retain(wanted);
        lines.retain_mut(|line| {
            let now = host.settings.iter().find(|(key, _)| *key == line.key).map(|(_, now)| now);
            let made = now.map_or(Some(line.value.clone()), |now| made_of(&line.value, now));
            made.map(|value| line.value = value).is_some()
        });
        if has_sysctls && applies_again(&host.tree)? {
            let roots = [Some(host.tree.etc("")), host.tree.beside("run").map(|run| run + "/")];
            let own = sysctl_d::SysctlD.lines(host)?;
            let is_again =
                |line: &&Line| roots.iter().flatten().any(|root| line.at.starts_with(root.as_str()));
            let again: Vec<&str> = own.iter().filter(is_again).map(|line| line.key.as_str()).collect();
            lines.retain(|line| !again.contains(&line.key.as_str()));
            // The last one, also where systemd does not read it.
            let conf = host.tree.etc(sysctl_d::CONF);
            let text = host.tree.read(&conf)?.unwrap_or_default();
            lines.extend(sysctl_d::of(&conf, &text).into_iter().filter(wanted));
        }
        Ok(lines)
    }

    /// In the profile itself. One of the distribution is included by one of the same name below `/etc`.
    fn persist(&self, host: &HostFiles<'_>, kept: &Kept<'_>) -> Result<Option<Persist>, String> {
        let (Some(name), Some(line)) = (kept.key.strip_prefix("sysctl."), self.lines(host)?.pop()) else {
            return Ok(None);
        };
        let conf = host.tree.etc(sysctl_d::CONF);
        let sign = Persist::File {
            path: PathBuf::from(sysctl_d::CONF),
            preamble: String::new(),
            section: None,
            syntax: FileSyntax::Assign,
            name: name.to_owned(),
            line: format!("{name} = {}", kept.value),
        };
        if line.at.starts_with(&conf) {
            return Ok(Some(sign));
        }
        if applies_again(&host.tree)? {
            // A line below `/etc` counts after it.
            return Ok(None);
        }
        let Some(profile) = active(host)?.pop() else { return Ok(None) };
        let mut path = PathBuf::from(FOLDERS[1]);
        for folder in FOLDERS {
            let is_here = host.tree.read(&host.tree.etc(&format!("{folder}/{profile}/{FILE}")))?.is_some();
            if is_here || folder == FOLDERS[0] && !host.tree.list(&host.tree.etc(folder))?.is_empty() {
                path = PathBuf::from(folder);
                break;
            }
        }
        Ok(Some(Persist::File {
            path: path.join(&profile).join(FILE),
            preamble: format!(
                "# Written by linerate; `linerate undo` takes its lines out.\n[main]\ninclude={profile}\n\n[sysctl]\n"
            ),
            section: Some("[sysctl]".to_owned()),
            syntax: FileSyntax::Assign,
            name: name.to_owned(),
            line: format!("{name}={}", kept.value),
        }))
    }
}

const FILE: &str = "tuned.conf";

/// The active profiles in their order; none where it does not start at boot.
fn active(host: &HostFiles<'_>) -> Result<Vec<String>, String> {
    if !host.starts("tuned.service")? {
        return Ok(Vec::new());
    }
    let text = host.tree.read(&host.tree.etc("tuned/active_profile"))?.unwrap_or_default();
    let is_plain = |name: &&str| !name.contains('/') && *name != ".." && *name != ".";
    Ok(text.split_whitespace().filter(is_plain).map(str::to_owned).collect())
}

fn applies_again(tree: &Tree<'_>) -> Result<bool, String> {
    let main = tree.read(&tree.etc("tuned/tuned-main.conf"))?.unwrap_or_default();
    let again = fields(&main, "").filter(|(_, name, _)| *name == "reapply_sysctl").last();
    Ok(again.is_none_or(|(_, _, value)| matches!(value, "1" | "true" | "True")))
}

/// Adds path and text of a profile, of those that it includes before its own. One that includes its own name
/// means the next file of that name.
fn read_profile(tree: &Tree<'_>, profile: &str, read: &mut Vec<(String, String)>) -> Result<(), String> {
    fn add(
        tree: &Tree<'_>,
        profile: &str,
        seen: &mut Vec<String>,
        read: &mut Vec<(String, String)>,
    ) -> Result<(), String> {
        let is_plain = !profile.is_empty() && !profile.contains('/') && profile != "..";
        if seen.len() >= PROFILES_MAX || !is_plain {
            return Ok(());
        }
        let file = |folder: String| format!("{folder}/{profile}/{FILE}");
        let own = FOLDERS.map(|folder| Some(tree.etc(folder)));
        let usual = FOLDERS.map(|folder| tree.beside(&format!("usr/lib/{folder}")));
        for path in own.into_iter().chain(usual).flatten().map(file) {
            if seen.contains(&path) {
                continue;
            }
            let Some(text) = tree.read(&path)? else { continue };
            seen.push(path.clone());
            for (_, _, names) in fields(&text, "[main]").filter(|(_, name, _)| *name == "include") {
                for name in names.split([',', ';']) {
                    add(tree, name.trim(), seen, read)?;
                }
            }
            read.push((path, text));
            return Ok(());
        }
        Ok(())
    }
    add(tree, profile, &mut Vec::new(), read)
}

fn sysctls(path: &str, text: &str) -> Vec<Line> {
    let of = |(number, name, value): (usize, &str, &str)| {
        let mut set = sysctl_d::of(path, &format!("{name} = {}", value.trim_matches('"')));
        for line in &mut set {
            line.at = format!("{path}:{number}");
        }
        set
    };
    fields(text, "[sysctl]").flat_map(of).collect()
}

/// Options of the plugin `net`, with the beginning of the keys that they set.
const NET: [(&str, &str); 5] = [
    ("features", "feature."),
    ("coalesce", "coalesce."),
    ("ring", "ring."),
    ("pause", "pause."),
    ("channels", "channels."),
];
/// Options of the plugin `disk`, with the settings that they are.
const DISK: [(&str, &str); 2] = [("readahead", "read_ahead_kb"), ("elevator", "scheduler")];

/// What the sections of plugins for devices set on those that are asked for.
fn of_devices(host: &HostFiles<'_>, path: &str, text: &str) -> Vec<Line> {
    let mut lines = Vec::new();
    for (key, now) in &host.settings {
        let (section, device, field) = if let Some((nic, field)) = split_key(key) {
            ("[net]", nic, field)
        } else if let Some((drive, field)) = key.strip_prefix("disk.").and_then(|rest| rest.split_once('.')) {
            ("[disk]", drive.to_owned(), field)
        } else if key == "cpu.governor" {
            ("[cpu]", String::new(), "governor")
        } else {
            continue;
        };
        if !is_meant(text, section, &device) {
            continue;
        }
        for (number, name, value) in fields(text, section) {
            let in_list = NET.iter().find(|(option, _)| section == "[net]" && *option == name);
            let of_drive = DISK.iter().find(|(option, _)| section == "[disk]" && *option == name);
            let found = match (in_list, of_drive) {
                (Some((_, start)), _) => {
                    field.strip_prefix(start).and_then(|field| pair(value, &nic_words::short(field)))
                }
                (_, Some((_, setting))) => (*setting == field).then_some(value),
                _ => (field == name).then(|| value.split('|').next().unwrap_or_default()),
            };
            let at = format!("{path}:{number}");
            lines.extend(found.map(|value| Line { key: key.clone(), value: shown(value, "", now), at }));
        }
    }
    lines
}

/// Whether a section of a plugin is about a device.
fn is_meant(text: &str, section: &str, device: &str) -> bool {
    let devices =
        fields(text, section).find(|(_, name, _)| *name == "devices").map_or("*", |(_, _, value)| value);
    let fits = |pattern: &str| glob(pattern.trim().as_bytes(), device.as_bytes());
    let (not, only): (Vec<&str>, Vec<&str>) = devices.split(',').partition(|one| one.trim().starts_with('!'));
    !not.iter().any(|one| fits(one.trim().trim_start_matches('!')))
        && (only.is_empty() || only.into_iter().any(fits))
}

/// What a value of a profile makes of the one in force: `>4096` raises a smaller one, `<10` lowers a larger
/// one. `None` where it changes nothing.
fn made_of(value: &str, now: &FactValue) -> Option<String> {
    let (is_least, limit) = match (value.strip_prefix('>'), value.strip_prefix('<')) {
        (Some(limit), _) => (true, limit.trim()),
        (_, Some(limit)) => (false, limit.trim()),
        _ => return Some(value.to_owned()),
    };
    let changes = match (now, limit.parse::<i64>()) {
        (FactValue::Int(now), Ok(limit)) => {
            if is_least {
                *now < limit
            } else {
                *now > limit
            }
        }
        _ => true,
    };
    changes.then(|| limit.to_owned())
}

/// The value of a name in `rx 1024 tx 512`.
fn pair<'v>(text: &'v str, name: &str) -> Option<&'v str> {
    let words: Vec<&str> =
        text.trim_matches('"').split([' ', '\t', ':', '=', ',']).filter(|word| !word.is_empty()).collect();
    words.chunks(2).find(|pair| pair[0] == name).and_then(|pair| pair.get(1).copied())
}
