//! Downloads of the inventory, round after round, over the sessions of the watch.
//!
//! In: tables `[[http]]`, and what the history knows of their paths. Out: rounds, and what is slow in them.
//! One table downloads at a time, so that no download shares a link with another of ours.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::{Fleet, clock};
use linerate_history::{History, HistoryError};
use linerate_model::download::{DownloadPath, DownloadSeen, DownloadSpec, shown_url};
use linerate_model::http::HttpFetch;
use linerate_model::inventory::{HostName, Inventory, Layer};
use linerate_model::kind::{HttpPlan, TestKind};
use linerate_model::plan::Test;
use linerate_model::sample::Outcome;
use linerate_watch::metrics::DownloadFigures;
use linerate_watch::{AlarmIds, DownloadRound, DownloadWatch, SlowStep};
use tokio::sync::{Mutex, mpsc};
use tokio::time::{MissedTickBehavior, interval};

use crate::observe::measure;

/// Rounds that wait to be judged; more wait with their downloads.
const WAITING_MAX: usize = 4;
/// What the history knows is of interest so long, milliseconds: minutes are kept for a week.
const REMEMBERED_MS: u64 = 7 * 86_400_000;

/// What a path reached before this watch: Unix milliseconds, and bit/s.
type Remembered = Vec<(DownloadPath, Vec<(u64, f64)>)>;

/// What comes from the tasks that download.
enum FromTables {
    Remembered(Remembered),
    Round(DownloadRound),
}

/// What was counted of a path.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    rate_bps: f64,
    downloads: u64,
    failed: u64,
}

/// All tables.
pub(super) struct Downloads {
    from_tables: mpsc::Receiver<FromTables>,
    watch: DownloadWatch,
    counts: BTreeMap<DownloadPath, Counts>,
}

impl Downloads {
    /// Begins to download, as soon as there are sessions.
    pub(super) fn begin(
        fleet: &Arc<Fleet>,
        inventory: &Inventory,
        ids: AlarmIds,
        notes: &mpsc::UnboundedSender<String>,
    ) -> Self {
        let (to_us, from_tables) = mpsc::channel(WAITING_MAX);
        let inventory = Arc::new(inventory.clone());
        let turn = Arc::new(Mutex::new(()));
        for (number, spec) in inventory.downloads.iter().cloned().enumerate() {
            let table = Table {
                number,
                spec,
                fleet: Arc::clone(fleet),
                inventory: Arc::clone(&inventory),
                turn: Arc::clone(&turn),
                notes: notes.clone(),
            };
            tokio::spawn(table.download(to_us.clone()));
        }
        let (watch, counts) = (DownloadWatch::new(ids), BTreeMap::new());
        Self { from_tables, watch, counts }
    }

    /// What was downloaded next, and what is to be reported of it; waits for it.
    pub(super) async fn next(&mut self) -> (DownloadRound, Vec<SlowStep>) {
        loop {
            match self.from_tables.recv().await {
                Some(FromTables::Remembered(all)) => {
                    for (path, rates) in all {
                        self.watch.remember(path, rates);
                    }
                }
                Some(FromTables::Round(round)) => {
                    self.count(&round);
                    let steps = self.watch.learn(&round);
                    return (round, steps);
                }
                None => std::future::pending().await,
            }
        }
    }

    fn count(&mut self, round: &DownloadRound) {
        for seen in &round.seen {
            let counts = self.counts.entry(seen.path.clone()).or_default();
            counts.rate_bps = seen.rate_bps();
            counts.downloads += seen.rates_bps.len() as u64;
            counts.failed += u64::from(seen.failed);
        }
    }

    pub(super) fn watch(&self) -> &DownloadWatch {
        &self.watch
    }

    pub(super) fn figures(&self) -> Vec<DownloadFigures<'_>> {
        let figures = |(path, counts): (_, &Counts)| DownloadFigures {
            path,
            rate_bps: counts.rate_bps,
            downloads: counts.downloads,
            failed: counts.failed,
        };
        self.counts.iter().map(figures).collect()
    }
}

