//! The history of measured series: years of thousands of hosts in one small SQLite file, beside that of runs
//! and trials and never at their expense.
//!
//! What comes in: once a minute what was measured of each series, and alarms and counts of drops as they are
//! (`records`). What goes out: a series between two moments, each part in the finest resolution that is kept,
//! and the newest records. A minute that is not given was not measured, and comes back as such.
//!
//! A minute is one transaction, so a kill loses at most one. Minutes become blocks of their
//! series once an hour, and summaries once a day ([`Tier`]). The file stops growing at [`FILE_MAX`], and
//! nothing is written where less than [`Limits::reserve`] would stay free: the disk is left to runs and
//! trials.
#![deny(missing_docs)]

mod codec;
mod compact;
mod error;
pub mod fill;
mod point;
mod read;
mod records;
mod schema;
mod tier;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_model::download::THROUGH;
use linerate_model::slow::DownloadSuspect;
use linerate_model::suspect::Suspect;
use linerate_store::database;
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

pub use error::HistoryError;
use error::at;
pub use point::{HistoryPoint, SeriesId, SeriesKey, Statistic, Summary};
pub use records::{AlarmRecord, DropsRecord, Recorded};
use tier::MINUTE_MS;
pub use tier::Tier;

/// Name of the file in the user's data folder.
const FILE: &str = "linerate-history.sqlite";
/// Largest file, bytes: 2 years of [`SERIES_MAX`] series.
pub const FILE_MAX: u64 = 2_000_000_000;
/// Series that a writer adds at most: 12 of each of 1,000 hosts.
pub const SERIES_MAX: usize = 12_000;

/// What the file may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of its file system that stay free for runs and trials.
    pub reserve: u64,
    /// Largest file, bytes.
    pub file_max: u64,
}

impl Default for Limits {
    /// 256 MB stay free: the samples of a survey of 1,000 hosts take some 100 MB.
    fn default() -> Self {
        Self { reserve: 256_000_000, file_max: FILE_MAX }
    }
}

/// The open file.
#[derive(Debug)]
pub struct History {
    connection: Connection,
    path: PathBuf,
    reserve: u64,
    /// Start of the hour whose minutes are no blocks yet, minutes since 1970.
    hour: Option<u64>,
}

impl History {
    /// Opens the file of the user's data folder, making it when there is none.
    pub fn open_default() -> Result<Self, HistoryError> {
        let connection = database::open_default(FILE, schema::STEPS)?;
        Self::new(connection, Limits::default())
    }

    /// Opens the file of the user's data folder for reading; an empty one where there is none.
    pub fn open_to_read() -> Result<Self, HistoryError> {
        let connection = database::open_to_read(FILE, schema::STEPS)?;
        Ok(Self { connection, path: PathBuf::new(), reserve: 0, hour: None })
    }

    /// Opens a file and brings it to the newest schema.
    pub fn open(path: &Path, limits: Limits) -> Result<Self, HistoryError> {
        Self::new(database::open(path, schema::STEPS)?, limits)
    }

    fn new(connection: Connection, limits: Limits) -> Result<Self, HistoryError> {
        let page: i64 =
            connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(at("open"))?;
        let pages = limits.file_max / u64::try_from(page).unwrap_or(4096).max(512);
        connection.pragma_update(None, "max_page_count", pages as i64).map_err(at("open"))?;
        let path = connection.path().map(PathBuf::from).unwrap_or_default();
        Ok(Self { connection, path, reserve: limits.reserve, hour: None })
    }

    /// The series of this key, made when there is none.
    pub fn series(&self, key: &SeriesKey) -> Result<SeriesId, HistoryError> {
        if let Some(known) = self.find(key)? {
            return Ok(known);
        }
        self.check_free()?;
        self.connection
            .execute("insert into series (key) values (?1)", [text(key)?])
            .map_err(|source| self.failed("add a series", source))?;
        Ok(SeriesId(self.connection.last_insert_rowid()))
    }

    /// The series of this key, where there is one.
    pub fn find(&self, key: &SeriesKey) -> Result<Option<SeriesId>, HistoryError> {
        let text = text(key)?;
        let found = self
            .connection
            .prepare_cached("select id from series where key = ?1")
            .and_then(|mut find| find.query_row([&text], |row| row.get(0)).optional())
            .map_err(at("find a series"))?;
        Ok(found.map(SeriesId))
    }

    /// All series, in the order in which they were added.
    pub fn list(&self) -> Result<Vec<(SeriesId, SeriesKey)>, HistoryError> {
        self.list_with("")
    }

    /// The series of a suspect.
    pub fn list_of(
        &self,
        cluster: &str,
        suspect: &Suspect,
    ) -> Result<Vec<(SeriesId, SeriesKey)>, HistoryError> {
        let text = serde_json::to_string(suspect).map_err(|source| HistoryError::Key { source })?;
        let mut all = self.list_with(&text)?;
        all.retain(|(_, key)| key.cluster == cluster && key.suspect == *suspect);
        Ok(all)
    }

