//! One step for all nodes, whose node programs dial back: surveys, dead and frozen nodes, strangers at the
//! listener.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_model::snapshot::Snapshot;
use linerate_testkit::wait_within;

use crate::cluster::{Cluster, PATIENCE, programs};
use crate::{kill, measured, nothing_left, nothing_runs, survey, with_cluster};

const ONE: [&str; 2] = ["--slurm-steps", "one"];

/// Texts of 64 hexadecimal digits: a key would be one. The hash of the node program is one too, and no
/// secret.
fn has_key(bytes: &[u8]) -> bool {
    let program = programs().node.display().to_string();
    let hash = linerate_testkit::run("sha256sum", &[&program]);
    let hash = &hash.as_bytes()[..64];
    bytes.windows(64).any(|w| w != hash && w.iter().all(u8::is_ascii_hexdigit))
}

/// Command lines and environments of everything that runs.
fn visible(cluster: &Cluster) -> Vec<Vec<u8>> {
    let of = |pid: u32| ["cmdline", "environ"].map(|file| std::fs::read(format!("/proc/{pid}/{file}")));
    cluster.processes().into_iter().flat_map(of).flatten().collect()
}

#[test]
fn node_programs_that_dial_back_are_surveyed() {
    with_cluster("node_programs_that_dial_back_are_surveyed", 4, |cluster| {
        let (output, snapshot) = survey(cluster, &[&["-N", "4"][..], &ONE].concat());
        assert!(linerate_testkit::survey_ended(output.status), "{output:?}");
        assert_eq!(measured(&snapshot).len(), 12, "{:?}", snapshot.gaps);
        assert_eq!(snapshot.facts.len(), 4);
        nothing_left(cluster, 4);

        // While one runs: one srun for all nodes, no listener of the operator any more, the key where no
        // other user can read it.
        let arguments = ["survey", "--quiet", "--time", "120s", "--via", "slurm", "-N", "4", ONE[0], ONE[1]];
        let mut operator = cluster.linerate_started(&arguments);
        let linked = |cluster: &Cluster| (0..4).all(|node| cluster.connections(node, true) > 0);
        wait_within(PATIENCE, "all have dialled", || linked(cluster));
        wait_within(PATIENCE, "nothing listens", || cluster.listens(operator.0.id()).is_empty());
        // Slurm's client has a helper process of its own.
        let clients = cluster.clients_named(&["srun"]);
        let leader = |pid: &&u32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit(')').next().is_some_and(|s| s.split(' ').nth(2) == Some(&operator.0.id().to_string()))
        };
        assert_eq!(clients.iter().filter(leader).count(), 1, "{clients:?}");
        assert!(visible(cluster).iter().all(|text| !has_key(text)), "the key is to be seen");
        kill("-INT", &[operator.0.id()]);
        wait_within(PATIENCE, "the survey ends", || operator.0.try_wait().unwrap().is_some());
        nothing_left(cluster, 4);
    });
}

#[test]
fn dead_drained_and_frozen_nodes_are_gaps_of_one_step() {
    with_cluster("dead_drained_and_frozen_nodes_are_gaps_of_one_step", 5, |cluster| {
        assert!(
            cluster.client("scontrol", &["update", "NodeName=n2", "State=DRAIN", "Reason=fan 3 broken"]).0
        );
        // Slurm has not noticed yet.
        cluster.kill_node(4);
        // The program of n3 never gets its order, also when the step is begun again without the dead node.
        cluster.hold(2);
        let file = cluster.path("gaps.json");
        let name = file.to_str().unwrap().to_owned();
        let arguments = ["survey", "--quiet", "--via", "slurm", "--nodelist", "n[1-5]", ONE[0], ONE[1]];
        let mut operator = cluster.linerate_started(&[&arguments[..], &["--snapshot", &name]].concat());
        wait_within(2 * PATIENCE, "the survey ends", || operator.0.try_wait().unwrap().is_some());
        let snapshot: Snapshot = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let gap = |host: &str| {
            let what = format!("host {host}").into();
            let gap = snapshot.gaps.iter().find(|g| g.what == what);
            gap.unwrap_or_else(|| panic!("{host} in {:?}", snapshot.gaps)).reason.clone()
        };
        for (host, words) in
            [("n2", "fan 3 broken"), ("n5", "cannot be reached by Slurm"), ("n3", "did not dial back")]
        {
            println!("{host}: {}", gap(host));
            assert!(gap(host).contains(words), "{}", gap(host));
        }
        assert_eq!(measured(&snapshot), [("n1", "n4"), ("n4", "n1")], "{:?}", snapshot.gaps);
        let given_back = |job: &String| job.ends_with("COMPLETING");
        wait_within(PATIENCE, "the job is given back", || cluster.jobs().iter().all(given_back));
        nothing_runs(cluster, 4);
    });
}

/// Sends bytes to the listener and returns its answer until it closes.
fn strange(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // It may be cut off before everything is taken.
    let _ = stream.write_all(bytes);
    let (mut received, mut buffer) = (Vec::new(), [0; 256]);
    loop {
        match stream.read(&mut buffer) {
            Ok(count @ 1..) => received.extend_from_slice(&buffer[..count]),
            // A reset is an end as well; a wait that is over is not.
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => panic!("not cut off"),
            _ => return received,
        }
    }
}

#[test]
fn strangers_at_the_listener_are_cut_off_and_the_survey_is_unharmed() {
    with_cluster("strangers_at_the_listener_are_cut_off_and_the_survey_is_unharmed", 3, |cluster| {
        let file = cluster.path("listener.json");
        let name = file.to_str().unwrap().to_owned();
        let arguments = ["survey", "--quiet", "--via", "slurm", "-N", "3", ONE[0], ONE[1]];
        // One node keeps the listener open: what reads its order is held up.
        cluster.hold(2);
        let mut operator = cluster.linerate_started(&[&arguments[..], &["--snapshot", &name]].concat());
        wait_within(PATIENCE, "the step is there", || !cluster.named_on(2, "timeout").is_empty());
        let mut listener = Vec::new();
        wait_within(PATIENCE, "the listener is open", || {
            listener = cluster.listens(operator.0.id());
            !listener.is_empty()
        });
        let to = listener[0];
        // A handshake as one of an old run: the right form, numbers that belong to another key.
        let old = [&b"LRDIAL01"[..], &[0x5a; 48]].concat();
        let long = vec![0; 70_000];
        let openings: [&[u8]; 5] = [b"GET / HTTP/1.0\r\n\r\n", &old, &long, b"", b"LRDI"];
        // All at once: the listener does not stay open for ever.
        let received = cluster.on_node(1, || {
            std::thread::scope(|scope| {
                let talks = openings.map(|bytes| scope.spawn(move || strange(to, bytes)));
                talks.map(|talk| talk.join().unwrap())
            })
        });
        assert!(received.iter().all(Vec::is_empty), "nothing is sent to a stranger: {received:?}");
        cluster.let_go(2);
        wait_within(2 * PATIENCE, "the survey ends", || operator.0.try_wait().unwrap().is_some());
        let snapshot: Snapshot = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert_eq!(measured(&snapshot).len(), 6, "{:?}", snapshot.gaps);
        assert!(
            !snapshot.gaps.iter().any(|g| matches!(g.what, linerate_model::fact::GapSubject::Host(_))),
            "{:?}",
            snapshot.gaps
        );
        nothing_left(cluster, 3);
        let refused = cluster.on_node(1, || TcpStream::connect_timeout(&to, Duration::from_secs(5)).is_err());
        assert!(refused, "nothing listens any more");
    });
}
