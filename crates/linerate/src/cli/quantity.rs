//! Amounts as people write them on a command line: rates in powers of 1000, sizes in powers of 1024, times.

use std::time::Duration;

use linerate_model::units;

/// Bounds of a time, seconds: 100 ms to 7 days.
const SECONDS: std::ops::RangeInclusive<f64> = 0.1..=7.0 * 86_400.0;

/// Reads `30s`, `5m`, `1h`, `500ms` or plain seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let seconds = seconds(text)?;
    if !SECONDS.contains(&seconds) {
        return Err(format!("{text} is out of range\nhint: 100ms to 7 days"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A moment in the past.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    /// So long ago.
    Ago(Duration),
    /// Then, Unix milliseconds.
    At(u64),
}

impl Since {
    /// The moment, where it is `now_ms` now.
    pub(super) fn unix_ms(self, now_ms: u64) -> u64 {
        match self {
            Self::Ago(span) => now_ms.saturating_sub(u64::try_from(span.as_millis()).unwrap_or(u64::MAX)),
            Self::At(ms) => ms,
        }
    }
}

/// Reads how long ago (`12h`, `7d`, up to 10 years) or a date, in UTC: `2026-11-24`, `2026-11-24T18:00`.
pub(super) fn since(text: &str) -> Result<Since, String> {
    const HINT: &str = "such as 12h, 7d, 2026-11-24, 2026-11-24T18:00 (UTC)";
    if text.contains('-') {
        return date(text).map(Since::At).ok_or_else(|| format!("`{text}` is no date\nhint: {HINT}"));
    }
    let seconds = seconds(text).map_err(|_| format!("`{text}` is not a time\nhint: {HINT}"))?;
    if !(0.0..=3650.0 * 86_400.0).contains(&seconds) {
        return Err(format!("{text} is out of range\nhint: {HINT}"));
    }
    Ok(Since::Ago(Duration::from_secs_f64(seconds)))
}

fn date(text: &str) -> Option<u64> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    let (day, time) = text.split_once(['T', ' ']).unwrap_or((text, "00:00"));
    let mut parts = day.split('-').map(number);
    let (year, month, day) = (parts.next()??, parts.next()??, parts.next()??);
    let (hour, minute) = time.split_once(':')?;
    let (hour, minute) = (number(hour)?, number(minute)?);
    let midnight = units::midnight_ms(year.into(), month.into(), day.into())?;
    let is_time = parts.next().is_none() && hour < 24 && minute < 60;
    is_time.then(|| midnight + u64::from(hour * 60 + minute) * 60_000)
}

fn seconds(text: &str) -> Result<f64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("`{unit}` is not a unit of time\nhint: such as 30s, 5m, 1h")),
    };
    let seconds =
        number.parse::<f64>().map_err(|_| format!("`{text}` is not a time\nhint: such as 30s, 5m, 1h"))?;
    Ok(seconds * factor)
}

/// Reads `10G`, `2.5G`, `500M`, `64k` or plain bit/s.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let value = scaled(text, 1000.0, "such as 10G, 500M: bit/s")?;
    if value > 0.0 { Ok(value) } else { Err(format!("`{text}` is no rate\nhint: such as 10G, 500M: bit/s")) }
}

/// The same, where 0 means none.
pub(super) fn rate_or_none(text: &str) -> Result<f64, String> {
    if text == "0" { Ok(0.0) } else { rate(text) }
}

/// Reads `4M`, `64K` or plain bytes.
pub(super) fn bytes(text: &str) -> Result<u32, String> {
    let value = scaled(text, 1024.0, "such as 4M, 64K: bytes")?;
    if value.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&value) {
        Ok(value as u32)
    } else {
        Err(format!("`{text}` is out of range\nhint: whole bytes below 4 GiB"))
    }
}

