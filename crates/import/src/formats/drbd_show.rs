//! `drbdsetup show`, `drbdadm dump` and resource files of DRBD: what is set for a resource. Text comes in,
//! facts `drbd.<resource>.<section>.<option>` go out. What is not set has the default of its release and
//! gives no fact. Words and signs count, not lines: mails break them anywhere.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct DrbdShow;

/// Sections with options to keep.
const SECTIONS: [&str; 4] = ["net", "disk", "options", "syncer"];
/// Options of the section `syncer` of DRBD 8.3 and where they stand in later releases.
const OF_SYNCER: [(&str, &str); 4] = [
    ("rate", "disk.resync-rate"),
    ("al-extents", "disk.al-extents"),
    ("verify-alg", "net.verify-alg"),
    ("csums-alg", "net.csums-alg"),
];
/// Nothing nests deeper: resource, host, volume, section.
const DEPTH_MAX: usize = 8;
/// Longest text of one option.
const OPTION_BYTES_MAX: usize = 4096;

/// `resource r0 {`, `common {`, `global {`; the sign may stand on the next line.
fn head<'l>(line: &'l str, next: &str) -> Option<&'l str> {
    let text = line.split('#').next()?.trim();
    let (inside, _) = match text.split_once('{') {
        Some(parts) => parts,
        None if next.trim_start().starts_with('{') => (text, ""),
        None => return None,
    };
    let inside = inside.trim();
    if inside == "common" || inside == "global" {
        return Some(inside);
    }
    let name = inside.strip_prefix("resource ")?.trim().trim_matches('"');
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    (!name.is_empty() && name.bytes().all(plain)).then_some(name)
}

/// A value as DRBD prints it: a number, or a text without quotes.
fn value(text: &str) -> Option<FactValue> {
    let text = text.trim().trim_matches('"').trim();
    if text.is_empty() {
        return None;
    }
    Some(text.parse::<i64>().map_or_else(|_| FactValue::Text(text.to_owned()), FactValue::Int))
}

impl Reader for DrbdShow {
    fn name(&self) -> &'static str {
        "drbd-show"
    }

    fn describes(&self) -> &'static str {
        "drbdsetup show, drbdadm dump, resource files of DRBD"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        head(block.first(), block.line(1)).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some(name) = head(block.first(), block.line(1)).map(|name| name.replace('.', "/")) else {
            return 1;
        };
        let mut parts = Parts { name, ..Parts::default() };
        for (at, line) in block.lines.iter().enumerate() {
            for c in line.split('#').next().unwrap_or_default().chars().chain([' ']) {
                if !parts.take(c, out) {
                    // Deeper or longer than anything of this format.
                    return at.max(1);
                }
                if parts.has_ended {
                    return at + 1;
                }
            }
        }
        block.lines.len()
    }
}

/// The text so far: sections that are open, and the words of the option at hand.
#[derive(Default)]
struct Parts {
    name: String,
    sections: Vec<String>,
    words: String,
    has_ended: bool,
}

impl Parts {
    /// Takes a sign; `false` when this is no text of DRBD.
    fn take(&mut self, c: char, out: &mut Sink) -> bool {
        match c {
            '{' => {
                let first = self.words.split_ascii_whitespace().next().unwrap_or_default().to_owned();
                self.sections.push(first);
                self.words.clear();
            }
            '}' => {
                self.sections.pop();
                self.words.clear();
                self.has_ended = self.sections.is_empty();
            }
            ';' => {
                let option = std::mem::take(&mut self.words);
                let section = self.sections.last().map_or("", String::as_str);
                read_option(&self.name, section, option.trim(), out);
            }
            c if c.is_whitespace() => {
                if !self.words.is_empty() && !self.words.ends_with(' ') {
                    self.words.push(' ');
                }
            }
            c => self.words.push(c),
        }
        self.sections.len() <= DEPTH_MAX && self.words.len() <= OPTION_BYTES_MAX
    }
}

fn read_option(resource: &str, section: &str, option: &str, out: &mut Sink) {
    let (key, rest) = option.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((option, "yes"));
    if key == "address" {
        let mut words = rest.split_ascii_whitespace();
        // Without a family it is IPv4.
        if let (Some(family), Some(_)) = (words.next(), words.next()) {
            out.text(format!("drbd.{resource}.address_family"), family);
        }
    } else if key == "protocol" && !SECTIONS.contains(&section) {
        out.text(format!("drbd.{resource}.net.protocol"), rest.trim());
    } else if SECTIONS.contains(&section)
        // The shared secret stands among the options.
        && !key.contains("secret")
        && let Some(value) = value(rest)
    {
        let later = OF_SYNCER.iter().find(|(old, _)| section == "syncer" && *old == key);
        let at = later.map_or_else(|| format!("{section}.{key}"), |(_, later)| (*later).to_owned());
        out.fact(format!("drbd.{resource}.{at}"), value);
    }
}
