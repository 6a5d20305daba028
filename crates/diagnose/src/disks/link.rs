//! The wire to a drive: what it carries at most.
//!
//! In: the facts of a host and the name of a device. Out: the bus with its speed, and bytes per second. Pure.

use linerate_model::fact::HostFacts;

use super::RULES;
use super::readings::reading;
use crate::ceilings::lanes_bps;
use crate::rules::Rules;

/// The wire to a drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DriveLink {
    /// Bytes of content per second, after the coding of the wire and before all headers.
    pub bytes_per_s: f64,
    /// What it is.
    pub bus: DriveBus,
}

/// The bus of a drive.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DriveBus {
    /// PCI Express.
    Pcie {
        /// Speed of a lane, GT/s.
        gts: f64,
        /// Lanes.
        lanes: f64,
    },
    /// SATA at so many Gbit/s.
    Sata(f64),
    /// SAS at so many Gbit/s.
    Sas(f64),
}

const GBIT: f64 = 1e9;

/// The link of a drive, where its host tells it.
pub(super) fn of(facts: &HostFacts, device: &str) -> Option<DriveLink> {
    let number = |field: &str| {
        reading(facts, device, field)?.number(0).filter(|value| value.is_finite() && *value > 0.0)
    };
    let lanes = || {
        let (gts, lanes) = (number("pcie.speed_gts")?, number("pcie.width")?);
        let bytes_per_s = lanes_bps(gts, lanes, &Rules::DEFAULT.ceilings) / 8.0;
        Some(DriveLink { bytes_per_s, bus: DriveBus::Pcie { gts, lanes } })
    };
    let sata = || {
        let speed = number("sata_gbit")?;
        Some(DriveLink { bytes_per_s: speed * GBIT / RULES.bits_8b10b, bus: DriveBus::Sata(speed) })
    };
    let sas = || {
        let speed = number("sas_gbit")?;
        let bits = if speed > 12.0 { RULES.bits_128b150b } else { RULES.bits_8b10b };
        Some(DriveLink { bytes_per_s: speed * GBIT / bits, bus: DriveBus::Sas(speed) })
    };
    lanes().or_else(sata).or_else(sas)
}
