//! How the work on a stream ended, and what that means for the transfer.
//!
//! What comes in: bytes, checksums and the state of each connection at its end. What goes out: sums and
//! extremes, and the first thing that broke.

use std::io;
use std::net::TcpStream;
use std::time::Instant;

use linerate_model::load::{AgreedOptions, TcpEnd};
use linerate_sys::socket;
use linerate_sys::tcp_info::{self, TcpInfo};

use crate::job::LoadError;

/// The receiver's record of a stream at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) bytes: u64,
    pub(super) checksum: u32,
}

impl Tail {
    pub(super) const BYTES: usize = 12;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut out = [0; Self::BYTES];
        out[..8].copy_from_slice(&self.bytes.to_be_bytes());
        out[8..].copy_from_slice(&self.checksum.to_be_bytes());
        out
    }

    pub(super) fn of(bytes: [u8; Self::BYTES]) -> Self {
        Self {
            bytes: bytes.first_chunk().map_or(0, |count| u64::from_be_bytes(*count)),
            checksum: bytes.last_chunk().map_or(0, |sum| u32::from_be_bytes(*sum)),
        }
    }
}

/// How the work on one stream ended.
#[derive(Debug, Default)]
pub(super) struct StreamEnd {
    /// Bytes that this end sent or received.
    pub(super) bytes: u64,
    /// Checksum of them, where one was made.
    pub(super) checksum: u32,
    /// The receiver's word, once the sender has it.
    pub(super) tail: Option<Tail>,
    /// First and last time at which something came.
    pub(super) span: Option<(Instant, Instant)>,
    /// State of the connection when its data was through.
    pub(super) info: TcpInfo,
    /// Remark of the method that moved the bytes.
    pub(super) remark: String,
    /// What broke.
    pub(super) error: Option<io::Error>,
}

/// Sums and extremes over the streams; the sender adds its samples.
pub(super) fn end_state(streams: &[TcpStream], ends: &[StreamEnd]) -> TcpEnd {
    let mut end = TcpEnd::default();
    for info in ends.iter().map(|end| &end.info) {
        let rtt_us = f64::from(info.min_rtt_us.unwrap_or(0));
        if rtt_us > 0.0 && (end.rtt_min_us <= 0.0 || rtt_us < end.rtt_min_us) {
            end.rtt_min_us = rtt_us;
        }
        end.retransmits += u64::from(info.total_retrans);
        end.busy_us += info.busy_time_us.unwrap_or(0);
        end.rwnd_limited_us += info.rwnd_limited_us.unwrap_or(0);
        end.sndbuf_limited_us += info.sndbuf_limited_us.unwrap_or(0);
        end.reord_seen += u64::from(info.reord_seen.unwrap_or(0));
        end.dsack_dups += u64::from(info.dsack_dups.unwrap_or(0));
        end.rcv_ooopack += u64::from(info.rcv_ooopack.unwrap_or(0));
        end.delivered += u64::from(info.delivered.unwrap_or(0));
        end.delivered_ce += u64::from(info.delivered_ce.unwrap_or(0));
    }
    if let (Some(stream), Some(first)) = (streams.first(), ends.first()) {
        end.wscale = first.info.window_scale.unwrap_or((0, 0));
        end.agreed = agreed(ends);
        end.congestion = tcp_info::congestion(stream).unwrap_or_default();
        end.sndbuf_bytes = socket::send_buffer(stream).unwrap_or(0);
    }
    end
}

/// What holds for every stream that was open at its end; `None` where the state of none could be read.
fn agreed(ends: &[StreamEnd]) -> Option<AgreedOptions> {
    let each = ends.iter().map(|end| &end.info).filter(|info| info.snd_mss > 0).map(|info| AgreedOptions {
        sack: info.sack,
        ecn: info.ecn,
        timestamps: info.timestamps,
    });
    each.reduce(|all, one| AgreedOptions {
        sack: all.sack && one.sack,
        ecn: all.ecn && one.ecn,
        timestamps: all.timestamps && one.timestamps,
    })
}

/// Why a transfer is worth less than it seems, if it is: what broke.
pub(super) fn verdict(ends: &mut [StreamEnd]) -> Result<(), LoadError> {
    let bytes = ends.iter().map(|end| end.bytes).sum();
    if let Some(source) = ends.iter_mut().find_map(|end| end.error.take()) {
        return Err(LoadError::Broken { bytes, source });
    }
    Ok(())
}
