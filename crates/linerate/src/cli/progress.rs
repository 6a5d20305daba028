//! How far a command is, on stderr: on a terminal one live line per phase, which stays when the phase is
//! over; in a file or pipe plain lines; with `--json` an event per line.
//!
//! What comes in: phases and steps. What goes out: counts, rate and remaining time. Nothing is printed with
//! `--quiet`.

mod terminal;

use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::events::{self, Event};
use super::out;
use linerate_fleet::progress::{Progress, ProgressPhase, Silent};

/// Time between two plain lines of a phase, and between two events.
const LINE_EVERY: Duration = Duration::from_secs(10);
const EVENT_EVERY: Duration = Duration::from_millis(250);
/// A phase that should be shorter is told once, when it is over.
const SHORT_S: f64 = 2.0;
/// Before this time a rate is chance.
const RATE_FROM_S: f64 = 0.2;

/// Progress as the user wants it.
pub(super) fn start(quiet: bool, json: bool) -> Box<dyn Progress> {
    if quiet {
        return Box::new(Silent);
    }
    let state = RefCell::new(None);
    if json {
        events::want();
        Box::new(Events(state))
    } else if std::io::stderr().is_terminal() {
        Box::new(Bar(RefCell::new(None)))
    } else {
        Box::new(Lines(state))
    }
}

/// A phase that runs.
struct Running {
    phase: String,
    unit: &'static str,
    total: usize,
    done: usize,
    begun: Instant,
    shown: Instant,
}

impl Running {
    fn new(phase: &ProgressPhase<'_>) -> Self {
        let now = Instant::now();
        Self {
            phase: phase.name.to_owned(),
            unit: phase.unit,
            total: phase.total,
            done: 0,
            begun: now,
            shown: now,
        }
    }

    /// Whether it is time to say something again; if so it counts as said.
    fn is_due(&mut self, every: Duration) -> bool {
        let due = self.shown.elapsed() >= every;
        if due {
            self.shown = Instant::now();
        }
        due
    }

    fn took_s(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    fn rate_per_s(&self) -> Option<f64> {
        rate(self.done, self.took_s())
    }

    fn left_s(&self, told: Option<f64>) -> Option<f64> {
        // Where nobody knows how many there are, nobody knows how long it takes.
        let left = (self.total > 0).then(|| self.total.saturating_sub(self.done));
        told.or_else(|| Some(left? as f64 / self.rate_per_s()?))
    }

    /// Rate and remaining time in words.
    fn pace(&self, left_s: Option<f64>) -> String {
        let rate = self.rate_per_s().map(per_second);
        let left = self.left_s(left_s).map(|s| format!("{} to go", seconds(s)));
        rate.into_iter().chain(left).collect::<Vec<_>>().join(", ")
    }

    /// The line that stays.
    fn over(&self) -> String {
        over(&self.phase, self.unit, (self.done, self.total), self.took_s())
    }
}

fn rate(done: usize, took_s: f64) -> Option<f64> {
    (done > 0 && took_s >= RATE_FROM_S).then(|| done as f64 / took_s)
}

/// What is counted, as it is said of so many.
fn of_count(unit: &str, count: usize) -> &str {
    if count == 1 { unit.trim_end_matches('s') } else { unit }
}

/// How many are done of how many; 0 in all where nobody knows.
fn counts(done: usize, total: usize) -> String {
    if total == 0 { done.to_string() } else { format!("{done} of {total}") }
}

fn over(phase: &str, unit: &str, (done, total): (usize, usize), took_s: f64) -> String {
    let unit = of_count(unit, if total == 0 { done } else { total });
    let counts = if done == total { done.to_string() } else { counts(done, total) };
    let rate = rate(done, took_s).map_or(String::new(), |rate| format!(" ({})", per_second(rate)));
    format!("{phase}: {counts} {unit} in {took_s:.1} s{rate}")
}

struct Bar(RefCell<Option<(ProgressBar, Running)>>);

impl Progress for Bar {
    fn begin(&self, phase: &ProgressPhase<'_>) {
        let screen = ProgressDrawTarget::term_like(Box::new(terminal::Terminal));
        let bar = ProgressBar::with_draw_target(Some(phase.total as u64), screen);
        let progress = if phase.total == 0 { "{spinner} {pos}" } else { "[{bar:24}] {pos}/{len}" };
        let template = format!("{{prefix}} {progress} {}  {{wide_msg}}", phase.unit);
        let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(phase.name.to_owned());
        bar.set_message(phase.expected_s.map_or(String::new(), |s| format!("about {}", seconds(s))));
        bar.enable_steady_tick(Duration::from_millis(250));
        self.0.replace(Some((bar, Running::new(phase))));
    }

