//! Reading JSON of other people's programs: what is missing or of the wrong type is `None`, never an error.
//!
//! What comes in: values. What goes out: numbers and texts. iperf3 3.12 as packaged writes −1 as
//! 18446744073709551615: integers are folded back. It never writes.

use serde_json::Value;

/// 2^64: from here on a number stands for a negative one.
const WRAP: f64 = 18_446_744_073_709_551_616.0;

/// An integer in any notation.
pub(crate) fn integer(value: Option<&Value>) -> Option<i64> {
    let number = value?.as_number()?;
    if let Some(signed) = number.as_i64() {
        return Some(signed);
    }
    if let Some(unsigned) = number.as_u64() {
        // Folded: all ones is −1.
        return Some(unsigned as i64);
    }
    let float = number.as_f64().filter(|f| f.is_finite())?;
    // A parser that reads numbers as floats writes 2^64 − 1 as 1.8446744073709552e19.
    if (float - WRAP).abs() < 4096.0 {
        return Some(-1);
    }
    Some(float as i64)
}

/// An integer that is not negative.
pub(crate) fn count(value: Option<&Value>) -> Option<u64> {
    integer(value).and_then(|number| u64::try_from(number).ok())
}

/// An integer from 0 to `u32::MAX`.
pub(crate) fn small(value: Option<&Value>) -> Option<u32> {
    integer(value).and_then(|number| u32::try_from(number).ok())
}

/// A finite number.
pub(crate) fn number(value: Option<&Value>) -> Option<f64> {
    value?.as_f64().filter(|number| number.is_finite())
}

/// Whether a flag is set: a boolean, or (of some keys) a number that is not 0.
pub(crate) fn flag(value: Option<&Value>) -> bool {
    match value {
        Some(Value::Bool(set)) => *set,
        other => integer(other).is_some_and(|number| number != 0),
    }
}

/// A text.
pub(crate) fn text(value: Option<&Value>) -> Option<String> {
    value?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minus_one_in_all_its_spellings() {
        for text in ["-1", "18446744073709551615", "1.8446744073709552e19", "-1.0"] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(integer(Some(&value)), Some(-1), "{text}");
        }
    }

    #[test]
    fn the_wrong_type_is_nothing() {
        let value = Value::from("5");
        assert_eq!((integer(Some(&value)), number(Some(&value)), flag(Some(&value))), (None, None, false));
        assert_eq!(count(Some(&Value::from(-5))), None);
        assert_eq!(text(Some(&Value::from(5))), None);
    }
}
