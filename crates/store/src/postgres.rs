//! A connection to PostgreSQL on a thread of its own: the client runs a runtime, which may not be entered
//! from inside of ours. In: SQL and values. Out: rows of values.
//!
//! A lost connection is an error of the operation that finds it, and of all after it. The server ends a
//! transaction whose operator disappears, so that no other waits for it.

use std::collections::HashMap;
use std::sync::mpsc;
use std::time::Duration;

use postgres::error::SqlState;
use postgres::types::{FromSql, IsNull, ToSql, Type};
use postgres::{Client, NoTls, Statement};
use rusqlite::types::Value;

use super::address::Address;
use super::error::{DatabaseError, StoreError, at};
use super::migrations::Schema;

/// How long a command waits for another that writes: the migration of a large store, the facts of thousands
/// of hosts.
const LOCK_S: u32 = 60;
/// When the server ends the transaction of an operator that does nothing: a laptop that was closed.
const IDLE_S: u32 = 30;
/// When a server counts as gone that receives nothing or returns nothing.
const SILENCE: Duration = Duration::from_secs(15);

type Job = Box<dyn FnOnce(&mut Session) + Send>;
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// The connection.
#[derive(Debug)]
pub(super) struct Postgres {
    jobs: mpsc::Sender<Job>,
    /// Server and database as errors name them.
    server: String,
    /// The lock of those that write to the same tables.
    lock: String,
}

/// What the thread has.
struct Session {
    client: Client,
    statements: HashMap<String, Statement>,
}

impl Postgres {
    /// Connects and brings the tables to the newest schema.
    pub(super) fn connect(address: Address, schema: &Schema) -> Result<Self, StoreError> {
        let Address { mut config, server } = address;
        config
            .application_name("linerate")
            .connect_timeout(SILENCE)
            .tcp_user_timeout(SILENCE)
            .keepalives_idle(SILENCE / 3)
            .keepalives_interval(SILENCE / 3)
            .keepalives_retries(2);
        let (jobs, queue) = mpsc::channel::<Job>();
        let (to, opened) = mpsc::channel();
        let work = move || match config.connect(NoTls) {
            Err(error) => drop(to.send(Err(error))),
            Ok(client) => {
                let _ = to.send(Ok(()));
                let mut session = Session { client, statements: HashMap::new() };
                for job in queue {
                    job(&mut session);
                }
            }
        };
        let failed = |source| StoreError::Unreachable { server: server.clone(), source };
        // Without the thread its end of the channel is gone too.
        drop(std::thread::Builder::new().name("postgres".to_owned()).spawn(work));
        answer(&server, &opened).map_err(failed)?;
        let lock = format!(
            "select pg_advisory_xact_lock(hashtext('linerate {}'), hashtext(current_schema()))",
            schema.part
        );
        let opened = Self { jobs, server, lock };
        opened.prepare(schema)?;
        Ok(opened)
    }

    /// Sets up the session and runs the steps that the tables lack, under the lock of all that write.
    fn prepare(&self, schema: &Schema) -> Result<(), StoreError> {
        let failed = || at("migrate");
        let settings = format!(
            "set lock_timeout = '{LOCK_S}s'; set idle_in_transaction_session_timeout = '{IDLE_S}s';
             set client_min_messages = 'warning'"
        );
        self.batch(&settings).map_err(at("open"))?;
        let known = schema.postgres.len() as i64;
        // What only reads may not be allowed to make tables.
        if self.version(schema).map_err(failed())? == known {
            return Ok(());
        }
        self.begin().map_err(failed())?;
        // Read again under the lock: another program may have done the steps just now.
        let found = self.version(schema).map_err(failed())?;
        let steps = usize::try_from(found).ok().and_then(|done| schema.postgres.get(done..));
        let Some(steps) = steps else {
            return Err(StoreError::NewerServer { server: self.server.clone(), found, known });
        };
        let versions =
            "create table if not exists linerate_schema (part text primary key, version bigint not null)";
        self.batch(versions).map_err(failed())?;
        for step in steps {
            self.batch(step).map_err(failed())?;
        }
        let set = "insert into linerate_schema (part, version) values (?1, ?2)
                   on conflict (part) do update set version = excluded.version";
        let row = vec![Value::Text(schema.part.to_owned()), Value::Integer(known)];
        self.execute(set, row).map_err(failed())?;
        self.batch("commit").map_err(failed())
    }

