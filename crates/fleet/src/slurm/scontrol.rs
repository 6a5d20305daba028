//! Slurm as a scheduler whose nodes are drained and resumed: the trait of `linerate_drain` over `scontrol`.
//!
//! In: names, expected states. Out: nodes and reservations, and whether something was written. A write whose
//! client fails counts as late, that is as possibly done, unless its words rule that out.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use linerate_drain::{CallError, DrainReason, Guarded, Hold, Node, Reservation, Scheduler};
use tokio::process::Command;
use tokio::runtime::Runtime;

use super::error::{ANSWER_WAIT, SlurmError, ended};

const PROGRAM: &str = "scontrol";
/// Words of a refusal, after which nothing was written. All other failures, time-outs first, leave that open.
const REFUSED: [&str; 7] = [
    "Invalid",
    "denied",
    "not found",
    "Unknown parameter",
    "not supported",
    "Unable to contact slurm controller (connect failure)",
    "Requested nodes are busy",
];
/// The name of a reservation is taken.
const TAKEN: &str = "Duplicate reservation name";

/// See the file's head.
#[derive(Debug)]
pub struct Scontrol {
    runtime: Runtime,
    /// Configuration of Slurm, where it is not the usual one.
    conf: Option<PathBuf>,
    /// Longest time between a reading and the end of the write that relied on it.
    longest_gap: Duration,
}

impl Scontrol {
    /// The cluster that Slurm's clients find, or that of a `slurm.conf`.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn new(conf: Option<PathBuf>) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { runtime, conf, longest_gap: Duration::ZERO })
    }

    /// Longest time in which a write of another user would have been lost.
    #[must_use]
    pub fn longest_gap(&self) -> Duration {
        self.longest_gap
    }

    /// Name of the cluster.
    ///
    /// # Errors
    /// Slurm's controller does not answer.
    pub fn cluster(&mut self) -> Result<String, CallError> {
        let name = self.config()?.remove("ClusterName");
        name.ok_or_else(|| CallError::Failed("scontrol show config names no cluster".to_owned()))
    }

    /// What the controller has in force, by the names of `slurm.conf`; what is not set has its default, or
    /// `(null)`.
    ///
    /// # Errors
    /// Slurm's controller does not answer.
    pub fn config(&mut self) -> Result<BTreeMap<String, String>, CallError> {
        let text = self.ask(&["show", "config"]).map_err(|error| unread(&error))?;
        let line = |line: &str| {
            let (name, value) = line.split_once('=')?;
            Some((name.trim().to_owned(), value.trim().to_owned()))
        };
        Ok(text.lines().filter_map(line).collect())
    }

    fn ask(&self, arguments: &[&str]) -> Result<String, SlurmError> {
        let mut command = Command::new(PROGRAM);
        // Times as Unix seconds, whatever the user's own format is.
        command.args(arguments).env("SLURM_TIME_FORMAT", "%s");
        command.envs(self.conf.iter().map(|conf| ("SLURM_CONF", conf)));
        self.runtime.block_on(ended(command, PROGRAM, ANSWER_WAIT))
    }

    /// A change that relies on a reading which began at `since`.
    fn write(&mut self, arguments: &[&str], since: Instant) -> Result<Guarded, CallError> {
        let done = self.ask(arguments);
        self.longest_gap = self.longest_gap.max(since.elapsed());
        match done {
            Ok(_) => Ok(Guarded::Written),
            Err(SlurmError::Failed { shown, .. }) if shown.contains(TAKEN) => Ok(Guarded::Changed),
            Err(SlurmError::Failed { shown, .. }) if REFUSED.iter().any(|word| shown.contains(word)) => {
                Err(CallError::Failed(shown))
            }
            Err(error @ SlurmError::Client { .. }) => Err(CallError::Failed(error.to_string())),
            Err(error) => Err(CallError::Late(error.to_string())),
        }
    }

    /// A change of a node that still stands as expected.
    fn update(&mut self, expected: &Node, changes: &[&str]) -> Result<Guarded, CallError> {
        let name = format!("NodeName={}", expected.name);
        let since = Instant::now();
        match self.node(&expected.name)? {
            Some(node) if node.stands_as(expected) => {
                self.write(&[&["update", name.as_str()], changes].concat(), since)
            }
            _ => Ok(Guarded::Changed),
        }
    }
}

impl Scheduler for Scontrol {
    fn nodes(&mut self) -> Result<Vec<Node>, CallError> {
        Ok(nodes(&self.ask(&["--oneliner", "show", "node"]).map_err(|error| unread(&error))?))
    }

    fn node(&mut self, name: &str) -> Result<Option<Node>, CallError> {
        match self.ask(&["--oneliner", "show", "node", name]) {
            Ok(text) => Ok(nodes(&text).into_iter().find(|node| node.name == name)),
            Err(SlurmError::Failed { shown, .. }) if shown.contains("not found") => Ok(None),
            Err(error) => Err(unread(&error)),
        }
    }

    fn drain(&mut self, expected: &Node, reason: &str) -> Result<Guarded, CallError> {
        self.update(expected, &["State=DRAIN", &format!("Reason={reason}")])
    }

    fn resume(&mut self, expected: &Node) -> Result<Guarded, CallError> {
        self.update(expected, &["State=RESUME"])
    }

