//! `linerate history`: what moved over all surveys of the store, when, and which settings changed then; and
//! what a watch measured of a host or pair meanwhile.

use std::fmt::Write as _;

use linerate_diagnose::history::{self, LevelChange, RunCells, SeriesHistory, doublings, undoubled};
use linerate_diagnose::rules::Rules;
use linerate_diagnose::stats::{Steps, change_points};
use linerate_fleet::clock;
use linerate_history::{History as MinuteHistory, SeriesId, SeriesKey, Statistic};
use linerate_model::download::is_source;
use linerate_model::exit::ExitCode;
use linerate_model::fact_change::FactChange;
use linerate_model::finding::{Metric, Suspect};
use linerate_model::printable::one_line;
use linerate_model::units;
use linerate_report::heat::Style;
use linerate_report::history::{BARS_MAX, HistoryView, MovedView, WatchedView};
use linerate_store::{Store, StoredSurvey};

use super::out;
use super::quantity::{self, Since};
use crate::cli::documents::{History, HistoryRun, Moved, WatchedMove, WatchedSeries};

/// Show what moved over all surveys, when, and which settings changed then.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate history\n  linerate history vs-4 --since 30d\n  linerate history arc-1 arc-2\n\nA change shows from 6 surveys on, 3 before and 3 after it. Of a named host or pair, what `linerate watch`\nmeasured is drawn too."
)]
pub(super) struct Args {
    /// Also draw the series of this host
    host: Option<String>,
    /// Of this pair instead
    #[arg(value_name = "PEER")]
    peer: Option<String>,
    /// How long ago, e.g. 12h, 7d, or a date (UTC), e.g. 2026-11-24
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = quantity::since)]
    since: Since,
    /// Cluster; defaults to that of the last survey
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Whether a series is of what was named.
    fn names(&self, suspect: &Suspect) -> bool {
        match (&self.host, &self.peer, suspect) {
            (Some(host), None, Suspect::Host(of)) => host == of,
            // What it downloads is its own.
            (Some(host), None, Suspect::Pair(from, of)) => is_source(from) && host == of,
            (Some(a), Some(b), Suspect::Pair(from, to)) => (a == from && b == to) || (a == to && b == from),
            _ => false,
        }
    }

    /// Whether a change is of it, or of a pair of the named host; without names all are.
    fn concerns(&self, suspect: &Suspect) -> bool {
        let is_end = |host: &String| matches!(suspect, Suspect::Pair(a, b) if a == host || b == host);
        let Some(host) = &self.host else { return true };
        self.names(suspect) || *suspect == Suspect::All || (self.peer.is_none() && is_end(host))
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let since_ms = args.since.unix_ms(clock::now_ms());
    let store = Store::open_to_read()?;
    let mut surveys = store.list_surveys(since_ms)?;
    let minutes = MinuteHistory::open_to_read()?;
    let mut listed = minutes.list()?;
    let of_survey = || surveys.last().map(|one| one.cluster.clone());
    let of_watch = || listed.last().map(|(_, key)| key.cluster.clone());
    let cluster = args.cluster.clone().or_else(of_survey).or_else(of_watch).unwrap_or_default();
    surveys.retain(|one| one.cluster == cluster);
    listed.retain(|(_, key)| key.cluster == cluster);
    let log = store.list_changes(&[], since_ms, "")?;
    let log: Vec<FactChange> =
        log.changes.into_iter().filter(|one| one.cluster == cluster).map(|one| one.change).collect();

    let runs: Vec<RunCells<'_>> =
        surveys.iter().map(|one| RunCells { at_ms: one.start_ms, cells: &one.cells }).collect();
    let rules = &Rules::DEFAULT.history;
    let series = history::series(&runs, rules);
    // All series are searched whatever was asked for: what is chance depends on how many were searched.
    let mut moved = history::moved(&runs, &series, rules);
    moved.retain(|change| args.concerns(&series[change.series].suspect));
    let asked: Vec<usize> = (0..series.len()).filter(|i| args.names(&series[*i].suspect)).collect();
    let watched = watched(args, &minutes, &listed, since_ms)?;
    known(args, &surveys, asked.is_empty() && watched.is_empty())?;
    let view = HistoryView {
        cluster: &cluster,
        runs: surveys.iter().map(|one| (one.run.as_str(), one.start_ms)).collect(),
        series: &series,
        moved: moved
            .iter()
            .map(|change| MovedView { change, settings: settings(&surveys, &series, change, &log) })
            .collect(),
        asked: asked.iter().map(|i| &series[*i]).collect(),
        watched: watched.iter().filter_map(|one| watched_view(one, since_ms)).collect(),
    };
    if args.json {
        let shown = document(since_ms, &cluster, &surveys, (&series, &asked), &moved, &log);
        out::document(linerate_report::history::verdict(&view), History { watched: &watched, ..shown })?;
        return Ok(ExitCode::Ok);
    }
    if surveys.is_empty() && listed.is_empty() {
        let since = units::date_minute(since_ms);
        out::print(&format!("no surveys since {since} UTC\nhint: start with `linerate survey HOST HOST`"))?;
        return Ok(ExitCode::Ok);
    }
    let mut text = linerate_report::history::text(&view, Style::detect());
    let least = 2 * rules.segment_min;
    if args.host.is_none() && !listed.is_empty() {
        let _ =
            writeln!(text, "a watch measured {} series; `linerate history HOST` draws them", listed.len());
    }
    if surveys.len() < least {
        let _ = writeln!(text, "a change shows from {least} surveys on");
    }
    out::print(text.trim_end())?;
    Ok(ExitCode::Ok)
}

