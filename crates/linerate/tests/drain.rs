//! `linerate drain` and `linerate resume` with stored runs and a `scontrol` that keeps nodes in files: what
//! is written to Slurm, and whose reasons stay.
#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use linerate_model::fact::{FactValue, HostFacts};
use linerate_model::finding::{Diagnosis, Direction, Finding, LossLocation, Metric, Suspect};
use linerate_model::inventory::{Endpoint, Host, Inventory, Layer, TransportSpec};
use linerate_model::kind::RttPlan;
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use linerate_model::units::MetricUnit;
use linerate_store::Store;
use linerate_testkit as testkit;
use serde_json::Value;

const NODES: [&str; 4] = ["n1", "n2", "n3", "n4"];
const MINUTE_MS: u64 = 60_000;
/// As the inventory is called.
const CLUSTER: &str = "made";
/// As hosts without an inventory are called: over ssh, which a drained node still takes.
const BY_NAME: &str = "named hosts";

/// Nodes are files `STATE REASON…`; each call is a line of `calls`. Beside a file `dead` no controller
/// answers; beside a file `hang` nothing that writes ends.
const SCONTROL: &str = r#"#!/bin/sh
cd "$(dirname "$0")/slurm" || exit 1
echo "$*" >> ../calls
if [ -e ../dead ]; then
    echo "slurm_load_node error: Unable to contact slurm controller (connect failure)" >&2
    exit 1
fi
case $* in update*) [ ! -e ../hang ] || exec sleep 600 ;; esac
show() {
    read -r state reason < "$1"
    echo "NodeName=$1 Arch=x86_64 State=$state BootTime=1000 ${reason:+Reason=$reason}"
}
case $* in
    "show config") echo "ClusterName             = made" ;;
    "--oneliner show node") for node in n*; do show "$node"; done ;;
    "--oneliner show node "*) show "$4" ;;
    "--oneliner show reservation") echo "No reservations in the system" ;;
    "update NodeName="*" State=DRAIN Reason="*)
        name=${2#NodeName=}
        shift 3
        words=$*
        echo "IDLE+DRAIN ${words#Reason=} [root@$(date +%s)]" > "$name" ;;
    "update NodeName="*" State=RESUME") echo "IDLE" > "${2#NodeName=}" ;;
    *) echo "unexpected: $*" >&2; exit 1 ;;
esac
"#;

struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new() -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::create_dir(site.path("slurm")).unwrap();
        std::fs::create_dir(site.path("data")).unwrap();
        testkit::run("chmod", &["700", site.path("data").to_str().unwrap()]);
        std::fs::write(site.path("scontrol"), SCONTROL).unwrap();
        testkit::run("chmod", &["755", site.path("scontrol").to_str().unwrap()]);
        for node in NODES {
            site.set(node, "IDLE");
        }
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn set(&self, node: &str, line: &str) {
        std::fs::write(self.path("slurm").join(node), format!("{line}\n")).unwrap();
    }

    fn node(&self, node: &str) -> String {
        std::fs::read_to_string(self.path("slurm").join(node)).unwrap().trim().to_owned()
    }

    /// Calls that write, since the last time.
    fn writes(&self) -> usize {
        let calls = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        let _ = std::fs::remove_file(self.path("calls"));
        calls.lines().filter(|call| call.starts_with("update")).count()
    }

    fn run(&self, line: &str) -> (i32, Value, String) {
        let path = format!("{}:{}", self.folder.path().display(), std::env::var("PATH").unwrap());
        let output = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(line.split(' ').chain(["--json"]))
            .current_dir(self.folder.path())
            .env("LINERATE_DATA", self.path("data"))
            .env("PATH", path)
            .env_remove("LINERATE_INVENTORY")
            .output()
            .unwrap();
        let (out, err) = (testkit::text(&output.stdout), testkit::text(&output.stderr));
        let value = serde_json::from_str(&out).unwrap_or(Value::Null);
        (output.status.code().unwrap_or(-1), value, format!("{out}{err}"))
    }

    /// A run of all nodes, so long ago, that located a fault at a host or none.
    fn measured(&self, minutes_ago: u64, faulty: Option<&str>) {
        self.measured_of(CLUSTER, &NODES, minutes_ago, faulty);
    }

    /// The same of some nodes.
    fn measured_of(&self, cluster: &str, nodes: &[&str], minutes_ago: u64, faulty: Option<&str>) {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
        let id = format!("r-{minutes_ago}-{now_ms}");
        let snapshot = snapshot(cluster, nodes, &id, now_ms - minutes_ago * MINUTE_MS);
        let findings = faulty.map(finding).into_iter().collect();
        let diagnosis = Diagnosis { findings, ..Diagnosis::default() };
        let mut store = Store::open(&self.path("data/linerate.sqlite")).unwrap();
        store.begin_run(&snapshot, None).unwrap();
        store.add_samples(&snapshot.id, &snapshot.samples).unwrap();
        // A run without facts is one of `measure`, which locates nothing.
        let mut facts = HostFacts::default();
        facts.readings.insert("nic.eth0.mtu".into(), FactValue::Int(1500));
        let hosts: Vec<_> = nodes.iter().map(|node| (*node).to_owned()).collect();
        store.add_facts(&snapshot.id, hosts.iter().map(|host| (host, &facts))).unwrap();
        store.finish(&snapshot, &diagnosis).unwrap();
    }
}

