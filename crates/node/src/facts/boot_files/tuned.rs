//! tuned: the sysctls of its active profile and of those that it includes, where the service is enabled.

use super::owner::{HostFiles, Line, Owner};
use super::sysctl_d;
use super::tree::Tree;

/// The owner.
pub(super) struct Tuned;

/// Profiles that include each other: a bound against a circle.
const PROFILES_MAX: usize = 32;

impl Owner for Tuned {
    fn name(&self) -> &'static str {
        "tuned"
    }

    fn sets(&self) -> &'static str {
        "sysctl.*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let tree = &host.tree;
        let enabled = tree.list(&tree.etc("systemd/system/multi-user.target.wants"))?;
        if !enabled.iter().any(|name| name == "tuned.service") {
            return Ok(Vec::new());
        }
        let active = tree.read(&tree.etc("tuned/active_profile"))?.unwrap_or_default();
        let mut lines = Vec::new();
        for profile in active.split_whitespace() {
            lines.extend(of_profile(tree, profile, PROFILES_MAX)?);
        }
        let wanted = |line: &Line| host.wants(&line.key) && !line.value.contains("${");
        lines.retain(wanted);
        // By default tuned applies the sysctls of the administrator again after its own (tuned-main.conf(5)).
        let main = tree.read(&tree.etc("tuned/tuned-main.conf"))?.unwrap_or_default();
        let again = fields(&main, "").find(|(_, name, _)| *name == "reapply_sysctl");
        if again.is_none_or(|(_, _, value)| matches!(value, "1" | "true" | "True")) && !lines.is_empty() {
            let etc = tree.etc("");
            let own = sysctl_d::SysctlD.lines(host)?;
            let is_later =
                |line: &Line| line.at.starts_with(&etc) && lines.iter().any(|set| set.key == line.key);
            let overridden: Vec<String> = own.iter().filter(|l| is_later(l)).map(|l| l.key.clone()).collect();
            lines.retain(|line| !overridden.contains(&line.key));
        }
        Ok(lines)
    }
}

/// The sysctls of a profile, those that it includes before its own.
fn of_profile(tree: &Tree<'_>, profile: &str, left: usize) -> Result<Vec<Line>, String> {
    let is_plain = !profile.is_empty() && !profile.contains('/') && profile != "..";
    if left == 0 || !is_plain {
        return Ok(Vec::new());
    }
    let file = |folder: String| format!("{folder}/{profile}/tuned.conf");
    let own = ["tuned/profiles", "tuned"].map(|folder| Some(tree.etc(folder)));
    let usual = ["usr/lib/tuned/profiles", "usr/lib/tuned"].map(|folder| tree.beside(folder));
    for path in own.into_iter().chain(usual).flatten().map(file) {
        let Some(text) = tree.read(&path)? else { continue };
        let mut lines = Vec::new();
        for (_, _, names) in fields(&text, "[main]").filter(|(_, name, _)| *name == "include") {
            for name in names.split(',') {
                lines.extend(of_profile(tree, name.trim(), left - 1)?);
            }
        }
        for (number, name, value) in fields(&text, "[sysctl]") {
            let mut set = sysctl_d::of(&path, &format!("{name} = {value}"));
            for line in &mut set {
                line.at = format!("{path}:{number}");
            }
            lines.extend(set);
        }
        return Ok(lines);
    }
    Ok(Vec::new())
}

/// Number, name and value of the lines of a section; of those before the first one for an empty name.
fn fields<'t>(text: &'t str, wanted: &'t str) -> impl Iterator<Item = (usize, &'t str, &'t str)> {
    let mut section = "";
    text.lines().enumerate().filter_map(move |(at, line)| {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
            return None;
        }
        let (name, value) = line.split_once('=').filter(|_| section == wanted && !line.starts_with('#'))?;
        Some((at + 1, name.trim(), value.trim()))
    })
}
