//! Units that `linerate keep` wrote: they give a value after a boot where they run what it would run for the
//! value in force. Its lines in files of others, and its own files of their kind, are read with all others.

use super::super::setting_for;
use super::owner::{HostFiles, Line, Owner};
use crate::change::setting::Persist;
use crate::change::unit;

/// The owner.
pub(super) struct Own;

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
        if !wants.iter().any(|name| name.starts_with("linerate-")) {
            return Ok(Vec::new());
        }
        let mut lines = Vec::new();
        for (key, now) in &host.settings {
            let Some(Persist::Unit { name, exec, .. }) = setting_for(key).map(|s| s.persist(key, now)) else {
                continue;
            };
            let path = tree.etc(&format!("systemd/system/{name}.service"));
            let is_enabled = wants.contains(&format!("{name}.service"));
            let is_own = |text: &String| unit::unit_exec(text).eq(exec.iter().map(String::as_str));
            let found = tree.read(&path)?.filter(|_| is_enabled).filter(is_own).map(|_| format!("{path}:1"));
            lines.extend(found.map(|at| Line { key: key.clone(), value: now.to_string(), at }));
        }
        Ok(lines)
    }
}
