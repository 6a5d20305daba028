//! What an owner of settings is, and what it sees of a host.

use linerate_model::fact::{FactKey, FactValue, pattern_fits};
use linerate_sys::rtnetlink::NetDevice;

use super::super::view::View;
use super::tree::Tree;
use crate::change::setting::Persist;

/// What sets values at boot from files of its own.
pub(super) trait Owner {
    /// Its name, for people.
    fn name(&self) -> &'static str;

    /// Keys that it sets, as the pattern of a gap.
    fn sets(&self) -> &'static str;

    /// Its lines in the order in which they count. An error names the file that cannot be read.
    fn lines(&self, host: &HostFiles<'_>) -> Result<Vec<Line>, String>;

    /// What its files may set without that being known from here, such as commands that are not understood.
    fn unclear(&self, _host: &HostFiles<'_>) -> Result<Vec<Unclear>, String> {
        Ok(Vec::new())
    }

    /// Where this owner rules the setting on this host: how the value has to be written to count after what
    /// it has. `usual` is what is written where no owner rules. An error is the reason why it cannot be.
    fn persist(&self, _host: &HostFiles<'_>, _kept: &Kept<'_>) -> Result<Option<Persist>, String> {
        Ok(None)
    }
}

/// A value that has to survive a boot.
pub(super) struct Kept<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a FactValue,
    /// How it survives where no owner rules the setting.
    pub(super) usual: &'a Persist,
}

/// What an owner sees.
pub(super) struct HostFiles<'a> {
    pub(super) tree: Tree<'a>,
    /// Settings that are asked for, with the values in force.
    pub(super) settings: Vec<(FactKey, FactValue)>,
    pub(super) view: View<'a>,
}

impl HostFiles<'_> {
    /// Whether a line that sets this key, or keys of this pattern, is about a setting that is asked for.
    pub(super) fn wants(&self, key: &str) -> bool {
        self.settings.iter().any(|(asked, _)| asked == key || key.contains('*') && pattern_fits(key, asked))
    }

    /// The device of this name.
    pub(super) fn link(&self, nic: &str) -> Option<&NetDevice> {
        self.view.links().iter().find(|link| link.name == nic)
    }

    /// Whether a service starts at boot.
    pub(super) fn starts(&self, service: &str) -> Result<bool, String> {
        let folders = [
            Some(self.tree.etc("systemd/system/multi-user.target.wants")),
            Some(self.tree.etc("systemd/system/network-online.target.wants")),
            self.tree.beside("usr/lib/systemd/system/multi-user.target.wants"),
        ];
        for folder in folders.into_iter().flatten() {
            if self.tree.list(&folder)?.iter().any(|name| name == service) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a person has masked a unit: its file is a link to `/dev/null`, which is empty.
pub(super) fn is_masked(host: &HostFiles<'_>, unit: &str) -> Result<bool, String> {
    let text = host.tree.read(&host.tree.etc(&format!("systemd/system/{unit}")))?;
    Ok(text.is_some_and(|text| text.is_empty()))
}

/// A line of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) key: String,
    /// As a fact shows it.
    pub(super) value: String,
    /// File and line.
    pub(super) at: String,
}

/// What a file may set, and cannot be known from here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unclear {
    /// Pattern of the keys.
    pub(super) keys: String,
    /// File, line, and what stands there.
    pub(super) reason: String,
}

/// Number, name and value of the lines of a section of `name=value`; of those before the first one for an
/// empty name.
pub(super) fn fields<'t>(text: &'t str, wanted: &'t str) -> impl Iterator<Item = (usize, &'t str, &'t str)> {
    let mut section = "";
    text.lines().enumerate().filter_map(move |(at, line)| {
        let line = line.trim();
        if line.starts_with('[') {
            section = line;
            return None;
        }
        let is_set = section == wanted && !line.starts_with(['#', ';']);
        let (name, value) = line.split_once('=').filter(|_| is_set)?;
        Some((at + 1, name.trim(), value.trim()))
    })
}

/// A value of a file as a fact has it: the value in force where the file has the text that this program would
/// write for it.
pub(super) fn shown(value: &str, own: &str, now: &FactValue) -> String {
    if own == value {
        return now.to_string();
    }
    match value.to_ascii_lowercase().as_str() {
        "yes" | "true" | "on" => "on".to_owned(),
        "no" | "false" | "off" => "off".to_owned(),
        "1" if matches!(now, FactValue::Flag(_)) => "on".to_owned(),
        "0" if matches!(now, FactValue::Flag(_)) => "off".to_owned(),
        other => other.strip_suffix("us").map_or_else(|| value.to_owned(), str::to_owned),
    }
}

/// `*`, `?` and sets in brackets as the shell has them.
pub(super) fn glob(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|at| glob(rest, &text[at..])),
        Some((b'?', rest)) => !text.is_empty() && glob(rest, &text[1..]),
        Some((b'[', rest)) if rest.contains(&b']') => {
            let end = rest.iter().position(|c| *c == b']').unwrap_or_default();
            let (set, rest) = (&rest[..end], &rest[end + 1..]);
            let is_in = |c: &u8| match set {
                [from, b'-', to] => (from..=to).contains(&c),
                _ => set.contains(c),
            };
            text.first().is_some_and(is_in) && glob(rest, &text[1..])
        }
        Some((c, rest)) => text.first() == Some(c) && glob(rest, &text[1..]),
    }
}
