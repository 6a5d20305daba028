//! Readings of one block device, by the name of their field.

use linerate_model::fact::{FactValue, HostFacts};

/// The reading of one field of a device.
pub(super) fn reading<'a>(facts: &'a HostFacts, device: &str, field: &str) -> Option<&'a FactValue> {
    facts.readings.get(&format!("disk.{}.{field}", device.replace('.', "/")))
}

/// The same as a whole number.
pub(super) fn number(facts: &HostFacts, device: &str, field: &str) -> Option<u64> {
    match reading(facts, device, field)? {
        FactValue::Int(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

/// The same as text.
pub(super) fn text<'a>(facts: &'a HostFacts, device: &str, field: &str) -> Option<&'a str> {
    match reading(facts, device, field)? {
        FactValue::Text(text) => Some(text),
        _ => None,
    }
}
