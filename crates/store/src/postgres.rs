//! A connection to PostgreSQL on a thread with a runtime of its own: callers wait for it as they wait for a
//! disk, from inside of another runtime too. In: SQL and values. Out: rows of values.
//!
//! A lost connection is an error of the operation that finds it, and of all after it; so is a server that
//! returns nothing. The server ends a transaction whose operator disappears, so that no other waits for it.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::mpsc;
use std::task::Poll;
use std::time::Duration;

use rusqlite::types::Value;
use tokio::sync::mpsc as queue;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

use super::address::Address;
use super::error::{DatabaseError, StoreError, at};
use super::migrations::Schema;

/// How long a command waits for another that writes.
const LOCK: Duration = Duration::from_secs(30);
/// When the server ends the transaction of an operator that does nothing: a laptop that was closed.
const IDLE_S: u32 = 30;
/// When a server counts as gone that receives nothing or returns nothing.
const SILENCE: Duration = Duration::from_secs(15);
/// Rows of one request: what is sent is in memory twice.
const ROWS_MAX: usize = 1000;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// What the thread is asked for.
#[derive(Debug)]
enum Request {
    /// Statements without values.
    Batch(String),
    /// A statement for each of these rows of values.
    Write(String, Vec<Vec<Value>>),
    /// A query for each of these rows of values.
    Read(String, Vec<Vec<Value>>),
}

/// What it returns.
#[derive(Debug, Default)]
struct Answer {
    changed: u64,
    rows: Vec<Vec<Value>>,
}

/// Why it returns nothing.
#[derive(Debug)]
enum Failed {
    /// The server refused, or the connection has ended.
    Server(Error),
    /// The server returned nothing for so long.
    Silent(Duration),
    /// The thread has no runtime.
    Runtime(std::io::Error),
}

struct Job {
    request: Request,
    /// How long it may take.
    limit: Duration,
    to: mpsc::Sender<Result<Answer, Failed>>,
}

/// The connection.
#[derive(Debug)]
pub(super) struct Postgres {
    jobs: queue::UnboundedSender<Job>,
    /// Server and database as errors name them.
    server: String,
    /// Begins a transaction that writes to the tables of this part.
    begin: String,
    /// How long a request may take: the wait for another that writes, and the answer.
    limit: Duration,
}

/// What the thread has.
struct Session {
    client: Client,
    statements: HashMap<String, Statement>,
}

/// Takes the lock of all that write to a part of this schema, for as long as the transaction.
fn lock(part: &str) -> String {
    format!("select pg_advisory_xact_lock(hashtext('{part}'), hashtext(current_schema()))")
}

impl Postgres {
    /// Connects and brings the tables to the newest schema.
    pub(super) fn connect(address: Address, schema: &Schema) -> Result<Self, StoreError> {
        Self::connect_within(address, schema, SILENCE)
    }

    fn connect_within(address: Address, schema: &Schema, silence: Duration) -> Result<Self, StoreError> {
        let Address { mut config, server } = address;
        config
            .application_name("linerate")
            .connect_timeout(silence)
            .tcp_user_timeout(silence)
            .keepalives_idle(silence / 3)
            .keepalives_interval(silence / 3)
            .keepalives_retries(2);
        let (jobs, waiting) = queue::unbounded_channel();
        let (to, opened) = mpsc::channel();
        // Without the thread its end of the channel is gone too.
        let thread = std::thread::Builder::new().name("postgres".to_owned());
        drop(thread.spawn(move || serve(&config, silence, &to, waiting)));
        let failed = |source| StoreError::Unreachable { server: server.clone(), source };
        answer(&server, &opened).map_err(failed)?;
        // Each statement sees what was committed when it began, whatever is usual there: also what the one
        // that had the lock before wrote.
        let begin =
            format!("begin isolation level read committed; {}", lock(&format!("linerate {}", schema.part)));
        let opened = Self { jobs, server, begin, limit: LOCK + SILENCE };
        opened.prepare(schema)?;
        Ok(opened)
    }

