//! Why a step of a build was not done, or not taken back, and what to do about it.

use std::path::{Path, PathBuf};

use linerate_model::printable::without_hint;
use linerate_model::step::StepError;
use thiserror::Error;

use super::remains::Obstacle;
use linerate_facts::private::disk_hint;

/// Why a step was not done, or not taken back.
#[derive(Debug, Error)]
pub(crate) enum BuildError {
    #[error("no setup was made, so that there is no folder for journals\nhint: send a setup first")]
    NoSetup,
    #[error("{0}\nhint: names are plain words, devices are paths below /dev/")]
    Name(#[from] StepError),
    #[error("{host}: cannot {what} {path}: {source}\nhint: {}", disk_hint(.source))]
    Disk { host: String, what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{host}: cannot check the host: {why}\nhint: run `linerate-node check` there")]
    NotChecked { host: String, why: String },
    #[error("{host}: another session builds on this host\nhint: try again when it has ended")]
    Locked { host: String },
    #[error(
        "{host}: the program of a step that was begun before still runs; its session ended before it \
         did\nhint: give the same command again when it has ended; `ps -ef` on that host shows it"
    )]
    StillRuns { host: String },
    #[error(
        "{host}: {device}: {why}\nhint: nothing was written; choose another device, or empty this one \
         yourself after you looked at it"
    )]
    InTheWay { host: String, device: String, why: String },
    #[error("{host}: cannot run {program}: {source}\nhint: {}", package_hint(.program))]
    Start { host: String, program: String, source: std::io::Error },
    #[error("{host}: `{command}` did not end within {limit_s} s\nhint: look on the host what it waits for")]
    Late { host: String, command: String, limit_s: u64 },
    #[error(
        "{host}: `{command}` ended with {code}: {words}\nhint: the words are the program's own; steps before \
         it can be taken back"
    )]
    Failed { host: String, command: String, code: i32, words: String },
    #[error(
        "{host}: journal {0} is left alone: it names {names}\nhint: on that host: `ls -l {0}` shows who \
         wrote it, `mv {0} {0}.moved` moves it away",
        path.display()
    )]
    Planted { host: String, path: PathBuf, names: String },
    #[error(
        "{host}: build `{build}` is left as it is: {}\nhint: {}",
        all_of(.obstacles), stands_hint(.build, .obstacles)
    )]
    Stands { host: String, build: String, obstacles: Vec<Obstacle> },
    #[error("{} was written by another program since this build\nhint: {REMOVE_FIRST}", path.display())]
    Overwritten { path: PathBuf },
    #[error(
        "{host}: no build `{build}` that was not taken back\nhint: the list of builds of the host names them"
    )]
    NoBuild { host: String, build: String },
    #[error(
        "{host}: build `{build}` could not be taken back whole: {failures}\nhint: fix the named step by \
         hand, then take the build back again"
    )]
    NotUndone { host: String, build: String, failures: String },
}

impl BuildError {
    /// What failed on the disk of a host.
    pub(super) fn disk(host: &str, what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        let (host, path) = (host.to_owned(), path.to_owned());
        move |source| Self::Disk { host: host.clone(), what, path: path.clone(), source }
    }

    /// The error without its hint, as a part of another text.
    pub(super) fn line(&self) -> String {
        without_hint(&self.to_string()).0.to_owned()
    }
}

/// Hint about what stands on a build and is in use.
const REMOVE_FIRST: &str = "unmount, stop or remove what is named, and undo again";

/// What to do about what stands on a build.
fn stands_hint(build: &str, obstacles: &[Obstacle]) -> String {
    if obstacles.iter().all(|one| one.discardable) {
        let name = build.split_once('-').map_or(build, |(_, name)| name);
        format!("look at it, and give up what may go: --discard {name}")
    } else {
        REMOVE_FIRST.to_owned()
    }
}

/// Where a program comes from.
fn package_hint(program: &str) -> &'static str {
    match program {
        name if name.starts_with("drbd") => "install drbd-utils on that host",
        "mdadm" => "install mdadm on that host",
        "lvm" | "lvs" | "lvcreate" | "lvremove" | "lvchange" | "lvconvert" | "lvextend" | "pvs"
        | "pvcreate" | "pvremove" | "vgs" | "vgcreate" | "vgremove" | "vgextend" | "vgchange" => {
            "install lvm2 on that host"
        }
        name if name.starts_with("mkfs.xfs") || name.starts_with("xfs") => "install xfsprogs on that host",
        "mkfs.ext4" => "install e2fsprogs on that host",
        _ => "install it on that host (part of util-linux on most systems)",
    }
}

fn all_of(obstacles: &[Obstacle]) -> String {
    obstacles.iter().map(|one| one.what.as_str()).collect::<Vec<_>>().join("; ")
}
