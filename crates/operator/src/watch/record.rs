//! What a watch saw, minute by minute, and its alarms into the history.
//!
//! In: minutes that are over, alarms as they change. Out: the file of `crates/history`, and notes of what
//! was not written. A thread of its own, so that no disk ever holds up the watch: a minute that comes while
//! it is busy is left out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use linerate_fleet::clock;
use linerate_history::{
    AlarmRecord, History, HistoryError, Recorded as _, SERIES_MAX, SeriesId, SeriesKey, Statistic,
};
use linerate_model::download::DownloadSeen;
use linerate_model::finding::{Direction, Metric, Suspect};
use linerate_model::inventory::{HostName, Layer};
use linerate_model::printable::before_hint;
use linerate_model::throughput::PairThroughput;
use linerate_model::units::counted;
use linerate_watch::{SeenFigure, SeenMinute, SeenOf};
use tokio::sync::mpsc::UnboundedSender;

/// Minutes and alarms that wait for the disk.
const WAITING_MAX: usize = 4;
/// How long the end of a watch waits for the last minute.
const END_WAIT: Duration = Duration::from_secs(5);

/// A rate of a round that ended in a minute.
pub(super) struct SeenRate {
    path: RatePath,
    rate_bps: f64,
}

/// Sender, receiver, and over which addresses.
type RatePath = (String, HostName, Layer);

impl SeenRate {
    /// What a front end sends to a host.
    pub(super) fn of_download(seen: &DownloadSeen) -> Self {
        let path = (seen.path.source(), seen.path.host.clone(), Layer::Underlay);
        Self { path, rate_bps: seen.rate_bps() }
    }

    /// What a host sends to another.
    pub(super) fn of_pair(seen: &PairThroughput) -> Self {
        Self { path: (seen.from.clone(), seen.to.clone(), seen.layer), rate_bps: seen.throughput_bps }
    }
}

/// A minute, and the rates of what ended in it.
struct Written {
    minute: SeenMinute,
    rates: Vec<SeenRate>,
}

/// What is written.
enum ToWrite {
    Minute(Written),
    Alarms(Vec<AlarmRecord>),
}

/// The thread that writes.
pub(super) struct Recorder {
    to_write: SyncSender<ToWrite>,
    ended: Receiver<()>,
    notes: UnboundedSender<String>,
    /// Whether the last minute was left out because the disk was busy.
    is_behind: bool,
    /// Minutes that are not in the file.
    missing: Arc<AtomicU64>,
}

impl Recorder {
    /// For these hosts of a cluster.
    pub(super) fn begin(
        cluster: String,
        hosts: Vec<(HostName, Layer)>,
        notes: UnboundedSender<String>,
    ) -> std::io::Result<Self> {
        let (to_write, waiting) = sync_channel::<ToWrite>(WAITING_MAX);
        let (end, ended) = sync_channel(1);
        let missing = Arc::new(AtomicU64::new(0));
        let (of_writer, all) = (Some(notes.clone()), Arc::clone(&missing));
        let mut writer = Writer { cluster, hosts, notes: of_writer, all_missing: all, ..Writer::default() };
        std::thread::Builder::new().name("history".to_owned()).spawn(move || {
            for one in waiting {
                match one {
                    ToWrite::Minute(one) => {
                        writer.write(&one.minute, &one.rates);
                        writer.write_alarms();
                    }
                    ToWrite::Alarms(alarms) => writer.alarms(alarms),
                }
            }
            // The watch waits for it; where it has ended already there is nothing to report.
            let _ = end.send(());
        })?;
        Ok(Self { to_write, ended, notes, is_behind: false, missing })
    }

