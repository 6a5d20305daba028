//! A node of a real Slurm, under a real systemd: after a boot it takes no work before its kept set is in
//! force, none at all while a kept setting has another value, and nothing of the checks is left when they
//! are uninstalled.
//!
//! One guest is controller and node; munge, slurmctld and slurmd are those of the distribution. Jobs wait in
//! the queue of Slurm over the boots, and write down what they find as soon as the node takes work.

use crate::persistence::{GUEST, boot, check, drift};
use crate::{Scene, wait_for};

/// Three settings of three owners: sysctl.d, tuned, a `.link` file.
const KEPT: &str = "[[cohort]]
hosts = [\"server\"]
policy = \"put-back\"
[[cohort.setting]]
key = \"sysctl.net.core.rmem_max\"
value = 33554432
[[cohort.setting]]
key = \"sysctl.vm.dirty_background_ratio\"
value = 5
[[cohort.setting]]
key = \"nic.eth1.mtu\"
value = 1400
";
/// What a job finds of them, and when, seconds since the boot.
const JOB: &str = "cat /proc/sys/net/core/rmem_max /proc/sys/vm/dirty_background_ratio \
                   /sys/class/net/eth1/mtu; cut -d \" \" -f 1 /proc/uptime";
/// What installing the packages does, and a cluster of one node, which an answer of slurmd brings back.
const SITE: &str = r"
mkdir -p /etc/slurm /etc/munge /var/log/munge /var/lib/munge /var/lib/slurm/slurmctld /var/lib/slurm/slurmd /var/log/slurm
dd if=/dev/urandom of=/etc/munge/munge.key bs=1024 count=1 2>/dev/null
chmod 400 /etc/munge/munge.key
chmod 700 /etc/munge /var/log/munge
chmod 711 /var/lib/munge
chown -R munge:munge /etc/munge /var/log/munge /var/lib/munge
chown -R slurm:slurm /var/lib/slurm /var/log/slurm
cat >/etc/slurm/slurm.conf <<END
ClusterName=lab
SlurmctldHost=server(127.0.0.1)
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
NodeName=server NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=60 State=UP
END
systemctl -q enable munge slurmctld slurmd
systemctl start munge slurmctld slurmd
";
const CONF: &str = "/etc/slurm/slurm.conf";
/// Another owner, which counts after the file of the kept value.
const OTHER: &str = "/etc/sysctl.d/zz-vendor.conf";

/// State of the node as Slurm has it: `*` for one that does not answer.
fn state(scene: &Scene) -> String {
    scene.sh(GUEST, "sinfo -h -N -o %T 2>&1 || true").trim().to_owned()
}

fn is_idle(scene: &Scene) {
    wait_for("the node is idle", || state(scene), |state| state == "idle");
}

/// A property of a unit.
fn of(scene: &Scene, unit: &str, property: &str) -> String {
    scene.exec(GUEST, &["systemctl", "show", unit, "--value", "-p", property]).trim().to_owned()
}

/// Microseconds since the boot.
fn at(scene: &Scene, unit: &str, property: &str) -> u64 {
    of(scene, unit, property).parse().unwrap()
}

/// What a job wrote, once it is over.
fn result(scene: &Scene, job: &str) -> String {
    let done = || scene.sh(GUEST, "squeue -h -o '%j %T %r'");
    wait_for("the job has run", done, |jobs| !jobs.contains(job));
    scene.sh(GUEST, &format!("cat /root/{job}"))
}

/// Does by hand to `slurm.conf` what the program shows.
fn edit_conf(scene: &Scene, shown: &str) {
    let lines = |sign: &str, head: &str| -> Vec<String> {
        let own = shown.lines().filter(|line| !line.starts_with(head));
        own.filter_map(|line| Some(line.strip_prefix(sign)?.to_owned())).collect()
    };
    let (more, less) = (lines("+", "+++"), lines("-", "---"));
    assert_eq!(more.len() + less.len(), 3, "{shown}");
    for line in less {
        scene.sh(GUEST, &format!("grep -qxF '{line}' {CONF}; sed -i '\\#^{line}$#d' {CONF}"));
    }
    for line in more {
        scene.sh(GUEST, &format!("echo '{line}' >>{CONF}"));
    }
    scene.sh(GUEST, "scontrol reconfigure");
    is_idle(scene);
}

/// A job waits for the node, which is down until slurmd registers it: the first that can be done on it.
fn work_begins_with_the_kept_set(scene: &mut Scene) {
    let submit = format!(
        "scontrol update nodename=server state=down reason=reboot; sbatch -J first -o /root/first --wrap='{JOB}'"
    );
    scene.sh(GUEST, &submit);
    boot(scene, &[GUEST], true);
    let found = result(scene, "first");
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[..3], ["33554432", "5", "1400"], "{found}");

    let (compared, ended) =
        (of(scene, "linerate-kept", "Result"), at(scene, "linerate-kept", "ExecMainExitTimestampMonotonic"));
    let begun = at(scene, "slurmd", "ExecMainStartTimestampMonotonic");
    assert_eq!(compared, "success");
    assert!(0 < ended && ended <= begun, "compared at {ended} µs, slurmd at {begun} µs");
    let worked = lines[3].parse::<f64>().unwrap() * 1e6;
    assert!(begun as f64 <= worked, "slurmd at {begun} µs, the job at {worked} µs");
    is_idle(scene);
    // slurmd has run the script before it registered: the checks of this boot are recorded.
    let of_boot = "grep -c \"$(cat /proc/sys/kernel/random/boot_id)\" /var/lib/linerate/check/state.json";
    assert_eq!(scene.sh(GUEST, of_boot), "1\n");
    assert_eq!(scene.sh(GUEST, "grep -c 'health_check' /var/log/slurm/slurmd.log || true"), "0\n");
}

