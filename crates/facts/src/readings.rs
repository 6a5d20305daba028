//! Where the topics put what they read.
//!
//! In: values and reasons. Out: the facts of a host. Keys that the vocabulary does not allow become gaps; the
//! same reason for many devices becomes one gap.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use linerate_model::fact::{FactDecl, FactKey, FactValue, Gap, GapSubject, HostFacts, check_key};
use linerate_model::writable::WRITABLE;

use crate::change::setting::SettingError;

/// Names of devices in one gap before the rest is only counted.
const NAMES_IN_GAP: usize = 6;
/// Most readings of one host: a bound against a machine with absurdly many devices.
const READINGS_MAX: usize = 200_000;

/// Readings under construction.
#[derive(Debug, Default)]
pub(super) struct Readings {
    facts: HostFacts,
    values: BTreeMap<FactKey, FactValue>,
    /// What and reason, with the devices that it holds for.
    grouped: BTreeMap<(String, String), Vec<String>>,
    dropped: usize,
}

impl Readings {
    /// A value.
    pub(super) fn put(&mut self, key: impl Into<String>, value: FactValue) {
        let key = key.into();
        if !check_key(&key) || self.values.len() >= READINGS_MAX {
            self.dropped += 1;
            return;
        }
        self.values.insert(key, value);
    }

    /// A whole number.
    pub(super) fn int(&mut self, key: impl Into<String>, value: impl TryInto<i64>) {
        self.put(key, FactValue::Int(value.try_into().unwrap_or(i64::MAX)));
    }

    /// Text; an empty one is not a value.
    pub(super) fn text(&mut self, key: impl Into<String>, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.put(key, FactValue::Text(value));
        }
    }

    /// On or off.
    pub(super) fn flag(&mut self, key: impl Into<String>, value: bool) {
        self.put(key, FactValue::Flag(value));
    }

    /// Something that could not be seen.
    pub(super) fn gap(&mut self, what: impl Into<GapSubject>, reason: &(impl ToString + ?Sized)) {
        self.facts.gaps.push(Gap { what: what.into(), reason: reason.to_string() });
    }

    /// Something that could not be seen on one of many devices.
    pub(super) fn gap_of(&mut self, what: &str, reason: &(impl ToString + ?Sized), device: &str) {
        let devices = self.grouped.entry((what.to_string(), reason.to_string())).or_default();
        if !devices.iter().any(|d| d == device) {
            devices.push(device.to_string());
        }
    }

    /// The facts.
    pub(super) fn finish(mut self) -> HostFacts {
        self.facts.readings = self.values.into();
        for ((what, reason), devices) in self.grouped {
            let mut names = devices[..devices.len().min(NAMES_IN_GAP)].join(", ");
            if devices.len() > NAMES_IN_GAP {
                names = format!("{names} and {} more", devices.len() - NAMES_IN_GAP);
            }
            self.facts.gaps.push(Gap { what: what.into(), reason: format!("{reason}: {names}") });
        }
        if self.dropped > 0 {
            let reason =
                format!("{} values with names that are no keys, or beyond {READINGS_MAX}", self.dropped);
            self.facts.gaps.push(Gap { what: "keys".into(), reason });
        }
        self.facts
    }
}

/// Declares a fact that is only read.
pub(super) fn fact(pattern: &str, unit: &str, meaning: &str) -> FactDecl {
    FactDecl { pattern: pattern.into(), unit: unit.into(), meaning: meaning.into(), setting: false }
}

/// Declares a setting.
pub(super) fn setting(pattern: &str, unit: &str, meaning: &str) -> FactDecl {
    FactDecl { setting: true, ..fact(pattern, unit, meaning) }
}

/// Declares all settings that may be written and whose keys start with `head`.
pub(super) fn settings(head: &'static str, unit: &'static str) -> impl Iterator<Item = FactDecl> {
    let keys = WRITABLE.iter().flat_map(|family| family.keys.iter().map(|key| (*key, family.what)));
    keys.filter(move |(key, _)| key.starts_with(head)).map(move |(key, what)| setting(key, unit, what))
}

/// A value that a setting does not take.
pub(super) fn flawed(value: &impl ToString, flaw: &'static str) -> SettingError {
    SettingError::Value { value: value.to_string(), flaw }
}

/// A whole number out of a value of a change; knowledge may give it as text.
pub(super) fn number_of(value: &FactValue) -> Result<u32, SettingError> {
    let number = match value {
        FactValue::Int(number) => u32::try_from(*number).ok(),
        FactValue::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.ok_or_else(|| flawed(value, "not a whole number from 0 to 4294967295"))
}

/// On or off out of a value of a change.
pub(super) fn flag_of(value: &FactValue) -> Result<bool, SettingError> {
    match value {
        FactValue::Flag(flag) => Ok(*flag),
        FactValue::Text(text) if text == "on" => Ok(true),
        FactValue::Text(text) if text == "off" => Ok(false),
        other => Err(flawed(other, "neither on nor off")),
    }
}

/// Text out of a value of a change, on one line.
pub(super) fn text_of(value: &FactValue) -> Result<String, SettingError> {
    let text = match value {
        FactValue::Text(text) => text.clone(),
        FactValue::Int(number) => number.to_string(),
        other => return Err(flawed(other, "not text")),
    };
    if text.chars().any(char::is_control) { Err(SettingError::ControlCharacters) } else { Ok(text) }
}

/// Bytes as hexadecimal digits.
pub(super) fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing into a `String` cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Bytes out of hexadecimal digits.
pub(super) fn bytes_of(hex: &str) -> Option<Vec<u8>> {
    if !hex.is_ascii() || !hex.len().is_multiple_of(2) {
        return None;
    }
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).ok()).collect()
}