    pub(super) fn write(&mut self, minute: SeenMinute, rates: Vec<SeenRate>) {
        match self.hand_over(ToWrite::Minute(Written { minute, rates })) {
            Ok(()) => self.is_behind = false,
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                if !self.is_behind {
                    drop(self.notes.send("history is not written: its disk does not answer".to_owned()));
                }
                self.is_behind = true;
                self.missing.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Whether alarms can be written now.
    pub(super) fn alarms(&self, alarms: Vec<AlarmRecord>) -> bool {
        self.hand_over(ToWrite::Alarms(alarms)).is_ok()
    }

    /// Never waits; in virtual time no disk is late.
    fn hand_over(&self, one: ToWrite) -> Result<(), TrySendError<ToWrite>> {
        if clock::is_virtual() {
            return self.to_write.send(one).map_err(|error| TrySendError::Disconnected(error.0));
        }
        self.to_write.try_send(one)
    }

    /// Minutes that are not in the file.
    pub(super) fn missing(&self) -> u64 {
        self.missing.load(Ordering::Relaxed)
    }

    /// Writes what waits; a disk that hangs is left.
    pub(super) fn end(self) {
        drop(self.to_write);
        let wait = if clock::is_virtual() { Duration::MAX } else { END_WAIT };
        let _ = self.ended.recv_timeout(wait);
    }
}

/// What the thread has.
#[derive(Default)]
struct Writer {
    cluster: String,
    hosts: Vec<(HostName, Layer)>,
    notes: Option<UnboundedSender<String>>,
    history: Option<History>,
    known: BTreeMap<(SeenOf, SeenFigure), Option<SeriesId>>,
    rates: BTreeMap<RatePath, Option<SeriesId>>,
    /// Alarms that could not be written yet.
    left: Vec<AlarmRecord>,
    /// Series of the file.
    count: usize,
    /// Minutes since it could not be written.
    missing: u64,
    /// All that could not be written.
    all_missing: Arc<AtomicU64>,
}

impl Writer {
    fn write(&mut self, minute: &SeenMinute, rates: &[SeenRate]) {
        match self.try_write(minute, rates) {
            Ok(()) if self.missing > 0 => {
                self.note(format!(
                    "history is written again; missing: {}",
                    counted(self.missing as usize, "minute")
                ));
                self.missing = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if self.missing == 0 {
                    self.note(format!("the watch goes on without history: {}", with_reason(&error)));
                }
                self.missing += 1;
                self.all_missing.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn try_write(&mut self, minute: &SeenMinute, rates: &[SeenRate]) -> Result<(), HistoryError> {
        let mut history = self.take_history()?;
        let written =
            self.values(&history, minute, rates).and_then(|values| history.append(minute.start_ms, &values));
        self.history = Some(history).filter(|_| !written.as_ref().is_err_and(HistoryError::is_of_server));
        written
    }

    /// What cannot be written is tried again with the next minute, in its newest state; that nothing can be
    /// written is reported by the minutes.
    fn alarms(&mut self, new: Vec<AlarmRecord>) {
        self.left.retain(|old| new.iter().all(|one| one.id() != old.id()));
        self.left.extend(new);
        let beyond = self.left.len().saturating_sub(AlarmRecord::KEPT_MAX as usize);
        self.left.drain(..beyond);
        self.write_alarms();
    }

    fn write_alarms(&mut self) {
        if self.left.is_empty() {
            return;
        }
        let Ok(mut history) = self.take_history() else { return };
        while let Some(alarm) = self.left.first() {
            if let Err(error) = history.keep(alarm) {
                if self.missing == 0 {
                    self.note(format!("alarms are not kept for the page yet: {}", with_reason(&error)));
                }
                if error.is_of_server() {
                    return;
                }
                break;
            }
            self.left.remove(0);
        }
        self.history = Some(history);
    }

    fn take_history(&mut self) -> Result<History, HistoryError> {
        if let Some(history) = self.history.take() {
            return Ok(history);
        }
        let history = History::open_default()?;
        self.count = history.list()?.len();
        Ok(history)
    }

    fn values(
        &mut self,
        history: &History,
        minute: &SeenMinute,
        rates: &[SeenRate],
    ) -> Result<Vec<(SeriesId, f64)>, HistoryError> {
        let mut values = Vec::with_capacity(minute.values.len() + rates.len());
        let mut left_out = 0;
        for SeenRate { path, rate_bps } in rates {
            let series = if let Some(known) = self.rates.get(path) {
                *known
            } else {
                let series = self.series(history, &self.rate_key(path))?;
                left_out += usize::from(series.is_none());
                self.rates.insert(path.clone(), series);
                series
            };
            values.extend(series.map(|series| (series, *rate_bps)));
        }
        for (of, figure, value) in &minute.values {
            let series = if let Some(known) = self.known.get(&(*of, *figure)) {
                *known
            } else {
                let series = self.series(history, &self.key(*of, *figure))?;
                left_out += usize::from(series.is_none());
                self.known.insert((*of, *figure), series);
                series
            };
            values.extend(series.map(|series| (series, *value)));
        }
        if left_out > 0 {
            self.note(format!(
                "history keeps {SERIES_MAX} series; {left_out} of pairs or downloads are left out"
            ));
        }
        Ok(values)
    }

    /// `None` where the file has as many as it may.
    fn series(&mut self, history: &History, key: &SeriesKey) -> Result<Option<SeriesId>, HistoryError> {
        let known = history.find(key)?;
        if known.is_some() || self.count >= SERIES_MAX {
            return Ok(known);
        }
        let new = history.series(key)?;
        self.count += 1;
        Ok(Some(new))
    }

    fn key(&self, of: SeenOf, figure: SeenFigure) -> SeriesKey {
        let name = |host: usize| self.hosts[host].0.clone();
        let (suspect, direction, host) = match of {
            SeenOf::Host(host, direction) => (Suspect::Host(name(host)), direction, host),
            SeenOf::Pair(from, to) => (Suspect::Pair(name(from), name(to)), Direction::Tx, from),
        };
        let (metric, statistic) = match figure {
            SeenFigure::Loss => (Metric::Loss, Statistic::Typical),
            SeenFigure::Rtt => (Metric::RttIdle, Statistic::Typical),
            SeenFigure::RttP95 => (Metric::RttIdle, Statistic::P95),
            SeenFigure::Retransmits => (Metric::Retransmits, Statistic::Typical),
        };
        let (cluster, layer) = (self.cluster.clone(), self.hosts[host].1);
        SeriesKey { cluster, suspect, direction, layer, metric, statistic }
    }

    fn rate_key(&self, (from, to, layer): &RatePath) -> SeriesKey {
        SeriesKey {
            cluster: self.cluster.clone(),
            suspect: Suspect::Pair(from.clone(), to.clone()),
            direction: Direction::Tx,
            layer: *layer,
            metric: Metric::Throughput,
            statistic: Statistic::Typical,
        }
    }

    fn note(&self, text: String) {
        // Without a watch that reads it there is none.
        if let Some(notes) = &self.notes {
            drop(notes.send(text));
        }
    }
}

/// An error with its reason, before the hint.
fn with_reason(error: &HistoryError) -> String {
    let reason = std::error::Error::source(error).map_or(String::new(), |reason| format!(": {reason}"));
    before_hint(&error.to_string(), &reason)
}

#[cfg(test)]
mod tests {
    use linerate_history::HistoryLimits;
    use linerate_model::download::DownloadPath;
    use linerate_store::{DatabaseError, StoreError};
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;

    /// A moment in 2026, Unix milliseconds.
    const START_MS: u64 = 29_750_000 * 60_000;

    fn writer(history: History) -> (Writer, UnboundedReceiver<String>) {
        let (notes, noted) = unbounded_channel();
        let hosts = ["arc-1", "arc-2"].map(|name| (name.to_owned(), Layer::Underlay)).to_vec();
        let cluster = "three".to_owned();
        (Writer { cluster, hosts, notes: Some(notes), history: Some(history), ..Writer::default() }, noted)
    }

    fn minute(number: u64) -> SeenMinute {
        let host = SeenOf::Host(1, Direction::Rx);
        let values = vec![(host, SeenFigure::Loss, 0.25), (SeenOf::Pair(0, 1), SeenFigure::RttP95, 80.0)];
        SeenMinute { start_ms: START_MS + number * 60_000, values }
    }

    fn noted(notes: &mut UnboundedReceiver<String>) -> Vec<String> {
        std::iter::from_fn(|| notes.try_recv().ok()).collect()
    }

    #[test]
    fn minutes_are_written_and_a_full_disk_is_reported_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("history.sqlite");
        let open =
            |reserve| History::open(&file, HistoryLimits { reserve, ..HistoryLimits::default() }).unwrap();
        let path = DownloadPath { host: "arc-1".into(), url: "http://a/b".into(), via: "192.0.2.1".into() };
        let seen = DownloadSeen { path: path.clone(), rates_bps: vec![256e3], failed: 0, failure: None };
        let (mut writer, mut notes) = writer(open(0));
        writer.write(&minute(0), &[]);
        assert_eq!(noted(&mut notes), [""; 0]);
        writer.history = Some(open(u64::MAX));
        writer.write(&minute(1), &[]);
        writer.write(&minute(2), &[]);
        let text = noted(&mut notes);
        assert!(text.len() == 1 && text[0].starts_with("the watch goes on without history: "), "{text:?}");
        assert_eq!(writer.all_missing.load(Ordering::Relaxed), 2);
        writer.history = Some(open(0));
        writer.write(&minute(3), &[SeenRate::of_download(&seen)]);
        assert_eq!(noted(&mut notes), ["history is written again; missing: 2 minutes"]);
        let history = open(0);
        let listed = history.list().unwrap();
        assert_eq!(listed.len(), 3);
        assert_eq!(listed[2].1.suspect, Suspect::Pair(path.source(), "arc-1".into()));
        let rates = history.read(listed[2].0, START_MS, START_MS + 4 * 60_000).unwrap();
        let rates: Vec<f64> = rates.iter().filter_map(|point| Some(point.measured?.median)).collect();
        assert!(rates.len() == 1 && (rates[0] / 256e3 - 1.0).abs() < 0.01, "{rates:?}");
        assert_eq!(listed[0].1.suspect, Suspect::Host("arc-2".into()));
        assert_eq!((listed[1].1.metric, listed[1].1.statistic), (Metric::RttIdle, Statistic::P95));
        let points = history.read(listed[0].0, START_MS, START_MS + 4 * 60_000).unwrap();
        let measured: Vec<bool> = points.iter().map(|point| point.measured.is_some()).collect();
        assert_eq!(measured, [true, false, false, true]);
    }

    #[test]
    fn an_error_of_a_server_names_it_and_why_before_the_command_that_helps() {
        let error = |is_full| {
            let (server, problem) = ("postgres://ann@localhost:5432/team".to_owned(), "it is".to_owned());
            let source = DatabaseError::Postgres { server, problem, is_full };
            HistoryError::from(StoreError::Database { doing: "add a minute", source })
        };
        assert!(error(true).is_of_server() && error(false).is_of_server());
        assert_eq!(
            with_reason(&error(false)),
            "database: add a minute in postgres://ann@localhost:5432/team: it is\n\
             hint: pg_isready -d postgres://ann@localhost:5432/team"
        );
        assert!(
            with_reason(&error(true)).contains(": it is\nhint: psql -d postgres://ann@localhost:5432/team ")
        );
    }

    #[test]
    fn series_beyond_the_bound_are_left_out_and_named_once() {
        let folder = tempfile::tempdir().unwrap();
        let history = History::open(
            &folder.path().join("history.sqlite"),
            HistoryLimits { reserve: 0, ..HistoryLimits::default() },
        );
        let (mut writer, mut notes) = writer(history.unwrap());
        writer.count = SERIES_MAX - 1;
        writer.write(&minute(0), &[]);
        writer.write(&minute(1), &[]);
        let text = noted(&mut notes);
        assert!(text.len() == 1 && text[0].contains("1 of pairs or downloads are left out"), "{text:?}");
        assert_eq!(writer.history.unwrap().list().unwrap().len(), 1);
    }
}
