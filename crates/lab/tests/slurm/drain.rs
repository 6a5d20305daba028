//! Draining and resuming beside people, other checks, reboots and time-outs: random interleavings over the
//! library, and `linerate drain` and `resume` as an operator types them.

use std::time::Instant;

use linerate_drain::testing::{Interleaving, Others, Tally, WatchedAct, interleave};
use linerate_drain::{CallError, Guarded, HoldMeans, Node, Reservation, Scheduler};
use linerate_fleet::slurm::Scontrol;
use linerate_model::fact::HostFacts;
use linerate_model::finding::{Diagnosis, Direction, Finding, LossLocation, Metric, Suspect};
use linerate_model::inventory::{Host, Inventory, TransportSpec};
use linerate_model::kind::TcpPlan;
use linerate_model::plan::Test;
use linerate_model::sample::{Measurement, Outcome, Sample};
use linerate_model::snapshot::Snapshot;
use linerate_model::units::MetricUnit;
use linerate_store::Store;

use crate::cluster::Cluster;
use crate::with_cluster;

/// Interleavings, half of them by each means, and steps of each. A call of `scontrol` takes about 10 ms.
const INTERLEAVINGS: u64 = 200;
const STEPS: usize = 24;
const NODES: usize = 4;

/// The real Slurm, on which others act with its own commands. Its nodes cannot boot here: of a reboot there
/// is only a reason, and boot times are the model's alone.
struct RealSlurm {
    ours: Scontrol,
    conf: std::path::PathBuf,
}

impl RealSlurm {
    fn scontrol(&self, arguments: &[&str]) {
        let output = std::process::Command::new("scontrol")
            .args(arguments)
            .env("SLURM_CONF", &self.conf)
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    }

    fn update(&self, node: &str, changes: &[&str]) {
        self.scontrol(&[&["update", &format!("NodeName={node}")], changes].concat());
    }

    /// Idle nodes without reasons or reservations. A node that was resumed has no boot time until it has
    /// registered again.
    fn reset(&mut self) {
        for reservation in self.ours.reservations().unwrap() {
            self.scontrol(&["delete", &format!("ReservationName={}", reservation.name)]);
        }
        for node in self.ours.nodes().unwrap() {
            if node.is_drained() || node.reason.is_some() || node.state.contains("DOWN") {
                self.update(&node.name, &["State=RESUME"]);
            }
        }
    }
}

/// What waits for a node to register again is left out of what counts: boots do not change here, and the
/// nodes are seen as they will be within a second.
fn seen(mut node: Node) -> Node {
    node.state.remove("NOT_RESPONDING");
    node.state.remove("INVALID_REG");
    node.boot_s = 1;
    node
}

impl Scheduler for RealSlurm {
    fn nodes(&mut self) -> Result<Vec<Node>, CallError> {
        Ok(self.ours.nodes()?.into_iter().map(seen).collect())
    }

    fn node(&mut self, name: &str) -> Result<Option<Node>, CallError> {
        Ok(self.ours.node(name)?.map(seen))
    }

    fn drain(&mut self, expected: &Node, reason: &str) -> Result<Guarded, CallError> {
        match self.ours.node(&expected.name)? {
            Some(node) if seen(node.clone()).stands_as(expected) => self.ours.drain(&node, reason),
            _ => Ok(Guarded::Changed),
        }
    }

    fn resume(&mut self, expected: &Node) -> Result<Guarded, CallError> {
        match self.ours.node(&expected.name)? {
            Some(node) if seen(node.clone()).stands_as(expected) => self.ours.resume(&node),
            _ => Ok(Guarded::Changed),
        }
    }

    fn reservations(&mut self) -> Result<Vec<Reservation>, CallError> {
        self.ours.reservations()
    }

    fn reserve(&mut self, reservation: &Reservation) -> Result<Guarded, CallError> {
        self.ours.reserve(reservation)
    }

    fn release(&mut self, node: &Node, expected: &Reservation) -> Result<Guarded, CallError> {
        match self.ours.node(&node.name)? {
            Some(now) if seen(now.clone()).stands_as(node) => self.ours.release(&now, expected),
            _ => Ok(Guarded::Changed),
        }
    }
}