/// What a watch measured of what was named.
fn watched(
    args: &Args,
    history: &MinuteHistory,
    listed: &[(SeriesId, SeriesKey)],
    since_ms: u64,
) -> anyhow::Result<Vec<WatchedSeries>> {
    let mut all = Vec::new();
    for (series, key) in listed.iter().filter(|(_, key)| args.names(&key.suspect)) {
        let points = history.read(*series, since_ms, clock::now_ms())?;
        if points.iter().any(|point| point.measured.is_some()) {
            all.push(WatchedSeries { key: key.clone(), unit: key.metric.unit(), points, moved: Vec::new() });
        }
    }
    all.sort_by(|a, b| (&a.key.suspect, a.key.direction).cmp(&(&b.key.suspect, b.key.direction)));
    find_moves(&mut all);
    Ok(all)
}

/// Change points of what rounds measured, downloads and throughput, over all of them at once.
fn find_moves(all: &mut [WatchedSeries]) {
    let rules = &Rules::DEFAULT.history;
    let mut of_rounds: Vec<&mut WatchedSeries> =
        all.iter_mut().filter(|one| one.key.metric == Metric::Throughput).collect();
    let rounds: Vec<Vec<(u64, f64)>> = of_rounds
        .iter()
        .map(|one| one.points.iter().filter_map(|p| Some((p.start_ms, p.measured?.median))).collect())
        .collect();
    let levels: Vec<Vec<f64>> = rounds
        .iter()
        .map(|rounds| rounds.iter().map(|(_, rate)| doublings(*rate, Metric::Throughput)).collect())
        .collect();
    let steps: Vec<Steps<'_>> =
        levels.iter().map(|values| Steps { values, effect_min: rules.throughput_min }).collect();
    for ((one, rounds), points) in of_rounds.iter_mut().zip(&rounds).zip(change_points(&steps, rules)) {
        one.moved = points
            .iter()
            .map(|point| WatchedMove {
                at_ms: rounds[point.at].0,
                before: undoubled(point.before, Metric::Throughput),
                after: undoubled(point.after, Metric::Throughput),
                chance: point.chance,
            })
            .collect();
    }
}

/// The same as bars from the first measurement, or from this moment, to now.
fn watched_view(series: &WatchedSeries, since_ms: u64) -> Option<WatchedView> {
    let measured = || series.points.iter().filter_map(|point| Some((point, point.measured?)));
    let (first, _) = measured().next()?;
    let start = first.start_ms.max(since_ms);
    let elapsed = clock::now_ms().saturating_sub(start);
    let span = (elapsed / BARS_MAX as u64).max(first.span_ms).max(1);
    let mut values = vec![None; (elapsed / span + 1).min(BARS_MAX as u64) as usize];
    for (point, found) in measured() {
        let at = (point.start_ms.saturating_sub(start) / span) as usize;
        let last = values.len() - 1;
        let value: &mut Option<f64> = &mut values[at.min(last)];
        *value = Some(value.unwrap_or(0.0).max(found.max));
    }
    let mut medians: Vec<f64> = measured().map(|(_, found)| found.median).collect();
    medians.sort_by(f64::total_cmp);
    let SeriesKey { suspect, direction, layer, metric, statistic, .. } = &series.key;
    let name = match (metric, statistic) {
        // Probes of a watch, not the flows of a survey.
        (Metric::Loss, _) => format!("loss, {layer}"),
        (metric, Statistic::Typical) => format!("{}, {layer}", metric.label()),
        (metric, Statistic::P95) => format!("{} p95, {layer}", metric.label()),
    };
    Some(WatchedView {
        moved: series.moved.iter().map(|one| (one.at_ms, one.before, one.after)).collect(),
        heading: suspect.label(*direction),
        name,
        unit: series.unit,
        median: medians[medians.len() / 2],
        most: measured().map(|(_, found)| found.max).fold(0.0, f64::max),
        values,
    })
}

