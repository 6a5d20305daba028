//! The files of an installation and the steps that write them. In: what is to be installed. Out: steps, and
//! what is left to a person.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linerate_model::drift::KeptSetting;
use linerate_model::printable::one_line;
use linerate_model::step::{CHECK_PROGRAM, InstallStep, InstalledFile, InstalledUnit, Step};

/// What runs the checks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    /// A timer of systemd.
    Timer,
    /// `HealthCheckProgram` of Slurm.
    Slurm,
}

/// What `slurm.conf` needs. It is one file for the controller and all nodes, and belongs to the tool that
/// manages it: a copy that is changed on some of them differs from the others, and is written back.
const SLURM_CONF: [(&str, &str); 3] = [
    ("HealthCheckProgram", "/etc/linerate/slurm-check"),
    ("HealthCheckInterval", "300"),
    ("HealthCheckNodeState", "ANY,CYCLE"),
];

/// The change of `slurm.conf` as a diff from what the controller has in force; empty where all of it is.
/// Without what is in force every line is new.
pub(super) fn slurm_conf(in_force: &BTreeMap<String, String>) -> String {
    let file = in_force.get("SLURM_CONF").map_or("slurm.conf", String::as_str);
    let mut lines = String::new();
    for (name, wanted) in SLURM_CONF {
        let now = in_force.get(name).filter(|now| !["(null)", "0 sec", ""].contains(&now.as_str()));
        let now = now.map(|now| now.trim_end_matches(" sec"));
        if now.is_some_and(|now| words(now) == words(wanted)) {
            continue;
        }
        // A state that is not set is the default, and no program runs without one.
        let is_set = now.is_some() && in_force.get(SLURM_CONF[0].0).is_some_and(|one| one != "(null)");
        if let Some(now) = now.filter(|_| is_set) {
            let _ = writeln!(lines, "-{name}={}", one_line(now));
        }
        let _ = writeln!(lines, "+{name}={wanted}");
    }
    if lines.is_empty() { lines } else { format!("--- {0}\n+++ {0}\n{lines}", one_line(file)) }
}

/// What is to be taken out of `slurm.conf` once its program is gone, as a diff; empty where slurmd runs
/// another one. Without what is in force all that an installation asks for.
pub(super) fn slurm_conf_left(in_force: &BTreeMap<String, String>) -> String {
    let (name, program) = SLURM_CONF[0];
    if in_force.get(name).is_some_and(|now| now != program) {
        return String::new();
    }
    let file = in_force.get("SLURM_CONF").map_or("slurm.conf", String::as_str);
    let lines = SLURM_CONF.map(|(name, value)| format!("-{name}={value}\n")).concat();
    format!("--- {0}\n+++ {0}\n{lines}", one_line(file))
}

/// The words of a value; Slurm prints them in an order of its own.
fn words(value: &str) -> Vec<&str> {
    let mut words: Vec<&str> = value.split(',').map(str::trim).collect();
    words.sort_unstable();
    words
}

/// The program that slurmd runs now, where it is another one: Slurm runs only one.
pub(super) fn other_program(in_force: &BTreeMap<String, String>) -> Option<&str> {
    let (name, wanted) = SLURM_CONF[0];
    let now = in_force.get(name)?.as_str();
    (![wanted, "(null)", ""].contains(&now)).then_some(now)
}

const HEAD: &str = "# Written by linerate; `linerate check uninstall` removes it.\n";

/// The steps of a host; those that fail first are those that need systemd and root.
pub(super) fn steps(runner: Runner, sha256: &str, kept: &[KeptSetting]) -> Vec<Step> {
    let file = |file, text| InstallStep::File { file, text };
    let mut steps = vec![InstallStep::Reload, InstallStep::Program { sha256: sha256.to_owned() }];
    if !kept.is_empty() {
        // A list of plain values.
        let text = serde_json::to_string_pretty(kept).unwrap_or_default() + "\n";
        steps.push(file(InstalledFile::KeptSet, text));
    }
    match runner {
        Runner::Timer => {
            steps.push(file(InstalledFile::CheckService, service()));
            steps.push(file(InstalledFile::CheckTimer, timer()));
            steps.push(InstallStep::Enable { unit: InstalledUnit::CheckTimer });
        }
        Runner::Slurm => {
            steps.push(file(InstalledFile::SlurmCheck, script()));
            if !kept.is_empty() {
                steps.push(file(InstalledFile::KeptService, before_slurmd()));
                steps.push(InstallStep::Enable { unit: InstalledUnit::KeptService });
            }
        }
    }
    steps.into_iter().map(Step::Install).collect()
}

