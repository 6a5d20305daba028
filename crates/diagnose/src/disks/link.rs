//! The wire to a drive: what it carries at most.
//!
//! In: the facts of a host and the name of a device. Out: bytes per second and words for them. Pure.

use linerate_model::fact::HostFacts;
use serde::Serialize;

use super::readings::reading;
use crate::ceiling::lanes_bps;

/// The wire to a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    /// Bytes of content per second, after the coding of the wire and before all headers.
    pub bytes_per_s: f64,
    /// `SATA at 6 Gbit/s`, `PCIe at 8 GT/s x 4`.
    pub words: String,
}

/// Bits on a wire of SATA, and of SAS up to 12 Gbit/s, for a byte: 8b/10b.
const BITS_8B10B: f64 = 10.0;
/// The same for SAS at 22.5 Gbit/s (SAS-4: 128b/150b).
const BITS_128B150B: f64 = 8.0 * 150.0 / 128.0;
const GBIT: f64 = 1e9;

/// The link of a drive, where its host tells it.
pub(super) fn of(facts: &HostFacts, device: &str) -> Option<Link> {
    let number = |field: &str| {
        reading(facts, device, field)?.number(0).filter(|value| value.is_finite() && *value > 0.0)
    };
    let lanes = || {
        let (speed, width) = (number("pcie.speed_gts")?, number("pcie.width")?);
        Some(Link {
            bytes_per_s: lanes_bps(speed, width) / 8.0,
            words: format!("PCIe at {speed} GT/s x {width}"),
        })
    };
    let sata = || {
        let speed = number("sata_gbit")?;
        Some(Link { bytes_per_s: speed * GBIT / BITS_8B10B, words: format!("SATA at {speed} Gbit/s") })
    };
    let sas = || {
        let speed = number("sas_gbit")?;
        let bits = if speed > 12.0 { BITS_128B150B } else { BITS_8B10B };
        Some(Link { bytes_per_s: speed * GBIT / bits, words: format!("SAS at {speed} Gbit/s") })
    };
    lanes().or_else(sata).or_else(sas)
}
