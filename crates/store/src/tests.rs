//! The store keeps what it was given, also for a run that never ended.

use std::time::Duration;

use linerate_model::fact::{Gap, HostFacts};
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{Host, Inventory, Layer, TransportSpec};
use linerate_model::kind::TcpPlan;
use linerate_model::path_methods::{MethodPair, PathClass, PathMethods};
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use rusqlite::params;

use super::error::to_json;
use super::*;

fn sample(id: u32) -> Sample {
    let test = Test {
        id,
        serial: false,
        ..Test::new("a".into(), "b".into(), Layer::Underlay, TcpPlan::single(300).into())
    };
    let measurement = Measurement { throughput_bps: Some(1e9), ..Measurement::default() };
    Sample {
        test,
        start_ms: 5,
        outcome: Outcome::Measured(Box::new(measurement)),
        tx_counters: [("softnet.dropped".to_owned(), 3)].into(),
        rx_counters: std::collections::BTreeMap::new(),
    }
}

fn snapshot(id: &str) -> Snapshot {
    Snapshot {
        schema: linerate_model::SCHEMA,
        id: id.into(),
        start_ms: 7,
        inventory: Inventory { name: "three".into(), ..Inventory::default() },
        ..Snapshot::default()
    }
}

#[test]
fn a_run_comes_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("s.sqlite")).unwrap();
    let mut run = snapshot("r1");
    run.stored = vec![linerate_model::outlier::StoredSeries {
        host: "a".into(),
        key: "netstat.x".into(),
        start_ms: 1,
        every_s: 60.0,
        intervals: 2,
        growth: vec![Some(0.1), None],
    }];
    store.begin_run(&run, Some(Path::new("cluster.toml"))).unwrap();
    let row = store.database.first("read", "select json from run", &[], |row| row.get::<String>(0));
    assert!(!row.unwrap().unwrap().contains("netstat.x"), "lists of runs read no series");
    run.samples = vec![sample(1), sample(2)];
    for s in &run.samples {
        store.add_samples("r1", std::slice::from_ref(s)).unwrap();
    }
    let mut facts = HostFacts::default();
    facts.readings.insert("cpu.count".into(), linerate_model::fact::FactValue::Int(2));
    store.add_facts("r1", [(&"a".to_owned(), &facts)]).unwrap();
    run.facts.insert("a".into(), facts);
    run.gaps.push(Gap { what: "host c".into(), reason: "dead".into() });
    store.add_gap("r1", &run.gaps[0]).unwrap();
    run.storage.push(linerate_model::snapshot::StorageFigure {
        what: linerate_model::snapshot::StorageSubject::Transport,
        ..Default::default()
    });
    store.set_shell(&run).unwrap();
    run.left_out.push("second repeat".into());
    let diagnosis =
        Diagnosis { schema: 1, run: "r1".into(), headline: "fine".into(), ..Diagnosis::default() };
    store.finish(&run, &diagnosis).unwrap();
    assert_eq!(store.load_snapshot("r1").unwrap(), run);
    assert_eq!(store.load_diagnosis("r1").unwrap().unwrap(), diagnosis);
    let row = store.find_run(None).unwrap();
    assert_eq!((row.id.as_str(), row.samples, row.finished), ("r1", 2, true));
    assert_eq!(row.inventory_path.as_deref(), Some(Path::new("cluster.toml")));
    assert!(matches!(store.load_snapshot("r9"), Err(StoreError::Missing { .. })));
}

