//! The operator's memory: every run, sample, fact, finding and trial in one SQLite file, written as it
//! happens.
//!
//! What comes in: values of the model. What goes out: the same, lists of runs and trials, and the log of what
//! changed on hosts between readings (`changes`). A kill at any point loses at most the current round: each
//! call is one transaction in a write-ahead log. A finished run never changes.
//!
//! The folder is 0700 and the files are 0600, whatever the umask (see `private`). What only reads opens with
//! [`Store::open_to_read`]: it makes nothing, and works where nothing can be written.
#![deny(missing_docs)]

mod address;
mod changes;
pub mod database;
mod error;
mod facts;
mod kept;
mod known;
mod locked_file;
mod migrations;
mod paths;
mod postgres;
mod private;
mod rollouts;
mod runs;
mod schema;
mod sqlite;
mod surveys;
mod trials;

use std::path::Path;

pub use changes::{ChangeLog, FactReading, LoggedChange, UnlistedChanges};
use database::Database;
pub use error::{DatabaseError, StoreError};
pub use kept::{KeptRevision, KeptText, SharedKeptSet};
pub use known::ReadScope;
pub use locked_file::LockedFile;
pub use rollouts::Rollouts;
pub use runs::RunRow;
use schema::SCHEMA;
pub use surveys::StoredSurvey;
pub use trials::TrialRow;

/// The open database.
#[derive(Debug)]
pub struct Store {
    database: Database,
}

impl Store {
    /// Opens the database of the user's data folder, making it when there is none.
    pub fn open_default() -> Result<Self, StoreError> {
        Ok(Self { database: Database::open_default(&SCHEMA)? })
    }

    /// Opens the database of the user's data folder for reading. Where there is none, an empty one in memory:
    /// a command that only reads leaves nothing behind.
    pub fn open_to_read() -> Result<Self, StoreError> {
        Ok(Self { database: Database::open_to_read(&SCHEMA)? })
    }

    /// Opens a database file and brings it to the newest schema.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Ok(Self { database: Database::open(path, &SCHEMA)? })
    }

    /// Opens a PostgreSQL database and brings it to the newest schema.
    pub fn connect(address: &str) -> Result<Self, StoreError> {
        Ok(Self { database: Database::connect(address, &SCHEMA)? })
    }

    /// Another number whenever another process has written since this one asked last.
    pub fn data_version(&self) -> Result<i64, StoreError> {
        self.database.data_version("read the version of the database")
    }
}

#[cfg(test)]
mod tests;
