//! Why a step of a build was not done, or not taken back, and what to do about it.

use std::path::{Path, PathBuf};

use linerate_model::step::StepError;
use thiserror::Error;

use super::remains::Obstacle;
use crate::private::NotPrivate;

/// Why a step was not done, or not taken back.
#[derive(Debug, Error)]
pub(crate) enum BuildError {
    #[error("no setup was made, so that there is no folder for journals")]
    NoSetup,
    #[error(transparent)]
    Name(#[from] StepError),
    #[error("{host}: cannot {what} {path}: {source}")]
    Disk { host: String, what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("{host}: another session builds on this host")]
    Locked { host: String },
    #[error(
        "{host}: the program of a step that was begun before still runs; its session ended before it did"
    )]
    StillRuns { host: String },
    #[error("{host}: {device}: {why}")]
    InTheWay { host: String, device: String, why: String },
    #[error("{host}: cannot run {program}: {source}")]
    Start { host: String, program: String, source: std::io::Error },
    #[error("{host}: `{command}` did not end within {limit_s} s")]
    Late { host: String, command: String, limit_s: u64 },
    #[error("{host}: `{command}` ended with {code}: {words}")]
    Failed { host: String, command: String, code: i32, words: String },
    #[error("{host}: journal {} is left alone: it names {names}", path.display())]
    Planted { host: String, path: PathBuf, names: String },
    #[error("{host}: build `{build}` is left as it is: {}", all_of(.obstacles))]
    Stands { host: String, build: String, obstacles: Vec<Obstacle> },
    #[error("{} was written by another program since this build", path.display())]
    Overwritten { path: PathBuf },
    #[error("{host}: no build `{build}` that was not taken back")]
    NoBuild { host: String, build: String },
    #[error("{host}: build `{build}` could not be taken back whole: {failures}")]
    NotUndone { host: String, build: String, failures: String },
}

impl BuildError {
    /// What failed on the disk of a host.
    pub(super) fn disk(host: &str, what: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Self {
        let (host, path) = (host.to_owned(), path.to_owned());
        move |source| Self::Disk { host: host.clone(), what, path: path.clone(), source }
    }

    /// What to do about it.
    pub(super) fn hint(&self) -> String {
        let hint = match self {
            Self::Stands { build, obstacles, .. } if obstacles.iter().all(|one| one.discardable) => {
                let name = build.split_once('-').map_or(build.as_str(), |(_, name)| name);
                return format!("look at it, and give up what may go: --discard {name}");
            }
            Self::Stands { .. } | Self::Overwritten { .. } => {
                "unmount, stop or remove what is named, and undo again"
            }
            Self::NoSetup => "send a setup first",
            Self::Name(_) => "names are plain words, devices are paths below /dev/",
            Self::Disk { source, .. } => match NotPrivate::of(source) {
                Some(refused) => return refused.hint.clone(),
                None => "check space and rights of this folder",
            },
            Self::Planted { path, .. } => {
                return format!(
                    "on that host: `ls -l {0}` shows who wrote it, `mv {0} {0}.moved` moves it away",
                    path.display()
                );
            }
            Self::Locked { .. } => "try again when it has ended",
            Self::StillRuns { .. } => {
                "give the same command again when it has ended; `ps -ef` on that host shows it"
            }
            Self::InTheWay { .. } => {
                "nothing was written; choose another device, or empty this one yourself after you looked at it"
            }
            Self::Start { program, .. } => package_hint(program),
            Self::Late { .. } => "look on the host what it waits for",
            Self::Failed { .. } => "the words are the program's own; steps before it can be taken back",
            Self::NoBuild { .. } => "the list of builds of the host names them",
            Self::NotUndone { .. } => "fix the named step by hand, then take the build back again",
        };
        hint.to_owned()
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
