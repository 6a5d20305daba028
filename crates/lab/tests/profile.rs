//! `linerate profile try` and `linerate rollout` on a real cluster of network namespaces: a group that is
//! proven and kept, one without effect, one that does harm; then a proven setting carried to two hosts, one
//! of which it harms, and the rollout resumed.
//!
//! In: the programs `linerate` and `linerate-node` (named by `LINERATE` and `LINERATE_NODE`, or beside the
//! lab's).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::path::PathBuf;
use std::process::{Command, Stdio};

use linerate_lab::lab::Lab;
use linerate_lab::topology::Topology;
use linerate_model::exit::ExitCode;
use linerate_testkit::TestPrograms;
use serde_json::Value;

const RMEM: &str = "net.ipv4.tcp_rmem";
/// Ten times what 10 ms of RTT need at 200 Mbit/s.
const AMPLE: &str = "4096 131072 6291456";
/// Half of it is window: 105 Mbit/s at 10 ms, twice what the lab's default allows.
const DOUBLE: &str = "4096 131072 262144";

/// Groups with the three outcomes: the window from 64 KiB to more than the path needs, a queue that no
/// transfer fills, and no window above 64 KiB.
const PROFILE: &str = r#"
id = "three-outcomes"
title = "One group each that helps, does nothing, does harm"
role = "transfer"
date = "2026-11-26"
conditions = ["The lab `far`: 10 ms of RTT, windows of 64 KiB."]

[[sources]]
name = "lab"
text = "labs/far.toml"
date = "2026-11-26"

[[groups]]
group = "buffers"

[[groups.set]]
key = "sysctl.net.ipv4.tcp_rmem"
to = "4096 131072 6291456"
at_least = true
reason = "Window for 10 ms."
when = [{ rtt-us-min = 5000.0 }]

[[groups]]
group = "queues"

[[groups.set]]
key = "sysctl.net.core.somaxconn"
to = 8192
at_least = true
reason = "No transfer waits to be accepted."

[[groups]]
group = "tcp"

[[groups.set]]
key = "sysctl.net.ipv4.tcp_window_scaling"
to = 0
reason = "Windows of at most 64 KiB."

[[groups]]
group = "interrupts"

[[groups.set]]
key = "nic.*.irq.*.affinity"
to = "0"
reason = "No device of the lab has interrupts."
"#;

struct Cluster {
    lab: Lab,
    programs: TestPrograms,
    data: PathBuf,
    inventory: String,
    /// Address of the store; empty for the file in the folder.
    store: String,
}

impl Cluster {
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.programs.linerate);
        command
            .args(arguments)
            .env("LINERATE_DATA", &self.data)
            .env("LINERATE_STORE", &self.store)
            .env("LINERATE_NODE", &self.programs.node);
        command
    }

    fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        (output.status.code(), text + &String::from_utf8_lossy(&output.stderr))
    }

    /// Runs a command that prints a document.
    fn json(&self, arguments: &[&str]) -> (Option<i32>, Value) {
        let output = self.command(arguments).arg("--json").output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        let value = serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {errors}"));
        (output.status.code(), value)
    }

    fn host(&self, at: usize) -> &linerate_lab::namespace::Namespace {
        &self.lab.cluster.hosts[at].1
    }

    fn value(&self, at: usize, key: &str) -> String {
        let read = self.host(at).read_sysctl(key).unwrap();
        read.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
    }
}

/// The lab with a survey of it; `None` where it cannot be built.
fn cluster(test: &str) -> Option<Cluster> {
    cluster_with(test, "")
}

/// The same with this store.
fn cluster_with(test: &str, store: &str) -> Option<Cluster> {
    let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"));
    if let Some(reason) = programs.missing() {
        println!("SKIPPED {test}: {reason}");
        return None;
    }
    let lab = Lab::up(Topology::load("far").unwrap()).unwrap();
    let data = lab.folder.path().join("data");
    let inventory = lab.cluster.without_confessions(&lab.cluster.inventory_path()).unwrap();
    let inventory = inventory.to_str().unwrap().to_owned();
    let cluster = Cluster { lab, programs, data, inventory, store: store.to_owned() };
    cluster.run(&["survey", "-q", "-i", &cluster.inventory, "--time", "20s"]);
    Some(cluster)
}

fn group<'a>(tried: &'a Value, name: &str) -> &'a Value {
    let groups = tried["groups"].as_array().unwrap();
    groups.iter().find(|group| group["group"] == name).unwrap_or_else(|| panic!("no {name}: {tried}"))
}

fn interval(group: &Value) -> (f64, f64) {
    bounds(group, "interval")
}

/// That of the control pair: what the machine does to a pair that nothing was changed for.
fn control_interval(group: &Value) -> (f64, f64) {
    bounds(group, "control_interval")
}

