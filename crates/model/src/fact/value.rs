//! Key and value of a fact.

use schemars::JsonSchema;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Dotted name of a fact; see [`check_key`] for what is allowed.
pub type FactKey = String;

/// Longest key that is accepted, in bytes.
pub const KEY_BYTES_MAX: usize = 256;

/// Whether a key is well formed: 1 to 256 printable ASCII characters without white space.
pub fn check_key(key: &str) -> bool {
    (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic())
}

/// Value of a fact. Written without a tag: `true`, `3`, `0.5`, `"text"`, `["a", "b"]`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FactValue {
    /// On or off.
    Flag(bool),
    /// A whole number in the unit that the fact's declaration names.
    Int(i64),
    /// A fraction in the unit that the fact's declaration names.
    Float(f64),
    /// Text; also sysctls of several fields (`4096 131072 6291456`, fields separated by one space).
    Text(String),
    /// Several values, such as CPU lists and addresses.
    List(Vec<String>),
}

/// By hand: the derived one copies each value before it tries the variants, and an operator reads millions of
/// them.
impl<'de> Deserialize<'de> for FactValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = FactValue;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a flag, a number, a text or a list of texts")
    }

    fn visit_bool<E>(self, value: bool) -> Result<FactValue, E> {
        Ok(FactValue::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<FactValue, E> {
        Ok(FactValue::Int(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<FactValue, E> {
        Ok(i64::try_from(value).map_or(FactValue::Float(value as f64), FactValue::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<FactValue, E> {
        Ok(FactValue::Float(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<FactValue, E> {
        Ok(FactValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<FactValue, E> {
        Ok(FactValue::Text(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<FactValue, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok(FactValue::List(texts))
    }
}

impl FactValue {
    /// Whether two values are the same for the kernel: `1` may be a number here and text there, and the
    /// fields of a text may stand apart by any white space.
    pub fn is_same(&self, other: &Self) -> bool {
        self == other || self.to_string().split_whitespace().eq(other.to_string().split_whitespace())
    }

    /// The number in field `field` (0-based) of the value: sysctls of several fields have more than one.
    pub fn number(&self, field: usize) -> Option<f64> {
        match self {
            Self::Int(v) if field == 0 => Some(*v as f64),
            Self::Float(v) if field == 0 => Some(*v),
            Self::Text(text) => text.split_ascii_whitespace().nth(field)?.parse().ok(),
            _ => None,
        }
    }
}

impl std::fmt::Display for FactValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(v) => f.write_str(if *v { "on" } else { "off" }),
            Self::Int(v) => write!(f, "{v}"),
            Self::Float(v) => f.write_str(&decimal(*v)),
            Self::Text(v) => f.write_str(v),
            Self::List(v) => f.write_str(&v.join(" ")),
        }
    }
}

/// A number for people: one of more than 15 digits before or 5 zeros behind its point as a power of ten,
/// never as 300 digits.
#[must_use]
pub fn decimal(value: f64) -> String {
    let size = value.abs();
    if size >= 1e15 || size > 0.0 && size < 1e-5 { format!("{value:e}") } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_same_whatever_their_form() {
        let text = |text: &str| FactValue::Text(text.to_owned());
        assert!(FactValue::Int(1).is_same(&text("1")));
        assert!(text("4096 131072\t6291456").is_same(&text("4096\t131072 6291456\n")));
        assert!(!text("4096 131072").is_same(&text("4096 13107 2")));
        assert!(!FactValue::Int(1).is_same(&FactValue::Int(2)));
    }

    #[test]
    fn no_number_has_hundreds_of_digits() {
        for (value, text) in [(1e308, "1e308"), (-1e308, "-1e308"), (5e-324, "5e-324"), (0.0, "0")] {
            assert_eq!(FactValue::Float(value).to_string(), text);
        }
        assert_eq!(decimal(1e12), "1000000000000");
        assert_eq!(decimal(0.25), "0.25");
    }

    #[test]
    fn values_are_read_by_their_own_shape() {
        let texts = [
            "true",
            "3",
            "-3",
            "0.5",
            "\"4096 131072\"",
            "[\"a\",\"b\"]",
            "[]",
            "18446744073709551615",
            "1e300",
        ];
        let values = [
            FactValue::Flag(true),
            FactValue::Int(3),
            FactValue::Int(-3),
            FactValue::Float(0.5),
            FactValue::Text("4096 131072".to_owned()),
            FactValue::List(vec!["a".to_owned(), "b".to_owned()]),
            FactValue::List(Vec::new()),
            FactValue::Float(u64::MAX as f64),
            FactValue::Float(1e300),
        ];
        for (text, value) in texts.iter().zip(values) {
            assert_eq!(serde_json::from_str::<FactValue>(text).unwrap(), value, "{text}");
            let written = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<FactValue>(&written).unwrap(), value, "{written}");
        }
        for text in ["null", "{}", "[1]", "[[\"a\"]]"] {
            assert!(serde_json::from_str::<FactValue>(text).is_err(), "{text}");
        }
    }
}
