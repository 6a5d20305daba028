//! Who wants to know how far a survey is. The survey tells; how it looks is somebody else's matter.

/// Receives the progress of a survey.
pub trait Progress {
    /// Another part begins: `rounds` rounds that should take `expected_s` seconds.
    fn begin(&self, part: &str, rounds: usize, expected_s: f64);
    /// A round of the part starts: number `done` of them are over, `what` runs, about `left_s` seconds are to come.
    fn round(&self, done: usize, what: &str, left_s: f64);
    /// Something worth a line of its own.
    fn note(&self, text: &str);
    /// The part is over.
    fn end(&self);
}

/// Nobody wants to know.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl Progress for Silent {
    fn begin(&self, _: &str, _: usize, _: f64) {}
    fn round(&self, _: usize, _: &str, _: f64) {}
    fn note(&self, _: &str) {}
    fn end(&self) {}
}