    /// Schema of the tables; 0 where there are none.
    fn version(&self, schema: &Schema) -> Result<i64, DatabaseError> {
        // By a query of a table: `to_regclass` would answer from what the session knew before it had the
        // lock.
        let tables = "select exists (select 1 from pg_tables
                      where schemaname = current_schema() and tablename = 'linerate_schema')";
        let is_there = self.query(tables, Vec::new())?;
        if is_there != [[Value::Integer(1)]] {
            return Ok(0);
        }
        let part = Value::Text(schema.part.to_owned());
        let rows = self.query("select version from linerate_schema where part = ?1", vec![part])?;
        match rows.first().and_then(|row| row.first()) {
            Some(Value::Integer(version)) => Ok(*version),
            _ => Ok(0),
        }
    }

    /// Begins a transaction that writes; one at a time for the same tables, as SQLite has it.
    pub(super) fn begin(&self) -> Result<(), DatabaseError> {
        self.batch("begin")?;
        self.batch(&self.lock).inspect_err(|_| drop(self.batch("rollback")))
    }

    /// Runs statements without values.
    pub(super) fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        let sql = sql.to_owned();
        self.ask(move |session| session.client.batch_execute(&sql))
    }

    /// Runs a statement; gives the number of rows it changed.
    pub(super) fn execute(&self, sql: &str, values: Vec<Value>) -> Result<u64, DatabaseError> {
        let sql = numbered(sql);
        self.ask(move |session| {
            let statement = session.statement(&sql)?;
            let values = cells(values);
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|cell| cell as _).collect();
            session.client.execute(&statement, &values)
        })
    }

    /// The rows of a query.
    pub(super) fn query(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Vec<Value>>, DatabaseError> {
        let sql = numbered(sql);
        self.ask(move |session| {
            let statement = session.statement(&sql)?;
            let values = cells(values);
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|cell| cell as _).collect();
            let of_row = |row: &postgres::Row| {
                (0..row.len()).map(|column| row.try_get(column).map(|cell: Cell| cell.0)).collect()
            };
            session.client.query(&statement, &values)?.iter().map(of_row).collect()
        })
    }

    /// Has the thread do something, and waits for it.
    fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Session) -> Result<T, postgres::Error> + Send + 'static,
    ) -> Result<T, DatabaseError> {
        let (to, answered) = mpsc::channel();
        let job: Job = Box::new(move |session| drop(to.send(job(session))));
        // Where the thread is gone there is no answer either.
        let _ = self.jobs.send(job);
        answer(&self.server, &answered)
    }
}

/// What the thread returns; an error where it has ended.
fn answer<T>(server: &str, from: &mpsc::Receiver<Result<T, postgres::Error>>) -> Result<T, DatabaseError> {
    let failed = |problem, is_full| DatabaseError::Postgres { server: server.to_owned(), problem, is_full };
    let Ok(done) = from.recv() else { return Err(failed("the connection has ended".to_owned(), false)) };
    done.map_err(|error| match error.as_db_error() {
        Some(error) => failed(error.message().to_owned(), *error.code() == SqlState::DISK_FULL),
        None => failed(
            std::error::Error::source(&error).map_or(error.to_string(), |why| format!("{error}: {why}")),
            false,
        ),
    })
}

impl Session {
    /// A statement, prepared once.
    fn statement(&mut self, sql: &str) -> Result<Statement, postgres::Error> {
        if let Some(known) = self.statements.get(sql) {
            return Ok(known.clone());
        }
        let new = self.client.prepare(sql)?;
        self.statements.insert(sql.to_owned(), new.clone());
        Ok(new)
    }
}

/// The numbers of parameters as PostgreSQL writes them. No statement has a question mark elsewhere.
fn numbered(sql: &str) -> String {
    sql.replace('?', "$")
}

fn cells(values: Vec<Value>) -> Vec<Cell> {
    values.into_iter().map(Cell).collect()
}

/// A value on its transport.
#[derive(Debug)]
struct Cell(Value);

impl ToSql for Cell {
    fn to_sql(&self, kind: &Type, to: &mut bytes::BytesMut) -> Result<IsNull, Fault> {
        match (&self.0, kind) {
            (Value::Null, _) => Ok(IsNull::Yes),
            (Value::Integer(number), &Type::INT4) => i32::try_from(*number)?.to_sql(kind, to),
            (Value::Integer(number), _) => number.to_sql(kind, to),
            (Value::Real(number), _) => number.to_sql(kind, to),
            (Value::Text(text), _) => without_nul(text).as_bytes().to_sql(kind, to),
            (Value::Blob(bytes), _) => bytes.to_sql(kind, to),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    postgres::types::to_sql_checked!();
}

impl<'r> FromSql<'r> for Cell {
    fn from_sql(kind: &Type, raw: &'r [u8]) -> Result<Self, Fault> {
        Ok(Self(match *kind {
            Type::BOOL => Value::Integer(i64::from(bool::from_sql(kind, raw)?)),
            Type::INT4 => Value::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Value::Integer(i64::from_sql(kind, raw)?),
            Type::FLOAT8 => Value::Real(f64::from_sql(kind, raw)?),
            Type::BYTEA => Value::Blob(raw.to_vec()),
            // Texts, and JSON as the text that was written.
            _ => Value::Text(std::str::from_utf8(raw)?.to_owned()),
        }))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Fault> {
        Ok(Self(Value::Null))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A text without the character that PostgreSQL cannot store, also where JSON escapes it: a host that names
/// one must not make a run unreadable.
fn without_nul(text: &str) -> String {
    let plain = text.replace('\0', "\u{fffd}");
    if !plain.contains("\\u0000") {
        return plain;
    }
    let mut out = String::with_capacity(plain.len());
    let mut rest = plain.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        // An escape has at least one character behind its backslash; in other texts there may be none.
        let len = escape.chars().take(2).map(char::len_utf8).sum();
        let (taken, left) = escape.split_at(len);
        if let Some(left) = escape.strip_prefix("\\u0000") {
            out.push('\u{fffd}');
            rest = left;
        } else {
            out.push_str(taken);
            rest = left;
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nul_is_replaced_wherever_it_stands_and_nothing_else() {
        for (text, stored) in [
            ("plain", "plain"),
            ("a\0b", "a\u{fffd}b"),
            (r#"{"x":"a\u0000b"}"#, "{\"x\":\"a\u{fffd}b\"}"),
            (r#"{"x":"a\\u0000b"}"#, r#"{"x":"a\\u0000b"}"#),
            (r#"{"x":"\\\u0000\n"}"#, "{\"x\":\"\\\\\u{fffd}\\n\"}"),
            ("\\u0000 ends in \\", "\u{fffd} ends in \\"),
        ] {
            assert_eq!(without_nul(text), stored);
        }
    }
}
