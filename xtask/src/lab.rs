//! The long matrices of the lab of emulated machines: every fault of the guests at many places.
//!
//! In: how many runs of each. Out: what the judge prints. The short line of the same is part of the tests.

use anyhow::Result;

use crate::{sh, target_release};

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
}

/// Builds the programs and judges.
pub(crate) fn run(lab: &Lab) -> Result<()> {
    let Lab::Vm { runs, healthy, seed } = lab;
    sh(
        "cargo",
        &["build", "--release", "--locked", "-p", "linerate", "-p", "linerate-node", "-p", "linerate-lab"],
    )?;
    let program = target_release().join("linerate-lab").display().to_string();
    let [runs, healthy, seed] = [u64::from(*runs), u64::from(*healthy), *seed].map(|n| n.to_string());
    sh(&program, &["vm", "judge", "--runs", &runs, "--healthy", &healthy, "--seed", &seed])
}
