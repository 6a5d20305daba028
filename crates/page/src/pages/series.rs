//! Series of a suspect as drawings: over surveys with the levels and settings that changed, and over the
//! minutes of a watch with its alarms and the settings that changed.

use linerate_diagnose::history::SeriesHistory;
use linerate_history::{AlarmRecord, SeriesKey, Statistic};
use linerate_model::fact_change::FactChange;
use linerate_model::finding::{Direction, Metric, Suspect};
use linerate_model::slow::{SlowAlarm, SlowOf};
use linerate_model::units;
use linerate_model::watch::WatchAlarm;
use linerate_report::timeline::{LevelBand, SettingFlag, TimePoint, Timeline, draw};
use linerate_report::{changes, history, watch};
use maud::{Markup, html};

use crate::layout::Shown;
use crate::view::{DOWNLOADS_MAX, Minutes, OverTime};

/// Series that are drawn open; the rest is closed.
const OPEN_MAX: usize = 4;
/// Values of a series that are listed, the newest.
const VALUES_MAX: usize = 100;

/// All series of a suspect: those that moved come first.
pub(super) fn section(shown: &Shown<'_>, is_of: &dyn Fn(&Suspect) -> bool) -> Markup {
    let over = &shown.view.over_time;
    let moved = |number: usize| over.moved.iter().any(|change| change.series == number);
    let mut numbers: Vec<usize> = (0..over.series.len())
        .filter(|i| is_of(&over.series[*i].suspect) && over.series[*i].values.iter().flatten().count() > 1)
        .collect();
    numbers.sort_by_key(|i| !moved(*i));
    let minutes = shown.minutes;
    let downloads = minutes.iter().filter(|(key, _)| key.download().is_some()).count();
    html! {
        @if !numbers.is_empty() || !minutes.is_empty() { (head()) }
        @for of in minutes { (of_minutes(shown, of)) }
        @if downloads == DOWNLOADS_MAX { p.small { "At most " (DOWNLOADS_MAX) " downloads are drawn." } }
        @for number in numbers.iter().take(OPEN_MAX) { (figure(over, *number)) }
        @if numbers.len() > OPEN_MAX {
            details.section {
                summary { (numbers.len() - OPEN_MAX) " more series" }
                @for number in &numbers[OPEN_MAX..] { (figure(over, *number)) }
            }
        }
    }
}

fn head() -> Markup {
    html! {
        h2 id="series" { "Over time" }
        p.small {
            "Shaded: the level changed between two surveys, or an alarm was open. Triangles: a setting changed."
        }
    }
}

/// The minutes in which an alarm shows.
pub(super) fn of_alarm(shown: &Shown<'_>, alarm: &WatchAlarm) -> Markup {
    let shows: Vec<&Minutes> = shown.minutes.iter().filter(|(key, _)| is_shown(alarm, key)).collect();
    html! {
        @if !shows.is_empty() { (head()) }
        @for of in shows { (of_minutes(shown, of)) }
    }
}

fn figure(over: &OverTime, number: usize) -> Markup {
    let series = &over.series[number];
    let timeline = timeline(over, number);
    html! {
        figure {
            figcaption { (timeline.title) }
            (draw(&timeline))
            (table(&timeline, "survey, UTC"))
            @for change in over.moved.iter().filter(|change| change.series == number) {
                p {
                    b { (if change.is_worse { "Worse" } else { "Better" }) }
                    " between " (units::date_minute(over.at_ms(change.last))) " and " (units::date_minute(over.at_ms(change.first))) " UTC: "
                    (history::levels(series, change))
                }
            }
        }
    }
}

fn timeline(over: &OverTime, number: usize) -> Timeline {
    let series = &over.series[number];
    let moved: Vec<_> = over.moved.iter().filter(|change| change.series == number).collect();
    let band = |change: &&linerate_diagnose::history::LevelChange| LevelBand {
        from_ms: over.at_ms(change.last),
        to_ms: over.at_ms(change.first),
        is_worse: change.is_worse,
        text: history::levels(series, change),
    };
    let points = over.surveys.iter().zip(&series.values);
    Timeline {
        title: title(series),
        unit: series.unit,
        points: points.map(|(run, value)| TimePoint { at_ms: run.start_ms, value: *value }).collect(),
        bands: moved.iter().map(band).collect(),
        flags: over.log.iter().filter(|one| concerns(&series.suspect, &one.host)).map(flag).collect(),
    }
}

