//! The kept set of a cluster in the database of a team: every revision of its text, with its author.
//!
//! In: a text and the revision that it was made from. Out: the next revision, or nothing where another
//! operator wrote meanwhile. A SQLite store has no kept set: it is a file there.

use linerate_input::KNOWLEDGE_BYTES_MAX;
use rusqlite::params;
use schemars::JsonSchema;
use serde::Serialize;

use super::address;
use super::database::{Database, Row};
use super::error::{StoreError, unusable};
use super::schema::SCHEMA;

/// Revisions of a cluster that stay.
const REVISIONS_MAX: u64 = 1000;
/// Characters of a user or host name.
const NAME_MAX: usize = 64;
const READ: &str = "read the kept set";
const WRITE: &str = "write the kept set";

/// The kept set of one cluster.
#[derive(Debug)]
pub struct SharedKeptSet {
    database: Database,
    cluster: String,
}

/// A revision without its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct KeptRevision {
    /// Number, from 1.
    pub revision: u64,
    /// When it was written, Unix milliseconds.
    pub at_ms: u64,
    /// The operator and the machine, as that machine names them.
    pub who: String,
    /// The user of the database.
    pub role: String,
    /// The command that wrote it.
    pub what: String,
}

/// A revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptText {
    /// Number, from 1.
    pub revision: u64,
    /// The TOML.
    pub toml: String,
}

impl SharedKeptSet {
    /// The kept set of a cluster in the operator's database; `None` where that is a SQLite file.
    pub fn open_default(cluster: &str) -> Result<Option<Self>, StoreError> {
        if address::configured()?.is_none() {
            return Ok(None);
        }
        Ok(Some(Self { database: Database::open_default(&SCHEMA)?, cluster: cluster.to_owned() }))
    }

    /// The kept set of a cluster in a PostgreSQL database.
    pub fn connect(address: &str, cluster: &str) -> Result<Self, StoreError> {
        Ok(Self { database: Database::connect(address, &SCHEMA)?, cluster: cluster.to_owned() })
    }

    /// Name of the cluster.
    #[must_use]
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// A revision, or the newest one; `None` where there is none.
    pub fn read(&self, revision: Option<u64>) -> Result<Option<KeptText>, StoreError> {
        let query = "select revision, toml from kept_set
                     where cluster = ?1 and (cast(?2 as bigint) is null or revision = ?2)
                     order by revision desc limit 1";
        let wanted = revision.map(number);
        self.database.first(READ, query, params![self.cluster, wanted], |row| {
            Ok::<_, StoreError>(KeptText { revision: unsigned(row, 0)?, toml: row.get(1)? })
        })
    }

    /// All revisions that are there, newest first.
    pub fn revisions(&self) -> Result<Vec<KeptRevision>, StoreError> {
        let query = "select revision, at_ms, who, role, what from kept_set where cluster = ?1
                     order by revision desc";
        self.database.list(READ, query, params![self.cluster], |row| {
            Ok::<_, StoreError>(KeptRevision {
                revision: unsigned(row, 0)?,
                at_ms: unsigned(row, 1)?,
                who: row.get(2)?,
                role: row.get(3)?,
                what: row.get(4)?,
            })
        })
    }

    /// Writes the revision after the one that was read (0 for none), and gives its number; `None` where that
    /// is not the newest any more. `what` is the command, `now_ms` the Unix time in milliseconds.
    pub fn write(&self, read: u64, toml: &str, what: &str, now_ms: u64) -> Result<Option<u64>, StoreError> {
        let transaction = self.database.begin(WRITE)?;
        let newest = "select coalesce(max(revision), 0) from kept_set where cluster = ?1";
        let newest = transaction.first(WRITE, newest, params![self.cluster], |row| unsigned(row, 0))?;
        if newest.unwrap_or(0) != read {
            return Ok(None);
        }
        let revision = self.add(read, toml, what, now_ms)?;
        transaction.commit()?;
        Ok(Some(revision))
    }

    /// Writes the newest text with a change, and gives the number of the revision. What other operators wrote
    /// before stays: none writes between reading and writing. The change gets `None` where there is no text.
    pub fn edit<E: From<StoreError>>(
        &self,
        what: &str,
        now_ms: u64,
        change: impl FnOnce(Option<&KeptText>) -> Result<String, E>,
    ) -> Result<u64, E> {
        let transaction = self.database.begin(WRITE)?;
        let old = self.read(None)?;
        let new = change(old.as_ref())?;
        let revision = self.add(old.map_or(0, |old| old.revision), &new, what, now_ms)?;
        transaction.commit()?;
        Ok(revision)
    }

    /// Writes a revision inside of a transaction.
    fn add(&self, newest: u64, toml: &str, what: &str, now_ms: u64) -> Result<u64, StoreError> {
        if toml.len() > KNOWLEDGE_BYTES_MAX {
            let (cluster, bytes) = (&self.cluster, toml.len());
            let problem =
                format!("the kept set of {cluster} would have {bytes} bytes, limit {KNOWLEDGE_BYTES_MAX}");
            let hint = "`linerate drift --print` prints it; one cohort with `group` stands for many hosts";
            return Err(unusable(problem, hint.to_owned()));
        }
        let next = newest + 1;
        self.database.execute(
            WRITE,
            "insert into kept_set (cluster, revision, at_ms, who, what, toml) values (?1,?2,?3,?4,?5,?6)",
            params![self.cluster, number(next), number(now_ms), operator(), what, toml],
        )?;
        let old = params![self.cluster, number(next.saturating_sub(REVISIONS_MAX))];
        self.database.execute(WRITE, "delete from kept_set where cluster = ?1 and revision <= ?2", old)?;
        Ok(next)
    }
}

/// What no text of ours reaches is the largest number.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, StoreError> {
    row.get::<i64>(column).map(|value| u64::try_from(value).unwrap_or(0))
}

/// The user at this machine: who called sudo, where that is known.
fn operator() -> String {
    let variable = |name: &&str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let user = ["SUDO_USER", "USER", "LOGNAME"].iter().find_map(variable);
    let user = user.unwrap_or_else(|| format!("uid {}", rustix::process::geteuid().as_raw()));
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let short = |text: &str| text.trim().chars().take(NAME_MAX).collect::<String>();
    format!("{}@{}", short(&user), short(&host))
}
