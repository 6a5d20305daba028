//! The long matrices of the labs: every fault of the guests at many places, every kill at every point, a
//! watch for an hour.
//!
//! In: how many runs of each. Out: what the judge or the test prints. The short line of the same is part of
//! the tests.

use anyhow::{Result, ensure};

use crate::shell::{cargo, sh, target_release};

/// Matrices of the lab.
#[derive(clap::Subcommand)]
pub(crate) enum Lab {
    /// Faults of drives and of replicas in emulated machines, at random places; an hour at ten runs of each.
    Vm {
        /// Runs with each fault.
        #[arg(long, default_value_t = 10)]
        runs: u32,
        /// Runs with nothing broken.
        #[arg(long, default_value_t = 10)]
        healthy: u32,
        /// Repeats the same places and strengths.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// `kill -9` of operator, of node and of both at every point of the commands that write; two hours.
    Kills,
    /// A watch over twelve hosts with intermittent faults, settings changed by hand, and node programs, an
    /// operator and a database that are killed.
    Watch {
        /// How long.
        #[arg(long, default_value_t = 60)]
        minutes: u32,
    },
    /// Boots of a guest with twenty kept settings, each in force 30 s later; a minute a boot.
    Boots {
        /// How many.
        #[arg(long, default_value_t = 100)]
        boots: u32,
    },
}

/// Builds the programs and judges, or kills.
pub(crate) fn run(lab: &Lab) -> Result<()> {
    match lab {
        Lab::Vm { runs, healthy, seed } => judge(*runs, *healthy, *seed),
        Lab::Kills => test("vm", "no_kill_of", ("LINERATE_KILLS", "all")),
        Lab::Boots { boots } => test("vm", "twenty_settings_kept", ("LINERATE_BOOTS", &boots.to_string())),
        Lab::Watch { minutes } => {
            test("watch", "what_happens_is_reported", ("LINERATE_LAB_TIME", &(minutes * 60).to_string()))
        }
    }
}

/// Tests of this name. They do a part; with this variable they do all.
fn test(program: &str, name: &str, (variable, value): (&str, &str)) -> Result<()> {
    sh("cargo", &["build", "--workspace", "--locked"])?;
    let arguments = ["test", "--workspace", "--locked", "--test", program, name, "--", "--nocapture"];
    let status = cargo().args(arguments).env(variable, value).status()?;
    ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    Ok(())
}

fn judge(runs: u32, healthy: u32, seed: u64) -> Result<()> {
    sh(
        "cargo",
        &["build", "--release", "--locked", "-p", "linerate", "-p", "linerate-node", "-p", "linerate-lab"],
    )?;
    let program = target_release().join("linerate-lab").display().to_string();
    let [runs, healthy, seed] = [u64::from(runs), u64::from(healthy), seed].map(|n| n.to_string());
    sh(&program, &["vm", "judge", "--runs", &runs, "--healthy", &healthy, "--seed", &seed])
}
