//! `modules-load.d`: modules that are loaded at boot before `sysctl.d` is applied (modules-load.d(5)). The
//! sysctls of a module that is loaded later, because a firewall or a container needs it, keep what the kernel
//! chose, whatever stands in `sysctl.d`; which comes first of a firewall and `sysctl.d` may be chance.

use super::owner::HostFiles;
use super::tree::Tree;
use crate::change::setting::{FileSyntax, Persist};

/// Beginnings of keys that exist only with a module.
const KEYS: [(&str, &str); 4] = [
    ("sysctl.net.bridge.", "br_netfilter"),
    ("sysctl.net.netfilter.nf_conntrack_", "nf_conntrack"),
    ("sysctl.net.nf_conntrack_", "nf_conntrack"),
    ("sysctl.sunrpc.", "sunrpc"),
];
const FOLDER: &str = "modules-load.d";
/// How the names of this program's files begin.
const OWN: &str = "90-linerate-";

/// The module without which a key does not exist; `None` where it is part of the kernel.
fn module_of(host: &HostFiles<'_>, key: &str) -> Option<&'static str> {
    let (_, module) = KEYS.into_iter().find(|(begin, _)| key.starts_with(begin))?;
    // What the kernel brings has parameters at most.
    let state = host.tree.beside(&format!("sys/module/{module}/initstate"))?;
    matches!(host.tree.read(&state), Ok(Some(_))).then_some(module)
}

/// Whether a file has it loaded before `sysctl.d` is applied, or a rule has that applied once it is loaded.
fn is_early(tree: &Tree<'_>, module: &str, counts: impl Fn(&str) -> bool) -> Result<bool, String> {
    // The file of Debian that is older than the folder.
    let old = [tree.etc("modules")];
    for file in tree.merged(FOLDER, ".conf")?.iter().chain(&old).filter(|file| counts(file)) {
        let text = tree.read(file)?.unwrap_or_default();
        if text.lines().any(|line| line.trim().replace('-', "_") == module) {
            return Ok(true);
        }
    }
    for file in tree.merged("udev/rules.d", ".rules")? {
        let text = tree.read(&file)?.unwrap_or_default();
        if text.lines().any(|line| line.contains(module) && line.contains("sysctl")) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The module that nothing loads before `sysctl.d` is applied: a line for this key may do nothing.
pub(super) fn late(host: &HostFiles<'_>, key: &str) -> Result<Option<&'static str>, String> {
    let Some(module) = module_of(host, key) else { return Ok(None) };
    Ok((!is_early(&host.tree, module, |_| true)?).then_some(module))
}

/// What has to be written beside the value, so that it counts: in a file of its own for each key, since
/// another trial may need the same module for longer. What cannot be read loads nothing.
pub(super) fn persist(host: &HostFiles<'_>, key: &str) -> Option<Persist> {
    let module = module_of(host, key)?;
    let is_other = |file: &str| !file.rsplit('/').next().unwrap_or_default().starts_with(OWN);
    if is_early(&host.tree, module, is_other).unwrap_or(false) {
        return None;
    }
    let name = key.rsplit('.').next().unwrap_or_default();
    Some(Persist::File {
        path: format!("{FOLDER}/{OWN}{name}.conf").into(),
        preamble: "# Written by linerate; `linerate undo` takes its line out.\n".to_owned(),
        section: None,
        syntax: FileSyntax::Word,
        name: module.to_owned(),
        line: module.to_owned(),
    })
}