/// Whether a suspect is a host, or a pair with it.
pub(super) fn concerns(suspect: &Suspect, host: &str) -> bool {
    match suspect {
        Suspect::Host(one) => one == host,
        Suspect::Pair(a, b) => a == host || b == host,
        _ => false,
    }
}

fn flag(one: &FactChange) -> SettingFlag {
    SettingFlag { at_ms: one.seen_ms, text: format!("{}, {}", changes::in_short(one), changes::between(one)) }
}

fn title(series: &SeriesHistory) -> String {
    let of = series.suspect.label(series.direction);
    format!("{}, {}: {of}, over surveys", series.metric.label(), series.layer)
}

/// An alarm of the series as long as it was open.
fn alarm_band(one: &AlarmRecord) -> LevelBand {
    LevelBand {
        from_ms: one.alarm.since_ms(),
        to_ms: one.ended_ms.unwrap_or(one.seen_ms),
        is_worse: true,
        text: format!("alarm: {}", watch::is_wrong(&one.alarm)),
    }
}

/// Whether an alarm is of what a series shows.
fn is_shown(alarm: &WatchAlarm, key: &SeriesKey) -> bool {
    match alarm {
        WatchAlarm::Loss(alarm) => {
            key.metric == Metric::Loss
                && alarm.suspect == key.suspect
                && (alarm.direction == key.direction || alarm.direction == Direction::Both)
        }
        WatchAlarm::Slow(SlowAlarm { of: SlowOf::Rtt(suspect), .. }) => {
            // A pair is one of them in both directions.
            let is_turned = matches!((suspect, &key.suspect),
                (Suspect::Pair(a, b), Suspect::Pair(from, to)) if a == to && b == from);
            key.metric == Metric::RttIdle && (*suspect == key.suspect || is_turned)
        }
        WatchAlarm::Slow(SlowAlarm { of: SlowOf::Download(of), .. }) => {
            key.download().is_some_and(|path| of.has(&path))
        }
    }
}

fn of_minutes(shown: &Shown<'_>, (key, points): &Minutes) -> Markup {
    let is_of = |one: &&AlarmRecord| one.cluster == key.cluster && is_shown(&one.alarm, key);
    let log = shown.view.changes.changes.iter().filter(|one| one.cluster == key.cluster);
    let log = log.map(|one| &one.change).filter(|one| concerns(&key.suspect, &one.host));
    let of = key.suspect.label(key.direction);
    let timeline = Timeline {
        title: format!("{}{}, {}: {of}, over minutes", key.metric.label(), figure_of(key), key.layer),
        unit: key.metric.unit(),
        points: points
            .iter()
            .map(|point| TimePoint { at_ms: point.start_ms, value: point.measured.map(|m| m.median) })
            .collect(),
        bands: shown.view.alarms.iter().filter(is_of).map(alarm_band).collect(),
        flags: log.map(flag).collect(),
    };
    html! { figure { figcaption { (timeline.title) } (draw(&timeline)) (table(&timeline, "minute, UTC")) } }
}

/// Which figure of a minute it is, where that is not the usual one.
fn figure_of(key: &SeriesKey) -> &'static str {
    match key.statistic {
        Statistic::Typical => "",
        Statistic::P95 => " (95th percentile)",
    }
}

/// The same in numbers.
fn table(of: &Timeline, when: &str) -> Markup {
    html! {
        details {
            summary.small { "Values" }
            div.scroll { table.plain {
                thead { tr { th { (when) } th.n { "value" } } }
                tbody {
                    @for point in of.points.iter().rev().take(VALUES_MAX) {
                        tr {
                            td { (units::date_minute(point.at_ms)) }
                            td.n { (point.value.map_or_else(|| "not measured".to_owned(), |v| units::value(v, of.unit))) }
                        }
                    }
                }
            } }
        }
    }
}
