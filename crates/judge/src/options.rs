//! What to judge: how many runs of which sort, in which labs, and where the results go.
//!
//! In: nothing. Out: options. It checks nothing; the plan does.

use std::path::PathBuf;

/// What to judge.
#[derive(Debug, Clone, Default)]
pub struct JudgeOptions {
    /// Runs with one fault.
    pub runs: usize,
    /// Runs without; every second one has harmless differences on one host.
    pub healthy: usize,
    /// Runs with two faults on different machines.
    pub two: usize,
    /// The same with three.
    pub three: usize,
    /// Runs with one fault and harmless differences on the same hosts.
    pub beside: usize,
    /// Runs with a fault that comes and goes.
    pub flicker: usize,
    /// Repeats everything.
    pub seed: u64,
    /// Labs.
    pub labs: Vec<String>,
    /// How the hosts are reached.
    pub via: String,
    /// Names of faults; all that this machine can show when empty.
    pub faults: Vec<String>,
    /// Time budget of a survey, as `linerate survey --time` takes it: one for each lab in its order, the last
    /// for all further ones. When empty, by the number of hosts.
    pub time: Vec<String>,
    /// Only the runs whose number leaves this rest (first) when divided by the second: several judges share
    /// the work, and one that resumes their joined records prints the whole.
    pub part: (usize, usize),
    /// A run during which more of the CPU time than this share was stolen from this machine is made again;
    /// every run counts without.
    pub quiet: Option<f64>,
    /// Records go here, one line each; runs that it already holds are not repeated.
    pub records: Option<PathBuf>,
    /// Evidence of wrong verdicts goes here.
    pub failures: Option<PathBuf>,
    /// Evidence of all runs goes here, to be judged again.
    pub keep: Option<PathBuf>,
    /// Whether faults that need root can be used.
    pub root: bool,
}
