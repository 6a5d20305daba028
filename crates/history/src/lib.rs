//! The history of measured series: years of thousands of hosts in one small SQLite file, beside that of runs
//! and trials and never at their expense.
//!
//! What comes in: once a minute what was measured of each series, and alarms and counts of drops as they are
//! (`records`). What goes out: a series between two moments, each part in the finest resolution that is kept,
//! and the newest records. A minute that is not given was not measured, and comes back as such.
//!
//! A minute is one transaction, so a kill loses at most one. Minutes become blocks of their series once an
//! hour, and summaries once a day ([`Tier`]). The file stops growing at [`FILE_MAX`], and nothing is written
//! where less than [`HistoryLimits::reserve`] would stay free: the disk is left to runs and trials.
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
use linerate_store::database::Database;
use rusqlite::params;

pub use error::HistoryError;
pub use point::{HistoryPoint, SeriesId, SeriesKey, SlotSummary, Statistic};
pub use records::{AlarmRecord, DropsRecord, Recorded};
use tier::MINUTE_MS;
pub use tier::Tier;

/// Largest file, bytes: 2 years of [`SERIES_MAX`] series.
pub const FILE_MAX: u64 = 2_000_000_000;
/// Series that a writer adds at most: 12 of each of 1,000 hosts.
pub const SERIES_MAX: usize = 12_000;

/// What the file may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Bytes of its file system that stay free for runs and trials.
    pub reserve: u64,
    /// Largest file, bytes.
    pub file_max: u64,
}

impl Default for HistoryLimits {
    /// 256 MB stay free: the samples of a survey of 1,000 hosts take some 100 MB.
    fn default() -> Self {
        Self { reserve: 256_000_000, file_max: FILE_MAX }
    }
}

/// The open file.
#[derive(Debug)]
pub struct History {
    database: Database,
    /// The file; empty where there is none, as on a server.
    path: PathBuf,
    reserve: u64,
    /// Start of the hour whose minutes are no blocks yet, minutes since 1970.
    hour: Option<u64>,
}

impl History {
    /// Opens the file of the user's data folder, making it when there is none.
    pub fn open_default() -> Result<Self, HistoryError> {
        Self::new(Database::open_default(&schema::SCHEMA)?, HistoryLimits::default())
    }

    /// Opens the file of the user's data folder for reading; an empty one where there is none.
    pub fn open_to_read() -> Result<Self, HistoryError> {
        let database = Database::open_to_read(&schema::SCHEMA)?;
        Ok(Self { database, path: PathBuf::new(), reserve: 0, hour: None })
    }

    /// Opens a file and brings it to the newest schema.
    pub fn open(path: &Path, limits: HistoryLimits) -> Result<Self, HistoryError> {
        Self::new(Database::open(path, &schema::SCHEMA)?, limits)
    }

    /// Opens a PostgreSQL database and brings it to the newest schema. Its space is bounded by the server.
    pub fn connect(address: &str) -> Result<Self, HistoryError> {
        Self::new(Database::connect(address, &schema::SCHEMA)?, HistoryLimits::default())
    }

    fn new(database: Database, limits: HistoryLimits) -> Result<Self, HistoryError> {
        database.limit_file("open", limits.file_max)?;
        let path = database.path().map(PathBuf::from).unwrap_or_default();
        Ok(Self { database, path, reserve: limits.reserve, hour: None })
    }

    /// The series of this key, made when there is none.
    pub fn series(&self, key: &SeriesKey) -> Result<SeriesId, HistoryError> {
        if let Some(known) = self.find(key)? {
            return Ok(known);
        }
        self.check_free()?;
        // Another program may have added it just now.
        let add = "insert into series (key) values (?1) on conflict do nothing";
        self.database
            .execute("add a series", add, params![text(key)?])
            .map_err(|error| self.full_or(error.into()))?;
        self.find(key)?.ok_or(HistoryError::NotAdded)
    }

    /// The series of this key, where there is one.
    pub fn find(&self, key: &SeriesKey) -> Result<Option<SeriesId>, HistoryError> {
        let query = "select id from series where key = ?1";
        self.database.first("find a series", query, params![text(key)?], |row| Ok(SeriesId(row.get(0)?)))
    }

    /// Whether nothing was ever measured into it.
    pub fn is_empty(&self) -> Result<bool, HistoryError> {
        let query = "select id from series limit 1";
        let first = self
            .database
            .first("find a series", query, params![], |row| Ok::<_, HistoryError>(SeriesId(row.get(0)?)))?;
        Ok(first.is_none())
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
        let query = "select id, key from series where ?1 = '' or replace(key, ?1, '') <> key order by id";
        self.database.list("list series", query, params![text], |row| {
            let text: String = row.get(1)?;
            let key = serde_json::from_str(&text).map_err(|source| HistoryError::Key { source })?;
            Ok((SeriesId(row.get(0)?), key))
        })
    }

    /// Writes what was measured in the minute of this moment (Unix milliseconds), in the unit of each series.
    /// A value that is not finite or below zero was not measured. A second write of a minute adds to it, and
    /// replaces the series that both have: several programs write into one file.
    pub fn append(&mut self, at_ms: u64, values: &[(SeriesId, f64)]) -> Result<(), HistoryError> {
        self.check_free()?;
        let minute = at_ms / MINUTE_MS;
        let hour = Tier::MINUTES.start(minute);
        if self.hour != Some(hour) {
            compact::up_to(&self.database, hour).map_err(|error| self.full_or(error))?;
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
        let change = self.database.begin(DOING)?;
        let query = "select data from minute where at = ?1";
        let known: Option<Vec<u8>> = change.first(DOING, query, params![minute as i64], |row| row.get(0))?;
        let mut all: BTreeMap<i64, u16> = match known {
            Some(data) => codec::decode_minute(&data)
                .ok_or(HistoryError::Damaged { start: minute })?
                .into_iter()
                .collect(),
            None => BTreeMap::new(),
        };
        all.extend(values);
        let all: Vec<(i64, u16)> = all.into_iter().collect();
        let put = "insert into minute (at, data) values (?1, ?2)
                   on conflict (at) do update set data = excluded.data";
        change.execute(DOING, put, params![minute as i64, codec::encode_minute(&all)])?;
        Ok(change.commit()?)
    }

    /// A series from one moment to another (Unix milliseconds), in time order, each part in the finest
    /// resolution that is kept.
    pub fn read(
        &self,
        series: SeriesId,
        from_ms: u64,
        to_ms: u64,
    ) -> Result<Vec<HistoryPoint>, HistoryError> {
        read::points(&self.database, series, from_ms / MINUTE_MS, to_ms.div_ceil(MINUTE_MS))
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

    /// A write that found no space is the same as one that was not begun. The error of a server names it.
    fn full_or(&self, error: HistoryError) -> HistoryError {
        if error.is_full() && !self.path.as_os_str().is_empty() {
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
