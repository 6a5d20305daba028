//! What can go wrong with the database, and what to do then; values of the model to JSON and back.

use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::paths;
use linerate_model::shell;

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder or a file in it cannot be made or inspected.
    #[error("cannot use {} for the data\nhint: set LINERATE_DATA to a folder that you can write", path.display())]
    Folder {
        /// Folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// None of the variables that lead to the folder is set.
    #[error(
        "no folder for the data: LINERATE_DATA, XDG_DATA_HOME and HOME are not set to an absolute path\n\
         hint: LINERATE_DATA=/var/lib/linerate-data linerate runs"
    )]
    NoFolder,
    /// The folder or a file of the database is not the user's alone.
    #[error("{what}\nhint: {hint}")]
    Place {
        /// Path, owner and mode.
        what: String,
        /// A command.
        hint: String,
    },
    /// The database refused.
    #[error("database: {doing}{}", advice(source))]
    Database {
        /// At which step.
        doing: &'static str,
        /// Why.
        source: DatabaseError,
    },
    /// A server does not answer, or refuses the user.
    #[error("no connection to {server}\nhint: pg_isready -d {}", shell::word(server))]
    Unreachable {
        /// Server and database.
        server: String,
        /// Why.
        source: DatabaseError,
    },
    /// A file of the configuration cannot be read.
    #[error("cannot read {}", path.display())]
    Configuration {
        /// File.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file of the configuration is none that is read.
    #[error(transparent)]
    Input(#[from] linerate_input::InputError),
    /// The tables of a server were made by a newer program.
    #[error("{server} has schema {found}, this program knows up to {known}\nhint: use the newer linerate")]
    NewerServer {
        /// Server and database.
        server: String,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// A stored value has a shape that this program does not know.
    #[error("database: {what} cannot be read")]
    Shape {
        /// Which.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// Written by a newer program.
    #[error("database {} has schema {found}, this program knows up to {known}\nhint: use the newer linerate, or set LINERATE_DATA to another folder", path.display())]
    Newer {
        /// File.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// Written by an older program, where it cannot be brought to the newest schema.
    #[error(
        "database {} has schema {found}, which has to become {known}, and it cannot be written\n\
         hint: {}",
        path.display(),
        paths::copy(path)
    )]
    Older {
        /// File.
        path: PathBuf,
        /// Its schema.
        found: i64,
        /// Ours.
        known: i64,
    },
    /// The store has no run that could be meant.
    #[error("no run yet\nhint: start with `linerate survey HOST HOST`")]
    NoRun,
    /// No such run or trial.
    #[error("no {kind} `{id}`\nhint: `linerate runs` lists what there is")]
    Missing {
        /// `run` or `trial`.
        kind: &'static str,
        /// What was asked for.
        id: String,
    },
}

/// What an engine returned.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// SQLite.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// PostgreSQL, or the connection to it.
    #[error("{problem}")]
    Postgres {
        /// Server and database.
        server: String,
        /// Why.
        problem: String,
        /// Whether its disk is full.
        is_full: bool,
    },
}

impl DatabaseError {
    /// Whether there was no space.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Sqlite(source) => source.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull),
            Self::Postgres { is_full, .. } => *is_full,
        }
    }
}

/// The file and what to do, where the disk of the operator is full, or the file is damaged or cannot be
/// written.
fn advice(source: &DatabaseError) -> String {
    match source {
        DatabaseError::Sqlite(source) => advice_of_file(source),
        DatabaseError::Postgres { server, is_full: true, .. } => format!(
            " in {server}\nhint: psql -d {} -c 'select pg_size_pretty(pg_database_size(current_database()))'",
            shell::word(server)
        ),
        DatabaseError::Postgres { server, .. } => {
            format!(" in {server}\nhint: pg_isready -d {}", shell::word(server))
        }
    }
}

fn advice_of_file(source: &rusqlite::Error) -> String {
    use rusqlite::ErrorCode::{
        CannotOpen, DatabaseCorrupt, DiskFull, NotADatabase, ReadOnly, SystemIoFailure,
    };
    let Some(folder) = paths::data_dir() else { return String::new() };
    let file = folder.join(paths::FILE);
    match source.sqlite_error_code() {
        // Which of both depends on the file that finds no free space.
        Some(DiskFull | SystemIoFailure) => format!(
            "\nhint: make room in {}, or set LINERATE_DATA to a folder on another file system",
            folder.display()
        ),
        // The folder as a whole: a write-ahead log that is left behind would be replayed into the next
        // database.
        Some(DatabaseCorrupt | NotADatabase) => format!(
            ": {} is damaged; without it the next command makes a new one\nhint: mv {} {}",
            file.display(),
            shell::path(&folder),
            shell::path(&paths::beside(&folder, ".bad")),
        ),
        Some(ReadOnly | CannotOpen) if !paths::is_writable(&folder) || !paths::is_writable(&file) => {
            format!(
                ": {} cannot be written\nhint: set LINERATE_DATA to a folder that you can write",
                file.display()
            )
        }
        _ => String::new(),
    }
}

/// What is refused, and a command that helps.
pub(super) fn unusable(what: String, hint: String) -> StoreError {
    StoreError::Place { what, hint }
}

/// An error of the database at this step.
pub(super) fn at<E: Into<DatabaseError>>(doing: &'static str) -> impl FnOnce(E) -> StoreError {
    move |source| StoreError::Database { doing, source: source.into() }
}

/// A value of the model as JSON.
pub(super) fn to_json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("the shapes of the model have text keys only")
}

/// A stored value of the model.
pub(super) fn from_json<T: DeserializeOwned>(what: impl Into<String>, text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|source| StoreError::Shape { what: what.into(), source })
}
