//! Surveys over a real Slurm: a job of its own and one that exists, a drained node, a dead node, a lost
//! session, Ctrl-C and `kill -9` of the operator and of Slurm's clients; node programs that dial back
//! (`one_step.rs`); remedies (`remedy.rs`); drains beside others (`drain.rs`); the checks of hosts
//! (`checks.rs`). In: Slurm and munge as installed, `linerate` and `linerate-node` (`LINERATE`,
//! `LINERATE_NODE`, or beside the lab's).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod checks;
mod cluster;
mod drain;
mod one_step;
mod remedy;

use std::process::{Command, Output};

use cluster::{Cluster, PATIENCE};
use linerate_model::inventory::TransportSpec;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;
use linerate_testkit::wait_within;

/// A cluster, or the reason why there is none.
fn with_cluster(test: &str, nodes: usize, body: impl FnOnce(&mut Cluster)) {
    if let Some(reason) = cluster::missing() {
        println!("SKIPPED {test}: {reason}");
        return;
    }
    body(&mut Cluster::up(nodes));
}

fn survey(cluster: &Cluster, hosts: &[&str]) -> (Output, Snapshot) {
    let file = cluster.path("snapshot.json");
    let _ = std::fs::remove_file(&file);
    // Without a budget: what is planned is measured, however long that takes.
    let mut arguments = vec!["survey", "--quiet", "--snapshot", file.to_str().unwrap()];
    arguments.extend(["--via", "slurm"]);
    arguments.extend(hosts);
    let output = cluster.linerate(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    let text = std::fs::read(&file).unwrap_or_else(|e| panic!("no snapshot ({e}): {errors}"));
    (output, serde_json::from_slice(&text).unwrap())
}

/// Ordered pairs with a transfer that ran: on a machine with other work one may have waited too long for a
/// CPU to be of use, and still shows that both sessions live.
fn measured(snapshot: &Snapshot) -> Vec<(&str, &str)> {
    let transfers = snapshot.samples.iter().filter(|s| s.test.kind.name() == "tcp");
    let done = transfers.filter(|s| matches!(s.outcome, Outcome::Measured(_) | Outcome::Invalid { .. }));
    let mut pairs: Vec<(&str, &str)> = done.map(|s| (s.test.from.as_str(), s.test.to.as_str())).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

fn nothing_left(cluster: &Cluster, nodes: usize) {
    wait_within(PATIENCE, "the job is gone", || cluster.jobs().is_empty());
    nothing_runs(cluster, nodes);
}

/// No process of ours anywhere, no copy on a node.
fn nothing_runs(cluster: &Cluster, nodes: usize) {
    wait_within(PATIENCE, "the node programs are gone", || cluster.node_programs() == 0);
    wait_within(PATIENCE, "no client of Slurm is left", || cluster.clients().is_empty());
    for node in 0..nodes {
        wait_within(PATIENCE, "the copies are removed", || cluster.left_on(node).is_empty());
    }
}

fn kill(signal: &str, pids: &[u32]) {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    assert!(!pids.is_empty());
    // Some of them may have ended since they were listed, which is as good.
    let output = Command::new("kill").arg(signal).args(&pids).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() || errors.contains("No such process"), "{errors}");
}

#[test]
fn a_job_of_its_own_is_surveyed_and_given_back() {
    with_cluster("a_job_of_its_own_is_surveyed_and_given_back", 3, |cluster| {
        let (output, snapshot) = survey(cluster, &["-p", "debug", "-N", "3"]);
        assert!(linerate_testkit::survey_ended(output.status), "{output:?}");
        assert_eq!(measured(&snapshot).len(), 6, "{:?}", snapshot.gaps);
        let names: Vec<&str> = snapshot.inventory.hosts.iter().map(|h| h.name.as_str()).collect();
        assert_eq!(names, ["n1", "n2", "n3"]);
        assert!(snapshot.inventory.hosts.iter().all(|h| matches!(h.transport, TransportSpec::Slurm(_))));
        let groups: Vec<&str> = snapshot.inventory.groups_of("n1").iter().map(|g| g.name.as_str()).collect();
        assert_eq!(groups, ["leaf1", "top"], "switches are groups");
        assert_eq!(snapshot.facts.len(), 3);
        nothing_left(cluster, 3);
        // What follows a run gets its nodes again: the stored inventory has no job.
        let output = cluster.linerate(&["facts", "n2", "nic.eth0.mtu", "--via", "slurm"]);
        assert!(String::from_utf8_lossy(&output.stdout).contains("nic.eth0.mtu = 1500"), "{output:?}");
        nothing_left(cluster, 3);
    });
}

#[test]
fn a_job_that_exists_is_used_and_stays() {
    with_cluster("a_job_that_exists_is_used_and_stays", 3, |cluster| {
        let file = cluster.path("inside.json");
        let program = cluster::programs().linerate;
        let line = format!(
            "'{}' survey --quiet --via slurm --snapshot '{}' >&2; squeue -h -o '%i %T'",
            program.display(),
            file.display()
        );
        let output = cluster.run("salloc", &["--quiet", "-N2", "sh", "-c", &line]);
        let errors = String::from_utf8_lossy(&output.stderr);
        let snapshot: Snapshot = serde_json::from_slice(
            &std::fs::read(&file).unwrap_or_else(|e| panic!("no snapshot ({e}): {errors}")),
        )
        .unwrap();
        assert_eq!(measured(&snapshot).len(), 2, "{errors}");
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("RUNNING"),
            "our job is not ended by the survey"
        );
        nothing_left(cluster, 3);
    });
}