/// A child that hangs in the kernel is left as it is: the next call knows it. 3: not all was seen. Hosts are
/// spread by their names, so that a thousand of them do not ask one file server at once; the time limit is
/// that of the wait, and of the 40 s that a call may take.
fn service() -> String {
    format!(
        "{HEAD}[Unit]\nDescription=Health checks of linerate\n\n[Service]\nType=oneshot\n\
         ExecStart={CHECK_PROGRAM} check --enforce --jitter 60\nSuccessExitStatus=3\n\
         KillMode=process\nTimeoutStartSec=120\nNice=10\n"
    )
}

/// As often as Slurm would.
fn timer() -> String {
    format!(
        "{HEAD}[Unit]\nDescription=Health checks of linerate\n\n[Timer]\nOnBootSec=2min\n\
         OnUnitActiveSec=5min\n\n[Install]\nWantedBy=timers.target\n"
    )
}

/// The option of Slurm takes no arguments. `CYCLE` spreads the nodes over the interval: no wait of its own.
fn script() -> String {
    let head = HEAD.trim_end();
    format!(
        "#!/bin/sh\n{head}\n[ -x {CHECK_PROGRAM} ] || exit 0\nexec {CHECK_PROGRAM} check --as slurm --enforce\n"
    )
}

fn before_slurmd() -> String {
    format!(
        "{HEAD}[Unit]\nDescription=Settings kept by linerate are in force\n\
         After=systemd-sysctl.service network.target network-online.target tuned.service\n\
         Before=slurmd.service\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n\
         ExecStart={CHECK_PROGRAM} check --as boot --enforce\nTimeoutStartSec=60\n\n\
         [Install]\nRequiredBy=slurmd.service\n"
    )
}

#[cfg(test)]
mod tests {
    use linerate_model::drift::DriftPolicy;
    use linerate_model::fact::FactValue;

    use super::*;

    fn kept() -> Vec<KeptSetting> {
        vec![KeptSetting {
            host: "a".to_owned(),
            key: "sysctl.vm.swappiness".to_owned(),
            value: FactValue::Int(1),
            policy: DriftPolicy::Report,
            trial: None,
            profile: None,
            line: 3,
        }]
    }

    #[test]
    fn every_step_passes_the_check_of_the_host() {
        for runner in [Runner::Timer, Runner::Slurm] {
            for kept in [kept(), Vec::new()] {
                let steps = steps(runner, &"0f".repeat(32), &kept);
                for step in &steps {
                    step.operation().check().unwrap();
                }
                let text = linerate_report::steps::text(&steps);
                assert!(text.contains("linerate-node"), "{text}");
                assert_eq!(text.contains("/etc/linerate/kept.json"), !kept.is_empty(), "{text}");
                let waits = runner == Runner::Slurm && !kept.is_empty();
                assert_eq!(text.contains("RequiredBy=slurmd.service"), waits, "{text}");
            }
        }
    }

    #[test]
    fn the_diff_is_from_what_is_in_force() {
        let all = "--- slurm.conf\n+++ slurm.conf\n+HealthCheckProgram=/etc/linerate/slurm-check\n\
                   +HealthCheckInterval=300\n+HealthCheckNodeState=ANY,CYCLE\n";
        assert_eq!(slurm_conf(&BTreeMap::new()), all);
        let of = |program: &str, interval: &str, state: &str| {
            let names = ["HealthCheckProgram", "HealthCheckInterval", "HealthCheckNodeState", "SLURM_CONF"];
            let values = [program, interval, state, "/etc/slurm/slurm.conf"];
            names.into_iter().zip(values).map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
        };
        let unset: BTreeMap<String, String> = of("(null)", "0 sec", "ANY");
        assert_eq!(slurm_conf(&unset), all.replace(" slurm.conf", " /etc/slurm/slurm.conf"));
        assert_eq!(other_program(&unset), None);
        let done = of("/etc/linerate/slurm-check", "300 sec", "CYCLE,ANY");
        assert_eq!((slurm_conf(&done), other_program(&done)), (String::new(), None));
        assert_eq!(slurm_conf_left(&BTreeMap::new()), all.replace("\n+H", "\n-H"));
        assert!(slurm_conf_left(&done).starts_with("--- /etc/slurm/slurm.conf\n"));
        let other = of("/usr/sbin/nhc", "300 sec", "ANY");
        let diff = slurm_conf(&other);
        let lines: Vec<&str> = diff.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "-HealthCheckProgram=/usr/sbin/nhc",
                "+HealthCheckProgram=/etc/linerate/slurm-check",
                "-HealthCheckNodeState=ANY",
                "+HealthCheckNodeState=ANY,CYCLE"
            ]
        );
        assert_eq!(other_program(&other), Some("/usr/sbin/nhc"));
        assert_eq!(slurm_conf_left(&other), "");
    }
}
