//! `/proc/mdstat`: arrays of md, drives that failed, what is being checked or rebuilt. Lines come in, facts
//! of the names of our own readers go out.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Mdstat;

/// Words between the state of an array and its level.
const ASIDE: [&str; 3] = ["(read-only)", "(auto-read-only)", "(auto-readonly)"];

/// An array: `md2 : active raid1 sdb3[1] sda3[0](F)`.
struct Array<'a> {
    name: &'a str,
    level: &'a str,
    /// Its drives: the name, whether it failed, whether it is a spare.
    drives: Vec<(&'a str, bool, bool)>,
}

impl<'a> Array<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let (name, rest) = line.split_once(" : ")?;
        let is_name = name.starts_with("md") && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let mut words = rest.split_whitespace().filter(|word| !ASIDE.contains(word));
        let state = words.next()?;
        if !is_name || !["active", "inactive"].contains(&state) {
            return None;
        }
        let mut words = words.peekable();
        // One that is not active shows no level.
        let level = words.next_if(|word| !word.contains('[')).unwrap_or_default();
        let drive = |word: &'a str| {
            let (drive, behind) = word.split_once('[')?;
            Some((drive, behind.ends_with("(F)"), behind.ends_with("(S)")))
        };
        Some(Self { name, level, drives: words.map_while(drive).collect() })
    }

    fn list(&self, is_wanted: impl Fn(&(&str, bool, bool)) -> bool) -> FactValue {
        let drives = self.drives.iter().filter(|drive| is_wanted(drive));
        FactValue::List(drives.map(|(name, ..)| (*name).to_owned()).collect())
    }
}

/// Slots without a drive in `… [3/2] [UU_]`, and how many there are.
fn signs(line: &str) -> Option<Vec<usize>> {
    let signs = line.rsplit_once('[')?.1.strip_suffix(']')?;
    let is_signs = !signs.is_empty() && signs.bytes().all(|b| b"U_".contains(&b));
    is_signs.then(|| signs.char_indices().filter(|(_, sign)| *sign == '_').map(|(at, _)| at).collect())
}

/// `check` of `[=>....]  check =  9.1% (176/1932) finish=300.1min speed=97000K/sec`.
fn action(line: &str) -> Option<&str> {
    let mut words = line.trim_start().strip_prefix('[')?.split_once(']')?.1.split_whitespace();
    let action = words.next()?;
    (words.next() == Some("=") && words.next()?.contains('%')).then_some(action)
}

impl Reader for Mdstat {
    fn name(&self) -> &'static str {
        "mdstat"
    }

    fn describes(&self) -> &'static str {
        "/proc/mdstat: arrays of md"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        block.first().starts_with("Personalities :")
            || Array::of(block.first()).is_some() && block.line(1).contains(" blocks")
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut array: Option<Array<'_>> = None;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let is_of_file = line.starts_with("Personalities :") || line.starts_with("unused devices:");
            if let Some(next) = Array::of(line) {
                if !next.level.is_empty() {
                    out.text(format!("disk.{}.md_level", next.name), next.level);
                }
                array = Some(next);
            } else if !is_of_file && !line.trim().is_empty() && !line.starts_with([' ', '\t']) {
                break;
            } else if let Some(array) = &array {
                state(array, line.trim_end(), out);
            }
            if !line.trim().is_empty() {
                taken = at + 1;
            }
        }
        taken.max(1)
    }
}

/// What a line below an array has of it.
fn state(array: &Array<'_>, line: &str, out: &mut Sink) {
    let key = |name: &str| format!("disk.{}.{name}", array.name);
    if let Some(empty) = signs(line) {
        out.fact(key("md_degraded"), FactValue::Int(i64::try_from(empty.len()).unwrap_or(0)));
        let failed = array.list(|(_, has_failed, _)| *has_failed);
        let slots = FactValue::List(empty.iter().map(ToString::to_string).collect());
        if !empty.is_empty() {
            let is_named = failed != FactValue::List(Vec::new());
            out.fact(key("failed_legs"), if is_named { failed } else { slots });
        }
    }
    let live = array.list(|(_, has_failed, is_spare)| !has_failed && !is_spare);
    match action(line) {
        Some("check" | "repair") => out.fact(key("checked_legs"), live),
        Some("resync" | "recovery") => out.fact(key("rebuilding_legs"), live),
        _ => {}
    }
}
