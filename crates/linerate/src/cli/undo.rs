//! `linerate undo`: undoes a trial, a volume or a replica; alone it lists what can be undone.

mod args;
mod listed;
mod replica;
mod trials;
mod volume;

use linerate_model::exit::ExitCode;

use super::hosts::Needs;
use super::{builds, open, out};
use linerate_operator::build::{CHECK, DISK, DRBD};
use linerate_store::Store;

pub(super) use args::Args;

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let store = Store::open_default()?;
    let name = match &args.name {
        Some(name) if !args.list && !args.all => name,
        _ if args.all => return trials::all(args, &store),
        _ => return listed::list(args, &store),
    };
    if args.volume {
        return volume::run(args, name);
    }
    if args.replica {
        return replica::run(args, name);
    }
    if let Ok(trial) = store.load_trial(name) {
        return trials::one(args, &store, trial);
    }
    match kind_of(args, name)? {
        Some(Kind::Volume) => volume::run(args, name),
        Some(Kind::Replica) => replica::run(args, name),
        Some(Kind::Checks) => replica::undo_build(args, CHECK, CHECK, "the hosts no longer check themselves"),
        None => Ok(open::after_interrupt()),
    }
}

/// What a build is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Volume,
    Replica,
    Checks,
}

/// What of this name was built on the hosts; `None` when it was interrupted.
fn kind_of(args: &Args, name: &str) -> anyhow::Result<Option<Kind>> {
    if args.hosts.is_none_named() {
        anyhow::bail!(
            "no trial `{name}` in the store\nhint: `linerate undo` lists what is open; a volume or replica needs its hosts: `linerate undo {} HOST`",
            out::word(name)
        );
    }
    let mut kinds = Vec::new();
    let code = args.hosts.with(Needs::Sessions, async |fleet, _| {
        let all = builds::all(fleet).await?;
        for (prefix, kind) in [(DISK, Kind::Volume), (DRBD, Kind::Replica)] {
            if all.iter().any(|build| build.build == format!("{prefix}{name}")) {
                kinds.push(kind);
            }
        }
        let is_installed = name == CHECK && all.iter().any(|build| build.build == CHECK);
        kinds.extend(is_installed.then_some(Kind::Checks));
        Ok(ExitCode::Ok)
    })?;
    match (kinds.as_slice(), code) {
        (_, ExitCode::Interrupted) => Ok(None),
        ([kind], _) => Ok(Some(*kind)),
        ([], _) => anyhow::bail!(
            "no volume or replica `{name}` on these hosts, and no trial: it was undone, or never begun\nhint: `linerate undo --list {}` lists what is there",
            args.hosts.words()
        ),
        _ => anyhow::bail!(
            "a volume and a replica are called `{name}`\nhint: --volume or --replica chooses one"
        ),
    }
}
