//! `zpool status`: pools of ZFS, what is being resilvered, and devices with errors. Lines come in, facts
//! `zpool.<pool>.…` and counters of errors go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;
use crate::units::leading;

/// The format.
pub(crate) struct Zpool;

/// Headings of the tool.
const HEADINGS: [&str; 9] = ["pool", "state", "status", "action", "see", "scan", "scrub", "config", "errors"];

fn heading(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().split_once(':')?;
    HEADINGS.contains(&name).then_some((name, value.trim()))
}

/// Read, write and checksum errors of `ata-X  ONLINE  0  0  0  (resilvering)`, and the name.
fn device(line: &str) -> Option<(&str, &str, i64)> {
    let mut words = line.split_whitespace();
    let (name, state) = (words.next()?, words.next()?);
    let counts: Vec<i64> = words.take(3).filter_map(|word| word.parse().ok()).collect();
    let is_state = state.bytes().all(|b| b.is_ascii_uppercase());
    (is_state && counts.len() == 3).then(|| (name, state, counts.iter().sum()))
}

impl Reader for Zpool {
    fn name(&self) -> &'static str {
        "zpool"
    }

    fn describes(&self) -> &'static str {
        "zpool status: pools of ZFS"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        heading(block.first()).is_some_and(|(name, _)| name == "pool")
            && (1..4).any(|at| heading(block.line(at)).is_some_and(|(name, _)| name == "state"))
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let pool = heading(block.first()).map_or("", |(_, name)| name).replace('.', "_");
        let mut section = "pool";
        let mut taken = 1;
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            if let Some((name, value)) = heading(line) {
                if name == "pool" {
                    break;
                }
                section = HEADINGS.iter().find(|h| **h == name).copied().unwrap_or(section);
                match section {
                    "state" => out.text(format!("zpool.{pool}.state"), value),
                    "scan" | "scrub" => scan(&pool, value, out),
                    _ => {}
                }
            } else if section == "config" {
                match device(line) {
                    Some((name, state, errors)) if name != pool => {
                        let name = name.replace('.', "_");
                        out.text(format!("zpool.{pool}.{name}.state"), state);
                        out.counter(format!("zpool.{pool}.{name}.errors"), errors);
                    }
                    Some(_) => {}
                    // `NAME STATE READ WRITE CKSUM`, `logs`
                    None if line.trim().is_empty() || line.starts_with([' ', '\t']) => {}
                    None => break,
                }
            } else if !(line.trim().is_empty() || line.starts_with([' ', '\t'])) {
                break;
            }
            if !line.trim().is_empty() {
                if section == "scan" {
                    progress(&pool, line, out);
                }
                taken = at + 1;
            }
        }
        taken
    }
}

/// `resilver in progress since …`, `scrub repaired 0B in …`
fn scan(pool: &str, value: &str, out: &mut Sink) {
    let mut words = value.split_whitespace();
    let (Some(what), Some(second)) = (words.next(), words.next()) else { return };
    if second == "in" {
        out.text(format!("zpool.{pool}.running"), what);
    }
}

/// `526G resilvered, 56,89% done, no estimated completion time`
fn progress(pool: &str, line: &str, out: &mut Sink) {
    let percent = line.split(", ").find_map(|part| part.strip_suffix("% done"));
    let percent = percent.and_then(|number| leading(&number.replace(',', ".")));
    if let Some(percent) = percent.filter(|p| (0.0..=100.0).contains(p)) {
        out.fact(format!("zpool.{pool}.done_percent"), FactValue::Float(percent));
    }
}
