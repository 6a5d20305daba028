//! The store in PostgreSQL, on a real server: it returns what SQLite returns, two operators write at once, a
//! killed one loses nothing that was committed, and a server that goes away is an error.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on fails; a child reports to its parent"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use linerate_model::fact::{FactValue, Gap, HostFacts};
use linerate_model::fact_change::SeenBy;
use linerate_model::outlier::StoredSeries;
use linerate_model::snapshot::Snapshot;
use linerate_store::{FactReading, KeptText, ReadScope, SharedKeptSet, Store, StoreError};
use linerate_testkit::postgres::PostgresServer;

/// A store of an earlier program, with a real run and a trial of it.
const EARLIER: &str = include_str!("schema-3.sql");
const RUN: &str = "20261126-035643-de48";
/// What a child process of a test does, and where.
const ROLE: &str = "LINERATE_TEST_ROLE";
const ADDRESS: &str = "LINERATE_TEST_ADDRESS";

/// The run and the store that it is from.
fn real_run(folder: &Path) -> (Store, Snapshot) {
    let path = folder.join("earlier.sqlite");
    rusqlite::Connection::open(&path).unwrap().execute_batch(EARLIER).unwrap();
    let store = Store::open(&path).unwrap();
    let run = store.load_snapshot(RUN).unwrap();
    (store, run)
}

/// A reading of an instant: of two that overlap, the log leaves out what the later one has.
fn reading(cluster: &str, at_ms: u64) -> FactReading<'_> {
    let (started_ms, ended_ms) = (at_ms, at_ms);
    FactReading { cluster, started_ms, ended_ms, seen_by: SeenBy::Facts, scope: ReadScope::All, who: None }
}

fn facts(value: &str) -> HostFacts {
    let readings = [("sysctl.kernel.hostname".to_owned(), FactValue::Text(value.into()))].into();
    HostFacts { readings, ..HostFacts::default() }
}

/// Writes all that a store keeps; gives all that it returns.
fn story(store: &mut Store, folder: &Path) -> Vec<String> {
    let (earlier, mut run) = real_run(folder);
    let growth = vec![Some(0.1), None];
    let (host, key) = ("a".into(), "netstat.x".into());
    run.stored.push(StoredSeries { host, key, start_ms: 1, every_s: 60.0, intervals: 2, growth });
    let cluster = run.inventory.name.as_str();
    store.begin_run(&run, Some(Path::new("cluster.toml"))).unwrap();
    store.add_facts(RUN, &run.facts).unwrap();
    store
        .log_facts(&FactReading { seen_by: SeenBy::Run(RUN.into()), ..reading(cluster, 5) }, &run.facts)
        .unwrap();
    store.add_samples(RUN, &run.samples).unwrap();
    store.replace_sample(RUN, &run.samples[0]).unwrap();
    store.add_gap(RUN, &Gap { what: "host c".into(), reason: "ssh: \"no answer\" \\ ü".into() }).unwrap();
    store.set_shell(&run).unwrap();
    store.finish(&run, &earlier.load_diagnosis(RUN).unwrap().unwrap()).unwrap();

    // A run that ended, one that measured nothing, and one by itself.
    for (id, start_ms) in [("20261126-04-B", 40), ("20261126-04-a", 40), ("20261126-05-c", 50)] {
        store.begin_run(&Snapshot { id: id.into(), start_ms, ..run.clone() }, None).unwrap();
    }
    store.add_facts("20261126-04-B", &run.facts).unwrap();
    store.discard("20261126-04-B").unwrap();
    store.discard(RUN).unwrap();
    store.set_measurement("20261126-05-c").unwrap();

    let row = &earlier.list_trials().unwrap()[0];
    let mut trial = earlier.load_trial(&row.id).unwrap();
    store.save_trial(&trial, 7).unwrap();
    trial.run = "no run".into();
    store.save_trial(&trial, 8).unwrap();
    trial.id = "20270101-000000-ffff".into();
    store.save_trial(&trial, 8).unwrap();

    // Names whose order depends on the locale.
    for (at_ms, value) in [(10, "one"), (20, "two"), (30, "three")] {
        for host in ["a-2", "B", "A", "a10"] {
            store.log_facts(&reading("c", at_ms), [(&host.to_owned(), &facts(value))]).unwrap();
        }
    }
    let many: BTreeMap<String, FactValue> =
        (0..300).map(|n| (format!("sysctl.x{n}"), FactValue::Int(n))).collect();
    let many = HostFacts { readings: many.into_iter().collect(), ..HostFacts::default() };
    store.log_facts(&reading("c", 40), [(&"B".to_owned(), &many)]).unwrap();

    vec![
        format!("{:#?}", store.list_runs()),
        format!("{:?}", store.load_snapshot(RUN)),
        format!("{:?}", store.load_snapshot("20261126-04-B").is_err()),
        format!("{:?}", store.load_diagnosis(RUN)),
        format!("{:?}", store.load_diagnosis("20261126-04-a")),
        format!("{:?} {:?}", store.find_run(None), store.find_diagnosable(None)),
        format!("{:?}", store.list_surveys(0)),
        format!("{:?}", store.methods_of(&run.inventory, 0)),
        format!("{:?} {:?}", store.list_trials(), store.load_trial("2027")),
        format!("{:?}", store.load_trial("").is_err()),
        format!("{:?}", store.trials_of(&trial.remedy.id, "c", 8)),
        format!("{:#?}", store.list_changes(&[], 0, "sysctl.kernel")),
        format!("{:#?}", store.list_changes(&["B".into()], 31, "")),
        format!(
            "{:?}",
            store.changes_before(&Snapshot {
                start_ms: 35,
                inventory: linerate_model::inventory::Inventory { name: "c".into(), ..run.inventory.clone() },
                ..run.clone()
            })
        ),
    ]
}