    /// The series of downloads that a suspect is made of.
    pub fn list_downloads(
        &self,
        cluster: &str,
        of: &DownloadSuspect,
    ) -> Result<Vec<(SeriesId, SeriesKey)>, HistoryError> {
        let mut all = self.list_with(THROUGH)?;
        all.retain(|(_, key)| key.cluster == cluster && key.download().is_some_and(|path| of.has(&path)));
        Ok(all)
    }

    /// Those whose keys have this text: of thousands only few are parsed.
    fn list_with(&self, text: &str) -> Result<Vec<(SeriesId, SeriesKey)>, HistoryError> {
        let query = "select id, key from series where ?1 = '' or instr(key, ?1) > 0 order by id";
        let mut statement = self.connection.prepare(query).map_err(at("list series"))?;
        let mut rows = statement.query([text]).map_err(at("list series"))?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(at("list series"))? {
            let text: String = row.get(1).map_err(at("list series"))?;
            let key = serde_json::from_str(&text).map_err(|source| HistoryError::Key { source })?;
            all.push((SeriesId(row.get(0).map_err(at("list series"))?), key));
        }
        Ok(all)
    }

    /// Writes what was measured in the minute of this moment (Unix milliseconds), in the unit of each series.
    /// A value that is not finite or below zero was not measured. A second write of a minute adds to it, and
    /// replaces the series that both have: several programs write into one file.
    pub fn append(&mut self, at_ms: u64, values: &[(SeriesId, f64)]) -> Result<(), HistoryError> {
        self.check_free()?;
        let minute = at_ms / MINUTE_MS;
        let hour = Tier::MINUTES.start(minute);
        if self.hour != Some(hour) {
            compact::up_to(&mut self.connection, hour).map_err(|error| self.full_or(error))?;
            self.hour = Some(hour);
        }
        let mut coded: Vec<(i64, u16)> =
            values.iter().filter_map(|(series, value)| Some((series.0, codec::code(*value)?))).collect();
        coded.sort_unstable();
        coded.dedup_by_key(|(series, _)| *series);
        self.add(minute, coded).map_err(|error| self.full_or(error))
    }

    /// The values beside those that the minute has.
    fn add(&mut self, minute: u64, values: Vec<(i64, u16)>) -> Result<(), HistoryError> {
        const DOING: &str = "add a minute";
        let change = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let change = change.map_err(at(DOING))?;
        let known: Option<Vec<u8>> = change
            .prepare_cached("select data from minute where at = ?1")
            .and_then(|mut find| find.query_row([minute as i64], |row| row.get(0)).optional())
            .map_err(at(DOING))?;
        let mut all: BTreeMap<i64, u16> = match known {
            Some(data) => codec::decode_minute(&data)
                .ok_or(HistoryError::Damaged { start: minute })?
                .into_iter()
                .collect(),
            None => BTreeMap::new(),
        };
        all.extend(values);
        let all: Vec<(i64, u16)> = all.into_iter().collect();
        change
            .prepare_cached("insert or replace into minute (at, data) values (?1, ?2)")
            .and_then(|mut insert| insert.execute(params![minute as i64, codec::encode_minute(&all)]))
            .map_err(at(DOING))?;
        change.commit().map_err(at(DOING))
    }

    /// A series from one moment to another (Unix milliseconds), in time order, each part in the finest
    /// resolution that is kept.
    pub fn read(
        &self,
        series: SeriesId,
        from_ms: u64,
        to_ms: u64,
    ) -> Result<Vec<HistoryPoint>, HistoryError> {
        read::points(&self.connection, series, from_ms / MINUTE_MS, to_ms.div_ceil(MINUTE_MS))
    }

    /// Refuses to write where too little would be left.
    fn check_free(&self) -> Result<(), HistoryError> {
        let Ok(found) = rustix::fs::statvfs(&self.path) else { return Ok(()) };
        let free = found.f_bavail.saturating_mul(found.f_frsize);
        if free >= self.reserve {
            return Ok(());
        }
        Err(HistoryError::Full { path: self.path.clone(), reserve: self.reserve })
    }

    fn failed(&self, doing: &'static str, source: rusqlite::Error) -> HistoryError {
        self.full_or(at(doing)(source))
    }

    /// A write that found no space is the same as one that was not begun.
    fn full_or(&self, error: HistoryError) -> HistoryError {
        if error.is_full() {
            HistoryError::Full { path: self.path.clone(), reserve: self.reserve }
        } else {
            error
        }
    }
}

fn text(key: &SeriesKey) -> Result<String, HistoryError> {
    serde_json::to_string(key).map_err(|source| HistoryError::Key { source })
}

#[cfg(test)]
mod tests;
