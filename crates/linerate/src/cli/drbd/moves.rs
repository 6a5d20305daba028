//! Doing a move of a running resource: its steps are journalled while they run; once all went well their
//! journal is closed, for what they did is meant. So are those of earlier moves of the resource that were
//! broken off: taken back later they would undo what is in force now.

use std::path::Path;

use linerate_model::drbd::DrbdMove;
use linerate_model::exit::ExitCode;
use linerate_model::verdict::Verdict;
use linerate_storage::drbd::{On, alarms};

use super::super::builds::stop;
use super::super::out;
use crate::cli::documents::Replicas;
use linerate_fleet::Fleet;
use linerate_fleet::clock;
use linerate_fleet::progress::Progress;
use linerate_operator::build::{self, OnLoss};
use linerate_operator::observe::drbd as seen;
use linerate_report::drbd as shown;
use linerate_report::heat::Style;

/// Does the steps of a kind of move under a name of their own; `None` when all went well, else the code of
/// what was taken back.
pub(super) async fn make(
    fleet: &Fleet,
    (resource, what): (&str, DrbdMove),
    steps: &[On],
    progress: &dyn Progress,
) -> anyhow::Result<Option<ExitCode>> {
    let build = &build::move_name(resource, what, clock::now_ms());
    if let Err(stopped) = build::run(fleet, build, steps, OnLoss::Stay, progress).await {
        return Ok(Some(stop(&stopped)));
    }
    close(fleet, resource).await?;
    Ok(None)
}

/// Closes the journals of all moves of a resource; says which kinds there were.
pub(super) async fn close(fleet: &Fleet, resource: &str) -> anyhow::Result<Vec<DrbdMove>> {
    let mut closed = Vec::new();
    for host in fleet.hosts() {
        for entry in build::list(fleet, &host).await? {
            if let Some((_, what)) = build::move_of(&entry.build).filter(|(of, _)| *of == resource) {
                build::close(fleet, std::iter::once(host.as_str()), &entry.build).await?;
                closed.push(what);
            }
        }
    }
    Ok(closed)
}

/// What is wrong with replicas; `typed` is the inventory as a command has to name it.
pub(super) fn verdict(now: &seen::Replicas, typed: Option<&Path>) -> Verdict {
    let mut found = alarms(&now.all, &now.known, &now.not_up);
    shown::name_inventory(&mut found, typed);
    linerate_report::verdict::of_replicas(&found, &now.all, &now.gaps, typed)
}

/// Shows how it is now.
pub(super) async fn show(fleet: &Fleet, typed: Option<&Path>, json: bool) -> anyhow::Result<()> {
    let now = seen::look(fleet).await;
    if json {
        out::document(verdict(&now, typed), Replicas { replicas: &now.all })
    } else {
        out::print(&shown::table(&now.all, Style::detect()))
    }
}
