//! What moved over many surveys: each change with its series as small bars, the settings that changed at the
//! time, and the command that compares the runs. Series and changes in, text of at most the width out.

use std::fmt::Write;

use linerate_diagnose::history::{LevelChange, SeriesHistory, share_lost};
use linerate_model::fact_change::FactChange;
use linerate_model::printable::one_line;
use linerate_model::units::{MetricUnit, date_minute, percent, ratio, value};
use linerate_model::verdict::{HostCommand, Verdict, VerdictItem};

use crate::changes;
use crate::heat::{Heat, Style};
use crate::names;
use crate::slow;
use crate::spark;

/// Settings that are quoted beside a change; the rest is counted.
const SETTINGS_MAX: usize = 4;
/// Bars of a series.
pub const BARS_MAX: usize = 40;
/// Width of metric and layer.
const NAME: usize = 24;

/// A change with what else happened then.
#[derive(Debug, Clone)]
pub struct MovedView<'a> {
    /// The change.
    pub change: &'a LevelChange,
    /// Settings of the hosts in question that changed between the two runs.
    pub settings: Vec<&'a FactChange>,
}

/// What is shown.
#[derive(Debug, Clone)]
pub struct HistoryView<'a> {
    /// Name of the cluster.
    pub cluster: &'a str,
    /// Surveys with the moments of their start, in time order.
    pub runs: Vec<(&'a str, u64)>,
    /// All series that the changes count.
    pub series: &'a [SeriesHistory],
    /// Newest first.
    pub moved: Vec<MovedView<'a>>,
    /// Series that were asked for, moved or not.
    pub asked: Vec<&'a SeriesHistory>,
    /// What a watch measured of what was asked for.
    pub watched: Vec<WatchedView>,
}

/// A series of minutes that a watch measured.
#[derive(Debug, Clone)]
pub struct WatchedView {
    /// Host or pair with its direction.
    pub heading: String,
    /// What was measured.
    pub name: String,
    /// Unit of the values.
    pub unit: MetricUnit,
    /// Median of all minutes.
    pub median: f64,
    /// The largest minute.
    pub most: f64,
    /// The largest minute of each of [`BARS_MAX`] equal spans; `None` where nothing was measured.
    pub values: Vec<Option<f64>>,
    /// When the level changed, from what to what.
    pub moved: Vec<(u64, f64, f64)>,
}

/// The screen.
#[must_use]
pub fn text(view: &HistoryView<'_>, style: Style) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{}", style.bold(&names::cut(&summary(view), style.width)));
    let mut rest = view.moved.as_slice();
    while let Some(first) = rest.first() {
        let same = |other: &&MovedView<'_>| is_same(view, first.change, other.change);
        let count = rest.iter().take_while(same).count();
        let (group, others) = rest.split_at(count);
        rest = others;
        out.push('\n');
        let _ = writeln!(out, "{}", heading(view, first.change, style));
        for one in group {
            let series = &view.series[one.change.series];
            let _ = writeln!(out, "{}", line(series, &levels(series, one.change), style));
        }
        for line in settings(&first.settings, style.width) {
            let _ = writeln!(out, "{line}");
        }
        let run = |index: usize| view.runs[index].0;
        let command = format!("linerate diff {} {}", run(first.change.last), run(first.change.first));
        let _ = writeln!(out, "  compare  {}", style.command(&command));
    }
    if !view.asked.is_empty() {
        out.push('\n');
    }
    let mut last = String::new();
    for series in &view.asked {
        let heading = series.suspect.label(series.direction);
        if heading != last {
            let _ = writeln!(out, "{}", names::cut(&one_line(&heading), style.width));
            last = heading;
        }
        let newest = series.values.iter().rev().flatten().next();
        let newest = newest.map_or_else(|| "not measured".to_owned(), |v| value(*v, series.unit));
        let _ = writeln!(out, "{}", line(series, &newest, style));
    }
    out + &watched(&view.watched, style.width)
}

/// What became worse, the newest first, with the command that compares both sides of it.
#[must_use]
pub fn verdict(view: &HistoryView<'_>) -> Verdict {
    let run = |index: usize| view.runs[index].0;
    let item = |moved: &MovedView<'_>| {
        let (change, series) = (moved.change, &view.series[moved.change.series]);
        let host = slow::host_of(&series.suspect);
        let subject = series.suspect.label(series.direction);
        let sentence = format!(
            "{subject}{}: {}, {}: {}",
            interval(view, change),
            series.metric.label(),
            series.layer,
            levels(series, change)
        );
        let command = format!("linerate diff {} {}", run(change.last), run(change.first));
        VerdictItem {
            check: Some(HostCommand::own(command)),
            ..VerdictItem::stated(host, &subject, sentence)
        }
    };
    Verdict::stating(view.moved.iter().filter(|moved| moved.change.is_worse).map(item), Vec::new())
}

