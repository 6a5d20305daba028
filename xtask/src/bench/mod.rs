//! Benchmarks against the tools that people use now, in the same run, interleaved, as ratios with ranges.
//!
//! In: the programs, installed by their own packages. Out: a table on stdout. It asserts nothing about time
//! and is no test: whether a demanded ratio was met is printed beside it. To add a benchmark: one module and
//! one line in [`Bench`].

mod arena;
mod disk;
mod net;
mod stats;
mod table;
mod verdict;

use anyhow::Result;

/// What can be compared.
#[derive(clap::Subcommand)]
pub(crate) enum Bench {
    /// Requests to a disk, against fio.
    Disk(disk::Options),
    /// Network load: TCP, UDP, request/response, against iperf3, iperf 2, nuttcp, sockperf and qperf.
    Net(net::Options),
    /// From the evidence of a large cluster to its diagnosis, and the differences between two runs.
    Verdict(verdict::Options),
}

/// Runs a benchmark.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Disk(options) => disk::run(options),
        Bench::Net(options) => net::run(options),
        Bench::Verdict(options) => verdict::run(options),
    }
}
