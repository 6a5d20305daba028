//! Which share of a local disk is lost where: in the transport, or in the replication itself. Figures come
//! in, a line for each pattern and transport goes out.
//!
//! A replicated write can be no faster than the slower of the local disk and the transport. What is missing
//! to the local disk because the transport is slower is the transport's; everything else is lost by how the
//! replication uses it. For writes that have to be safe one by one it is time that counts: that of the own
//! disk, of the RTT, and the rest, which is the peer's disk and DRBD.

use linerate_model::snapshot::{StorageFigure, StoragePattern, StorageSubject};
use schemars::JsonSchema;
use serde::Serialize;

/// Patterns that write, in the order of the report.
pub const PATTERNS: [StoragePattern; 3] =
    [StoragePattern::Write, StoragePattern::RandomWrite, StoragePattern::SyncWrite];

/// A replicated pattern beside the local disk and the transport.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Share {
    /// Transport.
    pub variant: String,
    /// One of [`PATTERNS`].
    pub pattern: StoragePattern,
    /// The local disk alone.
    pub local_bytes_per_s: f64,
    /// The transport alone, where it was measured.
    pub transport_bytes_per_s: Option<f64>,
    /// Replicated.
    pub replicated_bytes_per_s: f64,
    /// Replicated over local.
    pub reached: f64,
    /// Share of the local disk that the transport cannot carry.
    pub lost_to_transport: f64,
    /// Share of the local disk that is lost though disk and transport could.
    pub lost_to_replication: f64,
    /// Where the time of a single write goes.
    pub time: Option<TimeOfWrite>,
}

/// Where the time of a write goes that is waited for alone, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct TimeOfWrite {
    /// All of it.
    pub whole_ms: f64,
    /// The own disk, as it does without a peer.
    pub local_ms: f64,
    /// The RTT.
    pub way_ms: f64,
    /// What is left: the disk of the peer, and DRBD on both sides.
    pub rest_ms: f64,
}

/// A line for each replicated pattern with a known local figure.
#[must_use]
pub fn shares(figures: &[StorageFigure]) -> Vec<Share> {
    let find = |what: StorageSubject, pattern: StoragePattern, variant: Option<&str>| {
        let is_it = |f: &&StorageFigure| {
            f.what == what && f.pattern == pattern && variant.is_none_or(|v| f.variant == v)
        };
        figures.iter().find(is_it)
    };
    let mut shares: Vec<Share> = Vec::new();
    for replicated in figures.iter().filter(|f| f.what == StorageSubject::Replicated) {
        let pattern = replicated.pattern;
        let local = find(StorageSubject::LocalDisk, pattern, None).filter(|f| f.bytes_per_s > 0.0);
        let Some(local) = local.filter(|_| PATTERNS.contains(&pattern)) else { continue };
        let transport = find(StorageSubject::Transport, StoragePattern::Stream, Some(&replicated.variant))
            .map(|f| f.bytes_per_s);
        let rtt = find(StorageSubject::Transport, StoragePattern::RoundTrip, Some(&replicated.variant))
            .and_then(|f| f.wait_ms);
        let reached = replicated.bytes_per_s / local.bytes_per_s;
        let carried = transport.map_or(1.0, |t| (t / local.bytes_per_s).min(1.0));
        shares.push(Share {
            variant: replicated.variant.clone(),
            pattern,
            local_bytes_per_s: local.bytes_per_s,
            transport_bytes_per_s: transport,
            replicated_bytes_per_s: replicated.bytes_per_s,
            reached,
            lost_to_transport: (1.0 - carried).min(1.0 - reached).max(0.0),
            lost_to_replication: (carried - reached).max(0.0),
            time: time(pattern, local.wait_ms, replicated.wait_ms, rtt),
        });
    }
    let rank = |share: &Share| PATTERNS.iter().position(|p| *p == share.pattern);
    shares.sort_by(|a, b| a.variant.cmp(&b.variant).then(rank(a).cmp(&rank(b))));
    shares
}

