//! Sysctls: `/proc/sys`.
//!
//! In: a name such as `net.ipv4.tcp_rmem`. Out: its text with fields separated by one space. Names use the
//! convention of sysctl(8): `.` separates, a `.` inside a component (VLAN devices) is written `/`. It never
//! reads secrets.

use crate::root::{ReadError, Root};

/// Longest value that is kept, in bytes.
pub const VALUE_BYTES_MAX: usize = 4096;
/// Deepest folder below `/proc/sys`.
const DEPTH_MAX: usize = 8;

/// What a walk found.
#[derive(Debug, Default)]
pub struct Walk {
    /// Name and value.
    pub values: Vec<(String, String)>,
    /// Name and reason.
    pub refused: Vec<(String, ReadError)>,
}

/// Path of the file of a sysctl.
pub fn path(name: &str) -> String {
    let swapped: String = name
        .chars()
        .map(|c| match c {
            '.' => '/',
            '/' => '.',
            other => other,
        })
        .collect();
    format!("/proc/sys/{swapped}")
}

/// Value of one sysctl.
pub fn read(root: &Root, name: &str) -> Result<String, ReadError> {
    let text = root.read(&path(name))?;
    let mut value = String::new();
    for field in text.split_whitespace() {
        if !value.is_empty() {
            value.push(' ');
        }
        value.push_str(field);
        if value.len() > VALUE_BYTES_MAX {
            return Err(ReadError::TooLarge { limit: VALUE_BYTES_MAX as u64 });
        }
    }
    Ok(value)
}

/// Writes one sysctl.
pub fn write(root: &Root, name: &str, value: &str) -> Result<(), ReadError> {
    // An empty write is lost on the way; a line end alone is how the kernel takes "nothing".
    root.write(&path(name), &format!("{value}\n"))
}

/// Every sysctl below the folder `top`, except those that `skip` names.
pub fn walk(root: &Root, top: &str, skip: impl Fn(&str) -> bool) -> Walk {
    let mut walk = Walk::default();
    descend(root, top, DEPTH_MAX, &skip, &mut walk);
    walk
}

fn descend(root: &Root, name: &str, depth: usize, skip: &dyn Fn(&str) -> bool, walk: &mut Walk) {
    if depth == 0 {
        return;
    }
    let Ok(entries) = root.list(&path(name)) else { return };
    for entry in entries {
        let full = format!("{name}.{}", entry.replace('.', "/"));
        if skip(&full) {
            continue;
        }
        match read(root, &full) {
            Ok(value) => walk.values.push((full, value)),
            // A folder: reading it fails in another way on each kind of file system, listing it does not.
            Err(error) if is_folder(root, &full, &error) => descend(root, &full, depth - 1, skip, walk),
            Err(error) => walk.refused.push((full, error)),
        }
    }
}

fn is_folder(root: &Root, name: &str, error: &ReadError) -> bool {
    !matches!(error, ReadError::Denied | ReadError::TooLarge { .. }) && root.list(&path(name)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_inside_components_are_slashes() {
        assert_eq!(path("net.ipv4.conf.eth0/100.mtu"), "/proc/sys/net/ipv4/conf/eth0.100/mtu");
    }

    #[test]
    fn fields_are_separated_by_one_space() {
        let value = read(&Root::live(), "net.ipv4.tcp_rmem").unwrap();
        assert_eq!(value.split(' ').count(), 3, "{value}");
        let walk = walk(&Root::live(), "net", |_| false);
        assert!(walk.values.iter().any(|(n, v)| n == "net.ipv4.tcp_rmem" && *v == value));
    }
}
