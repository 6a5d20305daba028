//! Lists of host names with ranges: `n[001-128,200]`, `root@r[1-2]n[1-4]:2222`, one or several to a line, `#`
//! begins a remark.
//!
//! What comes in: a text. What goes out: hosts over ssh, those that are addresses with an endpoint. It asks
//! no resolver.

use std::net::IpAddr;

use super::draft::{Draft, HOSTS_MAX, Understood};
use super::error::{Flaw, InventoryError, shown};
use super::range::{Dialect, expand, split_outside};
use super::reader::{Reader, SourceText};

/// The format.
pub(super) struct HostList;

/// Lines that are probed to recognise it.
const LINES_PROBED: usize = 50;

impl Reader for HostList {
    fn name(&self) -> &'static str {
        "hosts"
    }

    fn describes(&self) -> &'static str {
        "host names, addresses and ranges such as n[001-128]"
    }

    fn detects(&self, text: &str) -> bool {
        let word = |c: char| c.is_alphanumeric() || "-_.:@[]/,".contains(c) || c.is_whitespace();
        let mut lines = text.lines().map(without_remark).filter(|line| !line.is_empty());
        let first: Vec<&str> = lines.by_ref().take(LINES_PROBED).collect();
        !first.is_empty() && first.iter().all(|line| line.chars().all(word) && !line.starts_with(['-', '/']))
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let mut draft = Draft::default();
        for (number, line) in source.lines() {
            for word in split_outside(without_remark(line)) {
                take(&mut draft, word, number).map_err(|flaw| source.at(number, flaw))?;
            }
        }
        draft.finish(self.name()).map_err(|(line, flaw)| source.at(line, flaw))
    }
}

fn without_remark(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

fn take(draft: &mut Draft, word: &str, line: usize) -> Result<(), Flaw> {
    let (user, rest) = word.rsplit_once('@').map_or((None, word), |(user, rest)| (Some(user), rest));
    let (names, port) = names_and_port(rest)?;
    for name in names {
        if draft.has_host(&name) {
            draft.ignore(line, name, "a host of this name stands above");
            continue;
        }
        draft.reached_at(&name, &name, line)?;
        let reach = draft.reach(&name)?;
        reach.port = port;
        reach.user = user.filter(|user| !user.is_empty()).map(str::to_owned);
    }
    Ok(())
}

/// `n[1-4]:22`, `10.0.0.1:22`, `fd00::1`, `[fd00::1]:22`.
fn names_and_port(text: &str) -> Result<(Vec<String>, Option<u16>), Flaw> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok((vec![address.to_string()], None));
    }
    if let Some((inside, after)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && let Ok(address) = inside.parse::<IpAddr>()
    {
        let port = after.strip_prefix(':').map(port).transpose()?;
        return Ok((vec![address.to_string()], port));
    }
    let (names, given) = match text.rsplit_once(':') {
        Some((names, given)) if !given.contains(']') => (names, Some(port(given)?)),
        _ => (text, None),
    };
    Ok((expand(names, Dialect::Dash, HOSTS_MAX)?, given))
}

/// A port number.
pub(super) fn port(text: &str) -> Result<u16, Flaw> {
    text.parse()
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| Flaw::new(format!("`{}` is not a port", shown(text)), "a number from 1 to 65535"))
}