fn time(
    pattern: StoragePattern,
    local: Option<f64>,
    whole: Option<f64>,
    rtt: Option<f64>,
) -> Option<TimeOfWrite> {
    let (local_ms, whole_ms, way_ms) = (local?, whole?, rtt?);
    // With many requests in flight their times are those of queues.
    (pattern == StoragePattern::SyncWrite).then(|| TimeOfWrite {
        whole_ms,
        local_ms,
        way_ms,
        rest_ms: (whole_ms - local_ms - way_ms).max(0.0),
    })
}

#[cfg(test)]
mod tests {
    use StoragePattern::{RandomWrite, Read, RoundTrip, Stream, SyncWrite, Write};
    use StorageSubject::{LocalDisk, Replicated, Transport};

    use super::*;

    fn figure(
        what: StorageSubject,
        variant: &str,
        pattern: StoragePattern,
        mbyte_per_s: f64,
    ) -> StorageFigure {
        StorageFigure {
            what,
            variant: variant.into(),
            pattern,
            bytes_per_s: mbyte_per_s * 1e6,
            ..StorageFigure::default()
        }
    }

    /// Casebook E: 35 % and 6 % of the local disk, and the transport is not the limit.
    #[test]
    fn the_replication_and_not_the_transport_loses_the_disk_of_casebook_e() {
        let figures = [
            figure(Transport, "ipoib", Stream, 495.0),
            figure(Transport, "sdp", Stream, 1838.0),
            figure(LocalDisk, "", Write, 265.9),
            figure(LocalDisk, "", RandomWrite, 16.4),
            figure(Replicated, "ipoib", Write, 91.8),
            figure(Replicated, "ipoib", RandomWrite, 26.6),
            figure(Replicated, "sdp", Write, 16.4),
            figure(Replicated, "sdp", RandomWrite, 10.2),
            figure(Replicated, "ipoib", Read, 8000.0),
        ];
        let all = shares(&figures);
        let got: Vec<(&str, StoragePattern, i64, i64, i64)> = all
            .iter()
            .map(|s| {
                let whole = |share: f64| (share * 100.0).round() as i64;
                let lost = (whole(s.lost_to_transport), whole(s.lost_to_replication));
                (s.variant.as_str(), s.pattern, whole(s.reached), lost.0, lost.1)
            })
            .collect();
        assert_eq!(
            got,
            [
                ("ipoib", Write, 35, 0, 65),
                ("ipoib", RandomWrite, 162, 0, 0),
                ("sdp", Write, 6, 0, 94),
                ("sdp", RandomWrite, 62, 0, 38),
            ]
        );
    }

    #[test]
    fn a_slow_transport_takes_its_share_first_and_a_safe_write_counts_in_time() {
        let sync = |what: StorageSubject, wait_ms: f64| StorageFigure {
            wait_ms: Some(wait_ms),
            ..figure(what, if what == LocalDisk { "" } else { "underlay" }, SyncWrite, 1.0)
        };
        let figures = [
            figure(LocalDisk, "", Write, 200.0),
            figure(Transport, "underlay", Stream, 50.0),
            figure(Replicated, "underlay", Write, 40.0),
            sync(LocalDisk, 0.5),
            sync(Replicated, 3.0),
            StorageFigure { wait_ms: Some(1.5), ..figure(Transport, "underlay", RoundTrip, 0.0) },
        ];
        let all = shares(&figures);
        assert!(
            (all[0].lost_to_transport - 0.75).abs() < 1e-9
                && (all[0].lost_to_replication - 0.05).abs() < 1e-9
        );
        assert_eq!(all[0].time, None);
        let time = TimeOfWrite { whole_ms: 3.0, local_ms: 0.5, way_ms: 1.5, rest_ms: 1.0 };
        assert_eq!(all[1].time, Some(time));
    }

    #[test]
    fn without_a_local_figure_there_is_no_share() {
        assert!(shares(&[figure(Replicated, "underlay", Write, 40.0)]).is_empty());
        let zero = [figure(LocalDisk, "", Write, 0.0), figure(Replicated, "x", Write, 1.0)];
        assert!(shares(&zero).is_empty());
    }
}
