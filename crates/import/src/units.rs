//! Units as the tools print them: text in, numbers in bit/s and bytes out.
//!
//! Rates in bits are decimal and amounts in bytes binary in iperf, iperf3 and nuttcp alike (`KILO_RATE_UNIT`
//! 1000 and `KILO_UNIT` 1024 in iperf3's `units.c`; nuttcp divides by 1e6 and by 1048576), also when a rate
//! is given in bytes (`-f M`).

/// Factor of a prefix of bits.
fn decimal(prefix: &str) -> Option<f64> {
    Some(match prefix {
        "" => 1.0,
        "k" | "kilo" => 1e3,
        "m" | "mega" => 1e6,
        "g" | "giga" => 1e9,
        "t" | "tera" => 1e12,
        _ => return None,
    })
}

/// Factor of a prefix of bytes.
fn binary(prefix: &str) -> Option<f64> {
    Some(match prefix {
        "" => 1.0,
        "k" | "ki" => 1024.0,
        "m" | "mi" => 1_048_576.0,
        "g" | "gi" => 1_073_741_824.0,
        "t" | "ti" => 1_099_511_627_776.0,
        _ => return None,
    })
}

/// Bit/s of one `Gbits/sec` or `MBytes/sec` as iperf writes them: bits decimal, bytes binary.
pub(crate) fn iperf_rate(unit: &str) -> Option<f64> {
    let head = unit.strip_suffix("/sec")?;
    if let Some(prefix) = head.strip_suffix("bits") {
        return decimal(&prefix.to_lowercase());
    }
    Some(binary(&head.strip_suffix("Bytes")?.to_lowercase())? * 8.0)
}

/// Bytes of one `GBytes` as iperf writes it.
pub(crate) fn iperf_amount(unit: &str) -> Option<f64> {
    binary(&unit.strip_suffix("Bytes")?.to_lowercase())
}

/// Bit/s of one unit as commonly written: `Mbit/s`, `Gbps`, `Gb/s`, `MB/s`, `MiB/s`, `KB/s`, `Mbits/sec`. The
/// usual meaning is decimal; `KiB` and its like are binary. A small `b` is a bit, a large `B` a byte; spelled
/// out it does not matter.
pub(crate) fn spoken_rate(unit: &str) -> Option<f64> {
    let unit = unit.trim().trim_matches(['(', ')', '[', ']', ',', ';', ':', '.']);
    let head = ["/sec", "/s", "ps", " per second"].iter().find_map(|tail| unit.strip_suffix(tail))?;
    let lower = head.to_lowercase();
    for (word, bits) in [("bits", 1.0), ("bit", 1.0), ("bytes", 8.0), ("byte", 8.0)] {
        if let Some(prefix) = lower.strip_suffix(word) {
            return Some(spoken_prefix(prefix)? * bits);
        }
    }
    if let Some(prefix) = head.strip_suffix('B') {
        return Some(spoken_prefix(&prefix.to_lowercase())? * 8.0);
    }
    let prefix = head.strip_suffix('b')?;
    spoken_prefix(&prefix.to_lowercase())
}

/// The same of a unit of bits without its time, as abbreviated in the heads of tables: `Gbit`, `Mb`.
pub(crate) fn spoken_bare(unit: &str) -> Option<f64> {
    let lower = unit.to_lowercase();
    let prefix = lower.strip_suffix("bits").or_else(|| lower.strip_suffix("bit"));
    let prefix = match prefix {
        Some(prefix) => prefix.to_owned(),
        // A large one is a byte.
        None => unit.strip_suffix('b')?.to_lowercase(),
    };
    (!prefix.is_empty()).then(|| spoken_prefix(&prefix))?
}

fn spoken_prefix(prefix: &str) -> Option<f64> {
    if prefix.ends_with('i') { binary(prefix) } else { decimal(prefix) }
}

/// A number followed by a unit, with or without a blank: `9.42 Gbits/sec`, `32KB/s`.
pub(crate) fn spoken(text: &str) -> Option<f64> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let number: f64 = number(&text[..split])?;
    Some(number * spoken_rate(&text[split..])?)
}

/// Bit/s of `9.4G`, as some tools print: a number and a prefix alone.
pub(crate) fn abbreviated(text: &str) -> Option<f64> {
    let end = text.find(|c: char| c.is_alphabetic())?;
    Some(number(&text[..end])? * decimal(&text[end..].to_lowercase())?)
}

/// A number that can be measured: finite and not negative.
pub(crate) fn number(text: &str) -> Option<f64> {
    // `parse` takes "inf" and "nan" too.
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    text.parse::<f64>().ok().filter(|v| v.is_finite())
}

/// The number at the beginning of a word: `23453 Mbps` of `23453Mbps`, 42 of `42%`.
pub(crate) fn leading(text: &str) -> Option<f64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    number(&text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(value: Option<f64>, wanted: f64) {
        assert!(value.is_some_and(|v| (v / wanted - 1.0).abs() < 1e-9), "{value:?} for {wanted}");
    }

    #[test]
    fn bits_are_decimal_and_bytes_of_tools_binary() {
        near(iperf_rate("Gbits/sec"), 1e9);
        near(iperf_rate("bits/sec"), 1.0);
        near(iperf_rate("MBytes/sec"), 8.0 * 1_048_576.0);
        near(iperf_amount("GBytes"), 1_073_741_824.0);
        assert_eq!(iperf_rate("Xbits/sec"), None);
    }

    #[test]
    fn units_of_people() {
        near(spoken("100 MB/s"), 8e8);
        near(spoken("32KB/s"), 256e3);
        near(spoken("9.4Gbps"), 9.4e9);
        near(spoken("9.4 Gb/s"), 9.4e9);
        near(spoken("943 Mbit/s"), 943e6);
        near(spoken("943 Mbits/sec"), 943e6);
        near(spoken("10 MiB/s"), 8.0 * 10_485_760.0);
        near(spoken_bare("Gbit"), 1e9);
        near(spoken_bare("Mb"), 1e6);
        for unit in ["b", "bit", "MB", "Xbit", "", "web"] {
            assert_eq!(spoken_bare(unit), None, "{unit}");
        }
        for text in ["", "9", "9 m/s", "x", "9 apples", "-4 Mb/s", "inf Mb/s"] {
            assert_eq!(spoken(text), None, "{text}");
        }
    }
}
