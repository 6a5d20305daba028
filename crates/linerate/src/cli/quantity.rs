//! Amounts as people write them on a command line: rates in powers of 1000, sizes in powers of 1024.

/// Reads `10G`, `2.5G`, `500M`, `64k` or plain bit/s.
pub(super) fn rate(text: &str) -> Result<f64, String> {
    let value = scaled(text, 1000.0, "such as 10G, 500M: bit/s")?;
    if value > 0.0 { Ok(value) } else { Err(format!("`{text}` is no rate\nhint: such as 10G, 500M: bit/s")) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_with_their_prefixes() {
        assert_eq!((rate("10G"), rate("2.5M"), rate("800")), (Ok(10e9), Ok(2.5e6), Ok(800.0)));
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
