//! Doing a move of a running resource: its steps are journalled while they run; once all went well their journal is closed, for what they did is meant.

use linerate_diagnose::drbd::On;
use linerate_model::exit::ExitCode;

use super::super::builds::stop;
use super::super::out;
use crate::build;
use crate::fleet::Fleet;
use crate::observe::{clock, drbd as seen};
use crate::progress::Progress;
use crate::report::drbd as shown;
use crate::report::heat::Style;

/// Does the steps under a name of their own; `None` when all went well, else the code of what was taken back.
pub(super) async fn make(
    fleet: &Fleet,
    build: &str,
    steps: &[On],
    progress: &dyn Progress,
) -> anyhow::Result<Option<ExitCode>> {
    let build = &format!("{build}-{}", clock::now_ms());
    if let Err(stopped) = build::run(fleet, build, steps, progress).await {
        return Ok(Some(stop(&stopped)));
    }
    build::close(fleet, build::hosts_of(steps).into_iter(), build).await?;
    Ok(None)
}

/// Shows how it is now.
pub(super) async fn show(fleet: &Fleet, json: bool) -> anyhow::Result<()> {
    let now = seen::look(fleet).await;
    if json {
        out::json(&serde_json::json!({ "schema": linerate_model::SCHEMA, "replicas": now.all }))
    } else {
        out::print(&shown::table(&now.all, Style::detect()))
    }
}
