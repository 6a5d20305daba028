//! Units and rules of udev that `linerate keep` wrote: they give a value after a boot where they are what it
//! would write for the value in force. Its lines in `sysctl.d` and `.link` files are read with all others.

use super::super::setting_for;
use super::owner::{HostFiles, Line, Owner};
use crate::change::persist;
use crate::change::setting::Persist;

/// The owner.
pub(super) struct Own;

/// Folders that are read by other owners.
const OTHERS: [&str; 2] = ["sysctl.d", "systemd/network"];

impl Owner for Own {
    fn name(&self) -> &'static str {
        "linerate"
    }

    fn sets(&self) -> &'static str {
        "*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let tree = &host.tree;
        let wants = tree.list(&tree.etc("systemd/system/multi-user.target.wants"))?;
        let rules = tree.list(&tree.etc("udev/rules.d"))?;
        if !wants.iter().chain(&rules).any(|name| name.contains("linerate-")) {
            return Ok(Vec::new());
        }
        let mut lines = Vec::new();
        for (key, now) in &host.settings {
            let found = match setting_for(key).map(|setting| setting.persist(key, now)) {
                Some(Persist::File { path, line, .. }) if !OTHERS.iter().any(|dir| path.starts_with(dir)) => {
                    let path = tree.etc(&path.display().to_string());
                    let text = tree.read(&path)?.unwrap_or_default();
                    text.lines().position(|own| own == line).map(|at| format!("{path}:{}", at + 1))
                }
                Some(Persist::Unit { name, description, exec }) => {
                    let path = tree.etc(&format!("systemd/system/{name}.service"));
                    let is_enabled = wants.contains(&format!("{name}.service"));
                    let text = tree.read(&path)?.filter(|_| is_enabled);
                    let is_own = text.as_deref() == Some(persist::unit_text(&description, &exec).as_str());
                    is_own.then(|| format!("{path}:1"))
                }
                _ => None,
            };
            lines.extend(found.map(|at| Line { key: key.clone(), value: now.to_string(), at }));
        }
        Ok(lines)
    }
}