#[test]
fn methods_come_from_the_newest_finished_run_of_the_same_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("s.sqlite")).unwrap();
    let class = |link_bps| PathClass { layer: Layer::Underlay, link_bps };
    let of = |link_bps, send, compared_ms| PathMethods {
        class: class(Some(link_bps)),
        methods: MethodPair::named((send, "truncate")),
        compared_ms,
        turns: Vec::new(),
    };
    let mut host = Host {
        name: "a".into(),
        transport: TransportSpec::Local,
        groups: vec![],
        endpoints: vec![],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    let inventory = Inventory { name: "three".into(), hosts: vec![host.clone()], ..Inventory::default() };
    let mut add = |id: &str, start_ms: u64, methods: Vec<PathMethods>, ends: bool| {
        let run = Snapshot { start_ms, methods, inventory: inventory.clone(), ..snapshot(id) };
        store.begin_run(&run, None).unwrap();
        store.add_facts(id, [(&"a".to_owned(), &HostFacts::default())]).unwrap();
        if ends {
            store.finish(&run, &Diagnosis::default()).unwrap();
        }
    };
    add("r1", 10, vec![of(10, "write", 10), of(25, "zerocopy", 10)], true);
    add("r2", 20, vec![of(10, "sendfile", 20)], true);
    add("r3", 30, vec![of(10, "splice", 30)], false);
    add("r4", 40, vec![], true);
    let known = |store: &Store, inventory: &Inventory, since_ms| -> Vec<String> {
        let known = store.methods_of(inventory, since_ms).unwrap();
        known.iter().map(|methods| methods.methods.send.clone()).collect()
    };
    assert_eq!(known(&store, &inventory, 0), ["sendfile", "zerocopy"]);
    assert_eq!(known(&store, &inventory, 15), ["sendfile"]);
    host.name = "another".into();
    let others = Inventory { hosts: vec![host], ..inventory };
    assert_eq!(known(&store, &others, 0), [] as [&str; 0], "lists without a name share one");
}

#[test]
fn the_last_run_is_the_last_one_that_can_be_diagnosed() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("s.sqlite")).unwrap();
    let last = |store: &Store| store.find_diagnosable(None).map(|row| row.id);
    assert!(matches!(last(&store), Err(StoreError::NoRun)));
    let begin = |store: &mut Store, id: &str, start_ms: u64, has_facts: bool| {
        let run = Snapshot { id: id.into(), start_ms, ..Snapshot::default() };
        store.begin_run(&run, None).unwrap();
        if has_facts {
            store.add_facts(id, [(&"a".to_owned(), &HostFacts::default())]).unwrap();
        }
    };
    begin(&mut store, "survey", 1, true);
    begin(&mut store, "latency", 2, false);
    begin(&mut store, "watch", 3, true);
    store.set_measurement("watch").unwrap();
    assert_eq!(last(&store).unwrap(), "survey");
    assert_eq!(store.find_run(None).unwrap().id, "watch");
    assert_eq!(store.find_diagnosable(Some("lat")).unwrap().id, "latency");
    let imported =
        Snapshot { id: "text".into(), start_ms: 4, imported: Some(Box::default()), ..Snapshot::default() };
    store.begin_run(&imported, None).unwrap();
    assert_eq!(last(&store).unwrap(), "text");
}

#[test]
fn a_run_that_measured_nothing_leaves_nothing_and_a_finished_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("s.sqlite")).unwrap();
    for id in ["r1", "r2"] {
        store.begin_run(&snapshot(id), None).unwrap();
        store.add_facts(id, [(&"a".to_owned(), &HostFacts::default())]).unwrap();
        store.add_gap(id, &Gap { what: "host b".into(), reason: "no answer".into() }).unwrap();
    }
    store.finish(&snapshot("r1"), &Diagnosis::default()).unwrap();
    for id in ["r1", "r2", "r3"] {
        store.discard(id).unwrap();
    }
    let left: Vec<String> = store.list_runs().unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(left, ["r1"]);
    assert!(matches!(store.load_snapshot("r2"), Err(StoreError::Missing { .. })));
    assert_eq!(store.load_snapshot("r1").unwrap().facts.len(), 1);
}

#[test]
fn opening_again_keeps_the_schema_and_a_newer_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sqlite");
    drop(Store::open(&path).unwrap());
    drop(Store::open(&path).unwrap());
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    assert!(matches!(Store::open(&path), Err(StoreError::Newer { found: 99, .. })));
}

