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
        assert!(["", "G", "-1M", "fast", "0", "é"].iter().all(|text| rate(text).is_err()));
        assert!(["", "0.3", "9T", "nan"].iter().all(|text| bytes(text).is_err()));
    }
}