impl Others for RealSlurm {
    fn others(&mut self, node: &str, act: &WatchedAct) -> Result<(), CallError> {
        let now = self.ours.node(node)?.unwrap();
        match act {
            // The same words within the same second are the same reason in all respects.
            WatchedAct::Drain(text) if now.reason.as_ref().is_some_and(|reason| reason.text == *text) => {
                self.update(node, &["State=DRAIN", &format!("Reason=as {text}")]);
            }
            WatchedAct::Drain(text) => self.update(node, &["State=DRAIN", &format!("Reason={text}")]),
            WatchedAct::Rename(text) => self.update(node, &[&format!("Reason={text}")]),
            WatchedAct::Resume if now.is_drained() || now.state.contains("DOWN") => {
                self.update(node, &["State=RESUME"]);
            }
            WatchedAct::Reboot if now.reason.is_none() => {
                self.update(node, &["State=DRAIN", "Reason=Node unexpectedly rebooted"]);
            }
            WatchedAct::Unreserve => {
                for reservation in self.ours.reservations()?.iter().filter(|r| r.node == node) {
                    self.scontrol(&["delete", &format!("ReservationName={}", reservation.name)]);
                }
            }
            WatchedAct::Resume | WatchedAct::Reboot | WatchedAct::Vanish | WatchedAct::Return => {}
        }
        Ok(())
    }

    fn set_clock(&mut self, _: u64) {}
}

#[test]
fn no_reason_is_overwritten_and_no_resume_is_wrong_over_a_real_slurm() {
    with_cluster("no_reason_is_overwritten_and_no_resume_is_wrong_over_a_real_slurm", NODES, |cluster| {
        let conf = cluster.conf();
        let (tally, gap, took) = cluster.on_control(move || {
            let ours = Scontrol::new(Some(conf.clone())).unwrap();
            let mut slurm = RealSlurm { ours, conf };
            let (mut tally, begun) = (Tally::default(), Instant::now());
            for seed in 0..INTERLEAVINGS {
                slurm.reset();
                let by = if seed % 2 == 0 { HoldMeans::State } else { HoldMeans::Reservation };
                let start_ms = 1_900_000_000_000;
                let wanted = Interleaving { seed, steps: STEPS, start_ms, by, careless: false };
                tally.add(interleave(&mut slurm, wanted));
            }
            (tally, slurm.ours.longest_gap(), begun.elapsed())
        });
        println!(
            "{INTERLEAVINGS} interleavings, seeds from 0, in {:.0} s: {} drains, {} resumes, {} late, {} killed, \
             {} unsaved, {} trips, {} acts of others, {} changed, {} breaches; at most {} ms from reading to written",
            took.as_secs_f64(),
            tally.drains,
            tally.resumes,
            tally.late,
            tally.killed,
            tally.unsaved,
            tally.trips,
            tally.acts,
            tally.changed,
            tally.breaches.len(),
            gap.as_millis()
        );
        assert!(tally.breaches.is_empty(), "{:#?}", &tally.breaches[..tally.breaches.len().min(3)]);
        assert!(tally.drains > 50 && tally.resumes > 10 && tally.acts > 500, "{tally:?}");
    });
}

