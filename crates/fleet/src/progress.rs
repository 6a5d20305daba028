//! Receivers of the progress of a command: sessions report it, the command line prints it.
//!
//! What comes in: phases with their counts. What goes out: nothing here; it never prints.

use std::sync::atomic::{AtomicBool, Ordering};

/// A part of a command that takes its time.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgressPhase<'a> {
    /// What is done: `measuring`.
    pub name: &'a str,
    /// What is counted: `hosts`, `tests`, `steps`.
    pub unit: &'static str,
    /// How many there are; 0 where nobody knows before.
    pub total: usize,
    /// Seconds that it should take, where that is known.
    pub expected_s: Option<f64>,
}

/// Receives the progress of a command. Each phase begins, steps and ends before the next one.
pub trait Progress {
    /// Another phase begins.
    fn begin(&self, phase: &ProgressPhase<'_>);
    /// So many are done; `what` is under way, empty when nothing new is; about so many seconds are to come,
    /// where that is known better than by the rate.
    fn step(&self, done: usize, what: &str, left_s: Option<f64>);
    /// Something worth a line of its own.
    fn note(&self, text: &str);
    /// The phase is over.
    fn end(&self);
}

/// Nobody wants to know.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &ProgressPhase<'_>) {}
    fn step(&self, _: usize, _: &str, _: Option<f64>) {}
    fn note(&self, _: &str) {}
    fn end(&self) {}
}

/// Whether a question stands on the terminal, beside which nothing may be drawn.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Says that a question stands on the terminal, or no longer does.
pub fn terminal_is_taken(taken: bool) {
    TAKEN.store(taken, Ordering::SeqCst);
}

/// Whether nothing may be drawn on the terminal now.
pub fn is_terminal_taken() -> bool {
    TAKEN.load(Ordering::SeqCst)
}
