//! Writing records on a host and noting each acknowledgement here, and looking for them later.
//!
//! In: a session, a plan. Out: promises, and files as they are. A host that disappears in the middle is what
//! this is for.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use linerate_model::durability::{
    BATCH_MAX, DurabilityAnswer, DurabilityReport, DurabilityRequest, FolderLocation, FoundFile, Pattern,
    Promises,
};
use linerate_storage::durability;
use linerate_wire::message::{Event, ObserveRequest};
use tokio::time::{Instant, MissedTickBehavior};

use super::promises::{List, PromisesError};
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_fleet::{LinkError, NodeLink};

/// Between two batches, so that at most this much is not known to be acknowledged.
const BATCH_EVERY: Duration = Duration::from_millis(50);
/// A batch that takes longer is ended by the node.
const BATCH_BUDGET_MS: u32 = 500;
/// A disk may take its time for a flush.
const WAIT: Duration = Duration::from_secs(60);
/// Preparing writes all first versions and flushes them; looking reads everything.
const WAIT_LONG: Duration = Duration::from_secs(600);

/// Why it did not work.
#[derive(Debug, thiserror::Error)]
pub enum DurableError {
    /// The host.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The list.
    #[error(transparent)]
    List(#[from] PromisesError),
    /// The node answered something else.
    #[error(
        "host {host} answered something else than it was asked\nhint: is its node program of another build?"
    )]
    Strange {
        /// Host.
        host: String,
    },
    /// Another file system is there.
    #[error(
        "host {host}: {folder} lies on {now}, and lay on {then} when it was written\nhint: mount that file system first"
    )]
    Elsewhere {
        /// Host.
        host: String,
        /// Folder.
        folder: String,
        /// File system and mount point now.
        now: String,
        /// The same when it was written.
        then: String,
    },
}

/// How fast, and how long.
#[derive(Debug, Clone, Copy)]
pub struct WritePace {
    /// Records per second.
    pub rate: u32,
    /// Time after which no more are asked for.
    pub time: Duration,
}

/// Asks a node.
///
/// # Errors
/// It refuses, or is gone.
pub async fn ask(
    link: &NodeLink,
    request: DurabilityRequest,
    wait: Duration,
) -> Result<DurabilityAnswer, DurableError> {
    let events = link.request(ObserveRequest::Durability(request), wait).await?;
    let answer = events.into_iter().find_map(|e| if let Event::Durability(a) = e { Some(*a) } else { None });
    answer.ok_or_else(|| DurableError::Strange { host: link.host().to_owned() })
}

/// All ways of writing that a node knows.
///
/// # Errors
/// It is gone.
pub async fn patterns(link: &NodeLink) -> Result<Vec<Pattern>, DurableError> {
    match ask(link, DurabilityRequest::Patterns, WAIT).await? {
        DurabilityAnswer::Patterns(patterns) => Ok(patterns),
        _ => Err(DurableError::Strange { host: link.host().to_owned() }),
    }
}

/// Prepares the folder of `promises`, whose place and patterns are filled in.
///
/// # Errors
/// The node refuses.
pub async fn prepare(link: &NodeLink, promises: &mut Promises) -> Result<(), DurableError> {
    let request = DurabilityRequest::Prepare { folder: promises.folder.clone(), plan: promises.plan.clone() };
    match ask(link, request, WAIT_LONG).await? {
        DurabilityAnswer::Prepared { place, patterns } if patterns.len() == promises.plan.patterns.len() => {
            (promises.place, promises.patterns) = (place, patterns);
            Ok(())
        }
        _ => Err(DurableError::Strange { host: link.host().to_owned() }),
    }
}

