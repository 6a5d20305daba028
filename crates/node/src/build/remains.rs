//! What stands on a build that is about to be undone and that the build did not make: other volumes in its
//! group, another drive under a known name, a file that was changed, and on its volume a filesystem, the mark
//! of any owner, or bytes that no step explains.
//!
//! In: a journal. Out: all that stands in the way, before anything is undone; and claims for the moment right
//! before a volume goes. It only reads. A volume that no filesystem was made on, or whose filesystem was
//! never mounted, has to read as zeros at both ends and at 4,095 places between: small data elsewhere on it
//! are not seen. What was deleted from a filesystem that was mounted is no obstacle, and cannot be told from
//! bytes that were written past the filesystem into its free space.

use std::path::Path;

use linerate_load::guard::{self, DeviceClaim, WantedContent, WriteRefusal};
use linerate_model::step::{Act, Argv, Clear, LvmStep, Need, QueryOutput, Remains, Step};

use super::journal::{Done, Journal};
use super::{clear, ext, stamps};

/// Something that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacle {
    /// Device or group, and what stands there.
    pub what: String,
    /// It goes when the operator types the name for it.
    pub discardable: bool,
}

fn fixed(what: String) -> Obstacle {
    Obstacle { what, discardable: false }
}

/// Runs a program that only reads.
type Ask<'a> = &'a dyn Fn(&Argv) -> Option<QueryOutput>;

/// Everything in the way, before the first command.
pub(super) fn obstacles(
    journal: &Journal,
    ask: Ask<'_>,
    is_changed: &dyn Fn(&Done) -> Option<String>,
) -> Vec<Obstacle> {
    let mut all = Vec::new();
    for done in journal.steps.iter().rev() {
        let operation = done.step.operation();
        if let Some(stamp) = operation.stamp() {
            let discardable = may_stay(done);
            let strangers = stamps::strangers(&stamp, &done.stamps, done.whole).into_iter();
            all.extend(strangers.map(|what| Obstacle { what, discardable }));
        }
        if matches!(operation.act(), Act::Write { .. } | Act::Copy { .. }) {
            all.extend(is_changed(done).map(fixed));
        }
        for remains in operation.remains() {
            match remains {
                Remains::Group { name, list } => all.extend(others(journal, &name, &list, ask).map(fixed)),
                Remains::Volume { device, .. } if is_used(journal, &device) => {}
                Remains::Volume { device, listed, activate } => {
                    all.extend(on_volume(journal, done, &device, listed.as_ref(), &activate, ask));
                }
            }
        }
    }
    all
}

/// Whether what stands on the devices of a step may stay when the rest is undone: metadata of a replica,
/// which are not on a volume of the build, and whatever others made where the step was killed.
pub(super) fn may_stay(done: &Done) -> bool {
    !done.whole || matches!(done.step, Step::Drbd(_))
}

/// Volumes of a group that the build did not make.
fn others(journal: &Journal, group: &str, list: &Argv, ask: Ask<'_>) -> Option<String> {
    let own: Vec<&str> = journal.steps.iter().filter_map(|done| volume_of(&done.step, group)).collect();
    // Where it fails the group is gone, or the command that removes it fails as well.
    let seen = ask(list).filter(QueryOutput::is_good)?;
    let names: Vec<&str> = seen.out.split_whitespace().filter(|name| !own.contains(name)).collect();
    let text = format!("the group {group} holds {}, which this build did not make", names.join(", "));
    (!names.is_empty()).then_some(text)
}

fn volume_of<'a>(step: &'a Step, wanted: &str) -> Option<&'a str> {
    match step {
        Step::Lvm(LvmStep::Volume { group, name, .. }) if group == wanted => Some(name),
        _ => None,
    }
}

