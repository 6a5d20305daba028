//! Numbers as people read them: SI rates, durations, percent, sizes, dates. Numbers in, short text out. Never
//! rounds a value that is not zero to zero.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Unit of a measured metric.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MetricUnit {
    /// Throughput of TCP payload.
    #[serde(rename = "bit/s")]
    BitPerSecond,
    /// Throughput of storage.
    #[serde(rename = "B/s")]
    BytePerSecond,
    /// 0 to 1.
    #[serde(rename = "share")]
    #[default]
    Share,
    /// Microseconds.
    #[serde(rename = "us")]
    Micros,
    /// Sizes of packets.
    #[serde(rename = "bytes")]
    Bytes,
    /// Events.
    #[serde(rename = "1/s")]
    PerSecond,
    /// CPU seconds per gigabyte.
    #[serde(rename = "s/GB")]
    CpuPerGigabyte,
}

/// A factor; one against (almost) nothing is not written out.
pub fn factor(value: f64) -> String {
    const MOST: f64 = 10_000.0;
    if value > MOST { format!("over {MOST}") } else { short(value) }
}

/// A ratio: `2.41x`.
pub fn ratio(value: f64) -> String {
    if value >= f64::MAX / 2.0 { "unknown".to_owned() } else { format!("{}x", factor(value)) }
}

/// A number with three significant digits: `0.3`, `9.41`, `187`, `2330`.
pub fn short(value: f64) -> String {
    let size = value.abs();
    let text = if size >= 99.95 || size == 0.0 {
        format!("{value:.0}")
    } else if size >= 9.995 {
        format!("{value:.1}")
    } else if size >= 0.01 {
        format!("{value:.2}")
    } else {
        return format!("{value:.1e}");
    };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A value with the prefix of a thousand that keeps it between 1 and 1000.
fn prefixed(value: f64, unit: &str) -> String {
    let size = value.abs();
    let (scale, prefix) = match size {
        s if s >= 999.5e9 => (1e12, "T"),
        s if s >= 999.5e6 => (1e9, "G"),
        s if s >= 999.5e3 => (1e6, "M"),
        s if s >= 999.5 => (1e3, "k"),
        _ => (1.0, ""),
    };
    format!("{} {prefix}{unit}", short(value / scale))
}

/// A rate: `187 Mbit/s`, `9.41 Gbit/s`.
pub fn rate(bps: f64) -> String {
    prefixed(bps, "bit/s")
}

/// An amount of data: `46.2 MB`.
pub fn bytes(count: f64) -> String {
    prefixed(count, "B")
}

/// A rate in five characters for a cell of a table: `187M`, `9.41G`, `0`.
pub fn rate_cell(bps: f64) -> String {
    prefixed(bps, "").trim_end().replace(' ', "")
}

/// A share as percent: `97 %`; small shares keep a digit, so that `0.3 %` is not `0 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", percent_number(share))
}

/// A share that is lost: `95 %`, but never `100 %` while something still gets through.
pub fn percent_lost(share: f64) -> String {
    match share {
        s if s >= 1.0 => "100 %".to_owned(),
        s if s > 0.999 => "over 99.9 %".to_owned(),
        s if s > 0.985 => format!("{:.1} %", s * 100.0),
        s => percent(s),
    }
}

/// The number of [`percent`] alone.
pub fn percent_number(share: f64) -> String {
    let p = share * 100.0;
    match p.abs() {
        0.0 => "0".to_owned(),
        s if s < 0.1 => "<0.1".to_owned(),
        s if s < 2.95 => short((p * 10.0).round() / 10.0),
        _ => format!("{p:.0}"),
    }
}

/// A probability: never `100 %` nor `0 %`, because nothing here is that sure.
pub fn sure(probability: f64) -> String {
    match probability {
        p if p > 0.99 => "over 99 %".to_owned(),
        p if p < 0.01 => "under 1 %".to_owned(),
        p => format!("{:.0} %", p * 100.0),
    }
}

/// A duration given in microseconds: `12 ns`, `340 us`, `1.3 ms`, `2.1 s`.
pub fn duration_us(us: f64) -> String {
    match us.abs() {
        s if s >= 999_500.0 => format!("{} s", short(us / 1e6)),
        s if s >= 999.5 => format!("{} ms", short(us / 1e3)),
        s if s > 0.0 && s < 0.0995 => format!("{} ns", short(us * 1e3)),
        _ => format!("{} us", short(us)),
    }
}