/// Reads the size of a request to a disk.
pub(super) fn block(text: &str) -> Result<u32, String> {
    match bytes(text)? {
        block if (512..=16 << 20).contains(&block) && block % 512 == 0 => Ok(block),
        _ => Err(format!(
            "`{text}` is no size of a request to a disk\nhint: a multiple of 512 from 512 to 16M, such as 4K"
        )),
    }
}

/// Reads the size of a drive: `3T` as its label says it, in powers of 1000; `3TiB` in powers of 1024; plain
/// bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    const HINT: &str = "such as 3T (as on the label), 136MiB, 4096";
    let value = match text.strip_suffix("iB") {
        Some(number) => scaled(number, 1024.0, HINT)?,
        None => scaled(text.strip_suffix('B').unwrap_or(text), 1000.0, HINT)?,
    };
    // Beyond 2^53 a float has no whole numbers.
    if value.fract() == 0.0 && (1.0..=9e15).contains(&value) {
        Ok(value as u64)
    } else {
        Err(format!("`{text}` is no size\nhint: {HINT}"))
    }
}

/// Reads the size of a file: `20G` in powers of 1024, also beyond what fits in memory.
pub(super) fn file_size(text: &str) -> Result<u64, String> {
    const MOST: f64 = (1_u64 << 50) as f64;
    let value = scaled(text, 1024.0, "such as 512M, 20G: bytes")?;
    if value.fract() == 0.0 && value <= MOST {
        Ok(value as u64)
    } else {
        Err(format!("`{text}` is out of range\nhint: whole bytes up to 1024T"))
    }
}

/// Reads a rate of a drive, bytes/s: `180MB/s`, `0.5GB/s`, `200MiB/s`; a plain number is MB/s.
pub(super) fn megabytes_per_s(text: &str) -> Result<f64, String> {
    bytes_per_s(text, 1e6, "such as 180MB/s")
}

/// Reads a rate of a synchronisation, KiB/s: `100MiB/s`, `1GB/s`; a plain number is MiB/s.
pub(super) fn resync_kib_per_s(text: &str) -> Result<u64, String> {
    const HINT: &str = "such as 100MiB/s, from 1MiB/s to 100000MiB/s";
    let bytes = bytes_per_s(text, f64::from(1 << 20), HINT)?;
    let mib = bytes / f64::from(1 << 20);
    if (1.0..=100_000.0).contains(&mib) {
        Ok((bytes / 1024.0) as u64)
    } else {
        Err(format!("`{text}` is out of range\nhint: {HINT}"))
    }
}

/// Reads how often something happens in a second: `200/s`, `200Hz` or a plain number.
pub(super) fn per_s(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix("/s").or_else(|| text.strip_suffix("Hz")).unwrap_or(text);
    number
        .parse()
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| format!("`{text}` is no number per second\nhint: such as 200/s"))
}

fn bytes_per_s(text: &str, plain: f64, hint: &str) -> Result<f64, String> {
    let units = [
        ("KiB/s", 1024.0),
        ("MiB/s", f64::from(1 << 20)),
        ("GiB/s", f64::from(1 << 30)),
        ("kB/s", 1e3),
        ("MB/s", 1e6),
        ("GB/s", 1e9),
        ("", plain),
    ];
    let parsed = units.iter().find_map(|(unit, factor)| {
        let number = text.strip_suffix(unit)?.trim_end().parse::<f64>().ok()?;
        (number.is_finite() && number > 0.0).then_some(number * factor)
    });
    parsed.ok_or_else(|| format!("`{text}` is no rate\nhint: {hint}"))
}

fn scaled(text: &str, step: f64, hint: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is not understood\nhint: {hint}");
    let (number, power) = match text.char_indices().last().ok_or_else(wrong)? {
        (at, 'k' | 'K') => (&text[..at], 1),
        (at, 'm' | 'M') => (&text[..at], 2),
        (at, 'g' | 'G') => (&text[..at], 3),
        (at, 't' | 'T') => (&text[..at], 4),
        _ => (text, 0),
    };
    let value = number.parse::<f64>().map_err(|_| wrong())? * step.powi(power);
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(wrong()) }
}