/// Not a test by itself: the program that the next test kills.
#[test]
fn writer_for_the_kill_test() {
    let Some(path) = std::env::var_os("LINERATE_TEST_STORE") else { return };
    let mut store = Store::open(Path::new(&path)).unwrap();
    store.begin_run(&snapshot("killed"), None).unwrap();
    for id in 0.. {
        store.add_samples("killed", &[sample(id)]).unwrap();
        // One line per committed sample: the parent knows what must have survived.
        std::fs::write(Path::new(&path).with_extension("count"), format!("{}", id + 1)).unwrap();
    }
}

#[test]
fn a_kill_loses_at_most_the_running_test() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sqlite");
    let mut child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["tests::writer_for_the_kill_test", "--exact"])
        .env("LINERATE_TEST_STORE", &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let count = || -> u64 {
        std::fs::read_to_string(path.with_extension("count")).ok().and_then(|t| t.parse().ok()).unwrap_or(0)
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(180);
    while count() < 20 {
        assert!(std::time::Instant::now() < deadline, "the writer did not write");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let committed = count();
    let kept = Store::open(&path).unwrap().load_snapshot("killed").unwrap().samples;
    assert!(kept.len() as u64 >= committed, "{} kept of {committed} committed", kept.len());
    assert!(kept.iter().enumerate().all(|(i, s)| *s == sample(i as u32)));
    assert!(!Store::open(&path).unwrap().find_run(Some("killed")).unwrap().finished);
}

#[test]
fn keys_of_facts_are_kept_once_and_older_rows_are_read() {
    use linerate_model::fact::FactValue;
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(&folder.path().join("s.sqlite")).unwrap();
    let mut run = snapshot("r1");
    store.begin_run(&run, None).unwrap();
    for number in 0..20 {
        let values = [
            ("nic.eth0.mac".to_owned(), FactValue::Text(format!("02:00:00:00:00:{number:02x}"))),
            ("nic.eth0.mtu".to_owned(), FactValue::Int(1500)),
        ];
        let gaps = vec![Gap { what: "lldp".into(), reason: "no frame received".into() }];
        let facts = HostFacts { readings: values.into(), gaps, tool_bps: Some(3e9), ..HostFacts::default() };
        run.facts.insert(format!("h{number}"), facts);
    }
    store.add_facts("r1", &run.facts).unwrap();
    let lists: Result<Option<i64>, StoreError> =
        store.database.first("", "select count(*) from fact_keys", &[], |row| row.get(0));
    assert_eq!(lists.unwrap(), Some(1));
    let old =
        HostFacts { readings: [("cpu.count".to_owned(), FactValue::Int(2))].into(), ..HostFacts::default() };
    let row = params!["r1", "old", to_json(&old)];
    store.database.execute("", "insert into facts (run, host, json) values (?1,?2,?3)", row).unwrap();
    run.facts.insert("old".to_owned(), old);
    let read = store.load_snapshot("r1").unwrap();
    assert_eq!(read, run);
    assert_eq!(read.facts["h0"].readings.key_list(), read.facts["h19"].readings.key_list());
    // Fewer values than keys: an error, not other facts.
    let cut = "update facts set json = json_replace(json, '$.values', json('[1500]')) where host = 'h3'";
    store.database.execute("", cut, &[]).unwrap();
    assert!(store.load_snapshot("r1").unwrap_err().to_string().contains("facts of h3 in run r1"));
}

#[test]
fn the_files_beside_the_database_are_private_too() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sqlite");
    // The umask belongs to the whole process: the program that writes has its own.
    let mut child = std::process::Command::new("sh")
        .args(["-c", "umask 000; exec \"$0\" tests::writer_for_the_kill_test --exact"])
        .arg(std::env::current_exe().unwrap())
        .env("LINERATE_TEST_STORE", &path)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let count = path.with_extension("count");
    while !count.exists() && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for end in ["", "-wal", "-shm"] {
        let mode = paths::beside(&path, end).metadata().unwrap().mode() & 0o777;
        assert_eq!(mode, 0o600, "{end}");
    }
}
