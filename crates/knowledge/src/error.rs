//! Why a knowledge file cannot be used.

use thiserror::Error;

/// A knowledge file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {problem}\nhint: {hint}")]
pub struct KnowledgeError {
    /// File.
    pub file: String,
    /// Line, 1-based; 0 when it concerns the whole file.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub hint: String,
}
