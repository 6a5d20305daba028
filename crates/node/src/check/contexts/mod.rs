//! The form of a report for who asked for it, and the exit code that means something there. Each context
//! is one file and one line in [`CONTEXTS`]. Pure functions of the report.
//!
//! In every context: what could not be seen, a check that could not run and a dry run never drain a node.

mod boot;
mod json;
mod kind;
mod nagios;
mod node_problem;
mod prometheus;
mod slurm;
mod text;

pub(super) use kind::Context;

/// All of them, by the word behind `--as`.
pub(super) const CONTEXTS: &[&dyn Context] = &[
    &text::Text,
    &json::Json,
    &slurm::HealthCheck,
    &slurm::PROLOG,
    &slurm::EPILOG,
    &nagios::Nagios,
    &prometheus::Prometheus,
    &node_problem::NodeProblem,
    &boot::Boot,
];

/// The context of a word.
pub(super) fn find(word: &str) -> Option<&'static dyn Context> {
    CONTEXTS.iter().copied().find(|context| context.word() == word)
}

#[cfg(test)]
mod tests;
