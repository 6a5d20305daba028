//! Alarms of watches and counts of drops: whole documents beside the series, few of each kind. The next kind
//! is a type with [`Recorded`].

use linerate_model::drops::DropReport;
use linerate_model::fact_change::FactChange;
use linerate_model::inventory::HostName;
use linerate_model::watch::{DecidedLoss, WatchAlarm};
use linerate_store::StoreError;
use rusqlite::params;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::History;
use super::error::HistoryError;

/// What is kept as a whole.
pub trait Recorded: Serialize + DeserializeOwned {
    /// Its kind in the file.
    const KIND: &'static str;
    /// So many are kept, the newest.
    const KEPT_MAX: u32;
    /// What it is known by: a second one with the same replaces it.
    fn id(&self) -> String;
    /// Since when, Unix milliseconds.
    fn at_ms(&self) -> u64;
}

/// An alarm of a watch, as far as it is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AlarmRecord {
    /// Name of the cluster.
    pub cluster: String,
    /// Start of the watch, Unix milliseconds.
    pub watch_ms: u64,
    /// What loses or is slow, and how much.
    pub alarm: WatchAlarm,
    /// What the measurement of a loss showed; `None` until it was measured.
    #[serde(default)]
    pub decided: Option<DecidedLoss>,
    /// Settings of its hosts that changed within a day before it, newest first.
    #[serde(default)]
    pub changed: Vec<FactChange>,
    /// The hosts that it is of; none where it is every path, or was kept before they were.
    #[serde(default)]
    pub hosts: Vec<HostName>,
    /// When the watch reported it last, Unix milliseconds.
    pub seen_ms: u64,
    /// When it was over, Unix milliseconds; `None` for one that was open when it was reported last.
    #[serde(default)]
    pub ended_ms: Option<u64>,
    /// What a person types next.
    pub command: String,
    /// Arguments by which other commands find the same hosts, such as `-i cluster.toml`; empty without a
    /// file.
    #[serde(default)]
    pub inventory: String,
}

/// A watch reports open alarms once a minute: after this time it has ended, milliseconds.
const REPORTED_MS: u64 = 3 * 60_000;

impl AlarmRecord {
    /// Whether it is open.
    #[must_use]
    pub fn is_open(&self, now_ms: u64) -> bool {
        self.ended_ms.is_none() && !self.is_left(now_ms)
    }

    /// Whether its watch ended before it did.
    #[must_use]
    pub fn is_left(&self, now_ms: u64) -> bool {
        self.ended_ms.is_none() && now_ms.saturating_sub(self.seen_ms) > REPORTED_MS
    }
}

impl Recorded for AlarmRecord {
    const KIND: &'static str = "alarm";
    const KEPT_MAX: u32 = 1000;

    fn id(&self) -> String {
        format!("{}-{}", self.watch_ms, self.alarm.id())
    }

    fn at_ms(&self) -> u64 {
        self.alarm.since_ms()
    }
}

/// A count of drops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DropsRecord {
    /// Name of the cluster.
    pub cluster: String,
    /// When it began, Unix milliseconds.
    pub start_ms: u64,
    /// What was counted.
    pub report: DropReport,
    /// The command that counts again.
    pub command: String,
}

impl Recorded for DropsRecord {
    const KIND: &'static str = "drops";
    // One of 1,000 hosts with 20 reasons each has some 4 MB.
    const KEPT_MAX: u32 = 20;

    fn id(&self) -> String {
        self.start_ms.to_string()
    }

    fn at_ms(&self) -> u64 {
        self.start_ms
    }
}