    /// Sets up the session and runs the steps that the tables lack, under the lock of all that write.
    fn prepare(&self, schema: &Schema) -> Result<(), StoreError> {
        let failed = || at("migrate");
        let settings = format!(
            "set lock_timeout = '{}s'; set idle_in_transaction_session_timeout = '{IDLE_S}s';
             set client_min_messages = 'warning'",
            LOCK.as_secs()
        );
        self.batch(&settings).map_err(at("open"))?;
        let known = schema.postgres.len() as i64;
        // What only reads may not be allowed to make tables.
        if self.version(schema).map_err(failed())? == known {
            return Ok(());
        }
        self.begin().map_err(failed())?;
        let done = self.migrate(schema);
        if done.is_err() {
            // Where this fails the connection is lost, and the transaction with it.
            let _ = self.batch("rollback");
        }
        done
    }

    /// Runs the steps in a transaction that has the lock of the part.
    fn migrate(&self, schema: &Schema) -> Result<(), StoreError> {
        let failed = || at("migrate");
        // The table of versions is of all parts, and two that make it at once would fail.
        self.batch(&lock("linerate")).map_err(failed())?;
        // Read again under the lock: another program may have done the steps just now.
        let (found, known) = (self.version(schema).map_err(failed())?, schema.postgres.len() as i64);
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
        self.write(set, vec![row]).map_err(failed())?;
        self.batch("commit").map_err(failed())
    }

    /// Schema of the tables; 0 where there are none.
    fn version(&self, schema: &Schema) -> Result<i64, DatabaseError> {
        // By a query of a table: `to_regclass` would answer from what the session knew before it had the
        // lock.
        let tables = "select exists (select 1 from pg_tables
                      where schemaname = current_schema() and tablename = 'linerate_schema')";
        let is_there = self.read(tables, vec![Vec::new()])?;
        if is_there != [[Value::Integer(1)]] {
            return Ok(0);
        }
        let part = Value::Text(schema.part.to_owned());
        let rows = self.read("select version from linerate_schema where part = ?1", vec![vec![part]])?;
        match rows.first().and_then(|row| row.first()) {
            Some(Value::Integer(version)) => Ok(*version),
            _ => Ok(0),
        }
    }

    /// Begins a transaction that writes; one at a time for the same tables, as SQLite has it.
    pub(super) fn begin(&self) -> Result<(), DatabaseError> {
        self.batch(&self.begin).inspect_err(|_| drop(self.batch("rollback")))
    }

    /// Runs statements without values.
    pub(super) fn batch(&self, sql: &str) -> Result<(), DatabaseError> {
        self.ask(Request::Batch(sql.to_owned())).map(drop)
    }

    /// Runs a statement for each of these rows of values, in their order; gives the number of changed rows.
    pub(super) fn write(&self, sql: &str, rows: Vec<Vec<Value>>) -> Result<u64, DatabaseError> {
        let mut changed = 0;
        for part in parts(rows) {
            changed += self.ask(Request::Write(numbered(sql), part))?.changed;
        }
        Ok(changed)
    }

    /// The rows of a query for each of these rows of values, in their order.
    pub(super) fn read(&self, sql: &str, rows: Vec<Vec<Value>>) -> Result<Vec<Vec<Value>>, DatabaseError> {
        let mut all = Vec::new();
        for part in parts(rows) {
            all.extend(self.ask(Request::Read(numbered(sql), part))?.rows);
        }
        Ok(all)
    }

    /// Has the thread do something, and waits for it.
    fn ask(&self, request: Request) -> Result<Answer, DatabaseError> {
        let (to, answered) = mpsc::channel();
        // Where the thread is gone there is no answer either.
        let _ = self.jobs.send(Job { request, limit: self.limit, to });
        answer(&self.server, &answered)
    }
}

/// Rows in parts of one request each.
fn parts(rows: Vec<Vec<Value>>) -> impl Iterator<Item = Vec<Vec<Value>>> {
    let mut rows = rows.into_iter();
    std::iter::from_fn(move || {
        Some(rows.by_ref().take(ROWS_MAX).collect()).filter(|part: &Vec<_>| !part.is_empty())
    })
}

