//! How long a verdict takes: 1,000 hosts with 2,000 facts each, from the evidence of a run to its diagnosis,
//! and the differences between two such runs. The demand is 2 seconds for both together on one core.

use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::shell::{sh, target_release};

/// Options of the benchmark.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Hosts.
    #[arg(long, default_value_t = 1000)]
    hosts: usize,
    /// Facts of each host.
    #[arg(long, default_value_t = 2000)]
    facts: usize,
    /// Repetitions, each with another seed.
    #[arg(long, default_value_t = 5)]
    repeat: u64,
}

/// Builds the judge optimised and lets it print the figures.
pub(super) fn run(options: &Options) -> Result<()> {
    sh("cargo", &["build", "--release", "--locked", "-p", "linerate-judge"])?;
    let mut command = Command::new(target_release().join("linerate-judge"));
    command.arg("simulate");
    for (name, value) in [
        ("--hosts", options.hosts.to_string()),
        ("--facts", options.facts.to_string()),
        ("--repeat", options.repeat.to_string()),
    ] {
        command.args([name, &value]);
    }
    println!("$ {command:?}");
    let status = command.status().context("cannot run linerate-judge")?;
    ensure!(status.success(), "linerate-judge simulate failed");
    println!("demanded: 2 s together for 1000 hosts with 2000 facts each");
    Ok(())
}