#[test]
fn a_server_returns_what_the_file_returns() {
    let Some(server) = PostgresServer::start("a_server_returns_what_the_file_returns") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (folder.path().join("1"), folder.path().join("2"));
    std::fs::create_dir(&one).unwrap();
    std::fs::create_dir(&other).unwrap();
    let of_file = story(&mut Store::open(&one.join("s.sqlite")).unwrap(), &one);
    let of_server = story(&mut Store::connect(&server.database("team")).unwrap(), &other);
    for (file, server) in of_file.iter().zip(&of_server) {
        assert_eq!(file, server);
    }
    assert!(
        of_file[0].contains("samples: ") && of_file[1].contains("netstat.x") && of_file[11].contains("three"),
        "the story has something in it"
    );
}

#[test]
fn a_host_that_names_a_nul_makes_nothing_unreadable() {
    let Some(server) = PostgresServer::start("a_host_that_names_a_nul_makes_nothing_unreadable") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let (_, mut run) = real_run(folder.path());
    let mut store = Store::connect(&server.database("team")).unwrap();
    run.left_out.push("a\0b".into());
    run.inventory.name = "n\0".into();
    store.begin_run(&run, None).unwrap();
    store.add_gap(RUN, &Gap { what: "host c".into(), reason: "x\0y".into() }).unwrap();
    store.log_facts(&reading("c", 1), [(&"a".to_owned(), &facts("\0"))]).unwrap();
    assert_eq!(store.list_runs().unwrap()[0].cluster, "n\u{fffd}");
    let read = store.load_snapshot(RUN).unwrap();
    assert_eq!(read.gaps[0].reason, "x\u{fffd}y");
    assert!(store.list_surveys(0).unwrap().is_empty());
}

/// Not a test by itself: a program of its own for the tests below.
#[test]
fn child() {
    let (Ok(role), Ok(address)) = (std::env::var(ROLE), std::env::var(ADDRESS)) else { return };
    let mut store = match Store::connect(&address) {
        Ok(store) => store,
        Err(error) => {
            eprintln!("ERROR {error}");
            return;
        }
    };
    if role == "open" {
        eprintln!("OPENED");
        return;
    }
    if let Some(role) = role.strip_prefix("keep ") {
        let kept = SharedKeptSet::connect(&address, "c").unwrap();
        for number in 0..25 {
            let add = |old: Option<&KeptText>| {
                let old = old.map_or("", |old| &old.toml);
                Ok::<_, StoreError>(format!("{old}{role} {number}\n"))
            };
            kept.edit("keep", number, add).unwrap();
        }
        return;
    }
    let count = if role == "endless" { u64::MAX } else { 25 };
    for number in 0..count {
        let id = format!("{role}-{number}");
        let run = Snapshot { id: id.clone(), start_ms: number, ..Snapshot::default() };
        store.begin_run(&run, None).unwrap();
        store.log_facts(&reading("c", number), [(&"shared".to_owned(), &facts(&id))]).unwrap();
        // What the parent reads was committed.
        println!("DONE {number}");
    }
}

