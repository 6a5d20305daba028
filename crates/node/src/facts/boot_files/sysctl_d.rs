//! `sysctl.d`: the files that systemd-sysctl, or `sysctl --system`, applies at boot (sysctl.d(5)).

use super::owner::{HostFiles, Line, Owner};
use super::tree::Tree;

/// The owner.
pub(super) struct SysctlD;

impl Owner for SysctlD {
    fn name(&self) -> &'static str {
        "sysctl.d"
    }

    fn sets(&self) -> &'static str {
        "sysctl.*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        let mut lines = Vec::new();
        for file in files(&host.tree)? {
            let Some(text) = host.tree.read(&file)? else { continue };
            lines.extend(of(&file, &text).into_iter().filter(|line| host.wants(&line.key)));
        }
        Ok(lines)
    }
}

/// `sysctl.conf` counts last where no systemd is: it reads it only through a link in `sysctl.d`.
fn files(tree: &Tree<'_>) -> Result<Vec<String>, String> {
    let mut files = tree.merged("sysctl.d", ".conf")?;
    let systemd = tree.beside("run/systemd/system");
    if systemd.is_none_or(|folder| tree.list(&folder).is_ok_and(|names| names.is_empty())) {
        files.push(tree.etc("sysctl.conf"));
    }
    Ok(files)
}

/// The lines of a file.
pub(super) fn of(file: &str, text: &str) -> Vec<Line> {
    let set = |(at, line): (usize, &str)| {
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            return None;
        }
        let (name, value) = line.split_once('=')?;
        // A failure to write a name with `-` in front is no error.
        let name = name.trim().trim_start_matches('-');
        let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
        is_plain.then(|| Line {
            key: format!("sysctl.{}", dotted(name)),
            value,
            at: format!("{file}:{}", at + 1),
        })
    };
    text.lines().enumerate().filter_map(set).collect()
}

/// A name as keys have it: where the first separator is `/`, dots and slashes mean the opposite.
fn dotted(name: &str) -> String {
    if name.find(['.', '/']).is_none_or(|at| name[at..].starts_with('.')) {
        return name.to_owned();
    }
    let swap = |c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    };
    name.chars().map(swap).collect()
}
