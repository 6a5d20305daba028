//! Values to bytes and back. A value is kept to a quarter of a percent, as the logarithm that it is shown and
//! compared in; neighbours differ little, so most differences take one byte. A slot without a value stays
//! one: "not measured" is a run of its own.
//!
//! Bytes come from a file that may be damaged: whatever does not fit gives `None`.

use super::point::SlotSummary;

/// Steps of a doubling's worth: 200 of a factor of e, half a percent each.
const STEPS: f64 = 200.0;
/// Code of 1; zero has the code 0. The smallest value is 1e-13, the largest 1e15.
const ONE: f64 = 6000.0;
/// Largest code: a value above 1e15 is kept as that.
const MOST: f64 = 13_000.0;

/// Code of a value; not finite or below zero: none.
pub(crate) fn code(value: f64) -> Option<u16> {
    if !value.is_finite() || value < 0.0 {
        return None;
    }
    if value == 0.0 {
        return Some(0);
    }
    Some((value.ln() * STEPS + ONE).round().clamp(1.0, MOST) as u16)
}

/// Value of a code.
pub(crate) fn value(code: u16) -> f64 {
    if code == 0 { 0.0 } else { ((f64::from(code) - ONE) / STEPS).exp() }
}

/// Codes of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Coded {
    pub(crate) min: u16,
    pub(crate) median: u16,
    pub(crate) max: u16,
    /// Minutes of the slot that were measured.
    pub(crate) count: u16,
}

impl Coded {
    /// One measured minute.
    pub(crate) fn minute(code: u16) -> Self {
        Self { min: code, median: code, max: code, count: 1 }
    }

    /// Of the minutes of a slot; none where none was measured. The median is one of them, the lower of two.
    pub(crate) fn of(minutes: &mut [u16]) -> Option<Self> {
        minutes.sort_unstable();
        let middle = minutes.len().checked_sub(1)? / 2;
        let (min, median, max) = (minutes[0], minutes[middle], *minutes.last()?);
        Some(Self { min, median, max, count: minutes.len() as u16 })
    }

    /// In the unit of the series.
    pub(crate) fn summary(self) -> SlotSummary {
        let (min, median, max) = (value(self.min), value(self.median), value(self.max));
        SlotSummary { min, median, max, count: self.count }
    }
}

fn put(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..35).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn folded(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

fn unfolded(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// The slots of a block. Those of minutes have no spread.
pub(crate) fn encode(slots: &[Option<Coded>], slot: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut last, mut at) = (0_i64, 0);
    while at < slots.len() {
        let Some(coded) = slots[at] else {
            let run = slots[at..].iter().take_while(|slot| slot.is_none()).count();
            put(&mut bytes, (run as u64 - 1) << 1);
            at += run;
            continue;
        };
        put(&mut bytes, folded(i64::from(coded.median) - last) << 1 | 1);
        last = i64::from(coded.median);
        if slot > 1 {
            put(&mut bytes, u64::from(coded.median - coded.min));
            put(&mut bytes, u64::from(coded.max - coded.median));
            put(&mut bytes, slot.saturating_sub(u64::from(coded.count)));
        }
        at += 1;
    }
    bytes
}

/// The slots of a block of so many.
pub(crate) fn decode(mut bytes: &[u8], slot: u64, block: u64) -> Option<Vec<Option<Coded>>> {
    let mut slots = Vec::new();
    let mut last = 0_i64;
    let code = |number: i64| u16::try_from(number).ok();
    while !bytes.is_empty() {
        let token = take(&mut bytes)?;
        if token & 1 == 0 {
            let run = (token >> 1) + 1;
            if run > block - slots.len() as u64 {
                return None;
            }
            slots.extend(std::iter::repeat_n(None, run as usize));
            continue;
        }
        last += unfolded(token >> 1);
        let median = code(last)?;
        let mut coded = Coded::minute(median);
        if slot > 1 {
            coded.min = median.checked_sub(u16::try_from(take(&mut bytes)?).ok()?)?;
            coded.max = median.checked_add(u16::try_from(take(&mut bytes)?).ok()?)?;
            coded.count = u16::try_from(slot.checked_sub(take(&mut bytes)?)?).ok()?;
        }
        slots.push(Some(coded));
        if slots.len() as u64 > block {
            return None;
        }
    }
    (slots.len() as u64 == block).then_some(slots)
}

/// What was measured in one minute: numbers of series, ascending, with their codes.
pub(crate) fn encode_minute(values: &[(i64, u16)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(values.len() * 3);
    let mut last = 0;
    for (series, code) in values {
        put(&mut bytes, (series - last) as u64);
        put(&mut bytes, u64::from(*code));
        last = *series;
    }
    bytes
}

/// The same back.
pub(crate) fn decode_minute(mut bytes: &[u8]) -> Option<Vec<(i64, u16)>> {
    let mut values = Vec::new();
    let mut last = 0;
    while !bytes.is_empty() {
        last += take(&mut bytes)? as i64;
        values.push((last, u16::try_from(take(&mut bytes)?).ok()?));
    }
    Some(values)
}

#[cfg(test)]
mod tests {
    use linerate_model::random::Random;

    use super::*;

    #[test]
    fn a_value_comes_back_to_a_quarter_of_a_percent() {
        for exponent in -120..150 {
            let exact = 10_f64.powf(f64::from(exponent) / 10.0) * 1.37;
            let kept = value(code(exact).unwrap());
            assert!((kept / exact - 1.0).abs() < 0.0026, "{exact}: {kept}");
        }
        assert_eq!([0.0, f64::NAN, -1.0].map(code), [Some(0), None, None]);
        assert_eq!(value(0).to_bits(), 0);
        assert_eq!(code(1e300), code(f64::MAX));
    }

    #[test]
    fn blocks_come_back_and_damaged_ones_do_not() {
        let mut random = Random(1);
        for slot in [1, 15, 120] {
            for _ in 0..200 {
                let mut one = || {
                    let mut minutes: Vec<u16> =
                        (0..random.below(slot + 1)).map(|_| random.below(13_000) as u16).collect();
                    Coded::of(&mut minutes)
                };
                let slots: Vec<Option<Coded>> = (0..60).map(|_| one()).collect();
                let bytes = encode(&slots, slot as u64);
                assert_eq!(decode(&bytes, slot as u64, 60), Some(slots));
                let mut damaged = bytes.clone();
                damaged[0] = random.below(256) as u8;
                let _ = decode(&damaged, slot as u64, 60);
                assert_eq!(decode(&bytes[..bytes.len() - 1], slot as u64, 60), None);
                assert_eq!(decode(&bytes, slot as u64, 59), None);
            }
        }
        let values = vec![(3, 0), (4, 12_999), (700, 5)];
        assert_eq!(decode_minute(&encode_minute(&values)), Some(values));
        assert_eq!(decode_minute(&[0x80]), None);
    }
}
