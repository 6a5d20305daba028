//! Trials: the list, and one with all it measured.

use linerate_model::trial::{Effect, Trial, TrialStatus};
use linerate_model::units;
use linerate_report::card;
use linerate_report::html::closed;
use maud::{Markup, html};

use crate::layout::{Body, Shown, commands};
use crate::link;

/// Rows of a list.
const ROWS_MAX: usize = 300;

pub(super) fn list(shown: &Shown<'_>) -> Body {
    let trials: Vec<&Trial> = shown.view.trials.iter().collect();
    let markup = html! {
        h1 { (units::counted(trials.len(), "trial")) }
        @if trials.is_empty() { p { "Nothing was tried yet. A finding names the command that tries its fix." } }
        @else { (table(shown, &trials)) }
    };
    Body::new("Trials", markup)
}

/// The trials that changed a host.
pub(super) fn of_host(shown: &Shown<'_>, name: &str) -> Markup {
    let is_of = |trial: &&Trial| trial.remedy.changes.iter().any(|change| change.host == name);
    let trials: Vec<&Trial> = shown.view.trials.iter().filter(is_of).collect();
    html! { @if !trials.is_empty() { h2 { "Trials" } (table(shown, &trials)) } }
}

fn table(shown: &Shown<'_>, trials: &[&Trial]) -> Markup {
    html! {
        div.scroll { table.plain {
            thead { tr { th { "trial" } th { "what was tried" } th { "measured on" } th.n { "effect" } th { "state" } } }
            tbody {
                @for trial in trials.iter().take(ROWS_MAX) {
                    tr {
                        td { a href=(link::to("/trial", &[("id", &trial.id)])) { (trial.id) } }
                        td { (trial.remedy.title) }
                        td { a href=(shown.pair(&trial.pair.0, &trial.pair.1)) { (trial.pair.0) " to " (trial.pair.1) } ", " (trial.layer) }
                        td.n { (effect(trial)) }
                        td { (card::status(trial.status)) }
                    }
                }
            }
        } }
        @if trials.len() > ROWS_MAX { p { "and " (trials.len() - ROWS_MAX) " older ones" } }
    }
}

/// The ratio with its interval, and what it means.
fn effect(trial: &Trial) -> String {
    let Some(effect) = &trial.effect else { return "not measured".to_owned() };
    let word = match effect.effect {
        Effect::Better => "better",
        Effect::NoEffect => "no effect",
        Effect::Worse => "worse",
        Effect::NotShown => "not shown",
    };
    let (low, high) = effect.interval;
    format!("{word}, {} (95 %: {} to {})", units::ratio(effect.ratio), units::ratio(low), units::ratio(high))
}

pub(super) fn body(shown: &Shown<'_>) -> Body {
    let id = shown.query.get("id").unwrap_or_default();
    let above = |body: Body| body.below("Trials", "/trials".to_owned());
    let Some(trial) = shown.view.trials.iter().find(|trial| trial.id == id) else {
        return above(Body::missing(id, html! { h1 { "No trial " (id) } }));
    };
    let next: Vec<(String, &str)> = match trial.status {
        TrialStatus::Running | TrialStatus::Undone => vec![],
        TrialStatus::Measured => vec![(format!("linerate keep {id}"), "applies the change and persists it")],
        TrialStatus::Kept => vec![(format!("linerate undo {id}"), "restores the old values")],
        TrialStatus::UndoFailed => {
            vec![(format!("linerate undo {id}"), "tries again to restore the old values")]
        }
    };
    let show = (format!("linerate show {id}"), "prints this trial");
    let hosts = trial.remedy.hosts();
    let markup = html! {
        h1 { (trial.remedy.title) }
        p.small {
            "Trial " (trial.id) " of run " a href=(link::to("/", &[("run", &trial.run)])) { (trial.run) } ", on "
            @for host in &hosts { (shown.host_link(host)) " " }
        }
        (closed::trials(std::slice::from_ref(trial)))
        (commands(&next.into_iter().chain([show]).collect::<Vec<_>>()))
    };
    above(Body::new(trial.id.clone(), markup))
}
