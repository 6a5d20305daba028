//! The wire to a drive: what it carries at most.
//!
//! In: the facts of a host and the name of a device. Out: bytes per second and words for them. Pure.

use linerate_model::fact::HostFacts;
use serde::Serialize;

use super::RULES;
use super::readings::reading;
use crate::ceilings::lanes_bps;
use crate::rules::Rules;

/// The wire to a drive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DriveLink {
    /// Bytes of content per second, after the coding of the wire and before all headers.
    pub bytes_per_s: f64,
    /// `SATA at 6 Gbit/s`, `PCIe at 8 GT/s x 4`.
    pub words: String,
}

const GBIT: f64 = 1e9;

/// The link of a drive, where its host tells it.
pub(super) fn of(facts: &HostFacts, device: &str) -> Option<DriveLink> {
    let number = |field: &str| {
        reading(facts, device, field)?.number(0).filter(|value| value.is_finite() && *value > 0.0)
    };
    let lanes = || {
        let (speed, width) = (number("pcie.speed_gts")?, number("pcie.width")?);
        Some(DriveLink {
            bytes_per_s: lanes_bps(speed, width, &Rules::DEFAULT.ceilings) / 8.0,
            words: format!("PCIe at {speed} GT/s x {width}"),
        })
    };
    let sata = || {
        let speed = number("sata_gbit")?;
        Some(DriveLink {
            bytes_per_s: speed * GBIT / RULES.bits_8b10b,
            words: format!("SATA at {speed} Gbit/s"),
        })
    };
    let sas = || {
        let speed = number("sas_gbit")?;
        let bits = if speed > 12.0 { RULES.bits_128b150b } else { RULES.bits_8b10b };
        Some(DriveLink { bytes_per_s: speed * GBIT / bits, words: format!("SAS at {speed} Gbit/s") })
    };
    lanes().or_else(sata).or_else(sas)
}
