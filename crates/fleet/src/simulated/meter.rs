//! What simulated nodes cost, told apart from what their operator costs: both run on one thread, for only
//! there is time virtual.
//!
//! What comes in: futures of nodes. What goes out: the time that was spent in them. On a machine with other
//! work it is more than their CPU time, never less.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Adds up the time of all futures that it was given.
#[derive(Clone, Default)]
pub(super) struct Meter(Arc<AtomicU64>);

impl Meter {
    /// The same future, measured.
    pub(super) fn over<F: Future>(self, future: F) -> Metered<F> {
        Metered { future: Box::pin(future), meter: self }
    }

    /// All of it so far.
    pub(super) fn spent(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }
}

pub(super) struct Metered<F> {
    future: Pin<Box<F>>,
    meter: Meter,
}

impl<F: Future> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let begun = Instant::now();
        let polled = self.future.as_mut().poll(context);
        self.meter.0.fetch_add(begun.elapsed().as_nanos() as u64, Ordering::Relaxed);
        polled
    }
}
