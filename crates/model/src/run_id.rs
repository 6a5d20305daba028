//! Identifiers of runs: sortable text with the moment of the start in it.

/// Identifier of a run, snapshot or trial: sortable text such as `20261121-083015-4f2a`.
pub type RunId = String;