/// A finished run of so many minutes ago in which `n2` receives badly, or nothing is wrong.
fn store_run(cluster: &Cluster, id: &str, minutes_ago: u64, is_faulty: bool) {
    let names = ["n1", "n2", "n3"].map(str::to_owned);
    let host = |name: &String| Host {
        name: name.clone(),
        transport: TransportSpec::Local,
        groups: vec![],
        endpoints: vec![],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut samples = Vec::new();
    for (from, to) in names.iter().flat_map(|from| names.iter().map(move |to| (from, to))) {
        let kind = TcpPlan { streams: 1, duration_ms: 100 }.into();
        let mut test = Test::new(from.clone(), to.clone(), linerate_model::inventory::Layer::Underlay, kind);
        test.id = samples.len() as u32;
        let measured = Measurement { throughput_bps: Some(9.4e9), ..Measurement::default() };
        samples.push(Sample::new(test, 0, Outcome::Measured(Box::new(measured))));
    }
    let snapshot = Snapshot {
        id: id.to_owned(),
        start_ms: now.as_millis() as u64 - minutes_ago * 60_000,
        inventory: Inventory {
            name: "lab".to_owned(),
            hosts: names.iter().map(host).collect(),
            ..Inventory::default()
        },
        ..Snapshot::default()
    };
    let finding = Finding {
        places: vec![LossLocation {
            suspect: Suspect::Host("n2".to_owned()),
            direction: Direction::Rx,
            probability: 0.99,
        }],
        responses: vec![Metric::Throughput],
        expected: 9.41e9,
        measured: 0.94e9,
        unit: MetricUnit::BitPerSecond,
        probability: 0.99,
        affected: [("n1", "n2"), ("n3", "n2")].map(|(f, t)| (f.to_owned(), t.to_owned())).into(),
        ..Finding::default()
    };
    let diagnosis = Diagnosis {
        run: id.to_owned(),
        findings: is_faulty.then_some(finding).into_iter().collect(),
        ..Diagnosis::default()
    };
    let folder = cluster.path("data");
    std::fs::create_dir_all(&folder).unwrap();
    let mut store = Store::open(&folder.join("linerate.sqlite")).unwrap();
    store.begin_run(&snapshot, None).unwrap();
    let facts = names.iter().map(|name| (name.clone(), HostFacts::default())).collect::<Vec<_>>();
    store.add_facts(id, facts.iter().map(|(name, facts)| (name, facts))).unwrap();
    store.add_samples(id, &samples).unwrap();
    store.finish(&snapshot, &diagnosis).unwrap();
}

/// `linerate` with these words; its code and all that it printed.
fn typed(cluster: &Cluster, words: &[&str]) -> (i32, String) {
    let output = cluster.linerate(words);
    let text = String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned();
    println!("$ linerate {}\n{text}", words.join(" "));
    (output.status.code().unwrap(), text)
}

/// State and reason of a node.
fn state(cluster: &Cluster, node: &str) -> String {
    cluster.client("sinfo", &["-h", "-N", "-n", node, "-o", "%T|%E"]).1.trim().to_owned()
}

#[test]
fn a_node_is_drained_and_resumed_as_typed() {
    with_cluster("a_node_is_drained_and_resumed_as_typed", 3, |cluster| {
        let reason = "linerate: rx 940 Mbit/s not 9.41 Gbit/s, throughput; run 20261126-090000-0002";
        store_run(cluster, "20261126-085000-0001", 12, true);
        assert!(typed(cluster, &["drain", "--yes"]).1.contains("seen once"));
        assert_eq!(state(cluster, "n2"), "idle|none");
        store_run(cluster, "20261126-090000-0002", 6, true);
        // A dry run writes nothing.
        let (code, text) = typed(cluster, &["drain"]);
        assert!(code == 1 && text.contains(reason) && text.contains("dry run"), "{text}");
        assert_eq!(state(cluster, "n2"), "idle|none");
        // Another reason stays as it is.
        cluster.client("scontrol", &["update", "NodeName=n2", "State=DRAIN", "Reason=fan 3 broken"]);
        assert!(typed(cluster, &["drain", "--yes"]).1.contains("has another reason: fan 3 broken"));
        assert!(typed(cluster, &["resume", "--yes"]).1.contains("0 held"));
        assert_eq!(state(cluster, "n2"), "drained|fan 3 broken");
        cluster.client("scontrol", &["update", "NodeName=n2", "State=RESUME"]);
        let registered = || state(cluster, "n2") == "idle|none";
        linerate_testkit::wait_within(crate::cluster::PATIENCE, "n2 is idle", registered);
        // By reservation, state and reason stay.
        assert_eq!(typed(cluster, &["drain", "--yes", "--by", "reservation"]).0, 0);
        assert!(state(cluster, "n2").ends_with("|none"), "{}", state(cluster, "n2"));
        let shown = || cluster.client("scontrol", &["show", "reservation"]).1;
        assert!(shown().contains("linerate_n2_20261126-090000-0002"), "{}", shown());
        let (code, text) = typed(cluster, &["resume", "--yes"]);
        assert!(code == 0 && text.contains("not measured since"), "{text}");
        cluster.client("scontrol", &["delete", "ReservationName=linerate_n2_20261126-090000-0002"]);
        assert!(typed(cluster, &["resume", "--yes"]).1.contains("0 held"));
        // A person ended it: runs of before are no evidence any more.
        assert!(typed(cluster, &["drain", "--yes"]).1.contains("not measured"));
        // As if that had never been.
        std::fs::remove_file(cluster.path("data/linerate-drain-lab.json")).unwrap();
        assert_eq!(typed(cluster, &["drain", "--yes"]).0, 0);
        assert_eq!(state(cluster, "n2"), format!("drained|{reason}"));
        // A run of the future is one after the drain.
        store_run(cluster, "20261126-091500-0003", 0, false);
        let (code, text) = typed(cluster, &["resume"]);
        assert!(code == 1 && text.contains("dry run"), "{text}");
        assert_eq!(typed(cluster, &["resume", "--yes"]).0, 0);
        linerate_testkit::wait_within(crate::cluster::PATIENCE, "n2 is idle again", registered);
    });
}