/// A table of the inventory.
struct Table {
    number: usize,
    spec: DownloadSpec,
    fleet: Arc<Fleet>,
    inventory: Arc<Inventory>,
    /// Whose turn it is to download.
    turn: Arc<Mutex<()>>,
    notes: mpsc::UnboundedSender<String>,
}

impl Table {
    /// Until the watch ends.
    async fn download(self, to_watch: mpsc::Sender<FromTables>) {
        let cluster = self.inventory.name.clone();
        let urls: Vec<String> = self.spec.urls.iter().map(|url| shown_url(url)).collect();
        // Without a history nothing is known; the watch reports what is wrong with it when it writes.
        if let Ok(Ok(known)) = tokio::task::spawn_blocking(move || remembered(&cluster, &urls)).await
            && to_watch.send(FromTables::Remembered(known)).await.is_err()
        {
            return;
        }
        let mut rounds = interval(Duration::from_secs(self.spec.every_s.into()));
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut noted = String::new();
        loop {
            rounds.tick().await;
            let turn = self.turn.lock().await;
            let (seen, missing) = self.round().await;
            drop(turn);
            // Once for each reason: a host that is away is a gap of the watch already.
            if missing != noted {
                if !missing.is_empty() {
                    drop(self.notes.send(format!("not downloaded: {missing}")));
                }
                noted = missing;
            }
            let round = DownloadRound { at_ms: clock::now_ms(), table: self.number, seen };
            if !round.seen.is_empty() && to_watch.send(FromTables::Round(round)).await.is_err() {
                return;
            }
        }
    }

    /// Each URL from each host through each front end; why one was not downloaded.
    async fn round(&self) -> (Vec<DownloadSeen>, String) {
        let (mut seen, mut missing) = (Vec::new(), String::new());
        for host in self.hosts() {
            for url in &self.spec.urls {
                let plan = self.spec.plan(url);
                let kind = TestKind::from(plan.clone());
                let test = Test::new(host.clone(), shown_url(url), Layer::Underlay, kind);
                let sample = measure::alone(&self.fleet, &self.inventory, &test).await;
                match sample.outcome {
                    Outcome::Measured(measured) => {
                        let fetches = measured.tx.map(|tx| tx.http).unwrap_or_default();
                        seen.extend(of_each(&host, &plan, &fetches));
                    }
                    Outcome::NothingThrough { .. } => {}
                    Outcome::Invalid { reason } | Outcome::Gap { reason } => missing = reason,
                }
            }
        }
        (seen, missing)
    }

    /// Who downloads: named hosts, and of a group the first that has a session.
    fn hosts(&self) -> Vec<HostName> {
        let has_session = |host: &&HostName| self.fleet.link(host).is_ok();
        let first = |names: Vec<&HostName>| names.into_iter().find(has_session).cloned();
        if self.spec.from.is_empty() {
            return first(self.inventory.hosts.iter().map(|host| &host.name).collect()).into_iter().collect();
        }
        let mut hosts = Vec::new();
        for name in &self.spec.from {
            let members: Vec<&HostName> =
                self.inventory.members(name).into_iter().map(|host| &host.name).collect();
            let host = if members.is_empty() { Some(name.clone()) } else { first(members) };
            hosts.extend(host.filter(|host| !hosts.contains(host)));
        }
        hosts
    }
}