fn spawn(role: &str, address: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["child", "--exact", "--nocapture"])
        .env(ROLE, role)
        .env(ADDRESS, address)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn operators_at_once_migrate_once_and_lose_no_write() {
    let Some(server) = PostgresServer::start("operators_at_once_migrate_once_and_lose_no_write") else {
        return;
    };
    let address = server.database("team");
    let children: Vec<Child> = ["w", "x", "y", "z"].map(|role| spawn(role, &address)).into();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(!String::from_utf8_lossy(&output.stderr).contains("ERROR"));
    }
    assert_eq!(server.sql("team", "select part, version from linerate_schema"), "runs|2");
    let store = Store::connect(&address).unwrap();
    assert_eq!(store.list_runs().unwrap().len(), 100);
    // Each reading was compared with the one before it: the changes are one chain without a gap.
    let log = store.list_changes(&[], 0, "").unwrap().changes;
    let text = |value: &Option<FactValue>| value.as_ref().unwrap().to_string();
    let next: BTreeMap<String, String> =
        log.iter().map(|one| (text(&one.change.from), text(&one.change.to))).collect();
    assert_eq!((log.len(), next.len()), (99, 99));
    let ends: BTreeSet<&String> = next.values().collect();
    let mut at = next.keys().find(|from| !ends.contains(from)).unwrap();
    let mut steps = 0;
    while let Some(to) = next.get(at) {
        (at, steps) = (to, steps + 1);
    }
    assert_eq!(steps, 99);
}

#[test]
fn operators_who_keep_at_once_lose_no_setting_of_each_other() {
    let test = "operators_who_keep_at_once_lose_no_setting_of_each_other";
    let Some(server) = PostgresServer::start(test) else { return };
    let address = server.database("team");
    let children: Vec<Child> =
        ["keep w", "keep x", "keep y", "keep z"].map(|role| spawn(role, &address)).into();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let kept = SharedKeptSet::connect(&address, "c").unwrap();
    let newest = kept.read(None).unwrap().unwrap();
    let lines: BTreeSet<&str> = newest.toml.lines().collect();
    assert_eq!((newest.revision, lines.len()), (100, 100));
    assert_eq!(kept.revisions().unwrap().len(), 100);
}

#[test]
fn a_kept_set_is_written_only_over_the_revision_that_was_read() {
    let test = "a_kept_set_is_written_only_over_the_revision_that_was_read";
    let Some(server) = PostgresServer::start(test) else { return };
    let address = server.database("team");
    let (ann, bob) =
        (SharedKeptSet::connect(&address, "c").unwrap(), SharedKeptSet::connect(&address, "c").unwrap());
    assert_eq!((ann.read(None).unwrap(), ann.revisions().unwrap()), (None, vec![]));
    assert_eq!(ann.write(0, "one", "init", 7).unwrap(), Some(1));
    assert_eq!(bob.write(0, "other", "init", 8).unwrap(), None, "another began it");
    assert_eq!(bob.write(1, "two", "load", 9).unwrap(), Some(2));
    assert_eq!(ann.write(1, "three", "load", 10).unwrap(), None, "another wrote meanwhile");
    assert_eq!(ann.write(3, "three", "load", 10).unwrap(), None);
    let text = |revision: u64, toml: &str| Some(KeptText { revision, toml: toml.into() });
    assert_eq!(ann.read(None).unwrap(), text(2, "two"));
    assert_eq!((ann.read(Some(1)).unwrap(), ann.read(Some(3)).unwrap()), (text(1, "one"), None));
    let listed = ann.revisions().unwrap();
    let of: Vec<_> = listed.iter().map(|one| (one.revision, one.at_ms, one.what.as_str())).collect();
    assert_eq!(of, [(2, 9, "load"), (1, 7, "init")]);
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(listed.iter().all(|one| one.role == "linerate"), "{listed:?}");
    assert!(listed[0].who.ends_with(&format!("@{}", host.trim())), "{listed:?}");

    // A change that fails, or is too large, leaves no lock and no revision.
    let refused = ann.edit("keep", 11, |_| Err(StoreError::NoRun)).unwrap_err();
    assert!(matches!(refused, StoreError::NoRun));
    let large = ann.write(2, &"x".repeat((1 << 20) + 1), "load", 11).unwrap_err().to_string();
    assert!(large.contains("1048577 bytes, limit 1048576\nhint: "), "{large}");
    assert_eq!(bob.edit("keep", 12, |old| Ok::<_, StoreError>(old.unwrap().toml.clone() + "!")).unwrap(), 3);
    assert_eq!(bob.read(None).unwrap(), text(3, "two!"));

    // A cluster of its own; of old revisions a thousand stay.
    let other = SharedKeptSet::connect(&address, "d").unwrap();
    assert_eq!(other.read(None).unwrap(), None);
    server.sql(
        "team",
        "insert into kept_set (cluster, revision, at_ms, who, what, toml)
         select 'c', number, 1, '', '', '' from generate_series(4, 1500) as number",
    );
    assert_eq!(ann.write(1500, "last", "load", 13).unwrap(), Some(1501));
    let numbers: Vec<u64> = ann.revisions().unwrap().iter().map(|one| one.revision).collect();
    assert_eq!((numbers.len(), numbers[0], numbers[999]), (1000, 1501, 502));
}

