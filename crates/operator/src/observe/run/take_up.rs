//! Hosts that are lost while a survey runs are taken up again.
//!
//! What comes in: the sessions. What goes out: a gap for each loss; a host whose connection was cut gets a
//! new session, at most one per round, and within the fleet's limit. When a silent session counts as lost:
//! `crates/wire/src/silence.rs`.

use std::collections::BTreeSet;

use linerate_model::fact::{Gap, GapSubject};
use linerate_model::inventory::HostName;
use linerate_model::printable::before_hint;

use super::{Survey, boxed};
use crate::observe::join;
use linerate_store::StoreError;

impl Survey<'_> {
    /// Hosts that were lost since the last call become gaps, once each. A host whose connection was lost is
    /// taken up again; gives the names of those.
    pub(super) async fn lost_hosts(&mut self) -> Result<BTreeSet<HostName>, StoreError> {
        let mut lost = self.fleet.lost();
        lost.retain(|(name, _)| !self.known_lost.contains(name));
        let (fleet, inventory) = (self.fleet, self.order.inventory);
        let tries = lost
            .iter()
            .map(|(name, _)| boxed(async move { fleet.take_up(inventory.host(name)?).await }))
            .collect();
        let mut back = BTreeSet::new();
        let tried: Vec<_> = join::all(tries).await;
        for ((name, reason), tried) in lost.into_iter().zip(tried) {
            let what = GapSubject::Host(name.clone());
            let why = match tried {
                Some(Ok(())) => {
                    let what = GapSubject::Session(name.clone());
                    let reason = format!("it was lost and taken up again: {reason}");
                    self.progress.note(&format!("{what}: {reason}"));
                    back.insert(name);
                    self.gap(Gap { what, reason })?;
                    continue;
                }
                Some(Err(why)) => format!("; it could not be taken up again: {}", why.reason()),
                None => String::new(),
            };
            let reason = reason + &why;
            self.progress
                .note(&before_hint(&format!("{what} is lost: {reason}"), "; the survey goes on without it"));
            self.known_lost.insert(name);
            self.gap(Gap { what, reason })?;
        }
        Ok(back)
    }
}