fn snapshot(cluster: &str, nodes: &[&str], id: &str, start_ms: u64) -> Snapshot {
    let host = |name: &&str| Host {
        name: (*name).to_owned(),
        transport: TransportSpec::Local,
        groups: Vec::new(),
        endpoints: vec![Endpoint {
            layer: Layer::Underlay,
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            netns: None,
            link_bps: None,
        }],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    let pairs = nodes.iter().flat_map(|from| nodes.iter().map(move |to| (from, to)));
    let sample = |(at, (from, to)): (usize, (&&str, &&str))| {
        let kind = RttPlan { count: 1 }.into();
        let mut test = Test::new((*from).to_owned(), (*to).to_owned(), Layer::Underlay, kind);
        test.id = at as u32;
        let measured = Measurement { throughput_bps: Some(9.4e9), ..Measurement::default() };
        Sample::new(test, start_ms, Outcome::Measured(Box::new(measured)))
    };
    Snapshot {
        id: id.to_owned(),
        start_ms,
        inventory: Inventory {
            name: cluster.to_owned(),
            hosts: nodes.iter().map(host).collect(),
            ..Inventory::default()
        },
        samples: pairs.filter(|(from, to)| from != to).enumerate().map(sample).collect(),
        ..Snapshot::default()
    }
}

fn finding(host: &str) -> Finding {
    let others = NODES.iter().filter(|node| **node != host);
    Finding {
        places: vec![LossLocation {
            suspect: Suspect::Host(host.to_owned()),
            direction: Direction::Rx,
            probability: 0.97,
        }],
        responses: vec![Metric::Throughput],
        expected: 9.41e9,
        measured: 0.94e9,
        unit: MetricUnit::BitPerSecond,
        probability: 0.99,
        affected: others.map(|other| ((*other).to_owned(), host.to_owned())).collect(),
        ..Finding::default()
    }
}

#[test]
fn a_node_is_drained_after_two_runs_and_resumed_after_one_that_passes() {
    let site = Site::new();
    site.measured(20, Some("n2"));
    // Once is not enough, and a dry run writes nothing.
    let (_, value, shown) = site.run("drain --yes");
    assert!(value["nodes"].as_array().is_some_and(|nodes| nodes.len() == 4), "{shown}");
    assert_eq!((site.node("n2").as_str(), site.writes()), ("IDLE", 0), "{shown}");
    site.measured(10, Some("n2"));
    let (code, _, shown) = site.run("drain");
    assert_eq!((code, site.writes()), (1, 0), "{shown}");
    assert!(shown.contains("dry run") || shown.contains("\"drain\""), "{shown}");
    let (code, value, shown) = site.run("drain --yes");
    assert_eq!((code, site.writes()), (0, 1), "{shown}");
    let line = site.node("n2");
    assert!(line.starts_with("IDLE+DRAIN linerate: ") && line.contains("r-10"), "{line}");
    linerate_testkit::schemas::hold("drain", &value);
    let n2 = value["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "n2").unwrap();
    assert_eq!((&n2["action"], &n2["became"]), (&"drain".into(), &"done".into()), "{shown}");
    // Nothing passed since.
    site.run("resume --yes");
    assert_eq!((site.node("n2"), site.writes()), (line, 0));
    site.measured(0, None);
    let (code, _, shown) = site.run("resume --yes");
    assert_eq!((code, site.node("n2").as_str(), site.writes()), (0, "IDLE", 1), "{shown}");
}

#[test]
fn a_held_node_is_measured_by_its_name_and_resumed() {
    let site = Site::new();
    site.measured(20, Some("n2"));
    site.measured(10, Some("n2"));
    site.run("drain --yes");
    assert_eq!(site.writes(), 1);
    let held = site.node("n2");
    // The others of the cluster, by a job: it is no pass of the node that got none.
    site.measured_of(CLUSTER, &["n1", "n3"], 0, None);
    site.run("resume --yes");
    assert_eq!((site.node("n2"), site.writes()), (held.clone(), 0));
    // Over ssh it has the fault still.
    let pair = ["n1", "n2"];
    site.measured_of(BY_NAME, &pair, 0, Some("n2"));
    site.run("resume --yes");
    assert_eq!((site.node("n2"), site.writes()), (held, 0));
    site.measured_of(BY_NAME, &pair, 0, None);
    let (code, _, shown) = site.run("resume --yes");
    assert_eq!((code, site.node("n2").as_str(), site.writes()), (0, "IDLE", 1), "{shown}");
}

#[test]
fn a_reason_of_a_person_is_neither_replaced_nor_resumed() {
    let site = Site::new();
    site.measured(20, Some("n2"));
    site.measured(10, Some("n2"));
    let theirs = "IDLE+DRAIN broken fan, do not touch [anna@1795681688]";
    site.set("n2", theirs);
    site.run("drain --yes");
    assert_eq!((site.node("n2").as_str(), site.writes()), (theirs, 0));
    // Own drain first, then a person writes another reason: it is the person's now.
    site.set("n2", "IDLE");
    site.run("drain --yes");
    assert_eq!(site.writes(), 1);
    site.set("n2", theirs);
    site.measured(0, None);
    site.run("resume --yes");
    assert_eq!((site.node("n2").as_str(), site.writes()), (theirs, 0));
}

#[test]
fn a_dead_controller_writes_nothing_and_a_write_that_hangs_stops_all_others() {
    let site = Site::new();
    for minutes_ago in [20, 10] {
        site.measured(minutes_ago, Some("n2"));
    }
    std::fs::write(site.path("dead"), "").unwrap();
    for line in ["drain --yes", "resume --yes"] {
        let (code, _, shown) = site.run(line);
        assert_eq!((code, site.writes()), (2, 0), "{shown}");
        assert!(shown.contains("Unable to contact slurm controller"), "{shown}");
    }
    std::fs::remove_file(site.path("dead")).unwrap();
    // Whether it was written is not known: not claimed, not tried again, and nothing else is written.
    std::fs::write(site.path("hang"), "").unwrap();
    let (code, value, shown) = site.run("drain --yes");
    assert_eq!(code, 3, "{shown}");
    let n2 = value["nodes"].as_array().unwrap().iter().find(|node| node["node"] == "n2").unwrap();
    assert_eq!(n2["became"], "unknown", "{shown}");
    assert_eq!(site.writes(), 1, "{shown}");
    std::fs::remove_file(site.path("hang")).unwrap();
    site.set("n2", "IDLE");
    let (_, value, shown) = site.run("drain --yes");
    assert_eq!((site.node("n2").as_str(), site.writes()), ("IDLE", 0), "{shown}");
    assert!(value["breaker"].is_object(), "{shown}");
}

#[test]
fn a_full_disk_writes_nothing_to_slurm() {
    let name = "a_full_disk_writes_nothing_to_slurm";
    if !testkit::inside(name, testkit::TestEnvironment::Mounts) {
        return;
    }
    let site = Site::new();
    let data = site.path("data").display().to_string();
    testkit::run("mount", &["-t", "tmpfs", "-o", "size=4m,mode=700", "none", &data]);
    for minutes_ago in [20, 10] {
        site.measured(minutes_ago, Some("n2"));
    }
    assert!(std::fs::write(site.path("data/fill"), vec![0; 8 << 20]).is_err());
    let (code, _, shown) = site.run("drain --yes");
    assert_eq!((code, site.node("n2").as_str(), site.writes()), (2, "IDLE", 0), "{shown}");
    assert!(shown.contains("or set LINERATE_DATA to "), "{shown}");
    // With capacity again it is as if nothing had been.
    std::fs::remove_file(site.path("data/fill")).unwrap();
    let (code, _, shown) = site.run("drain --yes");
    assert_eq!((code, site.writes()), (0, 1), "{shown}");
}
