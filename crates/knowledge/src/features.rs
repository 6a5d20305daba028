//! The vocabulary of features: measured values that a cause may test, by name.

/// Names of the features.
pub const NAMES: &[&str] = &[
    "throughput_share",
    "loss",
    "reordered",
    "retransmits_per_s",
    "retransmits_ratio",
    "rtt_idle_ratio",
    "rtt_loaded_ratio",
    "rtt_growth",
    "cpu_ratio",
    "rwnd_limited_share",
    "sndbuf_limited_share",
    "window_over_rtt",
    "window_bytes",
    "window_bytes_ratio",
    "sndbuf_bytes",
    "sndbuf_full",
    "steadiness",
    "two_state",
    "wscale_off",
    "options_off",
    "mss_cut",
    "wait_share",
    "core_busy_tx",
    "core_busy_rx",
    "cpu_unread",
    "core_busy_rx_excess",
    "streams_gain",
    "blocked",
    "udp_clean",
    "mtu_limit",
    "loss_from_rate",
    "duplicated",
    "rtt_spread",
    "stall_ms",
    "tcp_loss",
    "small_loss",
    "queueing",
    "others_share",
    "resync",
    "random_over_stream",
];

/// Features that measure a mechanism rather than its effect on the path: what an end of a connection reports
/// about itself, and the probe that asks for packets. The others show that something is lost, not by what.
pub const SPECIFIC: &[&str] =
    &["wscale_off", "options_off", "mss_cut", "wait_share", "small_loss", "others_share"];

/// The pattern of keys of a feature that is the growth of counters.
#[must_use]
pub fn counter(name: &str) -> Option<&str> {
    name.strip_prefix("counter:")
}

/// Whether a feature, or the change of a counter, is a reading of a cause's own.
#[must_use]
pub fn is_specific(name: &str) -> bool {
    SPECIFIC.contains(&name) || counter(name).is_some()
}

/// Whether a cause may test a feature of this name.
#[must_use]
pub fn is_known(name: &str) -> bool {
    NAMES.contains(&name) || counter(name).is_some_and(|key| !key.is_empty())
}