impl History {
    /// Keeps a record instead of an earlier one with the same id. The oldest beyond the bound of its kind go.
    pub fn keep<R: Recorded>(&mut self, record: &R) -> Result<(), HistoryError> {
        const DOING: &str = "keep a record";
        self.check_free()?;
        let json =
            serde_json::to_string(record).map_err(|source| HistoryError::Record { kind: R::KIND, source })?;
        let put = || {
            let change = self.database.begin(DOING)?;
            change.execute(
                DOING,
                "insert into record (kind, id, at_ms, json) values (?1, ?2, ?3, ?4)
                 on conflict (kind, id) do update set at_ms = excluded.at_ms, json = excluded.json",
                params![R::KIND, record.id(), record.at_ms() as i64, json],
            )?;
            change.execute(
                DOING,
                "delete from record where kind = ?1 and id not in (
                     select id from record where kind = ?1 order by at_ms desc, id desc limit ?2)",
                params![R::KIND, R::KEPT_MAX],
            )?;
            change.commit()
        };
        put().map_err(|error: StoreError| self.full_or(error.into()))
    }

    /// The records of a kind, newest first.
    pub fn records<R: Recorded>(&self) -> Result<Vec<R>, HistoryError> {
        const DOING: &str = "read records";
        let query = "select json from record where kind = ?1 order by at_ms desc, id desc";
        self.database.list(DOING, query, params![R::KIND], |row| {
            let record = serde_json::from_str(&row.get::<String>(0)?);
            record.map_err(|source| HistoryError::Record { kind: R::KIND, source })
        })
    }

    /// The identifiers of the records of a kind, newest first.
    pub fn record_ids<R: Recorded>(&self) -> Result<Vec<String>, HistoryError> {
        let query = "select id from record where kind = ?1 order by at_ms desc, id desc";
        self.database.list("list records", query, params![R::KIND], |row| Ok(row.get::<String>(0)?))
    }

    /// Another number whenever another process has written since this one asked last; `None` where there is
    /// no file.
    pub fn data_version(&self) -> Result<Option<i64>, HistoryError> {
        if self.database.is_in_memory() {
            return Ok(None);
        }
        Ok(Some(self.database.data_version("read the version of the history")?))
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::{Direction, Suspect};
    use linerate_model::slow::{DownloadSuspect, SlowAlarm, SlowOf, UsualOf};
    use linerate_model::watch::{LossAlarm, LossVerdict};

    use super::*;
    use crate::HistoryLimits;

    const START_MS: u64 = 1_780_000_000_000;

    fn alarm(number: u64) -> AlarmRecord {
        AlarmRecord {
            cluster: "three".to_owned(),
            watch_ms: START_MS,
            alarm: WatchAlarm::Loss(LossAlarm {
                id: number,
                suspect: Suspect::Host("arc-2".to_owned()),
                direction: Direction::Rx,
                since_ms: START_MS + number * 1000,
                reported_ms: START_MS + number * 1000 + 9000,
                lost: 4,
                sent: 400,
                partners: 3,
            }),
            decided: None,
            changed: Vec::new(),
            seen_ms: START_MS + number * 1000 + 9000,
            ended_ms: None,
            command: "linerate survey".to_owned(),
            hosts: vec!["arc-2".to_owned()],
            inventory: String::new(),
        }
    }

    fn opened(folder: &std::path::Path, reserve: u64) -> History {
        History::open(&folder.join("h.sqlite"), HistoryLimits { reserve, ..HistoryLimits::default() })
            .unwrap()
    }

    #[test]
    fn a_record_is_replaced_by_its_next_state_and_the_newest_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = opened(folder.path(), 0);
        let reader = opened(folder.path(), 0);
        let before = reader.data_version().unwrap();
        history.keep(&alarm(1)).unwrap();
        history.keep(&alarm(2)).unwrap();
        let mut over = alarm(1);
        over.ended_ms = Some(START_MS + 60_000);
        over.decided = Some(DecidedLoss {
            verdict: LossVerdict::NotMeasured,
            flows: Vec::new(),
            controls: Vec::new(),
            reason: "no other host is watched".to_owned(),
        });
        history.keep(&over).unwrap();
        assert_eq!(reader.records::<AlarmRecord>().unwrap(), [alarm(2), over]);
        assert_eq!(reader.records::<DropsRecord>().unwrap(), []);
        assert!(before.is_some() && reader.data_version().unwrap() != before);
    }

    fn slow(id: u64, of: SlowOf) -> WatchAlarm {
        let (since_ms, reported_ms) = (START_MS + 5000, START_MS + 9000);
        let (usual, now, usual_of) = (800e6, 0.0, UsualOf::Peers);
        let failure = Some("status 503".to_owned());
        WatchAlarm::Slow(SlowAlarm {
            id,
            of,
            since_ms,
            reported_ms,
            usual,
            now,
            usual_of,
            seen_with: 2,
            failure,
            decided: None,
        })
    }

    #[test]
    fn what_is_slow_is_kept_beside_losses() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = opened(folder.path(), 0);
        let download = DownloadSuspect { via: Some("192.0.2.11".to_owned()), ..DownloadSuspect::default() };
        let of = [SlowOf::Download(download), SlowOf::Rtt(Suspect::Host("arc-2".to_owned()))];
        let mut kept = vec![alarm(1)];
        kept.extend(of.into_iter().zip(2..).map(|(of, id)| AlarmRecord { alarm: slow(id, of), ..alarm(1) }));
        for one in &kept {
            history.keep(one).unwrap();
        }
        kept.sort_by_key(|one| std::cmp::Reverse((one.at_ms(), one.id())));
        assert_eq!(history.records::<AlarmRecord>().unwrap(), kept);
    }

    /// As the version that kept losses alone wrote it.
    const OF_A_LOSS: &str = r#"{"cluster":"three","watch_ms":1780000000000,"alarm":{"id":1,"suspect":{"host":"arc-2"},
        "direction":"rx","since_ms":1780000001000,"reported_ms":1780000010000,"lost":4,"sent":400,"partners":3},
        "decided":null,"changed":[],"seen_ms":1780000010000,"ended_ms":null,"command":"linerate survey"}"#;

    #[test]
    fn a_record_of_the_version_that_kept_losses_alone_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = opened(folder.path(), 0);
        history.keep(&alarm(2)).unwrap();
        let put = "insert into record (kind, id, at_ms, json) values ('alarm', '1780000000000-1', 1, ?1)";
        history.database.execute("keep", put, &[&OF_A_LOSS]).unwrap();
        // Its hosts were not kept then.
        let earlier = AlarmRecord { hosts: Vec::new(), ..alarm(1) };
        assert_eq!(history.records::<AlarmRecord>().unwrap(), [alarm(2), earlier]);
        // And what is neither a loss nor slow is an error, not one of them.
        let neither = OF_A_LOSS.replace("\"lost\"", "\"missing\"");
        assert!(serde_json::from_str::<AlarmRecord>(&neither).is_err());
    }

    #[test]
    fn the_oldest_go_and_a_full_disk_keeps_none() {
        let folder = tempfile::tempdir().unwrap();
        let mut history = opened(folder.path(), 0);
        let count = |start_ms| DropsRecord {
            cluster: "three".to_owned(),
            start_ms,
            report: DropReport::default(),
            command: String::new(),
        };
        for number in 0..u64::from(DropsRecord::KEPT_MAX) + 3 {
            history.keep(&count(START_MS + number)).unwrap();
        }
        history.keep(&alarm(1)).unwrap();
        let kept = history.records::<DropsRecord>().unwrap();
        assert_eq!(kept.len(), DropsRecord::KEPT_MAX as usize);
        assert_eq!(kept.last().unwrap().start_ms, START_MS + 3);
        let ids: Vec<String> = kept.iter().map(Recorded::id).collect();
        assert_eq!(history.record_ids::<DropsRecord>().unwrap(), ids);
        assert_eq!(history.records::<AlarmRecord>().unwrap().len(), 1, "of another kind");
        let error = opened(folder.path(), u64::MAX).keep(&alarm(2)).unwrap_err().to_string();
        assert!(error.contains("hint: df -h"), "{error}");
    }

    #[test]
    fn an_alarm_is_open_as_long_as_its_watch_reports_it() {
        let mut record = alarm(1);
        let seen = record.seen_ms;
        assert!(record.is_open(seen + 90_000) && !record.is_left(seen + 90_000));
        assert!(!record.is_open(seen + 200_000) && record.is_left(seen + 200_000));
        record.ended_ms = Some(seen);
        assert!(!record.is_open(seen) && !record.is_left(seen + 200_000));
    }
}