/// Which direction it took, and between which surveys.
fn interval(view: &HistoryView<'_>, change: &LevelChange) -> String {
    let at = |index: usize| date_minute(view.runs[index].1);
    let word = if change.is_worse { "worse" } else { "better" };
    format!(": {word} between {} and {} UTC", at(change.last), at(change.first))
}

/// What a watch measured, a line each.
fn watched(all: &[WatchedView], width: usize) -> String {
    let mut out = String::new();
    let mut last = "";
    for series in all {
        if series.heading != last {
            let heading = format!("{}, watched", one_line(&series.heading));
            let _ = writeln!(out, "\n{}", names::cut(&heading, width));
            last = &series.heading;
        }
        let amount =
            format!("{}, at most {}", value(series.median, series.unit), value(series.most, series.unit));
        let text = format!("  {:<NAME$}  {amount:<36}  ", series.name);
        let values = &series.values[series.values.len().saturating_sub(width.saturating_sub(text.len()))..];
        let bars: String =
            values.iter().map(|one| one.map_or(spark::GAP, |one| spark::bar(one, series.most))).collect();
        let _ = writeln!(out, "{text}{bars}");
        for (at_ms, before, after) in &series.moved {
            let (before, after) = (value(*before, series.unit), value(*after, series.unit));
            let _ = writeln!(out, "  {} UTC  {before} -> {after}", date_minute(*at_ms));
        }
    }
    out
}

fn summary(view: &HistoryView<'_>) -> String {
    let surveys = match view.runs.as_slice() {
        [] => "no surveys".to_owned(),
        [(_, one)] => format!("1 survey, {} UTC", date_minute(*one)),
        [(_, first), .., (_, last)] => {
            format!("{} surveys, {} to {} UTC", view.runs.len(), date_minute(*first), date_minute(*last))
        }
    };
    let moved = match view.moved.len() {
        0 => "nothing moved".to_owned(),
        1 => "1 change".to_owned(),
        count => format!("{count} changes"),
    };
    format!("{}: {surveys}: {moved}", one_line(view.cluster))
}

/// Whether two changes are of one suspect at one time.
fn is_same(view: &HistoryView<'_>, a: &LevelChange, b: &LevelChange) -> bool {
    let (of_a, of_b) = (&view.series[a.series], &view.series[b.series]);
    (&of_a.suspect, of_a.direction, a.last, a.first, a.is_worse)
        == (&of_b.suspect, of_b.direction, b.last, b.first, b.is_worse)
}

fn heading(view: &HistoryView<'_>, change: &LevelChange, style: Style) -> String {
    let series = &view.series[change.series];
    let when = interval(view, change);
    let suspect = one_line(&series.suspect.label(series.direction));
    let suspect = names::cut(&suspect, style.width.saturating_sub(when.chars().count()));
    if change.is_worse { style.alarm(&(suspect + &when)) } else { style.fine(&(suspect + &when)) }
}

/// Both levels, with the difference as people name it: a share for a rate, a factor for the rest.
#[must_use]
pub fn levels(series: &SeriesHistory, change: &LevelChange) -> String {
    let (before, after) = (value(change.before, series.unit), value(change.after, series.unit));
    let by = match change.after / change.before {
        factor if !factor.is_finite() => String::new(),
        factor if series.metric.more_is_better() && factor < 1.0 => {
            format!(" (-{})", percent(1.0 - factor))
        }
        factor if series.metric.more_is_better() && factor < 2.0 => {
            format!(" (+{})", percent(factor - 1.0))
        }
        factor => format!(" ({})", ratio(factor)),
    };
    format!("{before} -> {after}{by}")
}

/// A series in one line: what, how much, and its bars as far as they fit.
fn line(series: &SeriesHistory, amount: &str, style: Style) -> String {
    let name = format!("{}, {}", series.metric.label(), series.layer);
    let text = format!("  {name:<NAME$}  {amount:<36}  ");
    let columns = style.width.saturating_sub(text.chars().count()).min(BARS_MAX);
    text + &bars(series, columns, style)
}

/// The series as bars in the colours of the heat map; the newest where there are more than fit.
fn bars(series: &SeriesHistory, columns: usize, style: Style) -> String {
    let values = &series.values[series.values.len().saturating_sub(columns)..];
    let most = values.iter().flatten().copied().fold(0.0, f64::max);
    let mut out = String::new();
    for value in values {
        match value {
            Some(value) => {
                let heat = share_lost(series, *value).map_or(Heat::Fine, Heat::of);
                out += &style.square(&spark::bar(*value, most).to_string(), heat);
            }
            None => out.push(spark::GAP),
        }
    }
    out
}

