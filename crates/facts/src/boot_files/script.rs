//! The lines of a boot script that set settings, and those that may.

use super::flow::{Variables, commands};
use super::owner::{HostFiles, Line, Owner, Unclear, shown};
use super::programs::{Effect, effects, of_file};
use super::sysctl_d;
use super::udev_rules::Attribute;

/// Shells whose scripts are understood.
const SHELLS: [&str; 4] = ["sh", "bash", "dash", "ksh"];

/// A script, read.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// What it sets, in its order.
    pub(super) lines: Vec<Line>,
    /// What cannot be known from here.
    pub(super) unclear: Vec<Unclear>,
}

/// An owner whose files are scripts.
pub(super) struct OwnerOfScripts {
    pub(super) name: &'static str,
    /// Reads those that run at boot.
    pub(super) read: fn(&HostFiles<'_>) -> Result<Script, String>,
}

impl Owner for OwnerOfScripts {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sets(&self) -> &'static str {
        "*"
    }

    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String> {
        Ok((self.read)(host)?.lines)
    }

    fn unclear(&self, host: &HostFiles<'_>) -> Result<Vec<Unclear>, String> {
        Ok((self.read)(host)?.unclear)
    }
}

impl Script {
    /// Reads a file of commands, for what its caller sets.
    pub(super) fn of_file(
        host: &HostFiles<'_>,
        text: &str,
        path: &str,
        variables: &Variables,
    ) -> Result<Self, String> {
        let first = text.lines().next().unwrap_or_default();
        let mut words = first.strip_prefix("#!").unwrap_or_default().split_whitespace();
        let program = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
        let mut shell = words.next().map(program).unwrap_or_default();
        if shell == "env" {
            shell = words.next().map(program).unwrap_or_default();
        }
        if !SHELLS.contains(&shell.as_str()) {
            return Ok(Self::unreadable(format!("{path}:1 cannot be read: it is no script of a shell")));
        }
        Self::read(host, text, path, 0, variables)
    }

    /// One that is not known at all.
    pub(super) fn unreadable(reason: String) -> Self {
        Self { unclear: vec![Unclear { keys: "*".to_owned(), reason }], ..Self::default() }
    }

    /// Adds another one, without what is there: a script that is run for two devices sets the rest once.
    pub(super) fn extend(&mut self, other: Self) {
        for line in other.lines {
            // What is set again behind another line counts again.
            if self.lines.iter().rev().find(|own| own.key == line.key) != Some(&line) {
                self.lines.push(line);
            }
        }
        for one in other.unclear {
            if !self.unclear.contains(&one) {
                self.unclear.push(one);
            }
        }
    }

    /// Reads commands. `path` is the file in which they stand, `before` the number of lines before them.
    pub(super) fn read(
        host: &HostFiles<'_>,
        text: &str,
        path: &str,
        before: usize,
        variables: &Variables,
    ) -> Result<Self, String> {
        let mut script = Self::default();
        for command in commands(text, variables) {
            let at = format!("{path}:{}", before + command.number);
            let program = command.words.first().map_or("", String::as_str);
            for effect in effects(&command) {
                script.add(host, effect, &at, program)?;
            }
        }
        Ok(script)
    }

    /// Adds what a command does. Its arguments are not quoted: one of them may be a secret.
    pub(super) fn add(
        &mut self,
        host: &HostFiles<'_>,
        effect: Effect,
        at: &str,
        program: &str,
    ) -> Result<(), String> {
        match effect {
            Effect::Sets(key, value) => {
                // What is not asked for is left out.
                let now = host.settings.iter().find(|(asked, _)| *asked == key).map(|(_, now)| now);
                self.lines.extend(now.map(|now| Line {
                    value: shown(&value, "", now),
                    key,
                    at: at.to_owned(),
                }));
            }
            Effect::Writes(path, value) => match written(host, &path) {
                Some(key) => self.add(host, Effect::Sets(key, value), at, program)?,
                None => self.add(host, of_file(&path), at, program)?,
            },
            Effect::Applies(path) => {
                let Some(file) = host.tree.at(&path) else {
                    return self.add(host, Effect::Unclear("sysctl.*".to_owned()), at, program);
                };
                let text = host.tree.read(&file)?.unwrap_or_default();
                self.lines
                    .extend(sysctl_d::of(&file, &text).into_iter().filter(|line| host.wants(&line.key)));
            }
            Effect::Unclear(keys) if !keys.is_empty() => {
                let reason = format!("{at} cannot be read: {program}");
                self.unclear.push(Unclear { keys, reason });
            }
            Effect::Unclear(_) => {}
        }
        Ok(())
    }
}

/// The setting behind a file of the kernel.
fn written(host: &HostFiles<'_>, path: &str) -> Option<String> {
    let path = path.replace("/sys/class/block/", "/sys/block/");
    let attributes = host.settings.iter().filter_map(|(key, now)| Attribute::of_setting(key, now));
    attributes.into_iter().find(|attribute| attribute.is_file(&path)).map(|attribute| attribute.key)
}
