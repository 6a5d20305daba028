//! What is logged of readings of a host, and what is not.

use std::collections::BTreeMap;

use linerate_model::change::{Change, Remedy};
use linerate_model::fact::Gap;
use linerate_model::finding::Metric;
use linerate_model::inventory::Inventory;
use linerate_model::random::Random;

use super::*;

const KEYS: [&str; 8] = [
    "cpu.count",
    "drbd.r0.rate",
    "netns./run/a|nic.eth0.mtu",
    "nic.eth0.mtu",
    "nic.eth0.ring.rx",
    "nic.eth1.ring.rx",
    "sysctl.net.core.rmem_max",
    "sysctl.vm.swappiness",
];

fn store(folder: &tempfile::TempDir) -> Store {
    Store::open(&folder.path().join("s.sqlite")).unwrap()
}

fn facts(values: &[(&str, i64)]) -> HostFacts {
    let readings = values.iter().map(|(key, value)| ((*key).to_owned(), FactValue::Int(*value))).collect();
    HostFacts { readings, ..HostFacts::default() }
}

fn without(mut facts: HostFacts, unseen: &str) -> HostFacts {
    facts.gaps.push(Gap { what: unseen.into(), reason: "permission denied".into() });
    facts
}

/// Logs a reading of host `a` from `at_ms` to a millisecond later; gives what it added to the log, in words.
fn read(store: &mut Store, at_ms: u64, scope: ReadScope<'_>, facts: &HostFacts) -> Vec<String> {
    let reading = FactReading {
        cluster: "c",
        started_ms: at_ms,
        ended_ms: at_ms + 1,
        seen_by: SeenBy::Facts,
        scope,
        who: None,
    };
    store.log_facts(&reading, [(&"a".to_owned(), facts)]).unwrap();
    let log = store.list_changes(&[], at_ms + 1, "").unwrap();
    let value = |value: &Option<FactValue>| value.as_ref().map_or("-".to_owned(), ToString::to_string);
    let words = |c: &FactChange| format!("{} {}>{} {}", c.key, value(&c.from), value(&c.to), c.after_ms);
    log.changes.iter().map(|one| words(&one.change)).collect()
}

#[test]
fn what_was_not_asked_for_or_not_seen_is_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&folder);
    let none = Vec::<String>::new();
    let all = [("cpu.count", 2), ("nic.eth0.mtu", 1500), ("nic.eth0.ring.rx", 256)];
    assert_eq!(read(&mut store, 10, ReadScope::All, &facts(&all)), none, "a host that was never read");
    let part = [("sysctl.vm.swappiness", 60)];
    let prefix = ["sysctl.vm".to_owned()];
    // All was read before: it was absent then.
    assert_eq!(
        read(&mut store, 20, ReadScope::Below(&prefix), &facts(&part)),
        ["sysctl.vm.swappiness ->60 10"]
    );
    assert_eq!(
        read(&mut store, 30, ReadScope::Below(&prefix), &facts(&[("sysctl.vm.swappiness", 60)])),
        none
    );
    // What is read only when it is asked for.
    let all_and = |more: &[(&'static str, i64)]| facts(&[&all[..], &part[..], more].concat());
    let asked = ["drbd.".to_owned()];
    assert_eq!(read(&mut store, 40, ReadScope::Below(&asked), &facts(&[("drbd.r0.rate", 5)])), none);
    assert_eq!(read(&mut store, 50, ReadScope::All, &all_and(&[])), none);
    assert_eq!(read(&mut store, 60, ReadScope::Below(&asked), &facts(&[])), ["drbd.r0.rate 5>- 40"]);
    // Not seen, in the pattern of a gap; the value before stays known with its moment.
    let unseen = without(facts(&[("cpu.count", 2), ("sysctl.vm.swappiness", 60)]), "nic.*");
    assert_eq!(read(&mut store, 70, ReadScope::All, &unseen), none);
    let back =
        facts(&[("cpu.count", 2), ("sysctl.vm.swappiness", 60), ("nic.eth0.mtu", 9000), ("nic.x.mtu", 1)]);
    assert_eq!(
        read(&mut store, 80, ReadScope::All, &back),
        ["nic.eth0.mtu 1500>9000 50", "nic.eth0.ring.rx 256>- 50"]
    );
    // A part without a rule: what is absent in it means nothing, what is new was absent before.
    assert_eq!(
        read(&mut store, 90, ReadScope::Part, &facts(&[("cpu.count", 4), ("nic.y.mtu", 1)])),
        ["cpu.count 2>4 80", "nic.y.mtu ->1 80"]
    );
    // What changes by itself.
    assert_eq!(read(&mut store, 100, ReadScope::Part, &facts(&[("disk_health.sda.celsius", 40)])), none);
    assert_eq!(read(&mut store, 110, ReadScope::Part, &facts(&[("disk_health.sda.celsius", 41)])), none);
}

#[test]
fn a_namespace_that_was_not_entered_did_not_go() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&folder);
    let both = facts(&[("cpu.count", 2), ("netns./run/a|nic.eth0.mtu", 1500), ("netns./run/a|x", 1)]);
    let one = facts(&[("cpu.count", 2), ("netns./run/a|nic.eth0.mtu", 1500)]);
    read(&mut store, 10, ReadScope::All, &both);
    assert_eq!(read(&mut store, 20, ReadScope::All, &facts(&[("cpu.count", 2)])), Vec::<String>::new());
    assert_eq!(read(&mut store, 30, ReadScope::All, &one), ["netns./run/a|x 1>- 10"]);
    assert_eq!(
        read(&mut store, 40, ReadScope::All, &without(facts(&[("cpu.count", 2)]), "netns./run/a|")),
        Vec::<String>::new()
    );
}

