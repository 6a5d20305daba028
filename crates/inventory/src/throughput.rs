//! `[throughput]`: when a watch measures throughput. A table in, checked rounds out.

use ::toml::Spanned;
use linerate_model::rounds::ThroughputRounds;

use super::error::{Problem, problem};
use super::tables::RawThroughput;
use super::value::{hours, millis};

/// Windows at most.
const WINDOWS_MAX: usize = 16;
/// From one round to the next: default, least and most, milliseconds.
const EVERY_MS: (u64, u64, u64) = (3_600_000, 600_000, 86_400_000);

/// The checked rounds.
pub(super) fn rounds(raw: &Spanned<RawThroughput>) -> Result<ThroughputRounds, Problem> {
    let RawThroughput { windows, every } = raw.get_ref();
    if windows.get_ref().is_empty() || windows.get_ref().len() > WINDOWS_MAX {
        let what = format!("windows has {} windows", windows.get_ref().len());
        return Err(problem(windows, what, format!("1 to {WINDOWS_MAX}, such as [\"01:00-05:00\"]")));
    }
    Ok(ThroughputRounds {
        windows: windows.get_ref().iter().map(|text| hours("window", text)).collect::<Result<_, _>>()?,
        every_s: (millis("every", every.as_ref(), EVERY_MS)? / 1000) as u32,
    })
}
