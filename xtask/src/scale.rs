//! The figures of scale: a survey and a watch of thousands of simulated nodes, and of hundreds of real node
//! programs on this machine.
//!
//! In: how many of each. Out: what the tests print, with times and memory. They are the same tests as in
//! `cargo xtask test`, at their full size and optimised.

use anyhow::{Context as _, Result, ensure};

use crate::shell::{cargo, sh, target_release};

/// Runs both at these sizes.
pub(crate) fn run(nodes: usize, hosts: usize, time: &str) -> Result<()> {
    sh(
        "cargo",
        &["build", "--release", "--locked", "-p", "linerate", "-p", "linerate-node", "-p", "linerate-lab"],
    )?;
    let simulated = [("NODES", nodes.to_string())];
    test("linerate-operator", &["--lib"], "one_sick_host_of_many", &simulated)?;
    test("linerate-operator", &["--lib"], "many_hosts_are_watched", &simulated)?;
    let real = [("HOSTS", hosts.to_string()), ("TIME", time.to_owned())];
    test("linerate-lab", &["--test", "scale"], "many_hosts_in_one_survey", &real)?;
    test("linerate-lab", &["--test", "scale"], "many_hosts_are_watched", &real)
}

fn test(package: &str, target: &[&str], name: &str, sizes: &[(&str, String)]) -> Result<()> {
    let bin = target_release();
    let mut command = cargo();
    command.args(["test", "--release", "--locked", "-p", package]).args(target).args([
        name,
        "--",
        "--nocapture",
    ]);
    command.env("LINERATE", bin.join("linerate")).env("LINERATE_NODE", bin.join("linerate-node"));
    for (size, value) in sizes {
        command.env(format!("LINERATE_SCALE_{size}"), value);
    }
    println!("$ {command:?}");
    let status = command.status().context("cannot run cargo")?;
    ensure!(status.success(), "{name} failed");
    Ok(())
}
