//! Checks of names, paths and amounts before they are given to a program.

/// A name that cannot be given to a program.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} '{seen}' is not {allowed}")]
pub struct StepError {
    /// What the name is for.
    pub what: &'static str,
    /// As far as it can be shown.
    pub seen: String,
    /// What would do.
    pub allowed: &'static str,
}

/// Longest name of a volume, an array or a resource, in bytes; the device mapper takes 127 for group and
/// volume together.
const NAME_BYTES_MAX: usize = 60;
/// Longest path of a device, in bytes.
const PATH_BYTES_MAX: usize = 200;
/// Most devices of a step.
const DEVICES_MAX: usize = 512;

/// Checks the name of a volume, an array or a resource.
///
/// # Errors
/// It is empty, long, begins with `-` or `.`, or has other signs than letters, digits, `_`, `-` and `.`.
pub fn check_name(what: &'static str, name: &str) -> Result<(), StepError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.".contains(&b);
    let good = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.bytes().all(plain)
        && !name.starts_with(['-', '.']);
    let allowed = "1 to 60 letters, digits, '_', '-' and '.', no '-' or '.' first";
    if good { Ok(()) } else { Err(StepError { what, seen: shown(name), allowed }) }
}

/// Checks the path of a device.
///
/// # Errors
/// It is not below `/dev/`, has `..` in it, or signs that no device has.
pub fn check_device(path: &str) -> Result<(), StepError> {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"_-.:+/".contains(&b);
    let good = path.len() <= PATH_BYTES_MAX
        && path.strip_prefix("/dev/").is_some_and(|name| !name.is_empty() && !name.starts_with('/'))
        && path.bytes().all(plain)
        && !path.split('/').any(|part| part == "..");
    if good {
        Ok(())
    } else {
        Err(StepError { what: "the device", seen: shown(path), allowed: "a path below /dev/" })
    }
}

pub(super) fn check_devices(devices: &[String], least: usize) -> Result<(), StepError> {
    if !(least..=DEVICES_MAX).contains(&devices.len()) {
        let seen = devices.len().to_string();
        return Err(StepError {
            what: "the number of devices",
            seen,
            allowed: "between 1 and 512: two or more for a mirror, three for RAID5, four (LVM: five) for RAID6",
        });
    }
    for (at, device) in devices.iter().enumerate() {
        check_device(device)?;
        if devices[..at].contains(device) {
            return Err(StepError { what: "the device", seen: shown(device), allowed: "named only once" });
        }
    }
    Ok(())
}

/// Checks an amount that may be left out.
pub(super) fn check_above_zero(what: &'static str, amount: Option<u64>) -> Result<(), StepError> {
    match amount {
        Some(0) => Err(StepError { what, seen: "0".to_owned(), allowed: "above zero" }),
        _ => Ok(()),
    }
}

pub(super) fn shown(text: &str) -> String {
    text.chars().take(80).flat_map(char::escape_default).collect()
}
