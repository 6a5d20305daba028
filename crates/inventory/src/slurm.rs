//! Slurm's output about its nodes: `scontrol show node` (one line each or not), `sinfo -h -N -o
//! '%N|%o|%T|%P'`, `slurm.conf`, `topology.conf` or `scontrol show topology`, one behind the other in any
//! order; and the JSON of `sinfo` and `scontrol`.
//!
//! What comes in: a text. What goes out: hosts with their address, partitions and switches as groups,
//! switches nested. A partition of all nodes distinguishes nothing and is left out; a node that is down stays
//! in and is remarked.

use std::collections::BTreeMap;

use serde_json::Value;

use super::draft::{Draft, HOSTS_MAX, Understood};
use super::error::{Flaw, InventoryError};
use super::json::{line_of_word, parse_json, texts};
use super::range::{Dialect, expand, split_outside};
use super::reader::{Reader, SourceText};

/// The format.
pub(super) struct Slurm;

/// First keys of the lines that are read.
const RECORDS: [&str; 4] = ["NodeName", "SwitchName", "PartitionName", "BlockName"];
/// Parts of states in which a node may not answer; a `*` behind any state means that it does not.
const BAD_STATES: [&str; 5] = ["DOWN", "DRAIN", "FAIL", "NOT_RESPONDING", "POWERED_DOWN"];

impl Reader for Slurm {
    fn name(&self) -> &'static str {
        "slurm"
    }

    fn describes(&self) -> &'static str {
        "scontrol show node, sinfo (text and JSON), slurm.conf, topology.conf"
    }

    fn detects(&self, text: &str) -> bool {
        if text.trim_start().starts_with('{') {
            return text.contains("\"slurm\"") || text.contains("\"Slurm\"") || text.contains("\"sinfo\"");
        }
        text.lines().any(|line| record_of(line).is_some() || sinfo_line(line).is_some())
    }

    fn read(&self, source: &SourceText<'_>) -> Result<Understood, InventoryError> {
        let mut reading = Reading::default();
        if source.text.trim_start().starts_with('{') {
            let value = parse_json(source)?;
            reading.json(source.text, &value).map_err(|(line, flaw)| source.at(line, flaw))?;
        } else {
            for (line, text) in joined(source.text) {
                reading.line(&text, line).map_err(|flaw| source.at(line, flaw))?;
            }
        }
        reading.finish(self.name()).map_err(|(line, flaw)| source.at(line, flaw))
    }
}

/// Which kind of record a line begins.
fn record_of(line: &str) -> Option<&'static str> {
    let (key, _) = line.split_once('=')?;
    RECORDS.into_iter().find(|record| record.eq_ignore_ascii_case(key.trim()))
}

/// Fields of a line of `sinfo -h -N -o '%N|%o|%T|%P'`.
fn sinfo_line(line: &str) -> Option<[&str; 4]> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let fields: [&str; 4] = fields.try_into().ok()?;
    fields.iter().all(|field| !field.is_empty() && !field.contains(' ')).then_some(fields)
}

/// Whole records with the line that they begin at: lines that end in `\`, and the indented lines of
/// `scontrol show node`, belong to the one before.
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut records: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in text.lines().enumerate() {
        // What scontrol prints has a `#` in versions of kernels and in reasons.
        let printed = ["OS=", "Reason=", "Arch="].iter().any(|key| line.contains(key));
        let line = if printed { line } else { line.split('#').next().unwrap_or_default() };
        let ends = line.trim_end();
        let (body, more) = ends.strip_suffix('\\').map_or((ends, false), |body| (body, true));
        let indented = body.starts_with("   ") && !body.trim().is_empty();
        match records.last_mut().filter(|(_, last)| goes_on || (indented && record_of(last).is_some())) {
            Some((_, last)) => {
                last.push(' ');
                last.push_str(body.trim());
            }
            None => records.push((number + 1, body.trim().to_owned())),
        }
        goes_on = more;
    }
    records.retain(|(_, record)| !record.is_empty());
    records
}

