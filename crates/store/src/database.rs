//! One database behind two engines: a private SQLite file of the user's data folder, or PostgreSQL where the
//! operator's configuration names one. In: SQL that both understand, with numbered parameters (`?1`). Out:
//! rows.
//!
//! Each operation takes what is being done, for the text of its error. A kill at any point loses at most the
//! current transaction.

use std::path::Path;

use rusqlite::types::{FromSql, FromSqlError, Type, Value, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::address;
use super::error::{DatabaseError, StoreError, at};
pub use super::migrations::Schema;
use super::postgres::Postgres;
use super::sqlite;

/// The open database.
#[derive(Debug)]
pub struct Database(Engine);

#[derive(Debug)]
enum Engine {
    Sqlite(Connection),
    Postgres(Postgres),
}

impl Database {
    /// Opens the operator's database for writing, made where there is none.
    pub fn open_default(schema: &Schema) -> Result<Self, StoreError> {
        match address::configured()? {
            Some(address) => Postgres::connect(address, schema).map(Engine::Postgres).map(Self),
            None => sqlite::open_default(schema.file, schema.sqlite).map(Engine::Sqlite).map(Self),
        }
    }

    /// Opens the operator's database for reading: where there is no file, an empty one in memory.
    pub fn open_to_read(schema: &Schema) -> Result<Self, StoreError> {
        match address::configured()? {
            Some(address) => Postgres::connect(address, schema).map(Engine::Postgres).map(Self),
            None => sqlite::open_to_read(schema.file, schema.sqlite).map(Engine::Sqlite).map(Self),
        }
    }

    /// Opens a SQLite file and brings it to the newest schema.
    pub fn open(path: &Path, schema: &Schema) -> Result<Self, StoreError> {
        sqlite::open(path, schema.sqlite).map(Engine::Sqlite).map(Self)
    }

    /// Opens a PostgreSQL database by its address and brings it to the newest schema.
    pub fn connect(address: &str, schema: &Schema) -> Result<Self, StoreError> {
        Postgres::connect(address::parse(address)?, schema).map(Engine::Postgres).map(Self)
    }

    /// Runs a statement; gives the number of rows it changed.
    pub fn execute(&self, doing: &'static str, sql: &str, values: &[&dyn ToSql]) -> Result<u64, StoreError> {
        match &self.0 {
            Engine::Sqlite(connection) => connection
                .prepare_cached(sql)
                .and_then(|mut statement| statement.execute(values))
                .map(|count| count as u64)
                .map_err(at(doing)),
            Engine::Postgres(server) => {
                server.write(sql, vec![owned(values).map_err(at(doing))?]).map_err(at(doing))
            }
        }
    }

    /// Runs a statement for each of these rows of values, in their order, inside of a transaction: a server
    /// has all of them at once, not one after the answer to the other.
    pub fn execute_each(&self, sql: &str, rows: Rows) -> Result<(), StoreError> {
        let Rows { doing, rows } = rows;
        match &self.0 {
            Engine::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql).map_err(at(doing))?;
                for row in rows {
                    statement.execute(params_from_iter(row)).map_err(at(doing))?;
                }
            }
            Engine::Postgres(server) => drop(server.write(sql, rows).map_err(at(doing))?),
        }
        Ok(())
    }

    /// Gives each row of a query to a function, for each of these rows of values, in their order.
    pub fn each_of<E: From<StoreError>>(
        &self,
        sql: &str,
        rows: Rows,
        mut use_row: impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Rows { doing, rows } = rows;
        match &self.0 {
            Engine::Sqlite(connection) => {
                let mut statement = connection.prepare_cached(sql).map_err(at(doing))?;
                for values in rows {
                    let mut found = statement.query(params_from_iter(values)).map_err(at(doing))?;
                    while let Some(row) = found.next().map_err(at(doing))? {
                        use_row(&Row { doing, cells: Cells::Sqlite(row) })?;
                    }
                }
            }
            Engine::Postgres(server) => {
                for row in server.read(sql, rows).map_err(at(doing))? {
                    use_row(&Row { doing, cells: Cells::Postgres(&row) })?;
                }
            }
        }
        Ok(())
    }

    /// Gives each row of a query to a function, which may end it by an error.
    pub fn each<E: From<StoreError>>(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[&dyn ToSql],
        use_row: impl FnMut(&Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rows = Rows::new(doing);
        rows.add(values)?;
        self.each_of(sql, rows, use_row)
    }

    /// What a function makes of the rows of a query.
    pub fn list<T, E: From<StoreError>>(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[&dyn ToSql],
        mut of_row: impl FnMut(&Row<'_>) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let mut all = Vec::new();
        self.each(doing, sql, values, |row| {
            all.push(of_row(row)?);
            Ok::<(), E>(())
        })?;
        Ok(all)
    }

    /// What a function makes of the one row of a query; `None` where there is none.
    pub fn first<T, E: From<StoreError>>(
        &self,
        doing: &'static str,
        sql: &str,
        values: &[&dyn ToSql],
        of_row: impl FnMut(&Row<'_>) -> Result<T, E>,
    ) -> Result<Option<T>, E> {
        Ok(self.list(doing, sql, values, of_row)?.into_iter().next())
    }

    /// Begins to write: all or nothing of what follows, and no other program writes meanwhile. A transaction
    /// that is dropped is undone.
    pub fn begin(&self, doing: &'static str) -> Result<Transaction<'_>, StoreError> {
        match &self.0 {
            Engine::Sqlite(connection) => connection.execute_batch("begin immediate").map_err(at(doing))?,
            Engine::Postgres(server) => server.begin().map_err(at(doing))?,
        }
        Ok(Transaction { database: self, doing, is_open: true })
    }

    /// Another number whenever another program has written since this one asked last.
    pub fn data_version(&self, doing: &'static str) -> Result<i64, StoreError> {
        match &self.0 {
            Engine::Sqlite(connection) => {
                connection.pragma_query_value(None, "data_version", |row| row.get(0)).map_err(at(doing))
            }
            Engine::Postgres(_) => {
                // Which transactions have ended; those of other databases of the server count too.
                let sql = "select hashtextextended(cast(pg_current_snapshot() as text), 0)";
                self.first(doing, sql, &[], |row| row.get(0)).map(Option::unwrap_or_default)
            }
        }
    }

    /// The SQLite file; `None` for a server and in memory.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.0 {
            Engine::Sqlite(connection) => connection.path().filter(|path| !path.is_empty()).map(Path::new),
            Engine::Postgres(_) => None,
        }
    }

    /// Whether there is no database yet, only an empty one in memory.
    #[must_use]
    pub fn is_in_memory(&self) -> bool {
        matches!(self.0, Engine::Sqlite(_)) && self.path().is_none()
    }

    /// Bounds the SQLite file, bytes. A server has its own bounds.
    pub fn limit_file(&self, doing: &'static str, bytes: u64) -> Result<(), StoreError> {
        let Engine::Sqlite(connection) = &self.0 else { return Ok(()) };
        let page: i64 =
            connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(at(doing))?;
        let pages = bytes / u64::try_from(page).unwrap_or(4096).max(512);
        connection.pragma_update(None, "max_page_count", pages as i64).map_err(at(doing))
    }

    /// Moves what the write-ahead log of a SQLite file has into the file.
    pub fn checkpoint(&self, doing: &'static str) -> Result<(), StoreError> {
        let Engine::Sqlite(connection) = &self.0 else { return Ok(()) };
        connection.query_row("pragma wal_checkpoint(truncate)", [], |_| Ok(())).map_err(at(doing))
    }

    fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        match &self.0 {
            Engine::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            Engine::Postgres(server) => server.batch(sql),
        }
    }
}

