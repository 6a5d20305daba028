//! Which downloads are slow: through a front end, from a host, of a URL, or all of them.
//!
//! In: rounds of downloads, of each URL through each front end in turns. Out: steps. A front end is compared
//! with the best other one of the same round, host and URL, which shows a large difference in the first round
//! and a smaller one when it lasts. What has no such peer is compared with what it was: a change point that
//! chance makes seldom, however many paths there are.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use linerate_diagnose::history::{doublings, undoubled};
use linerate_diagnose::rules::Rules;
use linerate_diagnose::stats::{Steps, change_points};
use linerate_model::download::{DownloadPath, DownloadSeen};
use linerate_model::finding::Metric;
use linerate_model::slow::{DownloadSuspect, SlowAlarm, SlowOf, UsualOf};

use crate::alarm::AlarmIds;
use crate::rules::{
    DOWNLOADS_COMPARED, ROUNDS_BEFORE, ROUNDS_CLEAR, ROUNDS_FAILED, ROUNDS_KEPT, ROUNDS_KEPT_MS,
    ROUNDS_LASTING, SLOWER_AT_ONCE, SLOWER_LASTING, SLOWER_STILL, VIA_SHARE,
};
use crate::slow::{SlowStep, median};

/// What was downloaded at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct DownloadRound {
    /// Its end, Unix milliseconds; never goes back.
    pub at_ms: u64,
    /// Number of the table of the inventory.
    pub table: usize,
    /// Each path once.
    pub seen: Vec<DownloadSeen>,
}

/// What is known of a path.
#[derive(Debug, Clone, Default)]
struct Past {
    /// When, and median rates, bit/s.
    rates: VecDeque<(u64, f64)>,
    /// Rounds in a row in which it was slower than its best peer, and when the first of them was.
    slower: (usize, u64),
    /// Rounds in a row in which every download failed, as those of its peers did.
    failed: (usize, u64),
}

/// Why a path is slow.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Slow {
    since_ms: u64,
    usual: f64,
    usual_of: UsualOf,
}

/// An alarm that is not over.
#[derive(Debug, Clone)]
struct OpenDownload {
    table: usize,
    /// What is common to its paths.
    common: DownloadSuspect,
    alarm: SlowAlarm,
    /// Rounds in a row in which all was as usual.
    clear: usize,
}

/// The reasoner over all downloads of a watch.
#[derive(Debug)]
pub struct DownloadWatch {
    ids: AlarmIds,
    past: BTreeMap<DownloadPath, Past>,
    open: Vec<OpenDownload>,
}

impl DownloadWatch {
    /// Without a past; alarms are numbered with those of others.
    #[must_use]
    pub fn new(ids: AlarmIds) -> Self {
        Self { ids, past: BTreeMap::new(), open: Vec::new() }
    }

    /// Alarms that are not over.
    pub fn open(&self) -> impl Iterator<Item = &SlowAlarm> {
        self.open.iter().map(|open| &open.alarm)
    }

    /// Learns what a path reached before this watch: when (Unix milliseconds), and bit/s, in time order.
    pub fn remember(&mut self, path: DownloadPath, rates: impl IntoIterator<Item = (u64, f64)>) {
        let past = self.past.entry(path).or_default();
        past.rates.extend(rates);
        keep_newest(&mut past.rates);
    }

    /// Learns of a round; gives what is to be reported.
    pub fn learn(&mut self, round: &DownloadRound) -> Vec<SlowStep> {
        let found: Vec<Option<Slow>> = round.seen.iter().map(|seen| self.judge(round, seen)).collect();
        let mut steps = self.close(round);
        // Paths of an alarm that lasts are part of what may be wider.
        let lasting = |seen: &DownloadSeen| {
            let of = self.open.iter().find(|open| open.covers(round.table, &seen.path))?;
            let slow = of.slow();
            is_still_slow(round, seen, slow.usual, slow.usual_of).then_some(slow)
        };
        let slow: Vec<Option<Slow>> =
            round.seen.iter().zip(found).map(|(seen, found)| found.or_else(|| lasting(seen))).collect();
        let paths: Vec<&DownloadPath> = round.seen.iter().map(|seen| &seen.path).collect();
        let is_slow: Vec<bool> = slow.iter().map(Option::is_some).collect();
        for common in suspects(&paths, &is_slow) {
            steps.extend(self.report(round, &slow, common));
        }
        steps
    }

