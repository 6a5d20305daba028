//! A sweep as text: each value with its effect, its interval and that of the untouched pair, and the best.

use std::fmt::Write as _;

use linerate_model::printable;
use linerate_model::trial::{Effect, Trial};
use linerate_model::units::{ratio, value};

use crate::heat::Style;
use crate::wrap::wrap;

/// Widest value that stands in its row; with it a row has 100 columns.
const VALUE_WIDTH: usize = 25;

/// `key=` where all values of a sweep are of one key.
fn common_key(trials: &[Trial]) -> &str {
    let key = |trial: &'_ Trial| trial.remedy.id.find('=').map(|at| at + 1);
    let first = trials.first().and_then(|t| Some(&t.remedy.id[..key(t)?])).unwrap_or_default();
    let is_of_it = |t: &Trial| t.remedy.id.strip_prefix(first).is_some_and(|rest| !rest.contains('='));
    if trials.iter().all(is_of_it) { first } else { "" }
}

/// The trials of a sweep in their order; `best` is one of them.
pub fn text(trials: &[Trial], best: Option<&Trial>, style: Style) -> String {
    let Some(first) = trials.first() else { return String::new() };
    let (from, to) = &first.pair;
    let control = first.control.as_ref().map_or_else(
        || format!("no control pair: {}", crate::card::no_control(first)),
        |(from, to)| format!("control: {from} to {to}"),
    );
    let hosts = first.remedy.hosts().join(", ");
    let common = common_key(trials);
    let key = common.trim_end_matches('=');
    let swept = if key.is_empty() { String::new() } else { format!("{key} on {hosts}: ") };
    let on = if key.is_empty() { format!(" on {hosts}") } else { String::new() };
    let heading = format!("{swept}{}{on}, {from} to {to} ({control})", first.response.label());
    let mut out = String::new();
    for line in wrap(&printable::clean(&heading), style.width) {
        out += &style.bold(&line);
        out.push('\n');
    }
    let label = |trial: &Trial| printable::clean(trial.remedy.id.strip_prefix(common).unwrap_or_default());
    let longest = trials.iter().map(|t| label(t).chars().count()).max().unwrap_or(0);
    let width = longest.clamp("value".len(), VALUE_WIDTH);
    let title = format!(
        "  {:<width$} {:>12} {:>12} {:>7} {:>17} {:>9}  effect",
        "value", "before", "after", "ratio", "95 % interval", "untouched"
    );
    out += &style.dim(&title);
    out.push('\n');
    for trial in trials {
        // Writing into a `String` cannot fail.
        let mut label = label(trial);
        if label.chars().count() > width {
            let _ = writeln!(out, "  {label}");
            label.clear();
        }
        let _ = writeln!(out, "  {label:<width$} {}", row(trial));
    }
    for line in wrap(&verdict(best), style.width) {
        out += &line;
        out.push('\n');
    }
    let notes = trials.iter().flat_map(|t| t.notes.iter().map(move |note| (t, note)));
    for note in notes.map(|(t, note)| format!("{}: {}", t.remedy.id, note.replace('\n', "; "))) {
        for line in wrap(&printable::clean(&note), style.width) {
            out += &style.dim(&line);
            out.push('\n');
        }
    }
    out
}

fn row(trial: &Trial) -> String {
    let Some(size) = trial.effect.as_ref().filter(|size| size.fewer_than.is_none()) else {
        return "not measured".to_owned();
    };
    let unit = trial.response.unit();
    let interval = format!("{} to {}", ratio(size.interval.0), ratio(size.interval.1));
    let untouched =
        if size.control_interval.1 < f64::MAX { ratio(size.control_ratio) } else { "-".to_owned() };
    let effect = match size.effect {
        Effect::Better => "better",
        Effect::Worse => "worse",
        Effect::NoEffect => "none",
        Effect::NotShown => "not shown",
    };
    format!(
        "{:>12} {:>12} {:>7} {interval:>17} {untouched:>9}  {effect}",
        value(size.before, unit),
        value(size.after, unit),
        ratio(size.ratio)
    )
}

fn verdict(best: Option<&Trial>) -> String {
    let Some((trial, size)) = best.and_then(|trial| Some((trial, trial.effect.as_ref()?))) else {
        return "No value is proven to be better than the present one, which is in force again.".to_owned();
    };
    let kept = match trial.status {
        linerate_model::trial::TrialStatus::Kept => "It is in force and survives a reboot.".to_owned(),
        _ => format!("The old value is in force again; `linerate keep {}` makes this one stay.", trial.id),
    };
    format!(
        "Best: {}, ratio {} (95 % interval {} to {}). {kept}",
        trial.remedy.id,
        ratio(size.ratio),
        ratio(size.interval.0),
        ratio(size.interval.1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_stands_once_and_a_row_fits() {
        let of = |value: &str| {
            let mut trial = crate::sample::trial();
            trial.remedy.id = format!("sysctl.net.ipv4.tcp_congestion_control={value}");
            trial.notes = vec!["it was refused\nhint: be root".to_owned()];
            trial
        };
        let trials = [of("reno"), of("cubic"), of(&"x".repeat(40))];
        let style = Style { width: 100, ..Style::default() };
        let shown = text(&trials, None, style);
        assert!(shown.starts_with("sysctl.net.ipv4.tcp_congestion_control on "), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 100), "{shown}");
        assert!(shown.contains("\n  cubic ") && shown.contains("refused; hint: be root"), "{shown}");
    }
}