fn on_volume(
    journal: &Journal,
    done: &Done,
    device: &str,
    listed: Option<&Argv>,
    activate: &Argv,
    ask: Ask<'_>,
) -> Option<Obstacle> {
    let path = Path::new(device);
    if !path.exists() {
        // A step that failed may have made nothing; a volume that is not listed is gone.
        let is_gone = listed.and_then(ask).is_some_and(|seen| !seen.is_good());
        let what = format!(
            "{device}: it is not active, so that what is on it cannot be seen: `{}`",
            activate.join(" ")
        );
        return (done.whole && !is_gone).then_some(Obstacle { what, discardable: true });
    }
    let claim = match guard::claim(&[path], WantedContent::Any, false).pop() {
        Some(Ok(claim)) => claim,
        Some(Err(why)) => return Some(fixed(format!("{device}: {why}"))),
        None => return None,
    };
    let (file, bytes) = (claim.file(), claim.bytes());
    let made = journal.steps.iter().find_map(|done| Some((filesystem_on(&done.step, device)?, done.whole)));
    let content = match made {
        Some((Filesystem::Xfs, is_whole)) => clear::explained(file, bytes, is_whole),
        Some((Filesystem::Ext, _)) => ext::explained(file, bytes),
        None => unexplained(&claim, journal.was_mounted).map_err(Into::into),
    };
    content.err().map(|why| Obstacle { what: format!("{device}: {why}"), discardable: true })
}

/// A filesystem that a step makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filesystem {
    Xfs,
    Ext,
}

fn filesystem_on(step: &Step, device: &str) -> Option<Filesystem> {
    step.operation().clear().iter().find_map(|clear| match clear {
        Clear::Xfs { device: made } if made == device => Some(Filesystem::Xfs),
        Clear::Ext { device: made } if made == device => Some(Filesystem::Ext),
        _ => None,
    })
}

/// Whether a step of the build uses a device that an earlier one made: what stands there is what the later
/// step made, and is looked at as such.
fn is_used(journal: &Journal, device: &str) -> bool {
    let uses = |need: &Need| matches!(need, Need::Empty { device: used } if used == device);
    journal.steps.iter().any(|done| done.step.operation().needs().iter().any(uses))
}

/// What stands on a volume whose filesystem is gone, or that never had one. What was in files that were
/// deleted may stand anywhere.
fn unexplained(claim: &DeviceClaim, was_mounted: bool) -> Result<(), WriteRefusal> {
    if !was_mounted {
        return guard::holds_nothing(claim.file(), claim.bytes());
    }
    match guard::mark_on(claim.file(), claim.bytes())? {
        Some((owner, byte)) => Err(WriteRefusal::Mark { owner, byte }),
        None => Ok(()),
    }
}

/// Whether the filesystem of a step was mounted since it was made.
pub(super) fn was_mounted(step: &Step) -> bool {
    let was_mounted = |clear: &Clear| match clear {
        Clear::Xfs { device } => clear::was_mounted(Path::new(device)),
        Clear::Ext { device } => ext::was_mounted(Path::new(device)),
        Clear::Head { .. } => false,
    };
    step.operation().clear().iter().any(was_mounted)
}

/// The volume of a step, right before the commands that remove it: claimed and looked at once more. Nothing
/// where it is gone.
pub(super) fn claim(step: &Step, was_mounted: bool, discard: bool) -> Result<Vec<DeviceClaim>, Obstacle> {
    let mut claims = Vec::new();
    for remains in step.operation().remains() {
        let Remains::Volume { device, .. } = remains else { continue };
        let path = Path::new(&device);
        if !path.exists() {
            continue;
        }
        for claim in guard::claim(&[path], WantedContent::Any, false) {
            let claim = claim.map_err(|why| fixed(format!("{device}: {why}")))?;
            if !discard {
                let say =
                    |why: WriteRefusal| Obstacle { what: format!("{device}: {why}"), discardable: true };
                unexplained(&claim, was_mounted).map_err(say)?;
            }
            claims.push(claim);
        }
    }
    Ok(claims)
}