/// Whole milliseconds of a duration that was given; 0 without one.
pub(super) fn whole_ms(given: Option<Duration>) -> u32 {
    given.map_or(0, |time| time.as_millis().min(u128::from(u32::MAX)) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(duration("1m"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("25s"), Ok(Duration::from_secs(25)));
        assert_eq!(duration("1.5h"), Ok(Duration::from_secs(5400)));
        assert_eq!(duration("90"), Ok(Duration::from_secs(90)));
        assert!(["", "m", "5 parsecs", "-3s", "1e400s", "0s", "99999h"].iter().all(|t| duration(t).is_err()));
    }

    #[test]
    fn a_moment_is_a_date_or_so_long_ago() {
        let day = 86_400_000;
        assert_eq!(since("7d").map(|s| s.unix_ms(10 * day)), Ok(3 * day));
        assert_eq!(since("90d").map(|s| s.unix_ms(10 * day)), Ok(0));
        assert_eq!(since("1970-01-03"), Ok(Since::At(2 * day)));
        assert_eq!(since("1970-01-03T01:30"), Ok(Since::At(2 * day + 5_400_000)));
        let none = ["", "soon", "-3d", "2026-02-30", "2026-11", "2026-11-24T25:00", "2026-11-24-1", "1e9d"];
        assert!(none.iter().all(|text| since(text).is_err()));
    }

    #[test]
    fn rates_of_drives_and_of_synchronisations_have_units() {
        assert_eq!((megabytes_per_s("180MB/s"), megabytes_per_s("180")), (Ok(180e6), Ok(180e6)));
        assert_eq!(megabytes_per_s("1.5GiB/s"), Ok(1.5 * f64::from(1 << 30)));
        assert_eq!((resync_kib_per_s("100MiB/s"), resync_kib_per_s("100")), (Ok(102_400), Ok(102_400)));
        assert_eq!((per_s("200/s"), per_s("50Hz"), per_s("7")), (Ok(200), Ok(50), Ok(7)));
        assert!(["", "0MB/s", "-1", "5 parsecs", "MB/s", "nan"].iter().all(|t| megabytes_per_s(t).is_err()));
        assert!(["0.5MiB/s", "200000", "x"].iter().all(|t| resync_kib_per_s(t).is_err()));
        assert!(["", "0", "0/s", "-1/s", "1.5", "/s"].iter().all(|t| per_s(t).is_err()));
    }

    #[test]
    fn amounts_are_read_with_their_prefixes() {
        assert_eq!((rate("10G"), rate("2.5M"), rate("800")), (Ok(10e9), Ok(2.5e6), Ok(800.0)));
        assert_eq!((rate_or_none("0"), rate_or_none("1k")), (Ok(0.0), Ok(1e3)));
        assert_eq!((bytes("4M"), bytes("64K"), bytes("1448")), (Ok(4 << 20), Ok(65_536), Ok(1448)));
        assert_eq!(
            (size("3T"), size("3TB"), size("136MiB"), size("512")),
            (Ok(3_000_000_000_000), Ok(3_000_000_000_000), Ok(136 << 20), Ok(512))
        );
        assert!(["", "0", "-1", "1e300", "B", "iB", "nan"].iter().all(|text| size(text).is_err()));
        assert!(["", "G", "-1M", "fast", "0", "é"].iter().all(|text| rate(text).is_err()));
        assert_eq!((file_size("20G"), file_size("1T")), (Ok(20 << 30), Ok(1 << 40)));
        assert!(["", "0.3", "9999T"].iter().all(|text| file_size(text).is_err()));
        assert!(["", "0.3", "9T", "nan"].iter().all(|text| bytes(text).is_err()));
        assert_eq!((block("4K"), block("512")), (Ok(4096), Ok(512)));
        assert!(["3", "0", "1000", "32M"].iter().all(|text| block(text).is_err()));
    }
}
