//! How a bulk transfer is made: everything about its sockets and threads that is not "how many streams for
//! how long".
//!
//! The default is what a survey uses: nothing of the host's own configuration is overruled, because that is
//! what a survey measures. Limits are checked where the load runs, which also says what is wrong with a
//! value.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most streams of one direction of a test.
pub const STREAMS_MAX: u16 = 512;
/// Most readings of the state of a connection per second.
pub const SAMPLE_HZ_MAX: u16 = 100;
/// Length of a turn of the calibration.
pub const TURN_MS: u32 = 150;
/// Length of a turn of the best methods, between which it decides: on two shared CPUs, rates of 150 ms of one
/// method differed by a factor of up to 1.7.
pub const LONG_TURN_MS: u32 = 300;
/// Longest time of a whole calibration.
pub const CALIBRATION_MS_MAX: u32 = 10_000;

/// Options of a bulk transfer; both ends get the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
// Four independent yes-or-no questions are four fields.
#[allow(clippy::struct_excessive_bools)]
pub struct Tuning {
    /// What carries the bytes.
    pub protocol: Protocol,
    /// Congestion control of the senders; `None`: the host's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion: Option<String>,
    /// Differentiated services code point of all packets, 0 to 63.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Largest segment, bytes: `TCP_MAXSEG`, 88 to 65 483.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// Buffers of both ends, bytes (`SO_SNDBUF` and `SO_RCVBUF` before connecting, which ends autotuning): 4
    /// KiB to 1 GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u32>,
    /// Most that one stream sends, bit/s (`SO_MAX_PACING_RATE`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<f64>,
    /// Most that all streams of one direction send together, bytes; the sender ends there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_max: Option<u64>,
    /// Small segments are not held back (`TCP_NODELAY`).
    pub no_delay: bool,
    /// As many streams from the receiver to the sender at the same time.
    pub both_ways: bool,
    /// The receiver copies every byte out of the kernel and both ends compare a checksum of each stream.
    pub verify: bool,
    /// Way of sending, by its name; `None`: the first of the list, or what the calibration finds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send: Option<String>,
    /// Way of receiving, by its name; `None`: the first of the list, or what the calibration finds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receive: Option<String>,
    /// Before the test the ways of sending and receiving take turns on its own connections, and the best is
    /// used.
    pub calibrate: bool,
    /// The receiver's answer to a turn also has the CPU time of its whole host. Set by an operator where both
    /// nodes know it: they name the boot id in their hello.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub host_turns: bool,
    /// On which CPUs the threads run.
    pub pin: Pin,
    /// Readings of the state of each connection per second, 1 to [`SAMPLE_HZ_MAX`].
    pub sample_hz: u16,
    /// Bytes of one write, 1 to 16 MiB; `None`: what the way of sending likes best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_bytes: Option<u32>,
    /// So much at the beginning is left out of the figures, ms, whatever the start-up took.
    #[serde(skip_serializing_if = "is_zero")]
    pub omit_ms: u32,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            protocol: Protocol::default(),
            congestion: None,
            dscp: None,
            mss: None,
            window_bytes: None,
            pacing_bps: None,
            bytes_max: None,
            no_delay: false,
            both_ways: false,
            verify: false,
            send: None,
            receive: None,
            calibrate: false,
            host_turns: false,
            pin: Pin::default(),
            sample_hz: 50,
            write_bytes: None,
            omit_ms: 0,
        }
    }
}

impl Tuning {
    /// Whether this is what a survey uses.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What carries the bytes of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// Multipath TCP; falls back to TCP where the peer or the path does not know it.
    Mptcp,
    /// A socket inside one host (abstract name): what the host can do without a network.
    Unix,
    /// Between a virtual machine and its host.
    Vsock {
        /// Context identifier of the receiver; 1 is the own machine.
        cid: u32,
    },
}

impl Protocol {
    /// Short name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Mptcp => "mptcp",
            Self::Unix => "unix",
            Self::Vsock { .. } => "vsock",
        }
    }
}

/// On which CPUs the threads of a load run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pin {
    /// On the CPUs beside the NIC of the own address, where the host has more than one memory node.
    #[default]
    Auto,
    /// Wherever the scheduler likes.
    None,
    /// Stream by stream on these, in turn.
    Cpus(Vec<u32>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_are_left_out_are_those_of_a_survey() {
        let tuning = Tuning::default();
        assert!(tuning.is_default() && !tuning.calibrate && tuning.sample_hz <= SAMPLE_HZ_MAX);
        let text = toml::to_string(&tuning).unwrap();
        assert_eq!(toml::from_str::<Tuning>(&text).unwrap(), tuning);
        assert_eq!(toml::from_str::<Tuning>("verify = true").unwrap(), Tuning { verify: true, ..tuning });
    }
}