    /// Whether a path is slow in this round; remembers it.
    fn judge(&mut self, round: &DownloadRound, seen: &DownloadSeen) -> Option<Slow> {
        let paths = self.past.len().max(1);
        let past = self.past.entry(seen.path.clone()).or_default();
        let rate = seen.rate_bps();
        if seen.rates_bps.len() + seen.failed as usize == 0 {
            return None;
        }
        let by_peers = past.slower_than_peers(round, seen);
        past.rates.push_back((round.at_ms, rate));
        keep_newest(&mut past.rates);
        by_peers.or_else(|| past.slower_than_before(round.at_ms, rate, paths))
    }

    /// Ends the alarms whose paths have been as usual for some rounds.
    fn close(&mut self, round: &DownloadRound) -> Vec<SlowStep> {
        let mut steps = Vec::new();
        self.open.retain_mut(|open| {
            let mut own = round.seen.iter().filter(|seen| open.covers(round.table, &seen.path)).peekable();
            if own.peek().is_none() {
                return true;
            }
            let Slow { usual, usual_of, .. } = open.slow();
            let is_slow = own.any(|seen| is_still_slow(round, seen, usual, usual_of));
            open.clear = if is_slow { 0 } else { open.clear + 1 };
            let lasts = open.clear < ROUNDS_CLEAR;
            if !lasts {
                steps.push(SlowStep::Closed(open.alarm.clone()));
            }
            lasts
        });
        steps
    }

    /// Opens an alarm or makes one wider; nothing where it is reported already.
    fn report(
        &mut self,
        round: &DownloadRound,
        slow: &[Option<Slow>],
        common: DownloadSuspect,
    ) -> Vec<SlowStep> {
        let is_of_round = |open: &OpenDownload| open.table == round.table;
        if self.open.iter().any(|open| is_of_round(open) && includes(&open.common, &common)) {
            return Vec::new();
        }
        let own: Vec<(&DownloadSeen, Slow)> = round
            .seen
            .iter()
            .zip(slow)
            .filter(|(seen, _)| common.has(&seen.path))
            .filter_map(|(seen, slow)| Some((seen, (*slow)?)))
            .collect();
        let Some((_, first)) = own.first() else { return Vec::new() };
        let now = median(own.iter().map(|(seen, _)| seen.rate_bps()));
        let is_part = |open: &OpenDownload| is_of_round(open) && includes(&common, &open.common);
        let (parts, rest): (Vec<_>, Vec<_>) = self.open.drain(..).partition(is_part);
        self.open = rest;
        let mut parts = parts.into_iter();
        let part = parts.next();
        let since = own.iter().map(|(_, slow)| slow.since_ms).min().unwrap_or(round.at_ms);
        let alarm = SlowAlarm {
            id: part.as_ref().map_or_else(|| self.ids.next(), |part| part.alarm.id),
            of: SlowOf::Download(shared(&own.iter().map(|(seen, _)| &seen.path).collect::<Vec<_>>())),
            since_ms: part.as_ref().map_or(since, |part| part.alarm.since_ms.min(since)),
            reported_ms: round.at_ms,
            usual: median(own.iter().map(|(_, slow)| slow.usual)),
            now,
            usual_of: first.usual_of,
            seen_with: own.len(),
            failure: own.iter().filter(|_| now <= 0.0).find_map(|(seen, _)| seen.failure.clone()),
            decided: None,
        };
        self.open.push(OpenDownload { table: round.table, common, alarm: alarm.clone(), clear: 0 });
        let reported = if part.is_some() { SlowStep::Widened(alarm) } else { SlowStep::Opened(alarm) };
        std::iter::once(reported).chain(parts.map(|part| SlowStep::Closed(part.alarm))).collect()
    }
}

impl OpenDownload {
    fn covers(&self, table: usize, path: &DownloadPath) -> bool {
        self.table == table && self.common.has(path)
    }