#[test]
fn drained_and_dead_nodes_are_gaps() {
    with_cluster("drained_and_dead_nodes_are_gaps", 4, |cluster| {
        let drain = ["update", "NodeName=n2", "State=DRAIN", "Reason=fan 3 broken"];
        assert!(cluster.client("scontrol", &drain).0);
        let (output, snapshot) = survey(cluster, &["--nodelist", "n[1-4]"]);
        assert!(matches!(output.status.code(), Some(1 | 3)), "{output:?}");
        assert_eq!(measured(&snapshot).len(), 6, "{:?}", snapshot.gaps);
        let gap = snapshot.gaps.iter().find(|g| g.what == "host n2".into()).unwrap();
        assert!(gap.reason.contains("drain") && gap.reason.contains("fan 3 broken"), "{gap:?}");
        nothing_left(cluster, 4);

        // Slurm has not noticed yet when the next survey begins.
        cluster.kill_node(3);
        let (_, snapshot) = survey(cluster, &["--nodelist", "n1,n3,n4"]);
        assert!(snapshot.gaps.iter().any(|g| g.what == "host n4".into()), "{:?}", snapshot.gaps);
        assert_eq!(measured(&snapshot), [("n1", "n3"), ("n3", "n1")], "{:?}", snapshot.gaps);
        // Slurm itself waits for the dead node to report the end of the job there.
        let given_back = |job: &String| job.ends_with("COMPLETING");
        wait_within(PATIENCE, "the job is given back", || cluster.jobs().iter().all(given_back));
        wait_within(PATIENCE, "the node programs are gone", || cluster.node_programs() == 0);
        for node in [0, 2] {
            wait_within(PATIENCE, "the copies are removed", || cluster.left_on(node).is_empty());
        }
    });
}

/// Methods to start node programs.
const STEPS: [&str; 2] = ["each", "one"];

#[test]
fn the_job_ends_with_its_operator_however_that_ends() {
    with_cluster("the_job_ends_with_its_operator_however_that_ends", 2, |cluster| {
        let endings: [(&str, &str, &[&str]); 3] = [
            ("-INT", "the operator", &[]),
            ("-9", "the operator", &[]),
            ("-9", "the operator, salloc and every srun", &["salloc", "srun"]),
        ];
        for steps in STEPS {
            for (signal, who, clients) in endings {
                let arguments = ["survey", "--quiet", "--time", "60s", "--via", "slurm", "-N", "2"];
                let mut operator =
                    cluster.linerate_started(&[&arguments[..], &["--slurm-steps", steps]].concat());
                wait_within(PATIENCE, "node programs run", || cluster.node_programs() >= 2);
                kill(signal, &[cluster.clients_named(clients), vec![operator.0.id()]].concat());
                let took = wait_within(PATIENCE, "the job is gone", || cluster.jobs().is_empty());
                println!(
                    "{steps}, kill {signal} of {who}: the job was gone after {:.1} s",
                    took.as_secs_f64()
                );
                let status = operator.0.wait().unwrap();
                assert_eq!(status.code(), if signal == "-INT" { Some(130) } else { None });
                nothing_runs(cluster, 2);
            }
        }
    });
}

