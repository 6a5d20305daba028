//! Builds that stand in the journals of hosts, for the commands that make, list and take them back: `linerate disk …` and `linerate drbd …`.
//!
//! In: open sessions and the name of a build. Out: lines for people and values for programs, and the code that an ending deserves.

use linerate_model::exit::ExitCode;
use linerate_wire::message::BuildEntry;
use serde::Serialize;

use super::hosts::really;
use super::out;
use crate::build::{self, Stopped};
use crate::fleet::{Fleet, LinkError};
use crate::report::builds::Shown;
use crate::report::steps;

/// Begins the name of the build of a volume over drives.
pub(super) const DISK: &str = "disk-";
/// Begins the name of the build of a replica.
pub(super) const DRBD: &str = "drbd-";

/// What a build that stopped means for the shell.
pub(super) fn stop(stopped: &Stopped) -> ExitCode {
    out::say_error(&anyhow::anyhow!(stopped.to_string()));
    match stopped {
        Stopped::Exists { .. } | Stopped::NotBegun(_) => ExitCode::CouldNotRun,
        Stopped::TakenBack { .. } => ExitCode::RolledBack,
        Stopped::Left { .. } => ExitCode::RollbackFailed,
    }
}

/// What became of the way back.
#[derive(Debug, Default, Serialize)]
pub(super) struct TakenBack {
    /// Host and what was done there, in order.
    pub(super) done: Vec<(String, String)>,
    /// What could not be done.
    pub(super) failures: Vec<String>,
}

impl TakenBack {
    /// The code that it deserves.
    pub(super) fn code(&self) -> ExitCode {
        if self.failures.is_empty() { ExitCode::Ok } else { ExitCode::RollbackFailed }
    }

    /// A line for each thing that was done; errors with their hints.
    pub(super) fn show(&self) -> anyhow::Result<()> {
        self.done.iter().try_for_each(|(host, line)| out::print(&format!("{host}: {line}")))?;
        self.failures.iter().for_each(|failure| out::say_error(&anyhow::anyhow!(failure.clone())));
        Ok(())
    }
}

/// Undoes a build on all hosts, the last one first. `discard` is the name that was typed to give up what the
/// build did not make.
pub(super) async fn take_back(fleet: &Fleet, build: &str, discard: Option<&str>) -> TakenBack {
    let mut taken = TakenBack::default();
    for host in fleet.hosts().iter().rev() {
        match build::undo(fleet, host, build, discard.is_some()).await {
            Ok(lines) => taken.done.extend(lines.into_iter().map(|line| (host.clone(), line))),
            Err(error) => taken.failures.push(whole_command(&error.to_string(), std::env::args())),
        }
    }
    taken
}

/// What a host says has to be added to the command, as a command that runs as printed.
fn whole_command(error: &str, words: impl Iterator<Item = String>) -> String {
    const OPTION: &str = "--discard ";
    let is_plain =
        |word: &String| word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./:@%+=,".contains(&b));
    let quoted =
        |word: String| if is_plain(&word) { word } else { format!("'{}'", word.replace('\'', r"'\''")) };
    let mut words = words.map(quoted);
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let command = std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ");
    error.replacen(OPTION, &format!("{command} {OPTION}"), 1)
}

/// The confirmation of an undo: the name once more, as `--really` or, with what it gives up, as `--discard`.
pub(super) fn confirm(
    name: &str,
    typed: Option<&str>,
    discard: Option<&str>,
    warning: &str,
) -> anyhow::Result<()> {
    really(name, discard.or(typed), warning)
}

/// The command that takes a build back on the hosts that have it.
pub(super) fn undo_command(hosts: &[&str], build: &str) -> String {
    let hosts = hosts.iter().map(|host| out::word(host)).collect::<Vec<_>>().join(" ");
    match (build.strip_prefix(DISK), build.strip_prefix(DRBD)) {
        (Some(name), _) => format!("linerate disk undo {} {hosts}", out::word(name)),
        (_, Some(name)) => format!("linerate drbd undo {} {hosts}", out::word(name)),
        _ => format!("a move of DRBD that was broken off: linerate drbd status {hosts}"),
    }
}

/// All builds of all open hosts.
pub(super) async fn all(fleet: &Fleet) -> Result<Vec<Shown>, LinkError> {
    let mut all: Vec<Shown> = Vec::new();
    for host in fleet.hosts() {
        let entries = build::list(fleet, &host).await?;
        all.extend(entries.into_iter().map(|entry| shown(&host, entry)));
    }
    // A replica is one build on several hosts, and is taken back on all of them.
    let of: Vec<(String, String)> = all.iter().map(|one| (one.build.clone(), one.host.clone())).collect();
    for one in all.iter_mut().filter(|one| !one.build.starts_with(DISK)) {
        let hosts: Vec<&str> =
            of.iter().filter(|(build, _)| *build == one.build).map(|(_, host)| host.as_str()).collect();
        one.undo = undo_command(&hosts, &one.build);
    }
    Ok(all)
}

fn shown(host: &str, entry: BuildEntry) -> Shown {
    Shown {
        host: host.to_owned(),
        undo: undo_command(&[host], &entry.build),
        build: entry.build,
        created_ms: entry.created_ms,
        whole: entry.whole,
        steps: entry.steps.iter().map(steps::shown).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_all_hosts_of_a_replica() {
        assert_eq!(undo_command(&["one"], "disk-data"), "linerate disk undo data one");
        assert_eq!(undo_command(&["one", "two"], "drbd-r0"), "linerate drbd undo r0 one two");
    }

    #[test]
    fn a_hint_names_the_whole_command() {
        let words = ["/usr/bin/linerate", "disk", "undo", "data", "--really", "data", "-i", "my hosts.toml"];
        let error = "store: there is data at byte 7\nhint: look at it: --discard data";
        assert_eq!(
            whole_command(error, words.into_iter().map(str::to_owned)),
            "store: there is data at byte 7\nhint: look at it: linerate disk undo data --really data -i 'my hosts.toml' --discard data"
        );
        assert_eq!(whole_command("store: lost", std::iter::empty()), "store: lost");
    }

    #[test]
    fn what_is_given_up_is_named_by_its_own_name() {
        assert!(confirm("data", None, Some("data"), "gone").is_ok(), "no second confirmation is needed");
        for discard in ["date", "", "yes"] {
            let refused = confirm("data", Some("data"), Some(discard), "gone").unwrap_err().to_string();
            assert!(refused.contains(&format!("`{discard}` is not `data`: nothing was done")), "{refused}");
        }
    }
}