/// What was downloaded through each front end.
fn of_each(host: &str, plan: &HttpPlan, fetches: &[HttpFetch]) -> Vec<DownloadSeen> {
    let mut all: Vec<DownloadSeen> = Vec::new();
    for fetch in fetches {
        let known = all.iter().position(|seen| seen.path.via == fetch.via);
        let at = known.unwrap_or_else(|| {
            let (host, url) = (host.to_owned(), shown_url(&plan.url));
            let path = DownloadPath { host, url, via: fetch.via.clone() };
            all.push(DownloadSeen { path, rates_bps: Vec::new(), failed: 0, failure: None });
            all.len() - 1
        });
        let seen = &mut all[at];
        let is_answered = fetch.status.is_some_and(|status| (200..300).contains(&status));
        // A body that is so slow that its time was over has a rate.
        let is_cut_by_time = is_answered && fetch.total_ms >= f64::from(plan.timeout_ms);
        match &fetch.error {
            Some(reason) if !is_cut_by_time || fetch.bytes == 0 => {
                seen.failed += 1;
                seen.failure.get_or_insert_with(|| reason.clone());
            }
            _ => seen.rates_bps.extend(fetch.rate_bps()),
        }
    }
    all
}

/// What the history of a cluster has of these URLs.
fn remembered(cluster: &str, urls: &[String]) -> Result<Remembered, HistoryError> {
    let history = History::open_to_read()?;
    let now_ms = clock::now_ms();
    let mut all = Vec::new();
    for (series, key) in history.list()? {
        let Some(path) = key.download().filter(|path| key.cluster == cluster && urls.contains(&path.url))
        else {
            continue;
        };
        let points = history.read(series, now_ms.saturating_sub(REMEMBERED_MS), now_ms)?;
        let rates = points.iter().filter_map(|point| Some((point.start_ms, point.measured?.median)));
        all.push((path, rates.collect()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use linerate_history::{SeriesKey, Statistic};
    use linerate_model::finding::{Direction, Metric, Suspect};

    use super::*;

    fn fetch(via: &str, bytes: u64, body_ms: f64) -> HttpFetch {
        HttpFetch {
            via: via.into(),
            status: Some(200),
            bytes,
            body_ms: Some(body_ms),
            total_ms: body_ms,
            ..HttpFetch::default()
        }
    }

    #[test]
    fn a_body_whose_time_was_over_has_a_rate_and_one_that_broke_has_failed() {
        let spec = DownloadSpec {
            urls: vec!["http://a/b?key=secret".into()],
            via: Vec::new(),
            from: Vec::new(),
            every_s: 60,
            bytes_max: 1_000_000,
            timeout_ms: 10_000,
        };
        let plan = spec.plan(&spec.urls[0]);
        let error = |text: &str| Some(text.to_owned());
        let fetches = [
            fetch("x", 1_000_000, 80.0),
            HttpFetch {
                error: error("could not read the body within 10 s"),
                ..fetch("y", 320_000, 10_000.0)
            },
            HttpFetch { error: error("reset"), ..fetch("y", 320_000, 50.0) },
            HttpFetch { error: error("status 503"), status: Some(503), ..fetch("y", 10, 1.0) },
        ];
        let seen = of_each("arc-1", &plan, &fetches);
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].path.source(), "http://a/b through x");
        assert!((seen[0].rate_bps() - 1e8).abs() < 1.0 && (seen[1].rate_bps() - 256e3).abs() < 1.0);
        assert_eq!((seen[1].failed, seen[1].failure.as_deref()), (2, Some("reset")));
    }

    #[test]
    fn a_series_of_the_history_is_known_again() {
        let path =
            DownloadPath { host: "arc-1".into(), url: "http://a/b".into(), via: "192.0.2.1:80".into() };
        let key = SeriesKey {
            cluster: "c".into(),
            suspect: Suspect::Pair(path.source(), path.host.clone()),
            direction: Direction::Tx,
            layer: Layer::Underlay,
            metric: Metric::Throughput,
            statistic: Statistic::Typical,
        };
        assert_eq!(key.download(), Some(path));
        let of_hosts = Suspect::Pair("a".into(), "b".into());
        assert_eq!(SeriesKey { suspect: of_hosts, ..key }.download(), None);
    }
}
