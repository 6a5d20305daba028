//! `ifcfg-*` of Red Hat: what the old network service, or the plugin of NetworkManager for these files, sets
//! on the devices that come up at boot. Newer versions of both read none.

use super::super::view::split_key;
use super::owner::{HostFiles, Line, Owner, Unclear, shown};
use super::programs::ethtool;
use super::script::Script;

/// The owner.
pub(super) struct Ifcfg;

/// Below `/etc`.
const FOLDER: &str = "sysconfig/network-scripts";
/// Ends of names that no reader takes.
const COPIES: [&str; 7] = ["~", ".bak", ".old", ".orig", ".rpmnew", ".rpmorig", ".rpmsave"];
/// The plugin of NetworkManager.
const PLUGIN: &str = "libnm-settings-plugin-ifcfg-rh.so";

impl Owner for Ifcfg {
    fn name(&self) -> &'static str {
        "ifcfg"
    }

    fn sets(&self) -> &'static str {
        "nic.*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        Ok(read(host)?.lines)
    }

    fn unclear(&self, host: &HostFiles<'_>) -> Result<Vec<Unclear>, String> {
        Ok(read(host)?.unclear)
    }
}

fn read(host: &HostFiles<'_>) -> Result<Script, String> {
    let mut script = Script::default();
    let has_service = is_service(host)?;
    let is_read = has_service || host.starts("NetworkManager.service")? && has_plugin(host)?;
    if !is_read {
        return Ok(script);
    }
    let mut names = host.tree.list(&host.tree.etc(FOLDER))?;
    names.retain(|name| name.starts_with("ifcfg-") && !COPIES.iter().any(|end| name.ends_with(end)));
    names.sort_unstable();
    for name in names {
        let path = host.tree.etc(&format!("{FOLDER}/{name}"));
        let file = IfcfgFile { text: host.tree.read(&path)?.unwrap_or_default(), path };
        let is_off =
            |field: &str| file.value(field).is_some_and(|(_, value)| value.eq_ignore_ascii_case("no"));
        if is_off("ONBOOT") || is_off("NM_CONTROLLED") && !has_service {
            continue;
        }
        let nic = device(host, &file, &name);
        mtu(host, &file, &nic, &mut script);
        options(host, &file, &nic, &mut script)?;
    }
    Ok(script)
}

/// The old service is one of scripts in folders of runlevels.
fn is_service(host: &HostFiles<'_>) -> Result<bool, String> {
    for folder in ["rc.d/rc3.d", "rc3.d"].map(|folder| host.tree.etc(folder)) {
        let is_start = |name: &String| {
            name.strip_prefix('S')
                .is_some_and(|name| name.trim_start_matches(|c: char| c.is_ascii_digit()) == "network")
        };
        if host.tree.list(&folder)?.iter().any(is_start) {
            return Ok(true);
        }
    }
    host.starts("network.service")
}

fn has_plugin(host: &HostFiles<'_>) -> Result<bool, String> {
    let folders = ["usr/lib64/NetworkManager", "usr/lib/NetworkManager"];
    for folder in folders.into_iter().filter_map(|folder| host.tree.beside(folder)) {
        for name in host.tree.list(&folder)? {
            // The folder of a version, beside files.
            let inside = host.tree.list(&format!("{folder}/{name}")).unwrap_or_default();
            if name == PLUGIN || inside.iter().any(|file| file == PLUGIN) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// A file of assignments of a shell.
struct IfcfgFile {
    path: String,
    text: String,
}

impl IfcfgFile {
    /// Line and value of a field, quotes taken off.
    fn value(&self, field: &str) -> Option<(usize, &str)> {
        let assignments = self.text.lines().enumerate().filter_map(|(at, line)| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == field).then(|| (at + 1, value.trim().trim_matches(['"', '\''])))
        });
        assignments.last()
    }
}

/// The device of a file: named, found by its address, or that of the file's own name.
fn device(host: &HostFiles<'_>, file: &IfcfgFile, name: &str) -> String {
    if let Some((_, device)) = file.value("DEVICE").filter(|(_, value)| !value.is_empty()) {
        return device.to_owned();
    }
    let by_address = file.value("HWADDR").and_then(|(_, address)| {
        let has = |own: &Option<String>| own.as_ref().is_some_and(|own| own.eq_ignore_ascii_case(address));
        host.view.links().iter().find(|link| has(&link.permanent_address) || has(&link.address))
    });
    by_address.map_or_else(|| name.trim_start_matches("ifcfg-").to_owned(), |link| link.name.clone())
}

fn mtu(host: &HostFiles<'_>, file: &IfcfgFile, nic: &str, script: &mut Script) {
    let Some((number, value)) = file.value("MTU").filter(|(_, value)| !value.is_empty()) else { return };
    let is_asked = |key: &str| split_key(key).is_some_and(|(name, field)| name == nic && field == "mtu");
    let found = host.settings.iter().find(|(key, _)| is_asked(key));
    script.lines.extend(found.map(|(key, now)| Line {
        key: key.clone(),
        value: shown(value, "", now),
        at: format!("{}:{number}", file.path),
    }));
}

/// Options of ethtool, several between `;`. Those that begin with no option are of `-s` (ifup-eth).
fn options(host: &HostFiles<'_>, file: &IfcfgFile, nic: &str, script: &mut Script) -> Result<(), String> {
    let Some((number, text)) = file.value("ETHTOOL_OPTS") else { return Ok(()) };
    let at = format!("{}:{number}", file.path);
    let text = text.replace("${DEVICE}", nic).replace("$DEVICE", nic).replace('$', "*");
    for part in text.split(';') {
        let mut words: Vec<&str> = part.split_whitespace().collect();
        if words.first().is_some_and(|word| !word.starts_with('-')) {
            words.splice(0..0, ["-s", nic]);
        }
        for effect in ethtool(&words) {
            script.add(host, effect, &at, "ethtool")?;
        }
    }
    Ok(())
}
