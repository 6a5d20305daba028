//! What simulated nodes cost, told apart from what their operator costs: both run on one thread, for only
//! there is time virtual.
//!
//! What comes in: futures of nodes. What goes out: the CPU time that their thread spent in them.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// CPU time of this thread, nanoseconds.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Adds up the CPU time of all futures that it was given.
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
        let begun_ns = thread_ns();
        let polled = self.future.as_mut().poll(context);
        self.meter.0.fetch_add(thread_ns() - begun_ns, Ordering::Relaxed);
        polled
    }
}
