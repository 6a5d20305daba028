//! A replica that `linerate drbd up` built is undone, from the journals on the hosts.

use linerate_model::exit::ExitCode;

use super::args::Args;
use crate::cli::builds;
use crate::cli::hosts::Needs;
use linerate_operator::build::DRBD;

pub(super) fn run(args: &Args, resource: &str) -> anyhow::Result<ExitCode> {
    let warning = format!("{resource} is not replicated any more after this, and its metadata are gone");
    undo_build(args, resource, &format!("{DRBD}{resource}"), &warning)
}

/// A build that is undone on all of its hosts, when its name is typed once more.
pub(super) fn undo_build(args: &Args, name: &str, build: &str, warning: &str) -> anyhow::Result<ExitCode> {
    let discard = args.discard.as_deref();
    builds::confirm(name, args.yes.as_deref(), discard, warning)?;
    args.hosts.with(Needs::Sessions, async |fleet, _| {
        let taken = builds::take_back(fleet, build, discard).await?;
        taken.show()?;
        Ok(taken.code())
    })
}