/// `Key=value` pairs of a record; a value goes on up to the next word with a `=`.
fn pairs(record: &str) -> BTreeMap<String, String> {
    let mut pairs: BTreeMap<String, String> = BTreeMap::new();
    let mut last = None;
    for word in record.split_whitespace() {
        let key = word.split_once('=').filter(|(key, _)| {
            !key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        });
        if let Some((key, value)) = key {
            let key = key.to_ascii_lowercase();
            // The first one counts: a reason may contain anything.
            pairs.entry(key.clone()).or_insert_with(|| value.to_owned());
            last = Some(key);
        } else if let Some(value) = last.as_ref().and_then(|key| pairs.get_mut(key)) {
            value.push(' ');
            value.push_str(word);
        }
    }
    pairs
}

/// Names in an expression such as `n[1-4],m1`.
fn names(expression: &str) -> Result<Vec<String>, Flaw> {
    let mut all = Vec::new();
    for part in split_outside(expression) {
        all.extend(expand(part, Dialect::Dash, HOSTS_MAX - all.len().min(HOSTS_MAX))?);
    }
    Ok(all)
}

#[derive(Default)]
struct Reading {
    draft: Draft,
    /// Partition to hosts, with its line; groups are made at the end, when it is known which of them have all
    /// hosts.
    partitions: BTreeMap<String, (usize, Vec<String>)>,
    /// Switch or block to its hosts.
    switches: Vec<(String, &'static str, Vec<String>, usize)>,
}

impl Reading {
    fn line(&mut self, text: &str, line: usize) -> Result<(), Flaw> {
        let Some(record) = record_of(text) else {
            if let Some([name, address, state, partition]) = sinfo_line(text) {
                return self.node(name, Some(address), state, &[partition.trim_end_matches('*')], line);
            }
            // Options of slurm.conf, prompts and headings are not about nodes.
            return Ok(());
        };
        let pairs = pairs(text);
        let get = |key: &str| pairs.get(key).map(String::as_str).filter(|v| !v.is_empty() && *v != "(null)");
        let name = get(&record.to_ascii_lowercase()).unwrap_or_default();
        if name.eq_ignore_ascii_case("default") {
            return Ok(());
        }
        match record {
            "NodeName" => self.nodes(name, get("nodeaddr"), get("state"), get("partitions"), line),
            "PartitionName" => {
                let listed = get("nodes").unwrap_or_default();
                // `Nodes=ALL` distinguishes nothing.
                if !listed.eq_ignore_ascii_case("all") {
                    let hosts = names(listed)?;
                    self.partitions.entry(name.to_owned()).or_insert((line, Vec::new())).1.extend(hosts);
                }
                Ok(())
            }
            _ => {
                let kind = if record == "BlockName" { "block" } else { "switch" };
                self.draft.group(name, kind, line)?;
                // `scontrol show topology` also lists the nodes below a switch of switches.
                if let Some(below) = get("switches") {
                    return names(below)?
                        .iter()
                        .try_for_each(|child| self.draft.nest(child, name, kind, line));
                }
                let hosts = get("nodes").map_or(Ok(Vec::new()), names)?;
                self.switches.push((name.to_owned(), kind, hosts, line));
                Ok(())
            }
        }
    }

    /// A record of nodes, with ranges as slurm.conf has them.
    fn nodes(
        &mut self,
        name: &str,
        address: Option<&str>,
        state: Option<&str>,
        partitions: Option<&str>,
        line: usize,
    ) -> Result<(), Flaw> {
        let hosts = names(name)?;
        let addresses = address.map(names).transpose()?;
        if let Some(addresses) = addresses.as_ref().filter(|addresses| addresses.len() != hosts.len()) {
            let what = format!("{} names, but {} addresses", hosts.len(), addresses.len());
            return Err(Flaw::new(what, "NodeName and NodeAddr have as many entries each"));
        }
        let partitions: Vec<&str> = partitions.map_or(Vec::new(), |list| list.split(',').collect());
        for (number, host) in hosts.iter().enumerate() {
            let address = addresses.as_ref().and_then(|addresses| addresses.get(number));
            self.node(host, address.map(String::as_str), state.unwrap_or_default(), &partitions, line)?;
        }
        Ok(())
    }

