//! The schema of a part of the store, and a SQLite file brought to the newest one.

use std::path::Path;

use rusqlite::Connection;

use super::error::{StoreError, at};

/// The tables of one part of the store, in both dialects. Step `n` of a list brings schema `n` to `n + 1`; a
/// step that was released is never edited.
#[derive(Debug)]
pub struct Schema {
    /// Name of the SQLite file in the data folder.
    pub file: &'static str,
    /// Name of the part where all parts share one database.
    pub part: &'static str,
    /// Steps for SQLite.
    pub sqlite: &'static [&'static str],
    /// Steps for PostgreSQL. The first makes what the tables were when it was written.
    pub postgres: &'static [&'static str],
}

/// Runs the steps that the file lacks, each in a transaction of its own.
pub(super) fn run(connection: &mut Connection, path: &Path, steps: &[&str]) -> Result<(), StoreError> {
    let known = steps.len() as i64;
    let found = version(connection)?;
    if found > known {
        return Err(StoreError::Newer { path: path.to_owned(), found, known });
    }
    for (number, step) in steps.iter().enumerate() {
        let change = connection
            .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)
            .map_err(at("migrate"))?;
        // Read again inside the transaction: another process may have just done this step.
        if version(&change)? == number as i64 {
            change.execute_batch(step).map_err(at("migrate"))?;
            change.pragma_update(None, "user_version", number as i64 + 1).map_err(at("migrate"))?;
        }
        change.commit().map_err(at("migrate"))?;
    }
    Ok(())
}

/// Whether a file that cannot be written has the newest schema.
pub(super) fn check(connection: &Connection, path: &Path, steps: &[&str]) -> Result<(), StoreError> {
    let (found, known) = (version(connection)?, steps.len() as i64);
    let path = path.to_owned();
    match found.cmp(&known) {
        std::cmp::Ordering::Equal => Ok(()),
        std::cmp::Ordering::Less => Err(StoreError::Older { path, found, known }),
        std::cmp::Ordering::Greater => Err(StoreError::Newer { path, found, known }),
    }
}

fn version(connection: &Connection) -> Result<i64, StoreError> {
    connection
        .pragma_query_value(None, "user_version", |row| row.get(0))
        .map_err(at("read the schema version"))
}