fn bounds(group: &Value, name: &str) -> (f64, f64) {
    let interval = &group["trial"]["effect"][name];
    (interval[0].as_f64().unwrap(), interval[1].as_f64().unwrap())
}

fn is_within(interval: (f64, f64), share: f64) -> bool {
    interval.0 > 1.0 - share && interval.1 < 1.0 + share
}

/// More measurements than the usual eight, where their interval was too wide to tell.
const ARMS: [&str; 2] = ["16", "32"];

/// Tries twice the window on a host; it is better there. Returns the trial.
fn doubled(cluster: &Cluster, from: &str, host: &str) -> String {
    let (set, pair) = (format!("sysctl.{RMEM}={DOUBLE}"), format!("{from},{host}"));
    let mut tried = Value::Null;
    for arms in [&["8"], &ARMS[..]].concat() {
        let words = ["try", "--set", &set, "--on", host, "--pair", &pair, "--arms", arms];
        tried = cluster.json(&words).1["sweep"]["trials"][0].clone();
        if tried["effect"]["effect"] != "not-shown" {
            break;
        }
    }
    assert_eq!(tried["effect"]["effect"], "better", "{tried}");
    tried["id"].as_str().unwrap().to_owned()
}

/// A machine whose control pair keeps to 2 % is quiet: the interval that "no effect" needs, 10 %, can be had
/// there.
const QUIET: f64 = 0.02;