#[test]
fn what_was_copied_goes_also_when_the_operator_is_killed_while_it_copies() {
    with_cluster("what_was_copied_goes_also_when_the_operator_is_killed_while_it_copies", 2, |cluster| {
        for steps in STEPS {
            let arguments = ["survey", "--quiet", "--via", "slurm", "-N", "2", "--slurm-steps", steps];
            let mut operator = cluster.linerate_started(&arguments);
            wait_within(PATIENCE, "the copy begins", || {
                // It lies there for a moment only: where that passed unseen, the next survey copies again.
                if operator.0.try_wait().unwrap().is_some() {
                    operator = cluster.linerate_started(&arguments);
                }
                !cluster.left_on(0).is_empty()
            });
            kill("-9", &[operator.0.id()]);
            operator.0.wait().unwrap();
            nothing_left(cluster, 2);
        }
    });
}

#[test]
fn a_session_that_is_lost_is_taken_up_again_and_is_one_gap() {
    with_cluster("a_session_that_is_lost_is_taken_up_again_and_is_one_gap", 3, |cluster| {
        for (steps, signal) in [("each", "-9"), ("one", "-9"), ("one", "-STOP")] {
            let file = cluster.path("lost.json");
            let _ = std::fs::remove_file(&file);
            let arguments = ["survey", "--quiet", "--via", "slurm", "-N", "3", "--slurm-steps"];
            let file_name = file.to_str().unwrap().to_owned();
            let mut operator =
                cluster.linerate_started(&[&arguments[..], &[steps, "--snapshot", &file_name]].concat());
            // Its first transfer: the session is open and in use.
            wait_within(PATIENCE, "n2 is measured", || cluster.connections(1, false) > 0);
            kill(signal, &cluster.node_programs_on(1));
            wait_within(2 * PATIENCE, "the survey ends", || operator.0.try_wait().unwrap().is_some());
            let snapshot: Snapshot = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
            let of_n2: Vec<_> = snapshot.gaps.iter().filter(|g| g.what == "session with n2".into()).collect();
            assert_eq!(of_n2.len(), 1, "{steps} {signal}: {:?}", snapshot.gaps);
            assert!(of_n2[0].reason.contains("taken up again"), "{of_n2:?}");
            assert!(!of_n2[0].reason.contains("could not"), "{of_n2:?}");
            println!("{steps}, kill {signal}: {}", of_n2[0].reason);
            assert_eq!(measured(&snapshot).len(), 6, "{steps} {signal}: {:?}", snapshot.gaps);
            nothing_left(cluster, 3);
        }
    });
}

#[test]
fn a_spec_that_cannot_be_met_is_reported_and_leaves_no_job() {
    with_cluster("a_spec_that_cannot_be_met_is_reported_and_leaves_no_job", 2, |cluster| {
        for (hosts, words) in [
            ("-p nowhere -N 1", "salloc failed"),
            ("-p debug", "which nodes"),
            ("--nodelist n7", "not known to Slurm"),
        ] {
            let mut arguments = vec!["survey", "--quiet", "--via", "slurm"];
            arguments.extend(hosts.split(' '));
            let output = cluster.linerate(&arguments);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{errors}");
            assert!(errors.contains(words), "{hosts:?}: {errors}");
        }
        // More nodes than there are: Slurm lets it wait, and the user aborts.
        let mut operator = cluster.linerate_started(&["survey", "--quiet", "--via", "slurm", "-N", "40"]);
        wait_within(PATIENCE, "the job waits", || cluster.jobs().iter().any(|job| job.ends_with("PENDING")));
        let interrupted = Command::new("kill").args(["-INT", &operator.0.id().to_string()]).status().unwrap();
        assert!(interrupted.success());
        wait_within(PATIENCE, "the job leaves the queue", || cluster.jobs().is_empty());
        assert_eq!(operator.0.wait().unwrap().code(), Some(130));
        assert_eq!(cluster.jobs(), Vec::<String>::new());
    });
}
