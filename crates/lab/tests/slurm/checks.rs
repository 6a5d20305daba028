//! The checks of a host as Slurm runs them: by slurmd as `HealthCheckProgram`, which drains nothing, and as
//! `Prolog` and `Epilog`, whose failure drains the node with Slurm's own reason.
//! In: a cluster whose nodes expect a file system. Out: what slurmd logs, and which nodes take work.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use linerate_testkit::wait_within;

use crate::cluster::{self, Cluster, PATIENCE};
use crate::with_cluster;

/// Where a file system is expected on each node. It is below a folder that each node has for itself.
const POINT: &str = "/var/lib/scratch";
/// One bad observation is enough, and one good one ends it: the windows have tests of their own.
const CHECKS: &str =
    "enforce = true\n[mount-points]\nexpect = ['/var/lib/scratch']\nstrikes = 1\npasses = 1\n";

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// The three programs, set in `slurm.conf`.
fn install(cluster: &Cluster) {
    let config = cluster.path("checks.toml");
    write(&config, CHECKS, 0o600);
    let mut conf = std::fs::read_to_string(cluster.conf()).unwrap();
    conf += "HealthCheckInterval=1\nHealthCheckNodeState=ANY\n";
    for (option, context) in [("HealthCheckProgram", "slurm"), ("Prolog", "prolog"), ("Epilog", "epilog")] {
        let script = cluster.path(context);
        let text = format!(
            "#!/bin/sh\nexec '{}' check --only mount-points --as {context} --config '{}' --state {POINT}.state\n",
            cluster::programs().node.display(),
            config.display()
        );
        write(&script, &text, 0o755);
        conf = format!("{conf}{option}={}\n", script.display());
    }
    std::fs::write(cluster.conf(), conf).unwrap();
    assert!(cluster.client("scontrol", &["reconfigure"]).0);
}

/// Runs a command with the mounts of a node.
fn on(cluster: &Cluster, node: usize, words: &[&str]) {
    let root = cluster.root_of(node);
    let pid = root.components().nth(2).unwrap().as_os_str().to_str().unwrap().to_owned();
    linerate_testkit::run("nsenter", &[&["-t", &pid, "-m"], words].concat());
}

fn logged(cluster: &Cluster, node: &str, words: &str) -> usize {
    let text = std::fs::read_to_string(cluster.path(&format!("log/slurmd-{node}.log"))).unwrap_or_default();
    text.matches(words).count()
}

/// State and reason of a node.
fn state(cluster: &Cluster, node: &str) -> String {
    cluster.client("sinfo", &["-h", "-N", "-n", node, "-o", "%T|%E"]).1.trim().to_owned()
}

#[test]
fn slurmd_runs_the_checks_and_a_failing_one_around_a_job_drains_its_node() {
    let name = "slurmd_runs_the_checks_and_a_failing_one_around_a_job_drains_its_node";
    with_cluster(name, 2, |cluster| {
        for node in [0, 1] {
            // Others may not write to the folder of the state.
            on(cluster, node, &["chmod", "755", "/var/lib"]);
            on(cluster, node, &["mkdir", POINT]);
            on(cluster, node, &["mount", "-t", "tmpfs", "scratch", POINT]);
        }
        install(cluster);
        let job = |node: &str| cluster.client("srun", &["-w", node, "-N1", "--immediate=60", "true"]).0;
        assert!(job("n1") && job("n2"), "all checks are fine");
        let is_idle = |node: &str| {
            let what = format!("{node} is idle");
            wait_within(PATIENCE, &what, || state(cluster, node) == "idle|none");
        };
        is_idle("n1");
        is_idle("n2");

        // slurmd logs what fails and keeps the node at work.
        on(cluster, 0, &["umount", POINT]);
        let found = format!("{POINT}: nothing is mounted here");
        wait_within(PATIENCE, "slurmd logs the finding", || logged(cluster, "n1", &found) > 0);
        let line = format!("health_check failed: rc:1 output:linerate: mount-points {found}");
        assert!(logged(cluster, "n1", &line) > 0, "{line}");
        assert_eq!(logged(cluster, "n2", "health_check failed"), 0);
        assert_eq!(state(cluster, "n1"), "idle|none");

        // A job does not begin there, and the node is drained: for this, not for its neighbour.
        assert!(!job("n1"));
        wait_within(PATIENCE, "n1 is drained", || state(cluster, "n1").starts_with("drain"));
        for part in ["prolog", "epilog"] {
            let line = format!("{part} failed: rc:1 output:linerate: mount-points {found}");
            wait_within(PATIENCE, &line, || logged(cluster, "n1", &line) > 0);
        }
        assert!(state(cluster, "n1").ends_with("|Prolog error"), "{}", state(cluster, "n1"));
        assert!(job("n2"));
        is_idle("n2");

        // A check that cannot run drains nothing.
        write(&cluster.path("checks.toml"), "[mount-points]\nstrikes = 'two'\n", 0o600);
        assert!(job("n2"));
        is_idle("n2");
    });
}
