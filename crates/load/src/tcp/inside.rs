//! The inside of the connections: kept readings, and the end of slow start that follows from them.
//!
//! What comes in: `TCP_INFO` of all streams at each tick. What goes out: packed readings of a bounded number,
//! and a time.

use std::time::Duration;

use linerate_model::inside::{Packed, Reading};
use linerate_sys::tcp_info::TcpInfo;

/// Readings of all streams together that are kept (about 20 bytes each): with more, only every second or
/// third tick is.
const READINGS_MAX: usize = 30_000;

/// A rate that does not grow by more than this in [`FLAT_READINGS`] readings has reached its path (the
/// criterion of BBR's start-up: three rounds with less than a quarter more).
const GROWTH: f64 = 1.25;
const FLAT_READINGS: usize = 3;

/// Keeps readings.
pub(super) struct Recorder {
    streams: Vec<Vec<Reading>>,
    /// Every so many ticks.
    every: usize,
    ticks: usize,
}

impl Recorder {
    /// For so many streams and such a time.
    pub(super) fn new(streams: usize, duration: Duration, interval: Duration) -> Self {
        let expected = streams * (duration.as_secs_f64() / interval.as_secs_f64().max(1e-3)).ceil() as usize;
        Self { streams: vec![Vec::new(); streams], every: expected.div_ceil(READINGS_MAX).max(1), ticks: 0 }
    }

    /// Takes a reading of all streams at a time since the start.
    pub(super) fn record(&mut self, at: Duration, infos: &[TcpInfo]) {
        self.ticks += 1;
        // The first ones are always kept: that is when slow start is seen.
        if self.ticks > 50 && !self.ticks.is_multiple_of(self.every) {
            return;
        }
        for (list, info) in self.streams.iter_mut().zip(infos) {
            list.push(reading(at, info));
        }
    }

    /// Everything that was kept.
    pub(super) fn finish(self) -> Vec<Vec<Reading>> {
        self.streams
    }
}

fn reading(at: Duration, info: &TcpInfo) -> Reading {
    Reading {
        at_us: at.as_micros() as u64,
        acked_bytes: info.bytes_acked.unwrap_or(0),
        delivery_bytes_per_s: info.delivery_rate.unwrap_or(0),
        pacing_bytes_per_s: info.pacing_rate.unwrap_or(0),
        rtt_us: u64::from(info.rtt_us),
        rtt_min_us: u64::from(info.min_rtt_us.unwrap_or(0)),
        cwnd: u64::from(info.snd_cwnd),
        ssthresh: u64::from(info.snd_ssthresh.unwrap_or(0)),
        retransmits: u64::from(info.total_retrans),
        busy_us: info.busy_time_us.unwrap_or(0),
        rwnd_limited_us: info.rwnd_limited_us.unwrap_or(0),
        sndbuf_limited_us: info.sndbuf_limited_us.unwrap_or(0),
        reordering: u64::from(info.reord_seen.unwrap_or(0)),
        dsack: u64::from(info.dsack_dups.unwrap_or(0)),
    }
}

/// All streams, packed; nothing where the kernel returned nothing (other families).
pub(super) fn pack(streams: &[Vec<Reading>]) -> Vec<Packed> {
    let known = |list: &Vec<Reading>| list.iter().any(|reading| reading.cwnd > 0);
    if streams.iter().any(known) {
        streams.iter().map(|list| Packed::pack(list)).collect()
    } else {
        Vec::new()
    }
}

/// When slow start was over in three of four streams, milliseconds since the start.
pub(super) fn started_ms(streams: &[Vec<Reading>]) -> Option<f64> {
    let mut ends: Vec<u64> = streams.iter().filter_map(|list| slow_start_end_us(list)).collect();
    ends.sort_unstable();
    let needed = (streams.len() * 3).div_ceil(4);
    ends.get(needed.checked_sub(1)?).map(|&us| us as f64 / 1e3)
}

/// When slow start of one stream was over: a threshold was set (something was lost, or the kernel's own
/// detection saw the delay grow), or the window and the delivered rate stopped to grow because something else
/// holds the stream.
fn slow_start_end_us(readings: &[Reading]) -> Option<u64> {
    readings.iter().enumerate().find_map(|(at, reading)| {
        let by_threshold = reading.ssthresh > 0 && reading.cwnd >= reading.ssthresh;
        let ahead = readings.get(at + 1..=at + FLAT_READINGS)?;
        let flat = |value: fn(&Reading) -> u64| {
            let now = value(reading) as f64;
            now > 0.0 && ahead.iter().all(|later| value(later) as f64 <= now * GROWTH)
        };
        (by_threshold || (flat(|r| r.cwnd) && flat(|r| r.delivery_bytes_per_s))).then_some(reading.at_us)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(values: &[(u64, u64, u64)]) -> Vec<Reading> {
        (1..)
            .zip(values)
            .map(|(i, &(cwnd, ssthresh, rate))| Reading {
                at_us: i * 20_000,
                cwnd,
                ssthresh,
                delivery_bytes_per_s: rate,
                ..Reading::default()
            })
            .collect()
    }

    #[test]
    fn a_threshold_ends_slow_start() {
        let list = readings(&[
            (10, 0, 1),
            (20, 0, 2),
            (40, 0, 4),
            (60, 70, 6),
            (75, 70, 8),
            (76, 70, 9),
            (77, 70, 9),
            (78, 70, 9),
        ]);
        assert_eq!(slow_start_end_us(&list), Some(100_000));
    }

    #[test]
    fn a_stream_held_by_something_else_ends_it_when_it_stops_to_grow() {
        let list =
            readings(&[(10, 0, 10), (40, 0, 40), (90, 0, 88), (100, 0, 90), (100, 0, 91), (100, 0, 90)]);
        assert_eq!(slow_start_end_us(&list), Some(60_000));
        let growing = readings(&[(10, 0, 1), (20, 0, 2), (40, 0, 4), (80, 0, 8), (160, 0, 16)]);
        assert_eq!(slow_start_end_us(&growing), None);
        assert_eq!(started_ms(&[list.clone(), list.clone(), list.clone(), growing]), Some(60.0));
        assert_eq!(started_ms(&[list, Vec::new()]), None);
        assert_eq!(started_ms(&[]), None);
    }

    #[test]
    fn the_number_of_readings_is_bounded() {
        let mut recorder = Recorder::new(512, Duration::from_secs(60), Duration::from_millis(10));
        let infos = vec![TcpInfo { snd_cwnd: 10, ..TcpInfo::default() }; 512];
        for tick in 0..6000 {
            recorder.record(Duration::from_millis(10 * tick), &infos);
        }
        let kept = recorder.finish();
        let all: usize = kept.iter().map(Vec::len).sum();
        assert!(all <= READINGS_MAX + 51 * 512, "{all}");
        assert_eq!(pack(&kept).len(), 512);
        assert!(pack(&[vec![Reading::default()]]).is_empty());
    }
}