fn settings(changed: &[&FactChange], width: usize) -> Vec<String> {
    let mut lines: Vec<String> = changed
        .iter()
        .take(SETTINGS_MAX)
        .map(|change| names::cut(&format!("  changed  {}", changes::in_short(change)), width))
        .collect();
    if changed.len() > SETTINGS_MAX {
        lines.push(format!("           {} more: `linerate changes`", changed.len() - SETTINGS_MAX));
    }
    lines
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::FactValue;
    use linerate_model::fact_change::SeenBy;
    use linerate_model::finding::{Direction, Metric, Suspect};
    use linerate_model::inventory::Layer;

    use super::*;

    fn series(host: &str, values: Vec<Option<f64>>) -> SeriesHistory {
        let metric = Metric::Throughput;
        SeriesHistory {
            suspect: Suspect::Host(host.into()),
            direction: Direction::Rx,
            layer: Layer::Underlay,
            metric,
            unit: metric.unit(),
            values,
        }
    }

    #[test]
    fn a_change_has_its_bars_its_settings_and_a_command() {
        let values = [vec![Some(9.4e9); 5], vec![None], vec![Some(4.7e9); 4]].concat();
        let all = [series("arc-1", values)];
        let change = LevelChange {
            series: 0,
            last: 4,
            first: 6,
            before: 9.4e9,
            after: 4.7e9,
            is_worse: true,
            chance: 1e-6,
        };
        let setting = FactChange {
            host: "arc-1".into(),
            key: "nic.eth0.ring.rx".into(),
            from: Some(FactValue::Int(4096)),
            to: Some(FactValue::Int(256)),
            after_ms: 0,
            seen_ms: 1,
            seen_by: SeenBy::Facts,
            who: Some("tuned.service".into()),
        };
        let names: Vec<String> = (0..10).map(|day| format!("run-{day}")).collect();
        let runs = names.iter().zip(1..).map(|(name, day)| (name.as_str(), day * 86_400_000)).collect();
        let settings = vec![&setting; 6];
        let moved = vec![MovedView { change: &change, settings }];
        let view = HistoryView {
            cluster: "three",
            runs,
            series: &all,
            moved,
            asked: vec![&all[0]],
            watched: vec![],
        };
        let text = text(&view, Style::PLAIN);
        for expected in [
            "three: 10 surveys, 1970-01-02 00:00 to 1970-01-11 00:00 UTC: 1 change\n",
            "\nhost arc-1, what it receives: worse between 1970-01-06 00:00 and 1970-01-08 00:00 UTC\n",
            "9.4 Gbit/s -> 4.7 Gbit/s (-50 %)",
            "█████·▅▅▅▅\n",
            "\n  changed  arc-1 eth0 ring.rx 4096 -> 256 by tuned.service\n",
            "2 more: `linerate changes`\n",
            "\n  compare  linerate diff run-4 run-6\n",
        ] {
            assert!(text.contains(expected), "{expected}\n{text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let colour = super::text(&view, Style { colour: true, ..Style::PLAIN });
        assert!(colour.contains(&Style { colour: true, ..Style::PLAIN }.square("▅", Heat::Low)), "{colour}");
    }

    #[test]
    fn what_a_watch_measured_is_a_line_with_its_gaps() {
        let series = WatchedView {
            heading: "host arc-1, what it receives".into(),
            name: "loss, underlay".into(),
            unit: MetricUnit::Share,
            median: 0.0,
            most: 0.04,
            values: vec![Some(0.0), None, Some(0.02), Some(0.04)],
            moved: Vec::new(),
        };
        assert_eq!(
            watched(&[series.clone(), series], 100),
            "\nhost arc-1, what it receives, watched\n".to_owned()
                + &format!("  {:<24}  {:<36}  ▁·▅█\n", "loss, underlay", "0 %, at most 4 %").repeat(2)
        );
    }

    #[test]
    fn a_change_of_a_watched_series_stands_below_it() {
        let series = WatchedView {
            heading: "http://files/a through 192.0.2.11 to arc-1".into(),
            name: "throughput, underlay".into(),
            unit: MetricUnit::BitPerSecond,
            median: 800e6,
            most: 810e6,
            values: vec![Some(800e6), Some(256e3)],
            moved: vec![(1_780_000_000_000, 800e6, 256e3)],
        };
        let text = watched(&[series], 100);
        assert!(text.ends_with("\n  2026-05-28 20:26 UTC  800 Mbit/s -> 256 kbit/s\n"), "{text}");
    }

    #[test]
    fn nothing_is_a_sentence() {
        let view = HistoryView {
            cluster: "three",
            runs: vec![],
            series: &[],
            moved: vec![],
            asked: vec![],
            watched: vec![],
        };
        assert_eq!(text(&view, Style::PLAIN), "three: no surveys: nothing moved\n");
    }
}