/// The tables as the first schema had them get a kept set, and keep all else.
#[test]
fn tables_of_the_first_schema_get_a_kept_set() {
    let Some(server) = PostgresServer::start("tables_of_the_first_schema_get_a_kept_set") else { return };
    let address = server.database("team");
    let run = Snapshot { id: "r1".into(), ..Snapshot::default() };
    Store::connect(&address).unwrap().begin_run(&run, None).unwrap();
    server.sql("team", "drop table kept_set; update linerate_schema set version = 1 where part = 'runs'");
    let kept = SharedKeptSet::connect(&address, "c").unwrap();
    assert_eq!(kept.write(0, "one", "init", 7).unwrap(), Some(1));
    assert_eq!(Store::connect(&address).unwrap().list_runs().unwrap()[0].id, "r1");
    assert_eq!(server.sql("team", "select version from linerate_schema where part = 'runs'"), "2");
}

#[test]
fn a_killed_operator_loses_nothing_committed_and_holds_up_no_other() {
    use std::io::BufRead as _;
    let test = "a_killed_operator_loses_nothing_committed_and_holds_up_no_other";
    let Some(server) = PostgresServer::start(test) else { return };
    let address = server.database("team");
    let mut child = spawn("endless", &address);
    let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
    let done = lines.map_while(Result::ok).filter(|line| line.contains("DONE")).take(20).count();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(done, 20);
    let mut store = Store::connect(&address).unwrap();
    store.log_facts(&reading("c", 99), [(&"shared".to_owned(), &facts("after"))]).unwrap();
    let (runs, changes) = (store.list_runs().unwrap().len(), store.list_changes(&[], 0, "").unwrap().changes);
    assert!(runs >= 20, "{runs}");
    // A run and the reading after it are two writes: the kill may have come between them.
    assert!(changes.len() == runs || changes.len() + 1 == runs, "{} changes, {runs} runs", changes.len());
}