    fn node(
        &mut self,
        name: &str,
        address: Option<&str>,
        state: &str,
        partitions: &[&str],
        line: usize,
    ) -> Result<(), Flaw> {
        let known = self.draft.has_host(name);
        self.draft.host(name)?;
        if let Some(address) = address {
            self.draft.reached_at(name, address, line)?;
        }
        let upper = state.to_ascii_uppercase();
        if !known && (upper.ends_with('*') || BAD_STATES.iter().any(|bad| upper.contains(bad))) {
            self.draft.note(line, name, format!("is {state} in Slurm"));
        }
        for partition in partitions.iter().filter(|partition| !partition.is_empty()) {
            let entry = self.partitions.entry((*partition).to_owned()).or_insert((line, Vec::new()));
            entry.1.push(name.to_owned());
        }
        Ok(())
    }

    /// `nodes` of 22.05 and of scontrol; `sinfo` of later versions, a row of nodes with the same state each.
    fn json(&mut self, text: &str, value: &Value) -> Result<(), (usize, Flaw)> {
        let empty = Vec::new();
        let list = |key: &str| value.get(key).and_then(Value::as_array).unwrap_or(&empty);
        for node in list("nodes") {
            let Some(name) = node.get("name").and_then(Value::as_str) else { continue };
            let line = line_of_word(text, name);
            let at = |flaw: Flaw| (line, flaw);
            let address = node.get("address").and_then(Value::as_str).filter(|a| !a.is_empty());
            let state = [texts(node.get("state")), texts(node.get("state_flags"))].concat().join("+");
            let partitions = texts(node.get("partitions"));
            let partitions: Vec<&str> = partitions.iter().map(String::as_str).collect();
            self.node(name, address, &state, &partitions, line).map_err(at)?;
        }
        for row in list("sinfo") {
            let nodes = row.get("nodes");
            let addresses = texts(nodes.and_then(|nodes| nodes.get("addresses")));
            let state = texts(row.get("node").and_then(|node| node.get("state"))).join("+");
            let partition = row.get("partition").and_then(|partition| partition.get("name"));
            let partition = partition.and_then(Value::as_str).unwrap_or_default();
            let hosts = texts(nodes.and_then(|nodes| nodes.get("nodes")));
            for (number, host) in hosts.iter().enumerate() {
                let line = line_of_word(text, host);
                let address = (addresses.len() == hosts.len()).then(|| addresses[number].as_str());
                self.nodes(host, address, Some(&state), Some(partition), line).map_err(|f| (line, f))?;
            }
        }
        Ok(())
    }

    fn finish(mut self, format: &'static str) -> Result<Understood, (usize, Flaw)> {
        // A topology by itself names its hosts; beside a list of nodes it must not bring others.
        let alone = self.draft.host_names().is_empty();
        for (switch, kind, hosts, line) in std::mem::take(&mut self.switches) {
            for host in hosts {
                if alone || self.draft.has_host(&host) {
                    self.draft.join(&host, &switch, kind, line).map_err(|flaw| (line, flaw))?;
                } else {
                    self.draft.ignore(line, format!("{host} at {switch}"), "not among the nodes");
                }
            }
        }
        let all = self.draft.host_names().len();
        for (partition, (line, mut hosts)) in std::mem::take(&mut self.partitions) {
            hosts.retain(|host| self.draft.has_host(host));
            hosts.sort_unstable();
            hosts.dedup();
            if hosts.len() == all {
                self.draft.ignore(
                    line,
                    format!("partition {partition}"),
                    "has all hosts: it distinguishes nothing",
                );
                continue;
            }
            for host in hosts {
                self.draft.join(&host, &partition, "partition", line).map_err(|flaw| (line, flaw))?;
            }
        }
        self.draft.finish(format)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_cut_where_slurm_cuts_them() {
        let text = "NodeName=a Arch=x \n   NodeAddr=10.0.0.1\n   Reason=it is = slow [root@x]\n\nNodeName=b \\\n  NodeAddr=c\n";
        let records = joined(text);
        assert_eq!(records.len(), 2);
        assert_eq!(records[1], (5, "NodeName=b NodeAddr=c".to_owned()));
        let pairs = pairs(&records[0].1);
        assert_eq!(pairs["nodeaddr"], "10.0.0.1");
        assert_eq!(pairs["reason"], "it is = slow [root@x]");
    }
}
