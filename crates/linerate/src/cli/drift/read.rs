//! What hosts have in force, beside the kept set: read over their sessions, logged as every reading of facts.

use std::pin::Pin;

use linerate_fleet::{Fleet, clock};
use linerate_kept::{KeptSet, Known, PutBack};
use linerate_model::drift::{BOOT, DriftRow, PUT_BACK, PUT_BACK_MS};
use linerate_model::fact::HostFacts;
use linerate_model::fact_change::SeenBy;
use linerate_model::inventory::{HostName, Inventory};
use linerate_model::trial::TrialStatus;
use linerate_store::{FactReading, ReadScope, Store};

use super::super::out;
use super::ChosenProfiles;
use linerate_operator::observe::join;
use linerate_operator::observe::run::read_facts;

type Reading<'a> = Pin<Box<dyn Future<Output = Result<HostFacts, String>> + 'a>>;

/// The kept settings of all hosts that have some, in the order of the inventory.
pub(super) async fn rows(
    fleet: &Fleet,
    inventory: &Inventory,
    set: &KeptSet,
    store: &mut Store,
) -> anyhow::Result<Vec<DriftRow>> {
    let profiles = ChosenProfiles(inventory);
    let wanted = |host: &HostName| linerate_kept::prefixes(set, inventory, host, &profiles);
    let hosts: Vec<(HostName, Vec<String>)> = inventory
        .hosts
        .iter()
        .map(|host| (host.name.clone(), wanted(&host.name)))
        .filter(|(_, prefixes)| !prefixes.is_empty())
        .collect();
    let started_ms = clock::now_ms();
    let readings = hosts.iter().map(|(host, prefixes)| -> Reading<'_> {
        Box::pin(async move {
            match fleet.unreachable(host) {
                Some(reason) => Err(reason.to_owned()),
                None => read_facts(fleet, inventory, host, prefixes).await,
            }
        })
    });
    let facts = join::all(readings.collect()).await;
    let read = || hosts.iter().zip(&facts);
    for ((host, prefixes), facts) in read().filter_map(|(host, facts)| Some((host, facts.as_ref().ok()?))) {
        log(store, inventory, (host, prefixes), facts, started_ms);
    }
    let now_ms = clock::now_ms();
    let names: Vec<HostName> = hosts.iter().map(|(host, _)| host.clone()).collect();
    let log = store.list_changes(&names, 0, "")?;
    let of_cluster = log.changes.into_iter().filter(|one| one.cluster == inventory.name);
    let changes: Vec<_> = of_cluster.map(|one| one.change).collect();
    let put_back = put_back(store, &inventory.name, now_ms)?;
    let mut rows = Vec::new();
    for ((host, _), facts) in read() {
        let kept = linerate_kept::of_host(set, inventory, host, facts.as_ref().ok(), &profiles)?;
        rows.extend(match facts {
            Ok(facts) => {
                linerate_kept::compare(kept, Known { facts, changes: &changes, put_back: &put_back, now_ms })
            }
            Err(reason) => linerate_kept::unreachable(kept, reason),
        });
    }
    Ok(rows)
}

/// Logs a reading without the lines of files: those are no facts of the host.
fn log(
    store: &mut Store,
    inventory: &Inventory,
    (host, prefixes): (&HostName, &[String]),
    facts: &HostFacts,
    started_ms: u64,
) {
    let mut read = facts.clone();
    read.readings.retain(|key, _| !key.starts_with(BOOT));
    read.gaps.retain(|gap| !gap.what.is_below(BOOT));
    let prefixes: Vec<String> = prefixes.iter().filter(|prefix| *prefix != BOOT).cloned().collect();
    let reading = FactReading {
        cluster: &inventory.name,
        started_ms,
        ended_ms: clock::now_ms(),
        seen_by: SeenBy::Drift,
        scope: ReadScope::Below(&prefixes),
        who: None,
    };
    if let Err(error) = store.log_facts(&reading, [(host, &read)]) {
        out::note(&format!("changes are not recorded: {error}"));
    }
}

/// What was put back within the last hour, also what did not stay: it is not tried again before.
fn put_back(store: &Store, cluster: &str, now_ms: u64) -> anyhow::Result<Vec<PutBack>> {
    let trials = store.trials_of(PUT_BACK, cluster, now_ms.saturating_sub(PUT_BACK_MS))?;
    let of = |(trial, at_ms): (linerate_model::trial::Trial, u64)| {
        let has_stayed = trial.status == TrialStatus::Kept;
        let of_change = move |change: linerate_model::change::Change| PutBack {
            host: change.host,
            key: change.key,
            at_ms,
            has_stayed,
        };
        trial.remedy.changes.into_iter().map(of_change)
    };
    Ok(trials.into_iter().flat_map(of).collect())
}
