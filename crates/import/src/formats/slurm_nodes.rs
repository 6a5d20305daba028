//! `sinfo -lN`, `sinfo -R` and `scontrol show node`: state and reason of the nodes of a Slurm cluster. Lines
//! come in, facts `slurm.state`, `slurm.reason` of each node go out.

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct SlurmNodes;

/// Most nodes of one list such as `node[001-128]`.
const NODES_MAX: usize = 65_536;

/// Columns of a heading: where each begins.
fn heading(line: &str) -> Option<Vec<(&str, usize)>> {
    let columns = columns(line);
    let has = |wanted: &str| columns.iter().any(|(name, _)| *name == wanted);
    (has("NODELIST") && (has("STATE") || has("REASON")) && line.is_ascii()).then_some(columns)
}

fn columns(line: &str) -> Vec<(&str, usize)> {
    line.split_whitespace().map(|word| (word, word.as_ptr() as usize - line.as_ptr() as usize)).collect()
}

/// The names of `node[01-03,07],login1`.
fn nodes(list: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = list;
    while !rest.is_empty() && found.len() < NODES_MAX {
        let end = rest.find([',', '[']).unwrap_or(rest.len());
        let name = &rest[..end];
        if rest[end..].starts_with('[') {
            let Some((ranges, behind)) = rest[end + 1..].split_once(']') else { break };
            for range in ranges.split(',') {
                expand(name, range, &mut found);
            }
            rest = behind.trim_start_matches(',');
        } else {
            if !name.is_empty() {
                found.push(name.to_owned());
            }
            rest = rest[end..].trim_start_matches(',');
        }
    }
    found
}

fn expand(name: &str, range: &str, found: &mut Vec<String>) {
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    let width = from.len();
    let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>()) else { return };
    let to = to.min(from.saturating_add(NODES_MAX));
    for number in from..=to {
        if found.len() < NODES_MAX {
            found.push(format!("{name}{number:0width$}"));
        }
    }
}

/// `NodeName=node1 Arch=x86_64 …` of `scontrol show node`.
fn shown(line: &str) -> Option<&str> {
    line.trim().strip_prefix("NodeName=")?.split_whitespace().next()
}

impl Reader for SlurmNodes {
    fn name(&self) -> &'static str {
        "slurm-nodes"
    }

    fn describes(&self) -> &'static str {
        "sinfo -lN, sinfo -R, scontrol show node: states and reasons"
    }

    fn names_hosts(&self) -> bool {
        true
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        heading(block.first()).is_some() || shown(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        if shown(block.first()).is_some() {
            return show(block, out);
        }
        let Some(columns) = heading(block.first()) else { return 1 };
        let at = |name: &str| columns.iter().position(|(column, _)| *column == name);
        let mut taken = 1;
        for (number, line) in block.lines.iter().enumerate().skip(1) {
            let Some(fields) = fields(line, &columns) else { break };
            let field =
                |name: &str| at(name).and_then(|index| fields.get(index).copied()).unwrap_or_default();
            let names = nodes(field("NODELIST"));
            if names.is_empty() || !names.iter().all(|name| crate::context::is_host(name)) {
                break;
            }
            for name in names {
                out.of_host(&name);
                put(field("STATE"), field("REASON"), out);
            }
            taken = number + 1;
        }
        taken
    }
}

/// The fields of a row: by blanks, as many as there are columns; the reason is the rest, with its blanks,
/// wherever its column stands.
fn fields<'l>(line: &'l str, columns: &[(&str, usize)]) -> Option<Vec<&'l str>> {
    if line.trim().is_empty() || !line.is_ascii() {
        return None;
    }
    let reason = columns.iter().position(|(name, _)| *name == "REASON");
    let words: Vec<&str> = line.split_whitespace().collect();
    let extra = words.len().checked_sub(columns.len());
    match (reason, extra) {
        (_, Some(0)) => Some(words),
        (Some(reason), Some(extra)) => {
            let begin = words[reason].as_ptr() as usize - line.as_ptr() as usize;
            let last = words[reason + extra];
            let end = last.as_ptr() as usize - line.as_ptr() as usize + last.len();
            let mut fields = words[..reason].to_vec();
            fields.push(&line[begin..end]);
            fields.extend(&words[reason + extra + 1..]);
            Some(fields)
        }
        _ => None,
    }
}

fn put(state: &str, reason: &str, out: &mut Sink) {
    out.text("slurm.state", state);
    if !["none", "(null)", ""].contains(&reason) {
        out.text("slurm.reason", reason);
    }
}

/// The blocks of `scontrol show node`.
fn show(block: &Block<'_>, out: &mut Sink) -> usize {
    let mut taken = 0;
    for (at, line) in block.lines.iter().enumerate() {
        let text = line.trim();
        if let Some(name) = shown(line) {
            out.of_host(name);
        } else if text.contains('=') || text.is_empty() {
            if let Some(state) = text.strip_prefix("State=").and_then(|rest| rest.split(' ').next()) {
                out.text("slurm.state", state);
            }
            if let Some(reason) = text.strip_prefix("Reason=") {
                put("", reason, out);
            }
        } else {
            break;
        }
        if !text.is_empty() {
            taken = at + 1;
        }
    }
    taken.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_nodes() {
        assert_eq!(nodes("n[01-03,07],login1"), ["n01", "n02", "n03", "n07", "login1"]);
        assert_eq!(nodes("n["), Vec::<String>::new());
    }
}