#[test]
fn a_reading_that_ends_late_does_not_undo_a_newer_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&folder);
    read(&mut store, 10, ReadScope::All, &facts(&[("nic.eth0.mtu", 1500)]));
    read(&mut store, 50, ReadScope::All, &facts(&[("nic.eth0.mtu", 9000)]));
    let late = |started_ms, ended_ms| FactReading {
        cluster: "c",
        started_ms,
        ended_ms,
        seen_by: SeenBy::Run("watch".into()),
        scope: ReadScope::All,
        who: None,
    };
    let old = facts(&[("nic.eth0.mtu", 1500), ("nic.eth1.mtu", 1500)]);
    store.log_facts(&late(20, 60), [(&"a".to_owned(), &old)]).unwrap();
    store.log_facts(&late(20, 60), [(&"a".to_owned(), &facts(&[]))]).unwrap();
    assert_eq!(store.list_changes(&[], 52, "").unwrap(), ChangeLog::default());
    // The clock was set back: the log goes on.
    let log = read(&mut store, 30, ReadScope::All, &facts(&[("nic.eth0.mtu", 1400)]));
    assert!(log.contains(&"nic.eth0.mtu 9000>1400 30".to_owned()), "{log:?}");
}

#[test]
fn a_change_that_a_call_without_a_result_saw_stays_without_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&folder);
    read(&mut store, 10, ReadScope::All, &facts(&[("nic.eth0.mtu", 1500)]));
    store.begin_run(&Snapshot { id: "r1".into(), ..Snapshot::default() }, None).unwrap();
    let reading = FactReading {
        cluster: "c",
        started_ms: 20,
        ended_ms: 21,
        seen_by: SeenBy::Run("r1".into()),
        scope: ReadScope::All,
        who: None,
    };
    store.log_facts(&reading, [(&"a".to_owned(), &facts(&[("nic.eth0.mtu", 9000)]))]).unwrap();
    store.discard("r1").unwrap();
    let log = store.list_changes(&[], 0, "").unwrap();
    assert_eq!(log.changes.len(), 1);
    assert_eq!(log.changes[0].change.seen_by, SeenBy::Facts);
}

/// Readings by chance: the log replayed over the first facts gives the last ones.
#[test]
fn the_log_replayed_over_the_first_facts_gives_the_last() {
    for seed in 1..40 {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(&folder);
        let mut rng = Random(seed);
        let mut host: BTreeMap<&str, i64> = KEYS.iter().map(|key| (*key, 0)).collect();
        let mut first: BTreeMap<FactKey, FactValue> = BTreeMap::new();
        let scopes = [ReadScope::All, ReadScope::Part];
        for step in 0..30_u64 {
            for _ in 0..rng.below(3) * usize::from(step > 0) {
                let key = KEYS[rng.below(KEYS.len())];
                // A value of two, or nothing.
                match rng.below(3) {
                    0 => drop(host.remove(key)),
                    value => drop(host.insert(key, value as i64)),
                }
            }
            let prefixes = [KEYS[rng.below(KEYS.len())][..4].to_owned()];
            let scope = match rng.below(3) {
                // The first and the last reading show all there is, also what has to be asked for.
                _ if step == 0 || step == 29 => ReadScope::All,
                2 => ReadScope::Below(&prefixes),
                which => scopes[which],
            };
            let shown = |key: &str| match scope {
                ReadScope::Below(below) => key.starts_with(&below[0]),
                _ => true,
            };
            let seen: Vec<_> = host.iter().filter(|(key, _)| shown(key)).map(|(k, v)| (*k, *v)).collect();
            let seen = facts(&seen);
            if step == 0 {
                first.extend(seen.readings.clone());
            }
            read(&mut store, 10 * step, scope, &seen);
        }
        let known =
            load_known(&store.database, "c", [&"a".to_owned()].into_iter()).unwrap().remove("a").unwrap();
        let mut log = store.list_changes(&[], 0, "").unwrap().changes;
        log.reverse();
        for LoggedChange { change, .. } in &log {
            assert!(change.after_ms < change.seen_ms && change.from != change.to, "{change:?}");
            let before = match &change.to {
                Some(to) => first.insert(change.key.clone(), to.clone()),
                None => first.remove(&change.key),
            };
            assert_eq!(before, change.from, "seed {seed}: {change:?}");
        }
        let last: BTreeMap<FactKey, FactValue> = known.facts.into_iter().map(|(k, (v, _))| (k, v)).collect();
        assert_eq!(first, last, "seed {seed}");
    }
}

