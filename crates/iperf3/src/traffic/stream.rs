//! One stream of a running test: its counts, and the changes since the last sample.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use linerate_sys::tcp_info;

use crate::board::Meter;
use crate::record::{Extremes, Lane, StreamInterval, TcpNow};
use crate::streams::Wire;
use crate::tally::Tally;

/// Counts of a stream at some time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Snapshot {
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) tally: Tally,
    pub(super) retransmits: u64,
    pub(super) acknowledged: Option<u64>,
}

/// A stream with its thread.
pub(super) struct Stream {
    pub(super) lane: Lane,
    pub(super) wire: Wire,
    pub(super) meter: Arc<Meter>,
    pub(super) thread: Option<JoinHandle<()>>,
    /// At the end of what is omitted.
    pub(super) base: Snapshot,
    /// At the end of the last interval.
    pub(super) last: Snapshot,
    pub(super) extremes: Extremes,
    pub(super) rtt_sum_us: u64,
    pub(super) rtt_samples: u64,
}

impl Stream {
    /// What is counted now, and the state of the connection when this end sends on it by TCP.
    pub(super) fn read(&self) -> (Snapshot, Option<tcp_info::TcpInfo>) {
        let info = match &self.wire {
            Wire::Tcp(stream) if self.lane.sends => tcp_info::read(&**stream).ok(),
            _ => None,
        };
        let tally = *self.meter.tally();
        let receives_datagrams = matches!(self.wire, Wire::Udp(_)) && !self.lane.sends;
        let snapshot = Snapshot {
            bytes: self.meter.bytes.load(Ordering::Relaxed),
            packets: if receives_datagrams {
                tally.packets
            } else {
                self.meter.packets.load(Ordering::Relaxed)
            },
            tally,
            retransmits: info.map_or(0, |info| info.total_retrans.into()),
            acknowledged: info.and_then(|info| info.bytes_acked),
        };
        (snapshot, info)
    }

    pub(super) fn interval(&mut self) -> StreamInterval {
        let (now, info) = self.read();
        let before = std::mem::replace(&mut self.last, now);
        let tcp = info.map(|info| {
            let mss = u64::from(info.snd_mss);
            let state = TcpNow {
                retransmits: now.retransmits.saturating_sub(before.retransmits),
                cwnd_bytes: u64::from(info.snd_cwnd) * mss,
                cwnd: info.snd_cwnd,
                send_window: info.snd_wnd.unwrap_or(0).into(),
                rtt_us: info.rtt_us,
                rttvar_us: info.rttvar_us,
                pmtu: info.pmtu,
                reorder: info.reord_seen,
            };
            self.note_extremes(&state);
            state
        });
        StreamInterval {
            bytes: now.bytes.saturating_sub(before.bytes),
            acknowledged: now.acknowledged.zip(before.acknowledged).map(|(n, b)| n.saturating_sub(b)),
            packets: now.packets.saturating_sub(before.packets),
            lost: now.tally.lost.saturating_sub(before.tally.lost),
            out_of_order: now.tally.out_of_order.saturating_sub(before.tally.out_of_order),
            jitter_s: now.tally.jitter_s,
            tcp,
        }
    }

    fn note_extremes(&mut self, now: &TcpNow) {
        let most = &mut self.extremes;
        most.cwnd_bytes = most.cwnd_bytes.max(now.cwnd_bytes);
        most.send_window = most.send_window.max(now.send_window);
        most.rtt_max_us = most.rtt_max_us.max(now.rtt_us);
        most.rtt_min_us = if self.rtt_samples == 0 { now.rtt_us } else { most.rtt_min_us.min(now.rtt_us) };
        self.rtt_sum_us += u64::from(now.rtt_us);
        self.rtt_samples += 1;
        most.rtt_mean_us = (self.rtt_sum_us / self.rtt_samples) as u32;
    }
}
