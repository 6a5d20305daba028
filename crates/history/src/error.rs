//! What can go wrong with the history.

use std::path::PathBuf;

use linerate_store::{DatabaseError, StoreError};

/// What can go wrong with the history. No measurement and no trial depends on it.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// Too little space, or the file is as large as it may be. What was written before is there; the minute
    /// is lost, and the next one is tried again.
    #[error(
        "history {} is not written: it would leave less than {} MB on its disk, or is as large as it may be\n\
         hint: df -h {}",
        path.display(),
        reserve / 1_000_000,
        linerate_model::shell::path(path)
    )]
    Full {
        /// The SQLite file.
        path: PathBuf,
        /// Bytes that have to stay free.
        reserve: u64,
    },
    /// The database cannot be opened, or its server refused.
    #[error(transparent)]
    Store(StoreError),
    /// The file refused.
    #[error("history: {doing}")]
    Database {
        /// At which step.
        doing: &'static str,
        /// Why.
        source: DatabaseError,
    },
    /// The key of a series is of a shape that this program does not know.
    #[error("history: a key cannot be read")]
    Key {
        /// Why.
        source: serde_json::Error,
    },
    /// An alarm or a count of drops is of a shape that this program does not know.
    #[error("history: a record of kind {kind} cannot be read")]
    Record {
        /// What it is.
        kind: &'static str,
        /// Why.
        source: serde_json::Error,
    },
    /// A series is not there right after it was added.
    #[error("history: a series was deleted while it was added")]
    NotAdded,
    /// Stored values cannot be read.
    #[error("history: damaged values from minute {start}")]
    Damaged {
        /// Start of the block, minutes since 1970.
        start: u64,
    },
}

impl HistoryError {
    /// Whether a server returned it: a new connection may do better.
    #[must_use]
    pub fn is_of_server(&self) -> bool {
        match self {
            Self::Store(StoreError::Database { source, .. }) => {
                matches!(source, DatabaseError::Postgres { .. })
            }
            Self::Store(StoreError::Unreachable { .. }) => true,
            _ => false,
        }
    }

    /// Whether there was no space.
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Database { source, .. } | Self::Store(StoreError::Database { source, .. }) => {
                source.is_full()
            }
            _ => false,
        }
    }
}

impl From<StoreError> for HistoryError {
    fn from(error: StoreError) -> Self {
        match error {
            // Without the advice for the file of runs.
            StoreError::Database { doing, source: source @ DatabaseError::Sqlite(_) } => {
                Self::Database { doing, source }
            }
            other => Self::Store(other),
        }
    }
}