/// What the thread returns; an error where it has ended.
fn answer<T>(server: &str, from: &mpsc::Receiver<Result<T, Failed>>) -> Result<T, DatabaseError> {
    let failed = |problem, is_full| DatabaseError::Postgres { server: server.to_owned(), problem, is_full };
    let Ok(done) = from.recv() else { return Err(failed("the connection has ended".to_owned(), false)) };
    done.map_err(|error| match error {
        Failed::Silent(limit) => failed(format!("no answer within {} s", limit.as_secs_f64()), false),
        Failed::Runtime(error) => failed(error.to_string(), false),
        Failed::Server(error) => {
            if let Some(fault) = error.as_db_error() {
                return failed(fault.message().to_owned(), *fault.code() == SqlState::DISK_FULL);
            }
            let why = std::error::Error::source(&error);
            failed(why.map_or(error.to_string(), |why| format!("{error}: {why}")), false)
        }
    })
}

/// The thread: connects, then carries out what is asked until nothing can be asked any more, or the server
/// returns nothing.
fn serve(
    config: &Config,
    silence: Duration,
    opened: &mpsc::Sender<Result<(), Failed>>,
    mut jobs: queue::UnboundedReceiver<Job>,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return drop(opened.send(Err(Failed::Runtime(error)))),
    };
    runtime.block_on(async {
        let connected = timeout(silence, config.connect(NoTls)).await;
        let (client, connection) = match connected.map_err(|_| Failed::Silent(silence)) {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return drop(opened.send(Err(Failed::Server(error)))),
            Err(silent) => return drop(opened.send(Err(silent))),
        };
        // How it ends is the error of the request that needs it.
        tokio::spawn(connection);
        drop(opened.send(Ok(())));
        let mut session = Session { client, statements: HashMap::new() };
        while let Some(Job { request, limit, to }) = jobs.recv().await {
            let done = timeout(limit, session.carry_out(request)).await;
            let done = done.map_err(|_| Failed::Silent(limit)).and_then(|done| done.map_err(Failed::Server));
            let is_over = matches!(done, Err(Failed::Silent(_)));
            drop(to.send(done));
            if is_over {
                return;
            }
        }
    });
}

impl Session {
    async fn carry_out(&mut self, request: Request) -> Result<Answer, Error> {
        match request {
            Request::Batch(sql) => self.client.batch_execute(&sql).await.map(|()| Answer::default()),
            Request::Write(sql, rows) => {
                let statement = &self.statement(sql).await?;
                let client = &self.client;
                let write = async |row| client.execute(statement, &borrowed(&cells(row))).await;
                let changed = pipelined(rows.into_iter().map(write)).await?;
                Ok(Answer { changed: changed.iter().sum(), ..Answer::default() })
            }
            Request::Read(sql, rows) => {
                let statement = &self.statement(sql).await?;
                let client = &self.client;
                let read = async |row| client.query(statement, &borrowed(&cells(row))).await;
                let found = pipelined(rows.into_iter().map(read)).await?;
                let of_row = |row: tokio_postgres::Row| {
                    (0..row.len()).map(|column| row.try_get(column).map(|cell: Cell| cell.0)).collect()
                };
                let rows: Result<Vec<Vec<Value>>, Error> = found.into_iter().flatten().map(of_row).collect();
                Ok(Answer { rows: rows?, ..Answer::default() })
            }
        }
    }

    /// A statement, prepared once.
    async fn statement(&mut self, sql: String) -> Result<Statement, Error> {
        if let Some(known) = self.statements.get(&sql) {
            return Ok(known.clone());
        }
        let new = self.client.prepare(&sql).await?;
        self.statements.insert(sql, new.clone());
        Ok(new)
    }
}