/// Refuses a host or pair without a measurement.
fn known(args: &Args, surveys: &[StoredSurvey], is_unseen: bool) -> anyhow::Result<()> {
    let (Some(host), true, false) = (&args.host, is_unseen, surveys.is_empty()) else { return Ok(()) };
    let hint = "hint: `linerate history` lists what moved; `--since` and `--cluster` choose surveys";
    match &args.peer {
        Some(peer) => anyhow::bail!("no survey measured {} and {}\n{hint}", one_line(host), one_line(peer)),
        // Of two hosts there are pairs only.
        None if measured(surveys, host) => Ok(()),
        None => anyhow::bail!("no survey measured {}\n{hint}", one_line(host)),
    }
}

fn measured(surveys: &[StoredSurvey], host: &str) -> bool {
    surveys.iter().flat_map(|one| &one.cells).any(|cell| cell.from == host || cell.to == host)
}

/// Settings of the hosts in question that changed between two surveys.
fn settings<'l>(
    surveys: &[StoredSurvey],
    series: &[SeriesHistory],
    change: &LevelChange,
    log: &'l [FactChange],
) -> Vec<&'l FactChange> {
    let run = |index: usize| (surveys[index].run.as_str(), surveys[index].start_ms);
    history::settings_between(&series[change.series].suspect, run(change.last), run(change.first), log)
}

/// The same for programs: series that moved or were asked for.
fn document<'a>(
    since_ms: u64,
    cluster: &'a str,
    surveys: &'a [StoredSurvey],
    (series, asked): (&'a [SeriesHistory], &[usize]),
    moved: &[LevelChange],
    log: &'a [FactChange],
) -> History<'a> {
    let mut shown: Vec<usize> =
        moved.iter().map(|change| change.series).chain(asked.iter().copied()).collect();
    shown.sort_unstable();
    shown.dedup();
    let index = |number: usize| shown.iter().position(|one| *one == number).unwrap_or_default();
    let one = |change: &LevelChange| Moved {
        settings: settings(surveys, series, change, log),
        change: LevelChange { series: index(change.series), ..change.clone() },
    };
    History {
        since_ms,
        cluster,
        runs: surveys.iter().map(|one| HistoryRun { run: &one.run, start_ms: one.start_ms }).collect(),
        moved: moved.iter().map(one).collect(),
        series: shown.iter().map(|i| &series[*i]).collect(),
        watched: &[],
    }
}

#[cfg(test)]
mod tests {
    use linerate_history::{HistoryPoint, SlotSummary};
    use linerate_model::finding::Direction;
    use linerate_model::inventory::Layer;

    use super::*;

    /// A series of rounds, every five minutes.
    fn series(suspect: Suspect, rates: &[f64]) -> WatchedSeries {
        let key = SeriesKey {
            cluster: "c".into(),
            suspect,
            direction: Direction::Tx,
            layer: Layer::Underlay,
            metric: Metric::Throughput,
            statistic: Statistic::Typical,
        };
        let point = |(at, rate): (usize, &f64)| HistoryPoint {
            start_ms: at as u64 * 300_000,
            span_ms: 60_000,
            measured: Some(SlotSummary { min: *rate, median: *rate, max: *rate, count: 1 }),
        };
        let points = rates.iter().enumerate().map(point).collect();
        WatchedSeries { key, unit: Metric::Throughput.unit(), points, moved: Vec::new() }
    }

    #[test]
    fn what_rounds_measured_has_the_moment_and_the_levels_of_its_fall() {
        let rates: Vec<f64> = (0..60)
            .map(|at| if at < 40 { 800e6 } else { 200e6 } * (1.0 + f64::from(at % 5) / 50.0))
            .collect();
        let source = Suspect::Pair("http://files/a through 192.0.2.11".into(), "arc-1".into());
        let pair = Suspect::Pair("arc-2".into(), "arc-1".into());
        let mut all = [
            series(source, &rates),
            series(pair.clone(), &rates),
            series(pair.clone(), &[800e6; 60]),
            series(pair, &rates),
        ];
        all[3].key.metric = Metric::Loss;
        find_moves(&mut all);
        for fallen in &all[..2] {
            let [one] = fallen.moved[..] else { panic!("{:?}", fallen.moved) };
            assert_eq!(one.at_ms, 40 * 300_000);
            let (before, after) = (one.before / 832e6, one.after / 208e6);
            assert!((before - 1.0).abs() < 0.01 && (after - 1.0).abs() < 0.01, "{one:?}");
        }
        assert!(all[2..].iter().all(|one| one.moved.is_empty()));
    }
}
