//! `drbdsetup show`, `drbdadm dump` and resource files of DRBD: what is set for a resource. Lines come in,
//! facts `drbd.<resource>.<section>.<option>` go out. What is not set has the default of its release and
//! gives no fact.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct DrbdShow;

/// Sections with options to keep.
const SECTIONS: [&str; 3] = ["net", "disk", "options"];
/// Nothing nests deeper: resource, host, volume, section.
const DEPTH_MAX: usize = 8;

/// `resource r0 {`: its name.
fn resource(line: &str) -> Option<&str> {
    let name = line.trim().strip_prefix("resource ")?.trim_end().strip_suffix('{')?.trim().trim_matches('"');
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
        resource(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let Some(name) = resource(block.first()).map(|name| name.replace('.', "/")) else { return 1 };
        let mut sections: Vec<&str> = vec!["resource"];
        for (at, line) in block.lines.iter().enumerate().skip(1) {
            let text = line.split('#').next().unwrap_or_default().trim();
            if let Some(head) = text.strip_suffix('{') {
                if sections.len() >= DEPTH_MAX {
                    return at;
                }
                sections.push(head.split_ascii_whitespace().next().unwrap_or_default());
            } else if text == "}" {
                sections.pop();
                if sections.is_empty() {
                    return at + 1;
                }
            } else if let Some(option) = text.strip_suffix(';') {
                read_option(&name, sections.last().copied().unwrap_or_default(), option, out);
            } else if !text.is_empty() {
                // No line of this format: it ended in the middle.
                return at;
            }
        }
        block.lines.len()
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
    } else if SECTIONS.contains(&section)
        // The shared secret stands among the options.
        && !key.contains("secret")
        && let Some(value) = value(rest)
    {
        out.fact(format!("drbd.{resource}.{section}.{key}"), value);
    }
}