/// Sends all of these in their order before the first returns: many rows wait for the network once.
async fn pipelined<T>(
    calls: impl Iterator<Item = impl Future<Output = Result<T, Error>>>,
) -> Result<Vec<T>, Error> {
    let mut sent: Vec<_> = calls.map(|call| (Box::pin(call), None)).collect();
    // A call is sent when it is polled for the first time.
    poll_fn(|context| {
        for (call, done) in &mut sent {
            if let Poll::Ready(result) = call.as_mut().poll(context) {
                *done = Some(result);
            }
        }
        Poll::Ready(())
    })
    .await;
    let mut all = Vec::with_capacity(sent.len());
    for (call, done) in sent {
        all.push(match done {
            Some(result) => result?,
            None => call.await?,
        });
    }
    Ok(all)
}

/// The numbers of parameters as PostgreSQL writes them. No statement has a question mark elsewhere.
fn numbered(sql: &str) -> String {
    sql.replace('?', "$")
}

fn cells(values: Vec<Value>) -> Vec<Cell> {
    values.into_iter().map(Cell).collect()
}

fn borrowed(cells: &[Cell]) -> Vec<&(dyn ToSql + Sync)> {
    cells.iter().map(|cell| cell as _).collect()
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

    tokio_postgres::types::to_sql_checked!();
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
    #![allow(clippy::unwrap_used)]
    use linerate_testkit::postgres::PostgresServer;

    use super::super::address;
    use super::super::schema::SCHEMA;
    use super::*;

    fn number(number: i64) -> Vec<Value> {
        vec![Value::Integer(number)]
    }

    #[test]
    fn a_server_that_does_not_answer_is_an_error_and_not_asked_again() {
        let test = "a_server_that_does_not_answer_is_an_error_and_not_asked_again";
        let Some(server) = PostgresServer::start(test) else { return };
        let address = server.database("team");
        let mut opened = Postgres::connect(address::parse(&address).unwrap(), &SCHEMA).unwrap();
        let short = Duration::from_millis(100);
        opened.limit = short;
        server.freeze();
        let silent = opened.read("select ?1::bigint", vec![number(1)]).unwrap_err().to_string();
        assert_eq!(silent, "no answer within 0.1 s");
        let refused = Postgres::connect_within(address::parse(&address).unwrap(), &SCHEMA, short);
        let refused = refused.unwrap_err();
        assert!(matches!(&refused, StoreError::Unreachable { .. }), "{refused}");
        server.thaw();
        // What the server did with the request is not known: the connection is not used again.
        let ended = opened.read("select ?1::bigint", vec![number(1)]).unwrap_err().to_string();
        assert_eq!(ended, "the connection has ended");
        assert!(Postgres::connect(address::parse(&address).unwrap(), &SCHEMA).is_ok());
    }

    #[test]
    fn rows_of_one_request_are_written_and_read_in_their_order_or_not_at_all() {
        let test = "rows_of_one_request_are_written_and_read_in_their_order_or_not_at_all";
        let Some(server) = PostgresServer::start(test) else { return };
        let opened = Postgres::connect(address::parse(&server.database("team")).unwrap(), &SCHEMA).unwrap();
        opened
            .batch("create table number (seq bigint generated always as identity, n bigint unique)")
            .unwrap();
        // More than one request has.
        let order: Vec<i64> = (0..2500).map(|n| (n * 7919) % 2500).collect();
        let rows = || order.iter().map(|n| number(*n)).collect::<Vec<_>>();
        opened.begin().unwrap();
        assert_eq!(opened.write("insert into number (n) values (?1)", rows()).unwrap(), 2500);
        opened.batch("commit").unwrap();
        let stored = opened.read("select n from number order by seq", vec![Vec::new()]).unwrap();
        assert_eq!(stored, rows());
        assert_eq!(opened.read("select n from number where n = ?1", rows()).unwrap(), rows());
        opened.begin().unwrap();
        let twice = [number(2500), number(0), number(2501)];
        let error = opened.write("insert into number (n) values (?1)", twice.to_vec()).unwrap_err();
        assert!(error.to_string().contains("duplicate key"), "{error}");
        opened.batch("rollback").unwrap();
        assert_eq!(server.sql("team", "select count(*) from number"), "2500");
    }

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
