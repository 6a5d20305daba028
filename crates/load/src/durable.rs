//! Files written by the methods of real programs, and checked after a power cut.
//!
//! What comes in: a [`DurabilityRequest`]. What goes out: a [`DurabilityAnswer`]. Records are reported as
//! written only when every call has returned: a report carries the kernel's promise. Requests depend on each
//! other only through the disk: a host can be asked at once after a power cut. It writes into a folder that
//! it made or found empty, fills at most half of the free space, and judges nothing.
//!
//! To add a write method: see `methods`.

mod error;
mod folder;
mod inspect;
mod methods;
mod record;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::durability::{
    BATCH_MAX, DurabilityAnswer, DurabilityRequest, FoundFile, Pattern, WritePlan,
};

pub use self::error::DurabilityError;
use self::methods::Tried;
use self::record::{Key, content};

/// All patterns.
#[must_use]
pub fn patterns() -> Vec<Pattern> {
    Tried::all().map(Tried::pattern).collect()
}

/// Does what is asked. Ends soon after `stop` was set.
///
/// # Errors
/// The request is refused; nothing was written then.
pub fn run(request: &DurabilityRequest, stop: &AtomicBool) -> Result<DurabilityAnswer, DurabilityError> {
    match request {
        DurabilityRequest::Patterns => Ok(DurabilityAnswer::Patterns(patterns())),
        DurabilityRequest::Prepare { folder, plan } => {
            folder::absolute(folder)?;
            let (tried, run) = read(plan)?;
            let place = folder::prepare(folder, plan, &tried, run)?;
            Ok(DurabilityAnswer::Prepared {
                place,
                patterns: tried.into_iter().map(Tried::pattern).collect(),
            })
        }
        DurabilityRequest::Write { folder, plan, from, count, budget_ms } => {
            folder::absolute(folder)?;
            folder::ours(folder, &plan.run)?;
            let until = Instant::now() + Duration::from_millis(u64::from(*budget_ms));
            let last = from.saturating_add((*count).min(BATCH_MAX)).min(plan.records);
            write(folder, plan, *from..last, &|| stop.load(Ordering::Relaxed) || Instant::now() >= until)
        }
        DurabilityRequest::Place { folder } => {
            folder::absolute(folder)?;
            Ok(DurabilityAnswer::Place(folder::location(folder)?))
        }
        DurabilityRequest::Look { folder, plan, pattern, from, count } => {
            folder::absolute(folder)?;
            let (_, run) = read(plan)?;
            let last = from.saturating_add((*count).min(BATCH_MAX));
            Ok(DurabilityAnswer::Seen(inspect(folder, named(pattern)?, run, *from..last)))
        }
        DurabilityRequest::Clean { folder, run } => {
            folder::absolute(folder)?;
            let (files, left) = folder::clean(folder, run.as_deref())?;
            Ok(DurabilityAnswer::Cleaned { files, left })
        }
    }
}

fn named(pattern: &str) -> Result<Tried, DurabilityError> {
    Tried::named(pattern)
        .ok_or_else(|| DurabilityError::Plan(format!("there is no pattern {pattern:?} of writing")))
}

/// The patterns and the run of a plan.
fn read(plan: &WritePlan) -> Result<(Vec<Tried>, u64), DurabilityError> {
    plan.check().map_err(DurabilityError::Plan)?;
    let run = u64::from_str_radix(&plan.run, 16)
        .map_err(|_| DurabilityError::Plan(format!("the run {:?} is no number", plan.run)))?;
    let tried = plan.patterns.iter().map(|name| named(name)).collect::<Result<Vec<_>, _>>()?;
    let double = plan.patterns.iter().enumerate().find(|(at, name)| plan.patterns[..*at].contains(name));
    match double {
        Some((_, name)) => Err(DurabilityError::Plan(format!("the pattern {name:?} is named twice"))),
        None => Ok((tried, run)),
    }
}

fn write(
    folder: &Path,
    plan: &WritePlan,
    records: std::ops::Range<u32>,
    is_over: &dyn Fn() -> bool,
) -> Result<DurabilityAnswer, DurabilityError> {
    let (tried, run) = read(plan)?;
    let mut done = 0;
    for number in records {
        if is_over() {
            break;
        }
        let Some(spot) = plan.spot(number, |pattern| tried[pattern].method.shape) else { break };
        let (tried, key) = (tried[spot.pattern], Key::new(run, &plan.patterns[spot.pattern], spot.slot));
        let target = folder::target(folder, tried, spot.slot);
        if let Err(error) = tried.write(&target, &content(tried.method.shape, key, spot.version)) {
            let error = Some(format!("record {number} ({}): {error}", target.file.display()));
            return Ok(DurabilityAnswer::Written { done, error });
        }
        done += 1;
    }
    Ok(DurabilityAnswer::Written { done, error: None })
}

fn inspect(folder: &Path, tried: Tried, run: u64, slots: std::ops::Range<u32>) -> Vec<FoundFile> {
    let name = tried.name();
    slots
        .map(|slot| {
            let target = folder::target(folder, tried, slot);
            let state = inspect::inspect(&target.file, tried.method.shape, Key::new(run, &name, slot));
            FoundFile { slot, state, temporary: target.temporary.symlink_metadata().is_ok() }
        })
        .collect()
}

#[cfg(test)]
mod tests;