/// Writes records until all are written, the time is over, the disk fails, or the host is gone, which is no
/// error. `promises` says how far it came and why it ended; so does the list.
///
/// # Errors
/// The list cannot be written.
pub async fn write(
    link: &NodeLink,
    promises: &mut Promises,
    list: &mut List,
    pace: WritePace,
    progress: &dyn Progress,
) -> Result<(), DurableError> {
    let begun = Instant::now();
    let total = promises.plan.records as usize;
    let expected_s = (total as f64 / f64::from(pace.rate)).min(pace.time.as_secs_f64());
    let expected = (expected_s * f64::from(pace.rate)) as usize;
    let phase =
        ProgressPhase { name: "writing", unit: "records", total: expected, expected_s: Some(expected_s) };
    progress.begin(&phase);
    let mut tick = tokio::time::interval(BATCH_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let ended = loop {
        if promises.acknowledged >= promises.plan.records {
            break "all records are written".to_owned();
        }
        if begun.elapsed() >= pace.time {
            break "the time is over".to_owned();
        }
        tick.tick().await;
        // What is behind the pace is caught up, a batch at a time.
        let due = begun.elapsed().as_secs_f64() * f64::from(pace.rate) + 1.0;
        let count = (due as u32).saturating_sub(promises.acknowledged).min(BATCH_MAX);
        let count = count.min(promises.plan.records - promises.acknowledged);
        if count == 0 {
            continue;
        }
        let from = promises.acknowledged;
        promises.asked = promises.asked.max(from + count);
        list.step(promises)?;
        let (folder, plan) = (promises.folder.clone(), promises.plan.clone());
        let request = DurabilityRequest::Write { folder, plan, from, count, budget_ms: BATCH_BUDGET_MS };
        match ask(link, request, WAIT).await {
            Ok(DurabilityAnswer::Written { done, error }) => {
                promises.acknowledged = from + done.min(count);
                promises.last_ms = begun.elapsed().as_millis() as u64;
                progress.step((promises.acknowledged as usize).min(expected), "", None);
                if let Some(error) = error {
                    break format!("the host could not write: {error}");
                }
            }
            Ok(_) => return Err(DurableError::Strange { host: link.host().to_owned() }),
            Err(DurableError::Link(error @ (LinkError::Lost { .. } | LinkError::Deadline { .. }))) => {
                break error.to_string();
            }
            Err(error) => return Err(error),
        }
    };
    progress.end();
    promises.ended = ended;
    list.end(promises)?;
    Ok(())
}

/// What the folder of promises lies on now.
///
/// # Errors
/// The host does not answer, or another file system is there.
pub async fn place(
    link: &NodeLink,
    promises: &Promises,
    folder: &Path,
) -> Result<FolderLocation, DurableError> {
    let request = DurabilityRequest::Place { folder: folder.to_owned() };
    let DurabilityAnswer::Place(place) = ask(link, request, WAIT).await? else {
        return Err(DurableError::Strange { host: link.host().to_owned() });
    };
    let of = |place: &FolderLocation| format!("{} at {}", place.filesystem, place.mount);
    let same = of(&place) == of(&promises.place) || place.run.as_ref() == Some(&promises.plan.run);
    if same {
        return Ok(place);
    }
    Err(DurableError::Elsewhere {
        host: link.host().to_owned(),
        folder: folder.display().to_string(),
        now: of(&place),
        then: of(&promises.place),
    })
}

/// Reads every file that records went to, and judges.
///
/// # Errors
/// The host does not answer, or another file system is there.
pub async fn check(
    link: &NodeLink,
    promises: &Promises,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<DurabilityReport, DurableError> {
    let place = place(link, promises, folder).await?;
    let counts: Vec<u32> = (0..promises.patterns.len()).map(|at| durability::files(promises, at)).collect();
    let total = counts.iter().map(|count| *count as usize).sum();
    progress.begin(&ProgressPhase { name: "reading", unit: "files", total, expected_s: None });
    let mut done = 0;
    let mut seen: BTreeMap<usize, Vec<FoundFile>> = BTreeMap::new();
    for (index, files) in counts.into_iter().enumerate() {
        let mut from = 0;
        while from < files {
            let count = (files - from).min(BATCH_MAX);
            let request = DurabilityRequest::Look {
                folder: folder.to_owned(),
                plan: promises.plan.clone(),
                pattern: promises.patterns[index].name.clone(),
                from,
                count,
            };
            match ask(link, request, WAIT_LONG).await? {
                DurabilityAnswer::Seen(found) if found.len() == count as usize => {
                    seen.entry(index).or_default().extend(found);
                }
                _ => return Err(DurableError::Strange { host: link.host().to_owned() }),
            }
            from += count;
            done += count as usize;
            progress.step(done, "", None);
        }
    }
    progress.end();
    Ok(durability::judge(promises, place, &seen))
}
