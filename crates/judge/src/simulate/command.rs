//! The command `linerate-judge simulate`: its arguments, and what it does with them.
//!
//! In: sizes, seeds, files. Out: tables, lines of JSON, a picture. It draws and diagnoses nothing itself.

use std::path::PathBuf;

use linerate_lab::error::{LabError, Result};
use linerate_model::exit::ExitCode;

use super::ClusterSize;
use crate::reliability;

/// Options of `simulate`.
#[derive(Debug, clap::Args)]
pub struct SimulateArgs {
    /// Number of hosts; several sizes, comma-separated, run one after the other.
    #[arg(long, value_delimiter = ',', default_value = "10000")]
    hosts: Vec<usize>,
    /// Number of bad receivers.
    #[arg(long, default_value_t = 50)]
    faults: usize,
    /// Number of tests that each host sends, and receives.
    #[arg(long, default_value_t = 4)]
    rounds: usize,
    /// Throughput loss at a bad receiver, percent.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u8).range(1..=99))]
    lost: u8,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of clusters of each size, each with the next seed.
    #[arg(long, default_value_t = 1)]
    repeat: u64,
    /// Also run the other methods.
    #[arg(long)]
    compare: bool,
    /// Print the reliability of the probabilities over all clusters.
    #[arg(long)]
    reliability: bool,
    /// Print JSON, one line per cluster.
    #[arg(long)]
    json: bool,
    /// Only print the noise in this snapshot of a healthy cluster (`linerate survey --snapshot FILE`);
    /// repeatable.
    #[arg(long, value_name = "FILE")]
    noise_of: Vec<PathBuf>,
    /// Only time diagnosis and differences with this number of facts per host.
    #[arg(long, value_name = "N")]
    facts: Option<usize>,
    /// Write a plot of time over tests to this file (SVG).
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

fn noise_of(files: &[PathBuf], print: &mut dyn FnMut(&str)) -> Result<ExitCode> {
    let mut snapshots = Vec::new();
    for path in files {
        let text = std::fs::read(path).map_err(LabError::at(format!("reading {}", path.display())))?;
        let snapshot = serde_json::from_slice(&text).map_err(|error| {
            LabError::Unknown(format!(
                "{}: {error}\nhint: `linerate survey --snapshot FILE` writes one",
                path.display()
            ))
        })?;
        snapshots.push(snapshot);
    }
    let Some(noise) = super::noise::of(&snapshots) else {
        return Err(LabError::Unknown("no transfer was measured twice between the same ends".into()));
    };
    print(&format!(
        "{} transfers: scale {:.3}, contended {:.1} % by {:.2} on average, hosts {:.3}; could not run {:.2} %",
        noise.tests,
        noise.test_sigma,
        100.0 * noise.contended,
        noise.disturbance,
        noise.host_sigma,
        100.0 * noise.refused
    ));
    Ok(ExitCode::Ok)
}

/// Runs the command: results to `print`, progress to `progress`.
///
/// # Errors
/// Sizes without sense, a file that cannot be read or written.
pub fn run(
    wanted: &SimulateArgs,
    print: &mut dyn FnMut(&str),
    progress: &mut dyn FnMut(&str),
) -> Result<ExitCode> {
    if !wanted.noise_of.is_empty() {
        return noise_of(&wanted.noise_of, print);
    }
    let knowledge =
        linerate_knowledge::Knowledge::builtin().map_err(|error| LabError::Unknown(error.to_string()))?;
    if let Some(facts) = wanted.facts {
        return speed(wanted, facts, &knowledge, print);
    }
    let mut runs = Vec::new();
    for hosts in &wanted.hosts {
        // More bad hosts than this are no exception any more.
        if wanted.faults * 4 > *hosts || *hosts > super::HOSTS_MAX || !(1..=64).contains(&wanted.rounds) {
            return Err(LabError::Unknown(format!(
                "{} bad of {hosts} hosts, {} rounds: at most a quarter may be bad, at most {} hosts, 1 to 64 rounds",
                wanted.faults,
                wanted.rounds,
                super::HOSTS_MAX
            )));
        }
        let size = ClusterSize {
            hosts: *hosts,
            faults: wanted.faults,
            rounds: wanted.rounds,
            lost: f64::from(wanted.lost) / 100.0,
        };
        for seed in wanted.seed..wanted.seed.saturating_add(wanted.repeat) {
            progress(&format!("{hosts} hosts, seed {seed}"));
            let run = super::run(size, seed, &knowledge, wanted.compare);
            if wanted.json {
                print(&serde_json::to_string(&run).map_err(|error| LabError::Unknown(error.to_string()))?);
            }
            runs.push(run);
        }
    }
    if !wanted.json {
        print(super::table(&runs).trim_end());
        if wanted.compare {
            print(&format!("\n{}", super::legend().trim_end()));
        }
    }
    if wanted.reliability {
        let claims: Vec<_> = runs.iter().flat_map(|run| run.claims.iter().copied()).collect();
        print(&format!("\n{}", reliability::table(&claims).trim_end()));
    }
    if let Some(path) = &wanted.plot {
        std::fs::write(path, super::picture(&runs))
            .map_err(LabError::at(&format!("writing {}", path.display())))?;
    }
    Ok(ExitCode::Ok)
}

/// More would need more memory than the machines that this runs on have.
const FACTS_MAX: usize = 20_000_000;

fn speed(
    wanted: &SimulateArgs,
    facts: usize,
    knowledge: &linerate_knowledge::Knowledge,
    print: &mut dyn FnMut(&str),
) -> Result<ExitCode> {
    for hosts in &wanted.hosts {
        if !(40..=super::HOSTS_MAX).contains(hosts) || hosts.saturating_mul(facts) > FACTS_MAX {
            return Err(LabError::Unknown(format!(
                "{hosts} hosts with {facts} facts each: 40 to {} hosts and at most {FACTS_MAX} facts in all",
                super::HOSTS_MAX
            )));
        }
        for seed in wanted.seed..wanted.seed.saturating_add(wanted.repeat) {
            let speed = super::speed::speed(*hosts, facts, seed, knowledge);
            let line = if wanted.json {
                serde_json::to_string(&speed).map_err(|error| LabError::Unknown(error.to_string()))?
            } else {
                speed.line()
            };
            print(&line);
        }
    }
    Ok(ExitCode::Ok)
}
