//! What tests have in common whose sender moves bytes in one direction.

use crate::load::LoadReport;
use crate::printable::without_hint;

/// What is missing, where nothing got through.
pub(super) fn missing(rx: &LoadReport) -> Option<&'static str> {
    (rx.bytes == 0).then_some("no byte arrived")
}

/// Why a receiver that got more than was sent is not believed.
pub(super) fn more_than_sent(tx: &LoadReport, rx: &LoadReport) -> Result<(), String> {
    if rx.bytes <= tx.bytes {
        return Ok(());
    }
    // A sender that was broken off knows only what was acknowledged when it last looked.
    Err(match &tx.stopped {
        Some(reason) => format!(
            "the sender ended early ({}) and knows of {} of {} bytes received",
            without_hint(reason).0,
            tx.bytes,
            rx.bytes
        ),
        None => {
            format!("{} bytes received but only {} sent: traffic of somebody else", rx.bytes, tx.bytes)
        }
    })
}

pub(super) fn rate(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds)
}

/// Of both ends together, over the bytes of both directions.
pub(super) fn cpu_cost(tx: &LoadReport, rx: &LoadReport) -> Option<f64> {
    let bytes = rx.bytes + tx.back.as_ref().map_or(0, |back| back.bytes);
    (rx.bytes > 0).then(|| (tx.cpu_s + rx.cpu_s) / (bytes as f64 / 1e9))
}

/// The same of the whole hosts.
pub(super) fn host_cpu_cost(tx: &LoadReport, rx: &LoadReport) -> Option<f64> {
    let bytes = rx.bytes + tx.back.as_ref().map_or(0, |back| back.bytes);
    let host = tx.host_cpu?.and(rx.host_cpu?);
    (rx.bytes > 0).then(|| host.busy_s / (bytes as f64 / 1e9))
}
