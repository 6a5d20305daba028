//! `rc.local`: the script that `rc-local.service` runs at the end of a boot, where it may be executed
//! (systemd-rc-local-generator(8)).

use super::flow::Variables;
use super::owner::HostFiles;
use super::script::{OwnerOfScripts, Script};

/// The owner.
pub(super) const RC_LOCAL: OwnerOfScripts = OwnerOfScripts { name: "rc.local", read };

/// Below `/etc`: of Debian and of Red Hat, where the former is a link to the latter.
const FILES: [&str; 2] = ["rc.local", "rc.d/rc.local"];
/// The unit, in the folders of units.
const UNITS: [&str; 2] = ["rc-local.service", "rc.local.service"];

fn read(host: &HostFiles<'_>) -> Result<Script, String> {
    for path in FILES.map(|file| host.tree.etc(file)) {
        let Some(text) = host.tree.read(&path)? else { continue };
        if !host.tree.is_executable(&path)? || !is_run(host)? {
            return Ok(Script::default());
        }
        return Script::of_file(host, &text, &path, &Variables::default());
    }
    Ok(Script::default())
}

/// Whether the unit is there and is not masked.
fn is_run(host: &HostFiles<'_>) -> Result<bool, String> {
    let tree = &host.tree;
    for unit in UNITS {
        // A link to `/dev/null` is an empty file.
        if let Some(text) = tree.read(&tree.etc(&format!("systemd/system/{unit}")))? {
            return Ok(!text.is_empty());
        }
    }
    let usual =
        ["usr/lib/systemd/system", "lib/systemd/system"].into_iter().filter_map(|dir| tree.beside(dir));
    for folder in usual {
        if tree.list(&folder)?.iter().any(|name| UNITS.contains(&name.as_str())) {
            return Ok(true);
        }
    }
    Ok(false)
}
