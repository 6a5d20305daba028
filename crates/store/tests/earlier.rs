//! A store of each earlier schema is opened, brought up to date, read whole and written on.
//!
//! `schema-N.sql` is what the program of that time wrote. A new schema gets a file; none is ever edited.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use linerate_model::fact::FactValue;
use linerate_model::fact_change::SeenBy;
use linerate_model::trial::TrialStatus;
use linerate_store::{FactReading, ReadScope, Store};
use rusqlite::Connection;

/// What each schema left behind, from the first on.
const EARLIER: &[&str] =
    &[include_str!("schema-1.sql"), include_str!("schema-2.sql"), include_str!("schema-3.sql")];
const RUN: &str = "20261126-035643-de48";

#[test]
fn stores_of_all_earlier_schemas_are_read_and_written_on() {
    for (at, sql) in EARLIER.iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("linerate.sqlite");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let mut store = Store::open(&path).unwrap_or_else(|e| panic!("schema {}: {e}", at + 1));

        let run = store.find_run(Some(RUN)).unwrap();
        assert!(run.finished && run.headline.starts_with("at ceiling"), "schema {}", at + 1);
        let snapshot = store.load_snapshot(RUN).unwrap();
        assert_eq!(snapshot.facts.len(), 2);
        let rmem = snapshot.facts["node-1"].readings.get("sysctl.net.ipv4.tcp_rmem");
        assert_eq!(rmem, Some(&FactValue::Text("4096 131072 33554432".into())));
        assert!(snapshot.samples.iter().any(|sample| sample.test.kind.name() == "udp"));
        assert!(store.load_diagnosis(RUN).unwrap().unwrap().findings.is_empty());
        let trial = &store.list_trials().unwrap()[0];
        let trial = store.load_trial(&trial.id).unwrap();
        assert_eq!(trial.status, TrialStatus::Measured);

        // Written on: a run that this program adds stands beside the old one.
        let mut next = snapshot.clone();
        next.id = "20261126-120000-0001".into();
        store.begin_run(&next, None).unwrap();
        store.add_samples(&next.id, &snapshot.samples).unwrap();
        assert_eq!(store.list_runs().unwrap().len(), 2);
        assert_eq!(store.load_snapshot(&next.id).unwrap().samples, snapshot.samples);

        // The log of changes begins with the first reading after the update.
        let mut reading = FactReading {
            cluster: &next.inventory.name,
            started_ms: 1,
            ended_ms: 2,
            seen_by: SeenBy::Run(next.id.clone()),
            scope: ReadScope::All,
            who: None,
        };
        store.log_facts(&reading, &next.facts).unwrap();
        let key = "sysctl.net.ipv4.tcp_rmem".to_owned();
        next.facts.get_mut("node-1").unwrap().readings.insert(key.clone(), FactValue::Int(4096));
        (reading.started_ms, reading.ended_ms) = (5, 6);
        store.log_facts(&reading, &next.facts).unwrap();
        let log = store.list_changes(&[], 0, "").unwrap();
        assert_eq!((log.changes.len(), &log.changes[0].change.key), (1, &key));
    }
}