    fn slow(&self) -> Slow {
        let SlowAlarm { since_ms, usual, usual_of, .. } = self.alarm;
        Slow { since_ms, usual, usual_of }
    }
}

impl Past {
    /// Slower than the best other front end: at once where it is far slower, else when it lasts.
    fn slower_than_peers(&mut self, round: &DownloadRound, seen: &DownloadSeen) -> Option<Slow> {
        let (rounds, since_ms) = self.slower;
        let Some((best, times)) = slower_than_best(round, seen).filter(|(_, times)| *times >= SLOWER_LASTING)
        else {
            self.slower = (0, 0);
            return None;
        };
        self.slower = (rounds + 1, if rounds == 0 { round.at_ms } else { since_ms });
        let is_enough = times >= SLOWER_AT_ONCE || self.slower.0 >= ROUNDS_LASTING;
        is_enough.then_some(Slow { since_ms: self.slower.1, usual: best, usual_of: UsualOf::Peers })
    }

    /// Slower than it was itself; `rates` ends with this round.
    fn slower_than_before(&mut self, at_ms: u64, rate: f64, paths: usize) -> Option<Slow> {
        let last = self.rates.len().saturating_sub(ROUNDS_LASTING);
        let before = median(self.rates.iter().take(last).map(|(_, rate)| *rate));
        // A daily cycle is no change: each day has its lowest level.
        let levels: Vec<f64> =
            self.rates.iter().take(last).map(|(_, rate)| *rate).filter(|rate| *rate > 0.0).collect();
        let lowest =
            levels.windows(ROUNDS_BEFORE).map(|level| median(level.iter().copied())).reduce(f64::min);
        let slow = |since_ms, usual| Slow { since_ms, usual, usual_of: UsualOf::Before };
        let (failed, since_ms) = self.failed;
        if rate <= 0.0 {
            self.failed = (failed + 1, if failed == 0 { at_ms } else { since_ms });
            return (self.failed.0 >= ROUNDS_FAILED).then(|| slow(self.failed.1, before));
        }
        self.failed = (0, 0);
        let lowest = lowest?;
        if self.rates.iter().skip(last).any(|(_, rate)| *rate * SLOWER_LASTING >= lowest) {
            return None;
        }
        let rules = &Rules::DEFAULT.history;
        let values: Vec<f64> =
            self.rates.iter().map(|(_, rate)| doublings(*rate, Metric::Throughput)).collect();
        let steps = Steps { values: &values, effect_min: SLOWER_LASTING.log2() };
        let found = change_points(&[steps], rules).pop()?.pop()?;
        // Each path has its share of what chance may make over all of them.
        let is_sure = found.chance * paths as f64 <= rules.false_discoveries;
        (is_sure && found.after < found.before)
            .then(|| slow(self.rates[found.at].0, undoubled(found.before, Metric::Throughput)))
    }
}

/// The median rate of the best other front end, and how many times slower every download of this one was;
/// `None` without one that is beyond all of its own.
fn slower_than_best(round: &DownloadRound, seen: &DownloadSeen) -> Option<(f64, f64)> {
    let is_peer = |other: &&DownloadSeen| {
        other.path.host == seen.path.host
            && other.path.url == seen.path.url
            && other.path.via != seen.path.via
            && other.rates_bps.len() >= DOWNLOADS_COMPARED
    };
    let best = round.seen.iter().filter(is_peer).max_by(|a, b| a.rate_bps().total_cmp(&b.rate_bps()))?;
    if seen.rates_bps.len() + (seen.failed as usize) < DOWNLOADS_COMPARED {
        return None;
    }
    let (most, least) = (
        seen.rates_bps.iter().copied().fold(0.0, f64::max),
        best.rates_bps.iter().copied().fold(f64::MAX, f64::min),
    );
    let rate = seen.rate_bps();
    let times = if rate > 0.0 { best.rate_bps() / rate } else { f64::INFINITY };
    (most < least).then(|| (best.rate_bps(), times))
}

