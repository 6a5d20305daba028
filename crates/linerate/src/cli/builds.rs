//! Builds that stand in the journals of hosts, for the commands that make, list and take them back:
//! `linerate disk …` and `linerate drbd …`.
//!
//! In: open sessions and the name of a build. Out: lines for people and values for programs, and the code
//! that an ending deserves.

use linerate_model::exit::ExitCode;
use linerate_wire::message::BuildEntry;
use schemars::JsonSchema;
use serde::Serialize;

use super::hosts::really;
use super::out;
use linerate_fleet::{Fleet, LinkError};
use linerate_operator::build::{self, Stopped};
use linerate_report::builds::BuildView;
use linerate_report::steps;

/// What a build that stopped means for the shell.
pub(super) fn stop(stopped: &Stopped) -> ExitCode {
    out::say_error(&anyhow::anyhow!(stopped.to_string()));
    match stopped {
        Stopped::Exists { .. } | Stopped::NotBegun(_) => ExitCode::CouldNotRun,
        Stopped::TakenBack { .. } => ExitCode::RolledBack,
        Stopped::Left { .. } | Stopped::Unknown { .. } => ExitCode::RollbackFailed,
    }
}

/// Result of an undo.
#[derive(Debug, Default, Serialize, JsonSchema)]
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

/// Undoes a build on all hosts that have it, the last one first: one that was killed had not reached all of
/// them, or had left some. `discard` is the name that was typed to give up what the build did not make.
///
/// # Errors
/// None of the hosts has it.
pub(super) async fn take_back(
    fleet: &Fleet,
    build: &str,
    discard: Option<&str>,
) -> anyhow::Result<TakenBack> {
    let (mut taken, mut is_anywhere) = (TakenBack::default(), false);
    let hosts = fleet.hosts();
    for host in hosts.iter().rev() {
        let undone = match build::list(fleet, host).await {
            Ok(builds) if !builds.iter().any(|entry| entry.build == build) => continue,
            Ok(_) => build::undo(fleet, host, build, discard.is_some()).await,
            Err(error) => Err(error),
        };
        is_anywhere = true;
        match undone {
            Ok(lines) => taken.done.extend(lines.into_iter().map(|line| (host.clone(), line))),
            Err(error) => taken.failures.push(whole_command(&error.to_string(), std::env::args())),
        }
    }
    let names = fleet.all_arguments();
    anyhow::ensure!(
        is_anywhere,
        "no build `{build}` on {}: it was undone, or never begun\nhint: `linerate undo --list {names}` lists what is there",
        hosts.join(" and ")
    );
    Ok(taken)
}

/// What a host says has to be added to the command, as a command that runs as printed.
fn whole_command(error: &str, words: impl Iterator<Item = String>) -> String {
    const OPTION: &str = "--discard ";
    let mut words = words.map(|word| linerate_model::shell::word(&word));
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    let command = std::iter::once(name).chain(words).collect::<Vec<_>>().join(" ");
    error.replacen(OPTION, &format!("{command} {OPTION}"), 1)
}

/// The confirmation of an undo: the name once more, as `--yes` or, with what it discards, as `--discard`.
pub(super) fn confirm(
    name: &str,
    typed: Option<&str>,
    discard: Option<&str>,
    warning: &str,
) -> anyhow::Result<()> {
    really(name, discard.or(typed), warning)
}

/// All builds of all open hosts.
pub(super) async fn all(fleet: &Fleet) -> Result<Vec<BuildView>, LinkError> {
    let mut all: Vec<(String, BuildEntry)> = Vec::new();
    for host in fleet.hosts() {
        let entries = build::list(fleet, &host).await?;
        all.extend(entries.into_iter().map(|entry| (host.clone(), entry)));
    }
    let having = |build: &str| -> Vec<&str> {
        all.iter().filter(|(_, entry)| entry.build == build).map(|(host, _)| host.as_str()).collect()
    };
    let every = fleet.hosts();
    let undo = |host: &str, entry: &BuildEntry| {
        let hosts = match build::move_of(&entry.build) {
            Some(_) => every.iter().map(String::as_str).collect(),
            // Volumes of one name on several hosts have nothing in common.
            None if entry.build.starts_with(build::DISK) => vec![host],
            None => having(&entry.build),
        };
        build::undo_command(&entry.build, &fleet.arguments(&hosts))
    };
    let undos: Vec<String> = all.iter().map(|(host, entry)| undo(host, entry)).collect();
    Ok(all.into_iter().zip(undos).map(|((host, entry), undo)| shown(host, entry, undo)).collect())
}

fn shown(host: String, entry: BuildEntry, undo: String) -> BuildView {
    BuildView {
        host,
        undo,
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
    fn a_hint_names_the_whole_command() {
        let words = ["/usr/bin/linerate", "undo", "data", "--yes=data", "-i", "my hosts.toml"];
        let error = "store: there is data at byte 7\nhint: look at it: --discard data";
        assert_eq!(
            whole_command(error, words.into_iter().map(str::to_owned)),
            "store: there is data at byte 7\nhint: look at it: linerate undo data --yes=data -i 'my hosts.toml' --discard data"
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
