//! `sysctl.d`: the files that systemd-sysctl, or `sysctl --system`, applies at boot (sysctl.d(5)).

use std::path::PathBuf;

use super::modules_load;
use super::owner::{HostFiles, Kept, Line, Owner, Unclear};
use super::tree::Tree;
use crate::change::setting::Persist;

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
            for line in of(&file, &text).into_iter().filter(|line| host.wants(&line.key)) {
                if modules_load::late(host, &line.key)?.is_none() {
                    lines.push(line);
                }
            }
        }
        Ok(lines)
    }

    /// Lines that name what is not there yet when they count.
    fn unclear(&self, host: &HostFiles<'_>) -> Result<Vec<Unclear>, String> {
        let mut unclear = Vec::new();
        for file in files(&host.tree)? {
            let text = host.tree.read(&file)?.unwrap_or_default();
            for line in of(&file, &text).into_iter().filter(|line| host.wants(&line.key)) {
                if let Some(module) = modules_load::late(host, &line.key)? {
                    let reason = format!("{}: nothing loads {module} before sysctl.d is applied", line.at);
                    unclear.push(Unclear { keys: line.key, reason });
                }
            }
        }
        Ok(unclear)
    }

    /// In the file whose name comes after that of the last one that sets the key; where `sysctl.conf` sets it
    /// last, there.
    fn persist(&self, host: &HostFiles<'_>, kept: &Kept<'_>) -> Result<Option<Persist>, String> {
        let Persist::File { path, preamble, section, syntax, name, line } = kept.usual else {
            return Ok(None);
        };
        if !path.starts_with("sysctl.d") {
            return Ok(None);
        }
        let at = |path: &str| Persist::File {
            path: PathBuf::from(path),
            preamble: preamble.clone(),
            section: section.clone(),
            syntax: *syntax,
            name: name.clone(),
            line: line.clone(),
        };
        let file_name = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
        let conf = host.tree.etc(CONF);
        let conf_text = host.tree.read(&conf)?;
        let mut last = None;
        for file in files(&host.tree)? {
            let text = host.tree.read(&file)?.unwrap_or_default();
            let sets = of(&file, &text).into_iter().rfind(|line| line.key == kept.key);
            last = sets.map(|line| (file, text, line.at)).or(last);
        }
        let Some((file, text, line_at)) = last else { return Ok(None) };
        if file == conf || Some(&text) == conf_text.as_ref() {
            return Ok(Some(at(CONF)));
        }
        match file_name(&file).as_str() {
            last if last <= OWN => Ok(None),
            last if last <= OWN_LATE => Ok(Some(at(&format!("sysctl.d/{OWN_LATE}")))),
            _ => Err(format!("{line_at} sets it after every file of this program")),
        }
    }
}

/// Names of the files that this program writes.
const OWN: &str = "90-linerate.conf";
const OWN_LATE: &str = "zz-linerate.conf";
/// The file of old, below `/etc`.
pub(super) const CONF: &str = "sysctl.conf";

/// `sysctl.conf` counts last where no systemd is: it reads it only through a link in `sysctl.d`.
fn files(tree: &Tree<'_>) -> Result<Vec<String>, String> {
    let mut files = tree.merged("sysctl.d", ".conf")?;
    let systemd = tree.beside("run/systemd/system");
    if systemd.is_none_or(|folder| tree.list(&folder).is_ok_and(|names| names.is_empty())) {
        files.push(tree.etc(CONF));
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
pub(super) fn dotted(name: &str) -> String {
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
