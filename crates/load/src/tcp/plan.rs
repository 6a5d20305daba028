//! The numbers of a bulk transfer, checked.
//!
//! What comes in: the spec of a test. What goes out: streams, times and the kind of socket, or the number
//! that is outside its limits.

use linerate_model::kind::TcpPlan;
use std::net::TcpStream;
use std::time::Duration;

use linerate_sys::stream::StreamKind;

use super::options;
use crate::job::{Job, LoadError};

/// The least time without progress that counts as a stall. Two retransmission time-outs in a row are 600 ms
/// (the kernel's shortest is 200 ms, and it doubles), and an operator allows 1.5 s beyond the time of the
/// test.
const STALL_MIN: Duration = Duration::from_secs(1);

/// The numbers of a test, checked.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    /// In one direction.
    pub(super) streams: usize,
    pub(super) bidirectional: bool,
    pub(super) calibrate: bool,
    pub(super) duration: Duration,
    /// No progress for so long ends the test.
    pub(super) stall: Duration,
    /// Length of an interval.
    pub(super) interval: Duration,
    pub(super) kind: StreamKind,
}

impl Plan {
    pub(super) fn new(job: &Job<'_>, TcpPlan { streams, duration_ms }: TcpPlan) -> Result<Self, LoadError> {
        let tuning = &job.spec.tuning;
        options::check(tuning)?;
        let duration = Duration::from_millis(u64::from(duration_ms));
        Ok(Self {
            streams: usize::from(streams),
            bidirectional: tuning.both_ways,
            calibrate: tuning.calibrate,
            duration,
            stall: STALL_MIN.max(duration),
            interval: Duration::from_secs(1) / u32::from(tuning.sample_hz),
            kind: options::kind(tuning.protocol),
        })
    }

    /// Connections in all.
    pub(super) fn connections(self) -> usize {
        self.streams * (1 + usize::from(self.bidirectional)) + usize::from(self.calibrate)
    }

    /// The streams to the receiver, those back, and the control stream.
    pub(super) fn split(self, all: &[TcpStream]) -> (&[TcpStream], &[TcpStream], Option<&TcpStream>) {
        let (forward, rest) = all.split_at(self.streams.min(all.len()));
        let (back, control) =
            rest.split_at(if self.bidirectional { self.streams.min(rest.len()) } else { 0 });
        (forward, back, control.first())
    }
}