#[test]
fn a_profile_has_a_proven_group_one_without_effect_and_one_that_harms() {
    let Some(cluster) = cluster("a_profile_has_a_proven_group_one_without_effect_and_one_that_harms") else {
        return;
    };
    let file = cluster.lab.folder.path().join("three-outcomes.toml");
    std::fs::write(&file, PROFILE).unwrap();
    let file = file.to_str().unwrap();
    let (code, differs) = cluster.json(&["profile", "diff", file, "-i", &cluster.inventory, "far-2"]);
    assert_eq!(code, Some(ExitCode::Findings as i32), "{differs}");
    let states: Vec<&str> = differs["hosts"][0]["readings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["differs", "differs", "differs", "missing"], "{differs}");
    let trial = ["profile", "try", file, "--on", "far-2", "--pair", "far-1,far-2"];

    let (code, planned) = cluster.json(&[&trial[..], &["--dry-run"]].concat());
    assert_eq!(code, Some(ExitCode::Ok as i32), "{planned}");
    linerate_testkit::schemas::hold("profile-try", &planned);
    assert_eq!(group(&planned, "buffers")["result"], "planned");
    assert_eq!(group(&planned, "interrupts")["result"], "missing");
    let before: Vec<String> = [RMEM, "net.ipv4.tcp_window_scaling"].map(|key| cluster.value(1, key)).into();
    assert_eq!(before, ["4096 65536 131072", "1"], "a dry run writes nothing");

    let (code, tried) = cluster.json(&[&trial[..], &["--keep-proven", "--yes"]].concat());
    assert_eq!(code, Some(ExitCode::Ok as i32), "{tried}");
    linerate_testkit::schemas::hold("profile-try", &tried);
    let buffers = group(&tried, "buffers");
    assert_eq!(
        (&buffers["result"], &buffers["trial"]["status"]),
        (&"proven".into(), &"kept".into()),
        "{buffers}"
    );
    assert!(interval(buffers).0 > 1.5, "{buffers}");
    let control = &buffers["trial"]["control"];
    assert!(control[0] != "far-2" && control[1] != "far-2" && control[0].is_string(), "{buffers}");
    let harm = group(&tried, "tcp");
    assert_eq!((&harm["result"], &harm["trial"]["status"]), (&"harm".into(), &"measured".into()), "{harm}");
    assert!(interval(harm).1 < 0.7, "{harm}");
    let mut none = group(&tried, "queues").clone();
    for arms in ARMS {
        if none["result"] == "not-shown" {
            let longer = ["--group", "queues", "--arms", arms, "--transfer", "2s", "--yes"];
            none = group(&cluster.json(&[&trial[..], &longer].concat()).1, "queues").clone();
        }
    }
    println!("no effect: {} in {:?}, control {:?}", none["result"], interval(&none), control_interval(&none));
    // On a busy machine every interval stays wide, that of the untouched pair too: then nothing is shown.
    match none["result"].as_str() {
        Some("no-effect") => assert!(is_within(interval(&none), 0.1), "{none}"),
        Some("not-shown") => assert!(!is_within(control_interval(&none), QUIET), "{none}"),
        other => panic!("{other:?}: {none}"),
    }
    println!("proven: {:?}; harm: {:?}", interval(buffers), interval(harm));
    assert_eq!(cluster.value(1, RMEM), AMPLE, "what is proven stays");
    assert_eq!(cluster.value(1, "net.ipv4.tcp_window_scaling"), "1", "what harms is undone");
    assert_ne!(cluster.value(1, "net.core.somaxconn"), "8192", "what does nothing is undone");

    let (code, shown) = cluster.run(&["rollout", file, "--to", "far-3", "far-4"]);
    assert_eq!(code, Some(ExitCode::Ok as i32), "{shown}");
    assert!(shown.contains("1 setting in 2 waves"), "only the proven group: {shown}");
    let kept = buffers["trial"]["id"].as_str().unwrap();
    let (code, shown) = cluster.run(&["undo", kept]);
    assert_eq!((code, cluster.value(1, RMEM)), (Some(ExitCode::Ok as i32), before[0].clone()), "{shown}");
    let (code, shown) = cluster.run(&["rollout", file, "--to", "far-3"]);
    assert_eq!(code, Some(ExitCode::CouldNotRun as i32), "what was undone is not carried on");
    assert!(shown.contains("no group of three-outcomes is proven"), "{shown}");
}

#[test]
fn a_rollout_stops_at_harm_undoes_its_wave_and_resumes() {
    let Some(cluster) = cluster("a_rollout_stops_at_harm_undoes_its_wave_and_resumes") else { return };
    let id = &doubled(&cluster, "far-1", "far-4");
    // Far more than the proven value: on this host it is a loss.
    cluster.host(2).write_sysctl(RMEM, AMPLE).unwrap();

    let rollout = ["rollout", id, "--to", "far-2", "far-3", "--wave", "1"];
    let (code, planned) = cluster.json(&rollout);
    assert_eq!((code, &planned["is_dry_run"]), (Some(ExitCode::Ok as i32), &true.into()));
    assert_eq!(cluster.value(1, RMEM), "4096 65536 131072", "a dry run writes nothing");
    let (code, done) = cluster.json(&[&rollout[..], &["--yes"]].concat());
    assert_eq!(code, Some(ExitCode::RolledBack as i32), "{done}");
    linerate_testkit::schemas::hold("rollout", &done);
    let (first, second) = (&done["waves"][0], &done["waves"][1]);
    assert_eq!((&first["status"], &first["hosts"][0]["result"]), (&"done".into(), &"kept".into()), "{done}");
    assert_eq!(
        (&second["status"], &second["hosts"][0]["result"]),
        (&"undone".into(), &"harm".into()),
        "{done}"
    );
    assert!(second["hosts"][0]["ratio"][2].as_f64().unwrap() < 0.9, "{second}");
    assert_eq!((cluster.value(1, RMEM), cluster.value(2, RMEM)), (DOUBLE.to_owned(), AMPLE.to_owned()));
    let folder = PathBuf::from(done["folder"].as_str().unwrap());
    for (name, status) in [("wave-1.json", "done"), ("wave-2.json", "undone")] {
        let journal: Value = serde_json::from_slice(&std::fs::read(folder.join(name)).unwrap()).unwrap();
        assert_eq!(journal["status"], status, "{name}");
    }

    // With its default the host gains as the others do.
    cluster.host(2).write_sysctl(RMEM, "4096 65536 131072").unwrap();
    let (code, resumed) =
        cluster.json(&["rollout", "--resume", done["rollout"]["id"].as_str().unwrap(), "--yes"]);
    assert_eq!(code, Some(ExitCode::Ok as i32), "{resumed}");
    assert_eq!(resumed["waves"][0], done["waves"][0], "a wave that is done is not made again");
    assert_eq!(resumed["waves"][1]["hosts"][0]["result"], "kept", "{resumed}");
    assert_eq!(cluster.value(2, RMEM), DOUBLE);
}

/// The store is lost with the end of the trial that harms: the host before it has its old value again all the
/// same.
#[test]
fn a_wave_that_harms_is_undone_where_the_store_is_lost() {
    let test = "a_wave_that_harms_is_undone_where_the_store_is_lost";
    let Some(server) = linerate_testkit::postgres::PostgresServer::start(test) else { return };
    let Some(cluster) = cluster_with(test, &server.database("team")) else { return };
    let id = &doubled(&cluster, "far-1", "far-4");
    let old = cluster.value(1, RMEM);
    cluster.host(2).write_sysctl(RMEM, AMPLE).unwrap();
    server.lose_trials("team", "new.status not in ('running', 'kept')");

    let (code, shown) = cluster.run(&["rollout", id, "--to", "far-2", "far-3", "--wave", "2", "--yes"]);
    assert_eq!(code, Some(ExitCode::CouldNotRun as i32), "{shown}");
    assert!(shown.contains("database: write a trial in postgres:///team"), "{shown}");
    assert_eq!((cluster.value(1, RMEM), cluster.value(2, RMEM)), (old, AMPLE.to_owned()), "{shown}");
    assert_eq!(server.sql("team", "select count(*) from trial where status = 'kept'"), "1", "far-2 was kept");
    let rollout = std::fs::read_dir(cluster.data.join("rollouts")).unwrap().next().unwrap().unwrap();
    let journal = std::fs::read(rollout.path().join("wave-1.json")).unwrap();
    let journal: Value = serde_json::from_slice(&journal).unwrap();
    let results = [&journal["hosts"][0]["result"], &journal["hosts"][1]["result"]];
    assert_eq!((&journal["status"], results), (&"undone".into(), [&"undone".into(), &"harm".into()]));
}

/// Both settings are in the kept set of the database, which the page shows; a set that cannot be written is
/// an error of its own, and the trial is added when it is kept again.
#[test]
fn two_operators_keep_at_once_and_the_database_has_both_settings() {
    let test = "two_operators_keep_at_once_and_the_database_has_both_settings";
    let Some(server) = linerate_testkit::postgres::PostgresServer::start(test) else { return };
    let Some(cluster) = cluster_with(test, &server.database("team")) else { return };
    let trials = [doubled(&cluster, "far-1", "far-3"), doubled(&cluster, "far-2", "far-4")];
    let (_, planned) = cluster.json(&["keep", &trials[0], "--dry-run"]);
    assert_eq!(planned["kept"], "kept set of far in the database", "{planned}");

    server.sql("team", "alter table kept_set add constraint refused check (revision < 0)");
    let (code, shown) = cluster.run(&["keep", &trials[0], "-q"]);
    assert_eq!(
        (code, cluster.value(2, RMEM).as_str()),
        (Some(ExitCode::CouldNotRun as i32), DOUBLE),
        "{shown}"
    );
    assert!(shown.contains(&format!("{} is kept on its hosts, but in no kept set", trials[0])), "{shown}");
    server.sql("team", "alter table kept_set drop constraint refused");

    let both = trials.each_ref().map(|trial| {
        let mut keep = cluster.command(&["keep", trial, "-q"]);
        keep.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    });
    for one in both {
        let ended = one.wait_with_output().unwrap();
        let shown = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{shown}");
        assert!(shown.contains("added to kept set of far in the database (revision "), "{shown}");
    }
    let (code, printed) = cluster.run(&["drift", "-i", &cluster.inventory, "--print"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.starts_with("# Revision 2 "), "{printed}");
    for (host, trial) in ["far-3", "far-4"].iter().zip(&trials) {
        assert!(printed.contains(&format!("hosts = [\"{host}\"]")) && printed.contains(trial), "{printed}");
    }
    let kept = "select string_agg(what, ',' order by what) from kept_set";
    assert_eq!(server.sql("team", kept), format!("keep {},keep {}", trials[0], trials[1]));
    let page = cluster.programs.page(&cluster.data, &cluster.store, "/drift");
    assert!(page.contains("kept set of far in the database (revision 2)"), "{page}");
}

/// The operator is killed while a host of the second wave has the new value: the node takes it back by
/// itself, what the first wave has kept stays, and the rollout resumes with the second.
#[test]
fn a_rollout_whose_operator_is_killed_in_a_wave_resumes_with_it() {
    let Some(cluster) = cluster("a_rollout_whose_operator_is_killed_in_a_wave_resumes_with_it") else {
        return;
    };
    let id = &doubled(&cluster, "far-1", "far-4");
    let old = cluster.value(2, RMEM);
    let mut operator = Command::new(&cluster.programs.linerate)
        .args(["rollout", id, "--to", "far-2", "far-3", "--wave", "1", "--yes", "-q"])
        .env("LINERATE_DATA", &cluster.data)
        .env("LINERATE_NODE", &cluster.programs.node)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    linerate_testkit::wait_until("the second wave has changed its host", || {
        assert_eq!(operator.try_wait().unwrap(), None, "it ended before");
        cluster.value(2, RMEM) == DOUBLE
    });
    operator.kill().unwrap();
    operator.wait().unwrap();
    linerate_testkit::wait_until("the old value is back without an operator", || {
        cluster.value(2, RMEM) == old
    });
    assert_eq!(cluster.value(1, RMEM), DOUBLE, "what the first wave has kept stays");

    let journals = std::fs::read_dir(cluster.data.join("rollouts")).unwrap();
    let [rollout] = &journals.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>()[..] else {
        panic!("one rollout")
    };
    let (code, resumed) = cluster.json(&["rollout", "--resume", rollout.to_str().unwrap(), "--yes"]);
    assert_eq!(code, Some(ExitCode::Ok as i32), "{resumed}");
    let waves = resumed["waves"].as_array().unwrap();
    assert!(waves.iter().all(|wave| wave["status"] == "done"), "{resumed}");
    assert_eq!((cluster.value(1, RMEM), cluster.value(2, RMEM)), (DOUBLE.to_owned(), DOUBLE.to_owned()));
}