#[test]
fn a_server_that_goes_away_is_an_error_with_its_name_and_what_to_type() {
    let test = "a_server_that_goes_away_is_an_error_with_its_name_and_what_to_type";
    let Some(mut server) = PostgresServer::start(test) else { return };
    let address = server.database("team");
    let mut store = Store::connect(&address).unwrap();
    store.begin_run(&Snapshot { id: "r1".into(), ..Snapshot::default() }, None).unwrap();
    let before = store.data_version().unwrap();
    let other = Store::connect(&address).unwrap();
    other.begin_run(&Snapshot { id: "r2".into(), ..Snapshot::default() }, None).unwrap();
    assert_ne!(store.data_version().unwrap(), before, "another one has written");

    server.stop();
    let lost = store.log_facts(&reading("c", 1), [(&"a".to_owned(), &facts("x"))]).unwrap_err().to_string();
    assert!(lost.contains("write changes of facts in postgres:///team"), "{lost}");
    assert!(lost.contains("hint: pg_isready -d 'postgres:///team?host="), "{lost}");
    assert!(store.list_runs().is_err(), "and so is all after it");
    let hint = lost.split_once("hint: ").unwrap().1;
    let (code, shown) = server.shell(hint);
    assert!(code == Some(2) && shown.contains("no response"), "the hint runs as printed: {shown}");
    let refused = Store::connect(&address).unwrap_err();
    assert!(matches!(&refused, StoreError::Unreachable { .. }), "{refused}");
    assert!(refused.to_string().contains("no connection to postgres:///team"), "{refused}");

    server.run();
    let (code, shown) = server.shell(hint);
    assert!(code == Some(0) && shown.contains("accepting connections"), "{shown}");
    assert_eq!(Store::connect(&address).unwrap().list_runs().unwrap().len(), 2);
    server.sql("team", "update linerate_schema set version = 99");
    let newer = Store::connect(&address).unwrap_err().to_string();
    assert!(newer.contains("has schema 99, this program knows up to 2"), "{newer}");
}

#[test]
fn surveys_write_while_a_runtime_runs() {
    let Some(server) = PostgresServer::start("surveys_write_while_a_runtime_runs") else { return };
    let address = server.database("team");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::connect(&address).unwrap();
        store.begin_run(&Snapshot { id: "r1".into(), ..Snapshot::default() }, None).unwrap();
        assert_eq!(store.list_runs().unwrap().len(), 1);
    });
}

#[test]
fn a_password_is_read_from_a_private_file_and_never_printed() {
    let test = "a_password_is_read_from_a_private_file_and_never_printed";
    let Some(server) = PostgresServer::start(test) else { return };
    server.sql("postgres", "create role ann login password 's3cret'");
    server.sql("postgres", "create database team owner ann");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pgpass");
    let opened = |text: &str, mode: u32| {
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture"])
            .env(ROLE, "open")
            .env(ADDRESS, server.address("team", "ann"))
            .env("PGPASSFILE", &file)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!text.contains("s3cret"), "{text}");
        text
    };
    let private = opened("*:*:team:ann:s3cret\n", 0o600);
    assert!(private.contains("OPENED"), "{private}");
    let readable = opened("*:*:team:ann:s3cret\n", 0o644);
    assert!(readable.contains("chmod 0600"), "{readable}");
    let wrong = opened("*:*:team:ann:s3cret-no\n", 0o600);
    assert!(wrong.contains("no connection to"), "{wrong}");
    // Who may only read does so; the tables are there.
    server.sql("postgres", "create role reader login");
    server.sql("team", "grant select on all tables in schema public to reader");
    let reader = Store::connect(&server.address("team", "reader")).unwrap();
    assert!(reader.list_runs().unwrap().is_empty());
    let refused = reader.begin_run(&Snapshot::default(), None).unwrap_err();
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(why.contains("permission denied for table run"), "{why}");
}

/// As the guide has it for users of their own.
#[test]
fn users_of_their_own_share_the_tables_of_one_role() {
    let test = "users_of_their_own_share_the_tables_of_one_role";
    let Some(server) = PostgresServer::start(test) else { return };
    for statement in [
        "create role team nologin",
        "create role bea login in role team",
        "create role bob login in role team",
        "create database team owner team",
        "alter role bea in database team set role team",
        "alter role bob in database team set role team",
    ] {
        server.sql("postgres", statement);
    }
    let open = |user: &str| Store::connect(&server.address("team", user)).unwrap();
    let run = |id: &str| Snapshot { id: id.into(), ..Snapshot::default() };
    open("bea").begin_run(&run("r1"), None).unwrap();
    open("bob").begin_run(&run("r2"), None).unwrap();
    assert_eq!(open("bea").list_runs().unwrap().len(), 2);
    assert_eq!(
        server.sql("team", "select distinct tableowner from pg_tables where schemaname = 'public'"),
        "team"
    );
    // Without the role the tables are those of another.
    server.sql("postgres", "create role eve login");
    let refused = Store::connect(&server.address("team", "eve")).unwrap_err();
    let why = std::error::Error::source(&refused).unwrap().to_string();
    assert!(why.contains("permission denied"), "{why}");
}
