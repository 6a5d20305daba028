//! Nodes of a Docker swarm: `docker node ls --format json` (one object to a line, or a list) and
//! `docker node inspect $(docker node ls -q)`, which has the addresses.
//!
//! What comes in: a text. What goes out: hosts over ssh, with the address as endpoint where there is one. A
//! node that is down stays in and is remarked.

use serde_json::Value;

use super::draft::{Draft, Understood};
use super::error::{Flaw, InventoryError, line_of};
use super::json::{line_of_word, text_at};
use super::reader::{Reader, SourceText};

/// The format.
pub(super) struct Docker;

impl Reader for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn describes(&self) -> &'static str {
        "docker node ls --format json, docker node inspect"
    }

    fn detects(&self, text: &str) -> bool {
        text.trim_start().starts_with(['{', '['])
            && text.contains("\"Hostname\"")
            && !text.contains("\"apiVersion\"")
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let mut draft = Draft::default();
        let mut values = serde_json::Deserializer::from_str(source.text).into_iter::<Value>();
        loop {
            let begun = values.byte_offset();
            let value = match values.next() {
                None => break,
                Some(Ok(value)) => value,
                Some(Err(error)) => {
                    let flaw = Flaw::new(format!("not JSON: {error}"), "was the output cut?");
                    return Err(source.at(error.line(), flaw));
                }
            };
            let skipped = source.text[begun..].len() - source.text[begun..].trim_start().len();
            let line = line_of(source.text, begun + skipped);
            let nodes =
                if let Value::Array(list) = &value { list.as_slice() } else { std::slice::from_ref(&value) };
            for node in nodes {
                take(&mut draft, node, source.text, line).map_err(|(line, flaw)| source.at(line, flaw))?;
            }
        }
        draft.finish(self.name()).map_err(|(line, flaw)| source.at(line, flaw))
    }
}

fn take(draft: &mut Draft, node: &Value, text: &str, line: usize) -> Result<(), (usize, Flaw)> {
    let named = text_at(node, &["Hostname"]).or_else(|| text_at(node, &["Description", "Hostname"]));
    let Some(name) = named else {
        draft.ignore(line, "an object", "has no Hostname: no node of a swarm");
        return Ok(());
    };
    // Objects of a list share the line that the list begins at.
    let line = match line_of_word(text, name) {
        0 => line,
        own => own.max(line),
    };
    let at = |flaw: Flaw| (line, flaw);
    if draft.has_host(name) {
        draft.ignore(line, name, "a node of this name stands above: two machines with one host name?");
        return Ok(());
    }
    draft.host(name).map_err(at)?;
    // A manager may report 0.0.0.0 as its own and its address only as a manager's.
    let address = text_at(node, &["Status", "Addr"]).filter(|address| *address != "0.0.0.0").or_else(|| {
        let (address, _port) = text_at(node, &["ManagerStatus", "Addr"])?.rsplit_once(':')?;
        Some(address.trim_matches(['[', ']']))
    });
    if let Some(address) = address {
        draft.reached_at(name, address, line).map_err(at)?;
    }
    let state = text_at(node, &["Status"]).or_else(|| text_at(node, &["Status", "State"]));
    if let Some(state) = state.filter(|state| !state.eq_ignore_ascii_case("ready")) {
        draft.note(line, name, format!("is {state} in the swarm"));
    }
    let availability = text_at(node, &["Availability"]).or_else(|| text_at(node, &["Spec", "Availability"]));
    if let Some(word) = availability.filter(|word| !word.eq_ignore_ascii_case("active")) {
        draft.note(line, name, format!("takes no tasks: {word}"));
    }
    Ok(())
}
