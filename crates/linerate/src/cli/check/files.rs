//! The files of an installation and the steps that write them. In: what is to be installed. Out: steps, and
//! what is left to a person.

use linerate_model::drift::KeptSetting;
use linerate_model::step::{CHECK_PROGRAM, InstallStep, InstalledFile, InstalledUnit, Step};

/// What runs the checks of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    /// A timer of systemd.
    Timer,
    /// `HealthCheckProgram` of Slurm.
    Slurm,
}

/// Lines for `slurm.conf`, which is the same file on all hosts of a cluster and belongs to who manages it.
pub(super) const SLURM_CONF: &str = "\
--- slurm.conf
+++ slurm.conf
+HealthCheckProgram=/etc/linerate/slurm-check
+HealthCheckInterval=300
+HealthCheckNodeState=ANY,CYCLE
";

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
}
