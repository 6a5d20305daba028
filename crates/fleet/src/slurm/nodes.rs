//! What Slurm says of its nodes: names, addresses, states. Its text formats, which every version has.
//!
//! What comes in: the output of `scontrol`. What goes out: nodes. It never asks for what a job does.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{SlurmError, ask};

/// Names in one call of `scontrol`: a command line has a limit.
const NAMES_AT_ONCE: usize = 500;
/// States that take no job, as words of a node's state. A node that is reserved or powered down for want of
/// work may still.
const UNFIT: [&str; 10] =
    ["DOWN", "DRAIN", "DRAINED", "DRAINING", "FAIL", "FAILING", "ERROR", "FUTURE", "NOT_RESPONDING", "MAINT"];

/// A node as `scontrol show node` describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub name: String,
    /// Address or name by which Slurm reaches it.
    pub address: String,
    /// Such as `IDLE+DRAIN`; a star means that it does not respond.
    pub state: String,
    /// Why it is drained or down; may be empty.
    pub reason: String,
}

/// The nodes in the output of `scontrol --oneliner show node`: fields `Key=value` separated by spaces, the
/// reason last and with spaces in it.
pub(super) fn parsed(text: &str) -> Vec<Node> {
    let node = |line: &str| {
        let field = |key: &str| {
            let value = line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='))?;
            Some(value.to_owned())
        };
        let reason = line.split_once(" Reason=").map_or("", |(_, reason)| reason.trim());
        let name = field("NodeName")?;
        Some(Node {
            address: field("NodeAddr").filter(|a| !a.is_empty()).unwrap_or_else(|| name.clone()),
            state: field("State").unwrap_or_default(),
            reason: reason.to_owned(),
            name,
        })
    };
    text.lines().filter_map(node).collect()
}

impl Node {
    /// Why the node takes no job; `None` when it does.
    fn unfit(&self) -> Option<String> {
        let silent = self.state.contains('*').then_some("NOT_RESPONDING");
        let mut words = self.state.split(['+', '*']).chain(silent);
        words.find(|word| UNFIT.contains(word)).map(|_| {
            let state = self.state.to_lowercase();
            if self.reason.is_empty() {
                format!("is {state} in Slurm")
            } else {
                format!("is {state} in Slurm: {}", self.reason)
            }
        })
    }
}

/// The names in a list such as `n[1-4,7]`.
pub(super) async fn expanded(list: &str) -> Result<Vec<String>, SlurmError> {
    if list.is_empty() {
        return Ok(Vec::new());
    }
    let text = ask("scontrol", &["show", "hostnames", list]).await?;
    Ok(text.lines().map(str::trim).filter(|l| !l.is_empty()).map(str::to_owned).collect())
}

/// Names as one list that Slurm takes apart again, such as `n[1-4,7],login`: a command line has a limit, and
/// thousands of names may be longer.
pub(super) fn compressed(names: &[String]) -> String {
    /// Names with the same letters and number of digits in front of and in their number, by number.
    type Runs<'a> = BTreeMap<(&'a str, usize), BTreeSet<u64>>;
    let mut runs = Runs::new();
    let mut list: Vec<String> = Vec::new();
    for name in names {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[prefix.len()..];
        match digits.parse() {
            // A number of another length is another name: `n1` and `n01`.
            Ok(number) if digits.len() < 18 => {
                let width = if digits.starts_with('0') { digits.len() } else { 0 };
                runs.entry((prefix, width)).or_default().insert(number);
            }
            _ => list.push(name.clone()),
        }
    }
    for ((prefix, width), numbers) in runs {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for number in numbers {
            match ranges.last_mut() {
                Some((_, to)) if *to + 1 == number => *to = number,
                _ => ranges.push((number, number)),
            }
        }
        let word = |(from, to): &(u64, u64)| {
            if from == to { format!("{from:0width$}") } else { format!("{from:0width$}-{to:0width$}") }
        };
        let words: Vec<String> = ranges.iter().map(word).collect();
        list.push(format!("{prefix}[{}]", words.join(",")));
    }
    list.join(",")
}

pub(super) async fn described(names: &[String]) -> Result<Vec<Node>, SlurmError> {
    let mut nodes = Vec::new();
    for names in names.chunks(NAMES_AT_ONCE) {
        let text = match ask("scontrol", &["--oneliner", "show", "node", &names.join(",")]).await {
            // A name that it does not know fails the whole call, after the others were printed.
            Err(SlurmError::Failed { shown, printed, .. }) if shown.contains("not found") => printed,
            text => text?,
        };
        nodes.extend(parsed(&text));
    }
    Ok(nodes)
}

/// For each node why it takes no job, or `None`. A node that Slurm does not know takes none.
pub(super) async fn states(names: &[String]) -> Result<Vec<(String, Option<String>)>, SlurmError> {
    let nodes = described(names).await?;
    let of = |name: &String| nodes.iter().find(|n| n.name == *name);
    let why = |name: &String| of(name).map_or(Some("is not known to Slurm".to_owned()), Node::unfit);
    Ok(names.iter().map(|name| (name.clone(), why(name))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAINED: &str = "NodeName=n3 Arch=x86_64 CoresPerSocket=1  CPUAlloc=0 Gres=(null) NodeAddr=10.55.0.3 \
        NodeHostName=n3 Version=22.05.8 OS=Linux 6.1 #1 SMP  RealMemory=1000 State=IDLE+DRAIN ThreadsPerCore=1 \
        Partitions=debug  AllocTRES= Reason=rx 0.94<25Gb/s NET-SPEED eth0 [root@2026-11-21T06:36:28]";

    #[test]
    fn a_node_is_read_with_its_reason() {
        let nodes = parsed(&format!("{DRAINED}\nNodeName=n4 State=MIXED ThreadsPerCore=1\n\nnonsense\n"));
        assert_eq!((nodes[0].name.as_str(), nodes[0].address.as_str()), ("n3", "10.55.0.3"));
        let why = nodes[0].unfit().unwrap();
        assert!(why.contains("idle+drain") && why.contains("NET-SPEED eth0"), "{why}");
        assert_eq!((nodes[1].address.as_str(), nodes[1].unfit()), ("n4", None));
        assert_eq!(nodes.len(), 2);
    }

    #[test]
    fn a_node_that_does_not_respond_takes_no_job() {
        for state in ["IDLE*", "DOWN", "DOWN*+DRAIN", "MIXED+DRAIN", "IDLE+NOT_RESPONDING"] {
            let node = parsed(&format!("NodeName=a State={state}"));
            assert!(node[0].unfit().is_some(), "{state}");
        }
        for state in ["IDLE", "MIXED", "ALLOCATED", "IDLE+CLOUD", "COMPLETING"] {
            let node = parsed(&format!("NodeName=a State={state}"));
            assert_eq!(node[0].unfit(), None, "{state}");
        }
    }

    #[test]
    fn thousands_of_names_are_a_short_list() {
        let of = |names: &[&str]| compressed(&names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["n1", "n2", "n3", "n7", "login"]), "login,n[1-3,7]");
        // A number of another width is another name.
        assert_eq!(of(&["n098", "n099", "n100", "n9", "n10"]), "n[9-10,100],n[098-099]");
        assert_eq!(of(&["a-1-x", "rack2n1", "rack1n1"]), "a-1-x,rack1n[1],rack2n[1]");
        let all: Vec<String> = (1..=10_000).map(|n| format!("node-{n:05}")).collect();
        assert_eq!(compressed(&all), "node-[10000],node-[00001-09999]");
    }
}