    fn reservations(&mut self) -> Result<Vec<Reservation>, CallError> {
        Ok(reservations(&self.ask(&["--oneliner", "show", "reservation"]).map_err(|error| unread(&error))?))
    }

    fn reserve(&mut self, reservation: &Reservation) -> Result<Guarded, CallError> {
        let (name, nodes) =
            (format!("ReservationName={}", reservation.name), format!("Nodes={}", reservation.node));
        let user = format!("Users={}", rustix::process::geteuid().as_raw());
        let time = ["StartTime=now", "Duration=UNLIMITED", "Flags=IGNORE_JOBS"];
        let words = [&["create", "reservation", name.as_str(), &nodes, &user], &time[..]].concat();
        self.write(&words, Instant::now())
    }

    fn release(&mut self, node: &Node, expected: &Reservation) -> Result<Guarded, CallError> {
        let since = Instant::now();
        if !self.reservations()?.contains(expected) {
            return Ok(Guarded::Changed);
        }
        // Last, because the run that it passed is no proof of the boot after it.
        if !self.node(&node.name)?.is_some_and(|now| now.stands_as(node)) {
            return Ok(Guarded::Changed);
        }
        self.write(&["delete", &format!("ReservationName={}", expected.name)], since)
    }
}

fn unread(error: &SlurmError) -> CallError {
    match error {
        SlurmError::Late { .. } => CallError::Late(error.to_string()),
        _ => CallError::Failed(error.to_string()),
    }
}

/// A field of a line.
fn field<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

/// The nodes in the output of `scontrol --oneliner show node`. The reason is the last field but those of
/// later versions, and has spaces in it; at its end are user and time.
fn nodes(text: &str) -> Vec<Node> {
    let node = |line: &str| {
        let state = field(line, "State").unwrap_or_default();
        let silent = state.contains('*').then_some("NOT_RESPONDING");
        let words = state.split(['+', '*']).filter(|word| !word.is_empty()).chain(silent);
        Some(Node {
            name: field(line, "NodeName")?.to_owned(),
            state: words.map(str::to_owned).collect(),
            reason: line.split_once(" Reason=").and_then(|(_, rest)| reason(rest)),
            boot_s: field(line, "BootTime").and_then(|time| time.parse().ok()).unwrap_or(0),
        })
    };
    text.lines().filter_map(node).collect()
}

/// `text [user@seconds]`, and whatever later versions print after it. A text that does not end so is one
/// without user and time.
fn reason(rest: &str) -> Option<DrainReason> {
    let rest = rest.trim();
    let known = rest.match_indices(" [").filter_map(|(at, _)| {
        let (inside, _) = rest[at + 2..].split_once(']')?;
        let (by, at_s) = inside.rsplit_once('@')?;
        Some(DrainReason { text: rest[..at].to_owned(), by: by.to_owned(), at_s: at_s.parse().ok()? })
    });
    let whole = || DrainReason { text: rest.to_owned(), by: String::new(), at_s: 0 };
    (!rest.is_empty()).then(|| known.last().unwrap_or_else(whole))
}

/// Own reservations in the output of `scontrol --oneliner show reservation`.
fn reservations(text: &str) -> Vec<Reservation> {
    let reservation = |line: &str| {
        let name = field(line, "ReservationName").filter(|name| name.starts_with(Hold::RESERVATION))?;
        Some(Reservation { name: name.to_owned(), node: field(line, "Nodes")?.to_owned() })
    };
    text.lines().filter_map(reservation).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_with_all_that_counts() {
        let text = "NodeName=n1 Arch=x86_64 OS=Linux 6.18 #1 SMP  State=IDLE+DRAIN ThreadsPerCore=1 \
                    BootTime=1795635567 ExtSensorsTemp=n/s \
                    Reason=linerate: rx 0.94 [x] not 9.41 Gbit/s; run 2026-4f2a [root@1795681688]\n\
                    NodeName=n2 State=IDLE*+COMPLETING BootTime=None\n\nrubbish\n";
        let found = nodes(text);
        assert_eq!((found.len(), found[0].boot_s, found[1].boot_s), (2, 1_795_635_567, 0));
        assert!(found[0].is_drained() && found[0].obstacle().is_none());
        let reason = found[0].reason.as_ref().unwrap();
        assert_eq!(reason.text, "linerate: rx 0.94 [x] not 9.41 Gbit/s; run 2026-4f2a");
        assert_eq!((reason.by.as_str(), reason.at_s), ("root", 1_795_681_688));
        assert_eq!((found[1].obstacle(), &found[1].reason), (Some("NOT_RESPONDING"), &None));
    }

    #[test]
    fn a_reason_without_user_is_a_reason() {
        assert_eq!(reason("fan 3 [left]").unwrap().text, "fan 3 [left]");
        assert_eq!(reason("  "), None);
        let later = reason("fan [alice@17] Comment=x").unwrap();
        assert_eq!((later.text.as_str(), later.by.as_str(), later.at_s), ("fan", "alice", 17));
    }

    #[test]
    fn only_own_reservations_are_listed() {
        let text = "ReservationName=linerate_n2_r StartTime=1 Nodes=n2 NodeCnt=1\n\
                    ReservationName=maint StartTime=1 Nodes=n[1-2]\nNo reservations in the system\n";
        let own = Reservation { name: "linerate_n2_r".into(), node: "n2".into() };
        assert_eq!(reservations(text), [own]);
    }
}
