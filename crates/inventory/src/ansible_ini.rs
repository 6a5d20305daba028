//! Ansible's INI inventories: `[group]` with hosts and their variables, `[group:children]`, `[group:vars]`,
//! ranges as in `web[01:50]`.
//!
//! What comes in: a text. What goes out: hosts over ssh (`ansible_connection=local`: this machine) in nested
//! groups.

use super::ansible::Collected;
use super::draft::Understood;
use super::error::{Flaw, InventoryError, shown};
use super::reader::{Reader, SourceText};

/// The format.
pub(super) struct AnsibleIni;

/// Which part of the file a line is in.
enum Section {
    Hosts(String),
    Children(String),
    Vars(String),
}

impl Reader for AnsibleIni {
    fn name(&self) -> &'static str {
        "ansible"
    }

    fn describes(&self) -> &'static str {
        "Ansible's inventory, INI"
    }

    fn detects(&self, text: &str) -> bool {
        text.lines().map(str::trim).any(|line| {
            let section = line.starts_with('[') && !line.starts_with("[[") && section(line).is_some();
            section
                || line
                    .split_whitespace()
                    .skip(1)
                    .any(|word| word.starts_with("ansible_") && word.contains('='))
        })
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let mut collected = Collected::default();
        let mut at = Section::Hosts("ungrouped".to_owned());
        for (number, line) in source.lines() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            take(&mut collected, &mut at, line, number).map_err(|flaw| source.at(number, flaw))?;
        }
        collected.finish(self.name()).map_err(|(line, flaw)| source.at(line, flaw))
    }
}

/// `[name]`, `[name:children]`, `[name:vars]`, with a remark behind it or not. An IPv6 address in brackets is
/// a host.
fn section(line: &str) -> Option<(&str, Option<&str>)> {
    let (inside, after) = line.strip_prefix('[')?.split_once(']')?;
    let after = after.trim();
    if !(after.is_empty() || after.starts_with(['#', ';'])) || inside.parse::<std::net::Ipv6Addr>().is_ok() {
        return None;
    }
    match inside.split_once(':') {
        Some((name, kind)) => Some((name.trim(), Some(kind.trim()))),
        None => Some((inside.trim(), None)),
    }
}

fn take(collected: &mut Collected, at: &mut Section, line: &str, number: usize) -> Result<(), Flaw> {
    if let Some((name, kind)) = section(line) {
        collected.group(name, number)?;
        *at = match kind {
            None => Section::Hosts(name.to_owned()),
            Some("children") => Section::Children(name.to_owned()),
            Some("vars") => Section::Vars(name.to_owned()),
            Some(other) => {
                let what = format!("`[{name}:{}]` is no section", shown(other));
                return Err(Flaw::new(what, "[GROUP], [GROUP:children] or [GROUP:vars]"));
            }
        };
        return Ok(());
    }
    match at {
        Section::Hosts(group) => host_line(collected, group, line, number),
        Section::Children(group) => {
            let child = line.split(['#', ';']).next().unwrap_or_default().trim();
            collected.child(group, child, number)
        }
        Section::Vars(group) => {
            let Some((name, value)) = line.split_once('=') else {
                let what = format!("`{}` has no `=`", shown(line));
                return Err(Flaw::new(what, format!("[{group}:vars] has lines NAME=VALUE")));
            };
            collected.group_var(group, name.trim(), &unquoted(value.trim()), number);
            Ok(())
        }
    }
}

fn host_line(collected: &mut Collected, group: &str, line: &str, number: usize) -> Result<(), Flaw> {
    let mut words = shell_words(line).into_iter();
    let Some(pattern) = words.next() else { return Ok(()) };
    let (pattern, port) = pattern_and_port(&pattern);
    let hosts = collected.hosts(group, pattern, number)?;
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            let what = format!("`{}` behind a host has no `=`", shown(&word));
            return Err(Flaw::new(what, "one host to a line, variables as NAME=VALUE behind it"));
        };
        for host in &hosts {
            collected.host_var(host, name, value, number);
        }
    }
    if let Some(port) = port {
        for host in &hosts {
            collected.host_var(host, "ansible_port", port, number);
        }
    }
    Ok(())
}

/// `host:2222` and `web[01:50]:2222`, but not `fd00::1`.
fn pattern_and_port(pattern: &str) -> (&str, Option<&str>) {
    if let Some((address, after)) = pattern.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && address.parse::<std::net::Ipv6Addr>().is_ok()
    {
        return (address, after.strip_prefix(':'));
    }
    match pattern.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !port.is_empty() => {
            let inside = host.matches('[').count() != host.matches(']').count();
            let v6 = pattern.parse::<std::net::Ipv6Addr>().is_ok();
            if inside || v6 { (pattern, None) } else { (host, Some(port)) }
        }
        _ => (pattern, None),
    }
}

/// Words of a line as a shell splits them, up to a remark.
fn shell_words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    for c in line.chars() {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '"' | '\'') => (quote, begun) = (Some(c), true),
            (None, '#') => break,
            (None, c) if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                    begun = false;
                }
            }
            (_, c) => {
                word.push(c);
                begun = true;
            }
        }
    }
    if begun {
        words.push(word);
    }
    words
}

fn unquoted(value: &str) -> String {
    let inner = |q: char| value.strip_prefix(q).and_then(|rest| rest.strip_suffix(q));
    inner('"').or_else(|| inner('\'')).unwrap_or(value).to_owned()
}