    fn step(&self, done: usize, what: &str, left_s: Option<f64>) {
        if let Some((bar, running)) = &mut *self.0.borrow_mut() {
            running.done = done;
            bar.set_position(done as u64);
            bar.set_message(format!("{}  {what}", running.pace(left_s)));
        }
    }

    fn note(&self, text: &str) {
        match &*self.0.borrow() {
            Some((bar, _)) => bar.suspend(|| out::note(text)),
            None => out::note(text),
        }
    }

    fn end(&self) {
        if let Some((bar, running)) = self.0.take() {
            bar.finish_and_clear();
            out::note(&running.over());
        }
    }
}

struct Lines(RefCell<Option<Running>>);

impl Progress for Lines {
    fn begin(&self, phase: &ProgressPhase<'_>) {
        if let Some(expected) = phase.expected_s.filter(|s| *s >= SHORT_S) {
            let ProgressPhase { name, unit, total, .. } = *phase;
            let unit = of_count(unit, total);
            out::note(&format!("{name}: {total} {unit}, about {}", seconds(expected)));
        }
        self.0.replace(Some(Running::new(phase)));
    }

    fn step(&self, done: usize, what: &str, left_s: Option<f64>) {
        if let Some(running) = &mut *self.0.borrow_mut() {
            running.done = done;
            if running.is_due(LINE_EVERY) {
                let Running { phase, unit, total, .. } = &*running;
                let what = if what.is_empty() { String::new() } else { format!(", {what}") };
                let counts = counts(done, *total);
                out::note(&format!("{phase}: {counts} {unit}, {}{what}", running.pace(left_s)));
            }
        }
    }

    fn note(&self, text: &str) {
        out::note(text);
    }

    fn end(&self) {
        if let Some(running) = self.0.take() {
            out::note(&running.over());
        }
    }
}

struct Events(RefCell<Option<Running>>);

impl Progress for Events {
    fn begin(&self, phase: &ProgressPhase<'_>) {
        let ProgressPhase { name, unit, total, expected_s } = *phase;
        out::event(&Event::Begin { phase: name, unit, total, expected_s });
        self.0.replace(Some(Running::new(phase)));
    }

    fn step(&self, done: usize, what: &str, left_s: Option<f64>) {
        if let Some(running) = &mut *self.0.borrow_mut() {
            running.done = done;
            if running.is_due(EVENT_EVERY) {
                let (rate_per_s, left_s) = (running.rate_per_s(), running.left_s(left_s));
                let Running { phase, unit, total, .. } = running;
                out::event(&Event::Progress { phase, unit, done, total: *total, rate_per_s, left_s, what });
            }
        }
    }

    fn note(&self, text: &str) {
        out::note(text);
    }

    fn end(&self) {
        if let Some(running) = self.0.take() {
            let (took_s, rate_per_s) = (running.took_s(), running.rate_per_s());
            let Running { phase, unit, done, total, .. } = &running;
            out::event(&Event::End { phase, unit, done: *done, total: *total, took_s, rate_per_s });
        }
    }
}

fn per_second(rate: f64) -> String {
    match rate {
        10.0.. => format!("{rate:.0}/s"),
        1.0.. => format!("{rate:.1}/s"),
        _ => format!("{rate:.2}/s"),
    }
}

fn seconds(s: f64) -> String {
    let whole = s.max(0.0).ceil() as u64;
    if whole >= 120 { format!("{} min", whole.div_ceil(60)) } else { format!("{whole} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_leaves_one_line_with_counts_and_rate() {
        assert_eq!(over("measuring", "tests", (444, 444), 36.13), "measuring: 444 tests in 36.1 s (12/s)");
        assert_eq!(over("connecting", "hosts", (5, 6), 2.0), "connecting: 5 of 6 hosts in 2.0 s (2.5/s)");
        assert_eq!(over("connecting", "hosts", (0, 6), 2.0), "connecting: 0 of 6 hosts in 2.0 s");
        assert_eq!(over("connecting", "hosts", (1, 1), 0.1), "connecting: 1 host in 0.1 s");
        assert_eq!(over("looking", "folders", (40, 0), 2.0), "looking: 40 folders in 2.0 s (20/s)");
    }

    #[test]
    fn times_and_rates_are_short() {
        assert_eq!(
            (seconds(0.1), seconds(119.0), seconds(121.0)),
            ("1 s".into(), "119 s".into(), "3 min".into())
        );
        assert_eq!((per_second(0.25), per_second(9.96)), ("0.25/s".into(), "10.0/s".into()));
    }
}
