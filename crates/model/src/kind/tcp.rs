//! Bulk TCP from sender to receiver. Never an average over the start-up of a transfer.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bulk::{cpu_cost, host_cpu_cost, missing, more_than_sent, rate};
use super::test_plan::{OutOfLimits, TestPlan, check, ms};
use crate::load::{Interval, LoadReport};
use crate::sample::Measurement;
use crate::statistics::median;
use crate::tuning::STREAMS_MAX;

/// A bulk transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpPlan {
    /// Parallel streams, 1 to [`STREAMS_MAX`].
    pub streams: u16,
    /// Time of the transfer.
    pub duration_ms: u32,
}

/// What a transfer takes beyond its time: four messages, counters before and after (measured on two busy
/// cores).
const OVERHEAD: Duration = Duration::from_millis(65);
/// A TCP receiver may lack this much of what the sender wrote before both ends count as disagreeing: what was
/// still in buffers and in flight when the time was over.
const IN_FLIGHT_BYTES: u64 = 16 << 20;

impl TcpPlan {
    /// One stream.
    pub fn single(duration_ms: u32) -> Self {
        Self { streams: 1, duration_ms }
    }

    /// Whether it has one stream.
    pub fn is_single(&self) -> bool {
        self.streams == 1
    }

    /// Whether it has several streams.
    pub fn is_parallel(&self) -> bool {
        self.streams > 1
    }
}

impl TestPlan for TcpPlan {
    fn name() -> &'static str {
        "tcp"
    }

    fn title(&self) -> String {
        if self.is_single() { "TCP".to_owned() } else { format!("TCP x{}", self.streams) }
    }

    fn runs_with_iperf3(&self) -> bool {
        true
    }

    fn check(&self) -> Result<(), OutOfLimits> {
        check((1..=STREAMS_MAX).contains(&self.streams), "streams", self.streams, "1 to 512")
    }

    fn time_max(&self) -> Duration {
        ms(self.duration_ms)
    }

    fn expected(&self) -> Duration {
        self.time_max() + OVERHEAD
    }

    fn missing(&self, _: &LoadReport, rx: &LoadReport) -> Option<&'static str> {
        missing(rx)
    }

    fn read(&self, tx: &LoadReport, rx: &LoadReport, values: &mut Measurement) -> Result<(), String> {
        more_than_sent(tx, rx)?;
        if tx.stopped.is_none() && rx.stopped.is_none() {
            let missing = tx.bytes - rx.bytes;
            if tx.drained && rx.drained && missing > 0 {
                return Err(format!(
                    "{} bytes sent but {} received, although every stream was read to its end",
                    tx.bytes, rx.bytes
                ));
            }
            if missing > IN_FLIGHT_BYTES * u64::from(self.streams).max(1) && missing * 50 > tx.bytes {
                return Err(format!(
                    "{} bytes sent but {} received: the two ends disagree",
                    tx.bytes, rx.bytes
                ));
            }
        }
        self::values(tx, rx, values);
        Ok(())
    }
}

fn values(tx: &LoadReport, rx: &LoadReport, m: &mut Measurement) {
    // An iperf3 server that receives gives no series; its sender's, of bytes acknowledged, shows the same
    // start-up.
    let series = if rx.series.is_empty() { &tx.series } else { &rx.series };
    let skipped = start_up(series, tx.started_ms);
    let begin_ms = skipped.checked_sub(1).and_then(|i| series.get(i)).map_or(0.0, |i| i.at_ms);
    m.throughput_bps = steady(series, skipped).or_else(|| rate(rx.bytes, rx.elapsed_s));
    m.cpu_s_per_gb = cpu_cost(tx, rx);
    m.host_cpu_s_per_gb = host_cpu_cost(tx, rx);
    let loaded: Vec<f64> =
        tx.series.iter().filter(|i| i.at_ms > begin_ms && i.rtt_us > 0.0).map(|i| i.rtt_us).collect();
    m.rtt_loaded_us = median(&loaded);
    m.retransmits_per_s =
        tx.tcp.as_ref().filter(|_| tx.elapsed_s > 0.0).map(|end| end.retransmits as f64 / tx.elapsed_s);
}

/// How many intervals belong to the start-up: until the sender's connections had left slow start
/// (`started_ms`, by their own state) and until one interval reaches 80 % of the median of the second half;
/// at least one, at most half of them. Both are needed: after slow start ended early a window may still grow,
/// and a series alone cannot tell a start from a rate that jumps. Series of fewer than four intervals are
/// kept whole.
fn start_up(series: &[Interval], started_ms: Option<f64>) -> usize {
    if series.len() < 4 {
        return 0;
    }
    let half = series.len() / 2;
    let later: Vec<f64> = series[half..].iter().map(|i| i.throughput_bps).collect();
    let level = 0.8 * median(&later).unwrap_or(0.0);
    let by_rate = series.iter().position(|i| i.throughput_bps >= level).unwrap_or(half);
    let by_state =
        started_ms.map_or(0, |started| series.iter().position(|i| i.at_ms > started).unwrap_or(series.len()));
    by_rate.max(by_state).clamp(1, half)
}

/// Mean rate of the intervals after the first `skipped`, weighted by their length.
fn steady(series: &[Interval], skipped: usize) -> Option<f64> {
    let mut before_ms = skipped.checked_sub(1).and_then(|i| series.get(i)).map_or(0.0, |i| i.at_ms);
    let (mut bits, mut seconds) = (0.0, 0.0);
    for interval in series.iter().skip(skipped) {
        let width_s = (interval.at_ms - before_ms) / 1e3;
        before_ms = interval.at_ms;
        if width_s > 0.0 && interval.throughput_bps.is_finite() {
            bits += interval.throughput_bps * width_s;
            seconds += width_s;
        }
    }
    (seconds > 0.0).then(|| bits / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rates: &[f64]) -> Vec<Interval> {
        let point = |(i, rate): (usize, &f64)| Interval {
            at_ms: 50.0 * (i + 1) as f64,
            throughput_bps: *rate,
            ..Interval::default()
        };
        rates.iter().enumerate().map(point).collect()
    }

    #[test]
    fn the_state_of_the_connections_tells_when_the_start_up_ended() {
        let points = series(&[1.7e8, 1.8e8, 1.9e8, 2e8, 2e8, 2e8, 2e8, 2e8]);
        assert_eq!((start_up(&points, None), start_up(&points, Some(10.0))), (1, 1));
        assert_eq!(start_up(&points, Some(120.0)), 2);
        // Never more than half: something has to be left.
        assert_eq!(start_up(&points, Some(1e6)), 4);
        // Slow start ended at once, the window grew for long.
        let slow = series(&[2e7, 6e7, 1e8, 1.7e8, 2e8, 2e8, 2e8, 2e8]);
        assert_eq!(start_up(&slow, Some(0.0)), 3);
    }
}
