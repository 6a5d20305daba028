//! Nodes of Kubernetes: `kubectl get nodes -o json`.
//!
//! What comes in: a text. What goes out: hosts over ssh, the internal address as endpoint, zones in regions
//! as groups. The addresses of pods, nodes that are not ready and nodes that take no pods are remarked.

use serde_json::Value;

use super::draft::{Draft, Understood};
use super::error::{Flaw, InventoryError, shown};
use super::json::{line_of_word, parse_json, text_at, texts};
use super::reader::{Reader, SourceText};

/// The format.
pub(super) struct Kubernetes;

/// Labels with the location of a node, the inner one first; the older names are still found.
const ZONE: [&str; 2] = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];
const REGION: [&str; 2] = ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"];

impl Reader for Kubernetes {
    fn name(&self) -> &'static str {
        "kubernetes"
    }

    fn describes(&self) -> &'static str {
        "kubectl get nodes -o json"
    }

    fn detects(&self, text: &str) -> bool {
        text.trim_start().starts_with('{') && text.contains("\"apiVersion\"")
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let value = parse_json(source)?;
        let mut draft = Draft::default();
        let one = std::slice::from_ref(&value);
        let items = value.get("items").and_then(Value::as_array).map_or(one, Vec::as_slice);
        for item in items {
            take(&mut draft, item, source.text).map_err(|(line, flaw)| source.at(line, flaw))?;
        }
        draft.finish(self.name()).map_err(|(line, flaw)| source.at(line, flaw))
    }
}

fn take(draft: &mut Draft, item: &Value, text: &str) -> Result<(), (usize, Flaw)> {
    let kind = text_at(item, &["kind"]).unwrap_or("an object without a kind");
    let Some(name) = text_at(item, &["metadata", "name"]) else { return Ok(()) };
    let line = line_of_word(text, name);
    let at = |flaw: Flaw| (line, flaw);
    if kind != "Node" {
        draft.ignore(line, format!("{kind} {name}"), "not a node: `kubectl get nodes -o json` lists them");
        return Ok(());
    }
    draft.host(name).map_err(at)?;
    let empty = Vec::new();
    let list = |path: [&str; 2]| {
        item.get(path[0]).and_then(|part| part.get(path[1])).and_then(Value::as_array).unwrap_or(&empty)
    };
    for address in list(["status", "addresses"]) {
        if let (Some("InternalIP"), Some(address)) =
            (text_at(address, &["type"]), text_at(address, &["address"]))
        {
            let parsed = address.parse().map_err(|_| {
                let what = format!("`{}` of {name} is not an IP address", shown(address));
                (line, Flaw::new(what, "InternalIP is one"))
            })?;
            draft.address(name, parsed, line).map_err(at)?;
            let reach = draft.reach(name).map_err(at)?;
            reach.address.get_or_insert_with(|| address.to_owned());
        }
    }
    let label =
        |names: [&str; 2]| names.iter().find_map(|label| text_at(item, &["metadata", "labels", label]));
    if let Some(zone) = label(ZONE) {
        draft.join(name, zone, "zone", line).map_err(at)?;
        if let Some(region) = label(REGION).filter(|region| *region != zone) {
            draft.nest(zone, region, "region", line).map_err(at)?;
        }
    }
    remarks(draft, item, name, line, list(["status", "conditions"]));
    Ok(())
}

fn remarks(draft: &mut Draft, item: &Value, name: &str, line: usize, conditions: &[Value]) {
    let spec = item.get("spec").unwrap_or(&Value::Null);
    let mut pods = texts(spec.get("podCIDRs"));
    if pods.is_empty() {
        pods = texts(spec.get("podCIDR"));
    }
    if !pods.is_empty() {
        draft.note(line, name, format!("has its pods in {}", pods.join(" and ")));
    }
    if spec.get("unschedulable").and_then(Value::as_bool) == Some(true) {
        draft.note(line, name, "takes no new pods (cordoned)");
    }
    let ready = conditions.iter().find(|condition| text_at(condition, &["type"]) == Some("Ready"));
    if ready.is_some_and(|ready| text_at(ready, &["status"]) != Some("True")) {
        draft.note(line, name, "is not ready in Kubernetes");
    }
}