/// Whether a path of an alarm is not as usual yet.
fn is_still_slow(round: &DownloadRound, seen: &DownloadSeen, usual: f64, usual_of: UsualOf) -> bool {
    let rate = seen.rate_bps();
    let than = |usual: f64| rate <= 0.0 || rate * SLOWER_STILL < usual;
    match (usual_of, slower_than_best(round, seen)) {
        (UsualOf::Peers, Some((best, _))) => than(best),
        (UsualOf::Peers, None) => rate <= 0.0,
        (UsualOf::Before, _) => than(usual),
    }
}

fn keep_newest(rates: &mut VecDeque<(u64, f64)>) {
    let newest_ms = rates.back().map_or(0, |(at_ms, _)| *at_ms);
    while let Some((at_ms, _)) = rates.front()
        && rates.len() > ROUNDS_KEPT.0
        && (rates.len() > ROUNDS_KEPT.1 || at_ms + ROUNDS_KEPT_MS < newest_ms)
    {
        rates.pop_front();
    }
}

/// Whether all paths of the second are paths of the first.
fn includes(wide: &DownloadSuspect, narrow: &DownloadSuspect) -> bool {
    let is = |wide: &Option<String>, narrow: &Option<String>| wide.is_none() || wide == narrow;
    is(&wide.host, &narrow.host) && is(&wide.url, &narrow.url) && is(&wide.via, &narrow.via)
}

/// What all of these paths have in common.
fn shared(paths: &[&DownloadPath]) -> DownloadSuspect {
    let one = |of: fn(&DownloadPath) -> &String| {
        let all: BTreeSet<&String> = paths.iter().map(|path| of(path)).collect();
        all.first().filter(|_| all.len() == 1).map(|one| (*one).clone())
    };
    DownloadSuspect { host: one(|path| &path.host), url: one(|path| &path.url), via: one(|path| &path.via) }
}

/// The fewest suspects that explain which paths are slow: all, a front end, a host, a URL, a single path.
fn suspects(paths: &[&DownloadPath], is_slow: &[bool]) -> Vec<DownloadSuspect> {
    let mut left: BTreeSet<usize> = (0..paths.len()).filter(|at| is_slow[*at]).collect();
    let mut found = Vec::new();
    let candidates = candidates(paths);
    while !left.is_empty() {
        let explains = |common: &DownloadSuspect| {
            let all = || (0..paths.len()).filter(|at| common.has(paths[*at]));
            let slow = all().filter(|at| is_slow[*at]).count();
            // Through a slow front end a small file may be as fast as ever; of a host or a URL all is slow.
            let is_via = common.via.is_some() && common.host.is_none() && common.url.is_none();
            let share = if is_via { VIA_SHARE } else { 1.0 };
            let is_one = slow as f64 >= share * all().count() as f64;
            if is_one { all().filter(|at| left.contains(at)).count() } else { 0 }
        };
        // Of those that explain as much the first, which is the simplest.
        let best = candidates.iter().rev().max_by_key(|common| explains(common));
        let Some(best) = best.filter(|best| explains(best) > 0) else { break };
        left.retain(|at| !best.has(paths[*at]));
        found.push(best.clone());
    }
    found
}

/// What may be common to slow paths, the simplest first.
fn candidates(paths: &[&DownloadPath]) -> Vec<DownloadSuspect> {
    let each = |of: fn(&DownloadPath) -> DownloadSuspect| {
        let all: BTreeSet<DownloadSuspect> = paths.iter().map(|path| of(path)).collect();
        all.into_iter()
    };
    let of_path = |path: &DownloadPath| DownloadSuspect {
        host: Some(path.host.clone()),
        url: Some(path.url.clone()),
        via: Some(path.via.clone()),
    };
    std::iter::once(DownloadSuspect::default())
        .chain(each(|path| DownloadSuspect { via: Some(path.via.clone()), ..DownloadSuspect::default() }))
        .chain(each(|path| DownloadSuspect { host: Some(path.host.clone()), ..DownloadSuspect::default() }))
        .chain(each(|path| DownloadSuspect { url: Some(path.url.clone()), ..DownloadSuspect::default() }))
        .chain(each(of_path))
        .collect()
}
