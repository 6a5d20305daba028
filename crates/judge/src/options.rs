//! What to judge: how many runs of which sort, in which labs, and where the results go.
//!
//! In: nothing. Out: options. It checks nothing; the plan does.

use std::path::PathBuf;

/// What to judge.
#[derive(Debug, Clone, Default)]
pub struct JudgeOptions {
    /// Runs with one fault.
    pub runs: usize,
    /// Healthy runs; every second one has benign differences on one host.
    pub healthy: usize,
    /// Runs with two faults on different machines.
    pub two: usize,
    /// The same with three.
    pub three: usize,
    /// Runs with one fault and benign differences on the same hosts.
    pub beside: usize,
    /// Runs with an intermittent fault.
    pub flicker: usize,
    /// Runs with a fault drawn from the grammar.
    pub grammar: usize,
    /// Runs with something harmless drawn from it.
    pub harmless: usize,
    /// Seed.
    pub seed: u64,
    /// Labs.
    pub labs: Vec<String>,
    /// Transport to the hosts.
    pub via: String,
    /// Names of faults; all that this machine can show when empty.
    pub faults: Vec<String>,
    /// Time budget of a survey, as `linerate survey --time` takes it: one for each lab in its order, the last
    /// for all further ones. When empty, by the number of hosts.
    pub time: Vec<String>,
    /// Only the runs whose number leaves this rest (first) when divided by the second: several judges share
    /// the work, and one that resumes their joined records prints the whole.
    pub part: (usize, usize),
    /// Limit of the CPU steal: a run above this share is repeated. Without a limit every run counts.
    pub quiet: Option<f64>,
    /// File of records, one line each; runs in it are not repeated.
    pub records: Option<PathBuf>,
    /// Folder for the evidence of wrong verdicts.
    pub failures: Option<PathBuf>,
    /// Folder for the evidence of all runs, to judge it again.
    pub keep: Option<PathBuf>,
    /// Whether faults that need root can be used.
    pub root: bool,
}