/// Writes that are all done or none of them.
#[derive(Debug)]
pub struct Transaction<'a> {
    database: &'a Database,
    doing: &'static str,
    is_open: bool,
}

impl Transaction<'_> {
    /// Makes the writes stay.
    pub fn commit(mut self) -> Result<(), StoreError> {
        self.database.batch("commit").map_err(at(self.doing))?;
        self.is_open = false;
        Ok(())
    }
}

impl std::ops::Deref for Transaction<'_> {
    type Target = Database;

    fn deref(&self) -> &Database {
        self.database
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // Where this fails the connection is lost, and the transaction with it.
            let _ = self.database.batch("rollback");
        }
    }
}

/// Rows of values for one statement.
#[derive(Debug)]
pub struct Rows {
    doing: &'static str,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    /// None yet.
    #[must_use]
    pub fn new(doing: &'static str) -> Self {
        Self { doing, rows: Vec::new() }
    }

    /// One more.
    pub fn add(&mut self, values: &[&dyn ToSql]) -> Result<(), StoreError> {
        self.rows.push(owned(values).map_err(at(self.doing))?);
        Ok(())
    }
}

/// A row of a query.
#[derive(Debug)]
pub struct Row<'r> {
    doing: &'static str,
    cells: Cells<'r>,
}

#[derive(Debug)]
enum Cells<'r> {
    Sqlite(&'r rusqlite::Row<'r>),
    Postgres(&'r [Value]),
}

impl Row<'_> {
    /// The value of a column, counted from 0.
    pub fn get<T: FromSql>(&self, column: usize) -> Result<T, StoreError> {
        match self.cells {
            Cells::Sqlite(row) => row.get(column),
            Cells::Postgres(row) => of_value(row, column),
        }
        .map_err(at(self.doing))
    }
}

fn of_value<T: FromSql>(row: &[Value], column: usize) -> Result<T, rusqlite::Error> {
    let value = row.get(column).ok_or(rusqlite::Error::InvalidColumnIndex(column))?;
    T::column_result(ValueRef::from(value)).map_err(|error: FromSqlError| {
        let kind: Type = value.data_type();
        rusqlite::Error::FromSqlConversionFailure(column, kind, Box::new(error))
    })
}

/// Values that may leave their thread.
fn owned(values: &[&dyn ToSql]) -> Result<Vec<Value>, rusqlite::Error> {
    use rusqlite::types::ToSqlOutput;
    let one = |value: &&dyn ToSql| match value.to_sql()? {
        ToSqlOutput::Borrowed(value) => Ok(value.into()),
        ToSqlOutput::Owned(value) => Ok(value),
        _ => Err(rusqlite::Error::ToSqlConversionFailure("no plain value".into())),
    };
    values.iter().map(one).collect()
}
