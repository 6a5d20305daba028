//! Requests to a running lab of guests over the socket in its folder: one line of JSON in each direction.
//!
//! In: command-line arguments. Out: requests. It never acts itself; the lab does.

use serde::{Deserialize, Serialize};

use super::disk::{Behaviour, Cache, Keep};
use super::switch::TrafficDirection;
use crate::wire::settings::Settings;

/// Name of the socket in the folder of the lab.
pub const SOCKET: &str = "vm.sock";

/// A request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestRequest {
    /// Report the state, as text or JSON.
    Status {
        /// As JSON.
        json: bool,
    },
    /// Change the behaviour of a drive, and report it.
    Drive {
        /// Whose.
        guest: String,
        /// Which.
        drive: String,
        /// What changes.
        change: DriveChange,
    },
    /// Change the link of a guest.
    Link {
        /// Whose.
        guest: String,
        /// Which direction.
        #[serde(rename = "way")]
        direction: TrafficDirection,
        /// What changes.
        change: LinkChange,
    },
    /// Cut the power of a guest.
    Cut {
        /// Which.
        guest: String,
        /// Unflushed writes that survive.
        keep: Keep,
        /// For random choices.
        seed: u64,
    },
    /// Power a guest on again, with its drives.
    Boot {
        /// Which.
        guest: String,
    },
    /// End the lab.
    Down,
}

/// Changes of a drive; absent values stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct DriveChange {
    /// Limit requests per second, served one at a time; 0 is unlimited.
    #[arg(long, value_name = "NUMBER")]
    pub ops_per_s: Option<f64>,
    /// Delay each request, ms.
    #[arg(long, value_name = "MS")]
    pub delay_ms: Option<f64>,
    /// Set the cache and its handling of flushes.
    #[arg(long, value_enum)]
    pub cache: Option<Cache>,
    /// Fail reads and writes of this byte range, e.g. 0-65536; `none` ends it.
    #[arg(long, value_name = "FROM-TO", value_parser = fails)]
    pub fail: Option<Fails>,
    /// Fail every request, as if the drive was pulled.
    #[arg(long)]
    pub gone: Option<bool>,
}

/// Bytes that fail, or none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Fails(Option<std::ops::Range<u64>>);

fn fails(text: &str) -> Result<Fails, String> {
    if text == "none" {
        return Ok(Fails(None));
    }
    let range = text.split_once('-').and_then(|(from, to)| Some(from.parse().ok()?..to.parse().ok()?));
    range
        .filter(|r: &std::ops::Range<u64>| r.start < r.end)
        .map(|r| Fails(Some(r)))
        .ok_or_else(|| "expected a byte range such as 0-65536, or none".into())
}

impl DriveChange {
    /// Makes the change.
    pub fn apply(&self, behaviour: &mut Behaviour) {
        let Self { ops_per_s, delay_ms, cache, fail, gone } = self;
        behaviour.ops_per_s = ops_per_s.unwrap_or(behaviour.ops_per_s);
        behaviour.delay_ms = delay_ms.unwrap_or(behaviour.delay_ms);
        behaviour.cache = cache.unwrap_or(behaviour.cache);
        behaviour.gone = gone.unwrap_or(behaviour.gone);
        if let Some(Fails(range)) = fail {
            behaviour.fails.clone_from(range);
        }
    }

    /// Whether nothing changes.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Changes of a link; absent values stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, clap::Args)]
pub struct LinkChange {
    /// Delay frames, ms.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    pub delay_ms: Option<f64>,
    /// Drop this percentage of frames; 100 cuts the link.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub loss: Option<f64>,
    /// Limit the rate, Mbit/s; 0 is unlimited.
    #[arg(long, value_name = "MBIT")]
    pub rate_mbit: Option<u32>,
}

/// Queue before a link with a rate, as drain time.
const QUEUE_S: f64 = 0.1;

impl LinkChange {
    /// Makes the change.
    pub fn apply(&self, settings: &mut Settings) {
        if let Some(ms) = self.delay_ms {
            settings.delay_ns = (ms * 1e6) as u64;
        }
        if let Some(percent) = self.loss {
            settings.loss_ppm = (percent * 1e4) as u32;
        }
        if let Some(mbit) = self.rate_mbit {
            settings.rate_bps = u64::from(mbit) * 1_000_000;
            settings.queue_bytes = (settings.rate_bps as f64 / 8.0 * QUEUE_S) as u64;
        }
    }
}

fn milliseconds(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|ms| (0.0..=10_000.0).contains(ms))
        .ok_or_else(|| "expected 0 to 10000 ms".into())
}

fn percent(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|p| (0.0..=100.0).contains(p)).ok_or_else(|| "expected 0 to 100 percent".into())
}
