//! `try`, `keep` and `undo` of a run whose hosts Slurm gave: each command gets its nodes anew, and a trial whose operator is killed with
//! everything that holds the job leaves the old values.

use std::process::Output;

use linerate_model::exit::ExitCode;

use crate::cluster::{Cluster, PATIENCE, wait_until};
use crate::{STEPS, kill, nothing_left, with_cluster};

const KEY: &str = "net.ipv4.tcp_rmem";
/// The host that receives badly, by name and number.
const VICTIM: (&str, usize) = ("n2", 1);

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

fn value(cluster: &Cluster) -> String {
    cluster.node(VICTIM.1).read_sysctl(KEY).unwrap()
}

/// Trials that have a journal on the changed host.
fn trials(cluster: &Cluster) -> Vec<String> {
    let folder = cluster.root_of(VICTIM.1).join("var/lib/linerate/trials");
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |file: std::fs::DirEntry| Some(file.file_name().to_str()?.strip_suffix(".json")?.to_owned());
    files.filter_map(name).filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn a_remedy_is_tried_kept_and_undone_over_slurm() {
    with_cluster("a_remedy_is_tried_kept_and_undone_over_slurm", 3, |cluster| {
        cluster.node(VICTIM.1).write_sysctl(KEY, "4096 4096 6144").unwrap();
        let broken = value(cluster);
        let conf = cluster.root_of(VICTIM.1).join("etc/sysctl.d/90-linerate.conf");
        for steps in STEPS {
            let survey = ["survey", "--quiet", "--via", "slurm", "-N", "3", "--slurm-steps", steps];
            let output = cluster.linerate(&survey);
            assert!(said(&output).contains("tcp-rmem-small"), "{}", said(&output));
            let attempt = ["try", "tcp-rmem-small", "--on", VICTIM.0, "--arms", "4", "--quiet"];
            let output = cluster.linerate(&attempt);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{}", said(&output));
            assert_eq!(value(cluster), broken, "a trial puts the old value back");
            nothing_left(cluster, 3);
            let trial = trials(cluster).pop().expect("a journal");
            assert!(!conf.exists());
            // Killed in the middle, with everything that holds the job.
            let long = ["try", "tcp-rmem-small", "--on", VICTIM.0, "--arms", "16", "--quiet"];
            let before = trials(cluster);
            let mut operator = cluster.linerate_started(&long);
            wait_until(PATIENCE, "a new value", || value(cluster) != broken);
            kill("-9", &[cluster.clients_named(&["salloc", "srun"]), vec![operator.0.id()]].concat());
            operator.0.wait().unwrap();
            let took = wait_until(PATIENCE, "the old value is back", || value(cluster) == broken);
            println!("{steps}: the old value was back {:.1} s after the kill", took.as_secs_f64());
            nothing_left(cluster, 3);
            assert_eq!(value(cluster), broken);
            // Its journal may be open until its deadline, when all who could close it were killed; nobody needs to wait for that.
            for killed in trials(cluster).into_iter().filter(|trial| !before.contains(trial)) {
                let output = cluster.linerate(&["undo", &killed]);
                assert_eq!(output.status.code(), Some(ExitCode::Ok as i32), "{}", said(&output));
                nothing_left(cluster, 3);
            }
            // A trial that was measured is made to stay, outlives the job, and is undone.
            let output = cluster.linerate(&["keep", &trial, "--quiet"]);
            assert_eq!(output.status.code(), Some(ExitCode::Ok as i32), "{}", said(&output));
            nothing_left(cluster, 3);
            assert!(value(cluster) != broken && conf.exists(), "{}", said(&output));
            let output = cluster.linerate(&["undo", &trial]);
            assert_eq!(output.status.code(), Some(ExitCode::Ok as i32), "{}", said(&output));
            assert!(value(cluster) == broken && !conf.exists(), "{}", said(&output));
            nothing_left(cluster, 3);
        }
    });
}
