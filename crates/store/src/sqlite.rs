//! A private SQLite file of the user's data folder, opened at the newest schema. In: the name of the file and
//! the steps of its schema, the oldest first. Out: a connection.
//!
//! A kill at any point loses at most the current transaction: there is a write-ahead log.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::Duration;

use linerate_model::uri;
use rusqlite::{Connection, OpenFlags};

use super::error::{StoreError, at};
use super::{migrations, paths, private};

/// How long a command waits for another that writes.
const BUSY: Duration = Duration::from_secs(5);

/// Opens a file of the user's data folder, making it when there is none.
pub(super) fn open_default(file: &str, steps: &[&str]) -> Result<Connection, StoreError> {
    let folder = paths::data_dir().ok_or(StoreError::NoFolder)?;
    private::make_folder(&folder)?;
    open(&folder.join(file), steps)
}

/// Opens a file of the user's data folder for reading. Where there is none, an empty one in memory.
pub(super) fn open_to_read(file: &str, steps: &[&str]) -> Result<Connection, StoreError> {
    let folder = paths::data_dir().ok_or(StoreError::NoFolder)?;
    let path = folder.join(file);
    if !private::check_folder(&folder)? || !private::check_files(&path)? {
        let mut connection = Connection::open_in_memory().map_err(at("open"))?;
        migrations::run(&mut connection, &path, steps)?;
        return Ok(connection);
    }
    // Where the log can be written, an unfinished one is replayed as ever.
    if paths::is_writable(&folder) && paths::is_writable(&path) {
        return open(&path, steps);
    }
    let connection = match read_only(&path, "") {
        Ok(connection) => connection,
        // Without its index the log cannot be read here; an empty one has nothing that counts.
        Err(_) if private::is_log_empty(&path) => read_only(&path, "&immutable=1").map_err(at("open"))?,
        Err(source) => return Err(private::needs_copy(&path, &source)),
    };
    migrations::check(&connection, &path, steps)?;
    Ok(connection)
}

/// Opens a file, making it when there is none, and brings it to the newest schema.
pub(super) fn open(path: &Path, steps: &[&str]) -> Result<Connection, StoreError> {
    private::make_file(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(at("open"))?;
    connection.busy_timeout(BUSY).map_err(at("open"))?;
    connection.pragma_update(None, "journal_mode", "wal").map_err(at("write-ahead log"))?;
    connection.pragma_update(None, "synchronous", "normal").map_err(at("write-ahead log"))?;
    connection.pragma_update(None, "foreign_keys", "on").map_err(at("foreign keys"))?;
    migrations::run(&mut connection, path, steps)?;
    Ok(connection)
}

/// A connection that writes nothing; it reads the file once.
fn read_only(path: &Path, more: &str) -> Result<Connection, rusqlite::Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(
        format!("file:{}?mode=ro{more}", uri::encoded_path(path.as_os_str().as_bytes())),
        flags,
    )?;
    connection.busy_timeout(BUSY)?;
    connection.query_row("select count(*) from sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}