#[test]
fn a_reading_writes_so_many_changes_and_counts_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&folder);
    let table = |to: usize, mtu| {
        let routes = (0..to).map(|n| (format!("route.10.0.0.{n}"), FactValue::Int(1)));
        let readings = routes.chain([("zone.mtu".to_owned(), FactValue::Int(mtu))]).collect();
        HostFacts { readings, ..HostFacts::default() }
    };
    read(&mut store, 10, ReadScope::All, &table(0, 1500));
    let listed = read(&mut store, 20, ReadScope::All, &table(1000, 9000));
    assert_eq!(listed.len(), CHANGES_MAX);
    // A value that changed comes before what is new.
    assert!(listed.contains(&"zone.mtu 1500>9000 10".to_owned()), "{listed:?}");
    let log = store.list_changes(&[], 0, "zone").unwrap();
    assert_eq!((log.changes.len(), log.unlisted[0].count), (1, 1001 - CHANGES_MAX as u64));
    assert!(store.list_changes(&["b".to_owned()], 0, "").unwrap().unlisted.is_empty());
    // What was only counted is known all the same.
    assert_eq!(read(&mut store, 30, ReadScope::All, &table(1000, 9000)), Vec::<String>::new());
}

fn trial(status: TrialStatus) -> Trial {
    let change = Change {
        host: "a".into(),
        key: "nic.eth0.ring.rx".into(),
        from: FactValue::Int(256),
        to: FactValue::Text("4096".into()),
    };
    Trial {
        id: "t1".into(),
        run: "r1".into(),
        remedy: Remedy { id: "ring".into(), changes: vec![change], ..Remedy::default() },
        response: Metric::default(),
        layer: linerate_model::inventory::Layer::Underlay,
        pair: ("a".into(), "b".into()),
        control: None,
        arms: Vec::new(),
        effect: None,
        status,
        persisted: Vec::new(),
        notes: Vec::new(),
    }
}

#[test]
fn a_trial_is_named_for_what_it_did_and_for_nothing_else() {
    let ring = |value| facts(&[("nic.eth0.ring.rx", value)]);
    // Status, moment of its last step, values before and after, whether it is named.
    for (status, saved_ms, from, to, named) in [
        (TrialStatus::Kept, 15, 256, 4096, true),
        (TrialStatus::Kept, 15, 4096, 256, false),
        (TrialStatus::Kept, 15, 256, 512, false),
        (TrialStatus::Kept, 5, 256, 4096, false),
        (TrialStatus::Undone, 15, 4096, 256, true),
        // The old value was back: who set the new one again is not known.
        (TrialStatus::Measured, 15, 256, 4096, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut store = store(&folder);
        let inventory = Inventory { name: "c".into(), ..Inventory::default() };
        let run = Snapshot { id: "r1".into(), start_ms: 1, inventory, ..Snapshot::default() };
        store.begin_run(&run, None).unwrap();
        read(&mut store, 10, ReadScope::All, &ring(from));
        store.save_trial(&trial(status), saved_ms).unwrap();
        read(&mut store, 20, ReadScope::All, &ring(to));
        let log = store.list_changes(&[], 0, "").unwrap();
        let who = log.changes[0].change.who.as_deref();
        assert_eq!(who, named.then_some("trial t1"), "{status:?} {from} {to}");
    }
}

#[test]
fn a_run_has_the_newest_changes_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(&folder);
    let start_ms = 10 + QUOTED_MS;
    for (at_ms, mtu) in [(1, 1), (5, 2), (20, 3), (30, 4), (start_ms + 50, 5)] {
        read(&mut store, at_ms, ReadScope::All, &facts(&[("nic.eth0.mtu", mtu)]));
    }
    let inventory = Inventory { name: "c".into(), ..Inventory::default() };
    let mut run = Snapshot { id: "r1".into(), start_ms, inventory, ..Snapshot::default() };
    let quoted = store.changes_before(&run).unwrap();
    assert_eq!((quoted.len(), &quoted[0].to), (1, &Some(FactValue::Int(4))));
    store.begin_run(&run, None).unwrap();
    assert_eq!(store.load_snapshot("r1").unwrap().changes, quoted);
    // Later runs do not quote what is too old, and those of another cluster nothing.
    run.start_ms += 1000;
    assert_eq!(store.changes_before(&run).unwrap()[0].to, Some(FactValue::Int(5)));
    run.inventory.name = "d".into();
    assert!(store.changes_before(&run).unwrap().is_empty());
}
