//! A sweep as text: each value with its effect, its interval and that of the untouched pair, and the best.

use std::fmt::Write as _;

use linerate_model::printable;
use linerate_model::trial::{Effect, Trial};
use linerate_model::units::{ratio, value};

use crate::heat::Style;
use crate::wrap::wrap;

/// The trials of a sweep in their order; `best` is one of them.
pub fn text(trials: &[Trial], best: Option<&Trial>, style: Style) -> String {
    let Some(first) = trials.first() else { return String::new() };
    let (from, to) = &first.pair;
    let control = first
        .control
        .as_ref()
        .map_or_else(|| "no untouched pair".to_owned(), |(from, to)| format!("untouched: {from} to {to}"));
    let hosts = first.remedy.hosts().join(", ");
    let heading = format!("{} on {hosts}, {from} to {to} ({control})", first.response.label());
    let mut out = String::new();
    for line in wrap(&printable::clean(&heading), style.width) {
        out += &style.bold(&line);
        out.push('\n');
    }
    let width = trials.iter().map(|t| t.remedy.id.chars().count()).max().unwrap_or(0).min(60);
    let title = format!(
        "  {:<width$} {:>12} {:>12} {:>7} {:>17} {:>9}  effect",
        "value", "before", "after", "ratio", "95 % interval", "untouched"
    );
    out += &style.dim(&title);
    out.push('\n');
    for trial in trials {
        // Writing into a `String` cannot fail.
        let _ = writeln!(out, "  {:<width$} {}", printable::clean(&trial.remedy.id), row(trial));
    }
    for line in wrap(&verdict(best), style.width) {
        out += &line;
        out.push('\n');
    }
    for note in trials.iter().flat_map(|t| t.notes.iter().map(move |note| format!("{}: {note}", t.remedy.id)))
    {
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