/// Another file counts after the boot: slurmd is not started, and the job waits until a person acts.
fn no_work_without_it(scene: &mut Scene) {
    let submit = format!(
        "echo net.core.rmem_max=212992 >{OTHER}; sbatch --hold -J second -o /root/second --wrap='{JOB}'"
    );
    scene.sh(GUEST, &submit);
    boot(scene, &[GUEST], true);
    assert_eq!(scene.sh(GUEST, "systemctl is-system-running --wait || true"), "degraded\n");
    assert_eq!(of(scene, "linerate-kept", "Result"), "exit-code");
    assert_eq!(of(scene, "slurmd", "ActiveState"), "inactive");
    assert_eq!(at(scene, "slurmd", "ExecMainStartTimestampMonotonic"), 0, "it never ran in this boot");
    let named = scene.sh(GUEST, "systemctl status --no-pager -l linerate-kept || true");
    assert!(named.contains("sysctl.net.core.rmem_max: 212992, and 33554432 was kept"), "{named}");

    // Slurm has searched a node for the job, and there is none.
    scene.sh(GUEST, "scontrol release jobname=second");
    let queue = || scene.sh(GUEST, "squeue -h -n second -o '%T %r'").trim().to_owned();
    let waits =
        wait_for("Slurm considers the job", queue, |job| !job.contains("Held") && !job.ends_with("None"));
    assert!(waits.starts_with("PENDING "), "{waits}");
    let state = state(scene);
    assert!(state.ends_with('*'), "{state}");
    assert_eq!(scene.sh(GUEST, "ls /root/second 2>/dev/null || true"), "");

    scene.sh(GUEST, &format!("rm {OTHER}; sysctl -q net.core.rmem_max=33554432; systemctl start slurmd"));
    let found = result(scene, "second");
    assert_eq!(found.lines().next(), Some("33554432"), "{found}");
    is_idle(scene);
}

/// Files, units in memory and the requirement of slurmd are gone; slurmd runs on meanwhile, and starts again.
fn nothing_is_left(scene: &Scene) {
    let begun = at(scene, "slurmd", "ExecMainStartTimestampMonotonic");
    let shown = check(scene, &[GUEST], &["uninstall"]);
    assert_eq!(at(scene, "slurmd", "ExecMainStartTimestampMonotonic"), begun, "slurmd was stopped");
    edit_conf(scene, &shown[shown.find("--- ").unwrap_or_else(|| panic!("{shown}"))..]);
    let left = "set +e; exec 2>/dev/null; ls -A /etc/linerate /usr/local/sbin | grep -v :; \
                ls -d /etc/systemd/system/slurmd.service.requires; \
                systemctl list-units --all --no-legend --plain 'linerate-[ck]*'; true";
    assert_eq!(scene.sh(GUEST, left).trim(), "");
    assert!(!of(scene, "slurmd", "Requires").contains("linerate"));
    // slurmd runs the program between its start and what it registers.
    scene.sh(GUEST, ">/var/log/slurm/slurmd.log; systemctl restart slurmd");
    let log = || scene.sh(GUEST, "tr -d '\\000' </var/log/slurm/slurmd.log");
    let log = wait_for("slurmd registers", log, |log| log.contains("CPUs=1 "));
    assert!(!log.contains("health_check"), "{log}");
    is_idle(scene);
}

#[test]
fn a_node_of_slurm_takes_no_work_before_its_kept_set_is_in_force() {
    let name = "a_node_of_slurm_takes_no_work_before_its_kept_set_is_in_force";
    let Some(mut scene) = Scene::new(name, "vm-systemd") else { return };
    assert_eq!(scene.exec(GUEST, &["systemctl", "is-system-running", "--wait"]), "running\n");
    scene.sh(GUEST, SITE);
    is_idle(&scene);
    let kept = scene.lab.folder().join("kept.toml");
    std::fs::write(&kept, KEPT).unwrap();
    drift(&scene, &["--put-back"], &[0, 1]);
    let shown = check(&scene, &[GUEST], &["install", "--slurm", "--kept", kept.to_str().unwrap()]);
    edit_conf(&scene, &shown[shown.find("--- ").unwrap_or_else(|| panic!("{shown}"))..]);

    work_begins_with_the_kept_set(&mut scene);
    no_work_without_it(&mut scene);
    nothing_is_left(&scene);
}
