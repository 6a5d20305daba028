//! Live progress on stderr: a bar on a terminal, a plain line every two seconds otherwise.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::out;
use crate::observe::progress::{Progress, Silent};

/// Time between two plain lines.
const LINE_EVERY: Duration = Duration::from_secs(2);

/// Progress as the user wants it.
pub(super) fn start(quiet: bool) -> Box<dyn Progress> {
    if quiet {
        Box::new(Silent)
    } else if std::io::stderr().is_terminal() {
        Box::new(Bar(RefCell::new(None)))
    } else {
        Box::new(Lines(RefCell::new(State::default())))
    }
}

struct Bar(RefCell<Option<ProgressBar>>);

impl Progress for Bar {
    fn begin(&self, part: &str, rounds: usize, _: f64) {
        let bar = ProgressBar::new(rounds as u64);
        let style = ProgressStyle::with_template("{prefix} [{bar:28}] {pos}/{len}  {wide_msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.progress_chars("=> "));
        bar.set_prefix(part.to_owned());
        bar.enable_steady_tick(Duration::from_millis(250));
        self.0.replace(Some(bar));
    }

    fn round(&self, done: usize, what: &str, left_s: f64) {
        if let Some(bar) = &*self.0.borrow() {
            bar.set_position(done as u64);
            bar.set_message(format!("{} to go  {what}", seconds(left_s)));
        }
    }

    fn note(&self, text: &str) {
        match &*self.0.borrow() {
            Some(bar) => bar.suspend(|| out::note(text)),
            None => out::note(text),
        }
    }

    fn end(&self) {
        if let Some(bar) = self.0.take() {
            bar.finish_and_clear();
        }
    }
}

#[derive(Default)]
struct State {
    part: String,
    rounds: usize,
    said: Option<Instant>,
}

struct Lines(RefCell<State>);

impl Progress for Lines {
    fn begin(&self, part: &str, rounds: usize, expected_s: f64) {
        let count = if rounds == 1 { String::new() } else { format!("{rounds} rounds, ") };
        out::note(&format!("{part}: {count}about {}", seconds(expected_s)));
        self.0.replace(State { part: part.to_owned(), rounds, said: Some(Instant::now()) });
    }

    fn round(&self, done: usize, what: &str, left_s: f64) {
        let mut state = self.0.borrow_mut();
        if state.said.is_none_or(|t| t.elapsed() >= LINE_EVERY) {
            state.said = Some(Instant::now());
            out::note(&format!("{}: {done}/{}, {} to go, {what}", state.part, state.rounds, seconds(left_s)));
        }
    }

    fn note(&self, text: &str) {
        out::note(text);
    }

    fn end(&self) {}
}

fn seconds(s: f64) -> String {
    let whole = s.max(0.0).ceil() as u64;
    if whole >= 120 { format!("{} min", whole.div_ceil(60)) } else { format!("{whole} s") }
}