/// A number of things: `1 survey`, `2 surveys`.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// A time that people wait for: `35 s`, `12 min`, `3 h 5 min`.
pub fn span_s(seconds: f64) -> String {
    let minutes = (seconds / 60.0).round() as u64;
    match minutes {
        _ if seconds < 99.5 => format!("{seconds:.0} s"),
        0..=99 => format!("{minutes} min"),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// A value in the unit that a finding names.
pub fn value(value: f64, unit: MetricUnit) -> String {
    match unit {
        MetricUnit::BitPerSecond => rate(value),
        MetricUnit::BytePerSecond => prefixed(value, "B/s"),
        MetricUnit::Share => percent(value),
        MetricUnit::Micros => duration_us(value),
        MetricUnit::Bytes => format!("{value:.0} bytes"),
        MetricUnit::PerSecond => format!("{} per second", short(value)),
        MetricUnit::CpuPerGigabyte => format!("{} CPU s/GB", short(value)),
    }
}

/// A time as `2026-11-21 08:30:15 UTC`; empty when unknown (0).
pub fn date(unix_ms: u64) -> String {
    if unix_ms == 0 {
        return String::new();
    }
    let (days, rest) = (unix_ms / 86_400_000, unix_ms / 1000 % 86_400);
    let (year, month, day) = civil(days as i64);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", rest / 3600, rest / 60 % 60, rest % 60)
}

/// The same to the minute, without its zone: `2026-11-21 08:30`.
pub fn date_minute(unix_ms: u64) -> String {
    date(unix_ms).chars().take("2026-11-21 08:30".len()).collect()
}

/// A recent time in few characters: `21 Nov 08:30`, in UTC.
pub fn day_minute(unix_ms: u64) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, minutes) = (unix_ms / 86_400_000, unix_ms / 60_000 % 1440);
    let (_, month, day) = civil(days as i64);
    let month = usize::try_from(month - 1).ok().and_then(|month| MONTHS.get(month)).unwrap_or(&"");
    format!("{day} {month} {:02}:{:02}", minutes / 60, minutes % 60)
}

/// Unix milliseconds of the midnight, UTC, that begins this date; `None` for one that no calendar has.
pub fn midnight_ms(year: i64, month: i64, day: i64) -> Option<u64> {
    if !((1..=12).contains(&month) && (1..=31).contains(&day) && (1970..=9999).contains(&year)) {
        return None;
    }
    // The inverse of `civil`: years from March, so that the leap day comes last.
    let from_march = if month > 2 { month - 3 } else { month + 9 };
    let year_from_march = if month > 2 { year } else { year - 1 };
    let (era, of_era) = (year_from_march.div_euclid(400), year_from_march.rem_euclid(400));
    let day_of_year = (153 * from_march + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + day_of_year - 719_468;
    u64::try_from(days).ok().filter(|_| civil(days) == (year, month, day)).map(|days| days * 86_400_000)
}

/// Year, month and day of a number of days since 1970-01-01. Counts years from March, so that the leap day is
/// the last day of a year and the months have a regular length.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468; // days since 0000-03-01
    let era = shifted.div_euclid(146_097); // 400 years have 146 097 days
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_come_back_from_their_days() {
        for days in [0, 58, 59, 60, 365, 11_016, 20_783, 40_000] {
            let (year, month, day) = civil(days);
            assert_eq!(midnight_ms(year, month, day), Some(days as u64 * 86_400_000), "{year}-{month}-{day}");
        }
        let none =
            [(2026, 2, 29), (2026, 13, 1), (2026, 0, 1), (2026, 4, 31), (1969, 1, 1), (i64::MAX, 1, 1)];
        assert!(none.into_iter().all(|(year, month, day)| midnight_ms(year, month, day).is_none()));
        let ms = midnight_ms(2026, 11, 24).unwrap() + 65_000 * 60;
        assert_eq!(
            (day_minute(ms), date_minute(ms)),
            ("24 Nov 01:05".to_owned(), "2026-11-24 01:05".to_owned())
        );
    }

    #[test]
    fn rates_read_like_people_write_them() {
        for (bps, text) in [
            (187e6, "187 Mbit/s"),
            (9.41e9, "9.41 Gbit/s"),
            (999.9e6, "1 Gbit/s"),
            (2330e6, "2.33 Gbit/s"),
            (300e3, "300 kbit/s"),
            (5000.0, "5 kbit/s"),
            (0.0, "0 bit/s"),
            (39.6e9, "39.6 Gbit/s"),
        ] {
            assert_eq!(rate(bps), text);
        }
        assert_eq!(rate_cell(187e6), "187M");
        assert_eq!(rate_cell(0.0), "0");
    }

    #[test]
    fn small_shares_do_not_vanish() {
        assert_eq!(percent(0.0001), "<0.1 %");
        assert_eq!(percent(0.013), "1.3 %");
        assert_eq!(percent(0.974), "97 %");
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent_lost(0.998), "99.8 %");
        assert_eq!(sure(1.0), "over 99 %");
    }

    #[test]
    fn durations_and_dates() {
        assert_eq!(duration_us(1310.0), "1.31 ms");
        assert_eq!(duration_us(45.0), "45 us");
        assert_eq!([4.0, 99.6, 5950.0, 6030.0].map(span_s), ["4 s", "2 min", "99 min", "1 h 41 min"]);
        assert_eq!(date(951_782_400_000), "2000-02-29 00:00:00 UTC");
        assert_eq!(date(1_795_249_815_000), "2026-11-21 08:30:15 UTC");
        assert_eq!(date(0), "");
    }
}
