//! Keys of facts by their patterns, and which facts change by themselves.

/// Facts that change by themselves: wear, heat and errors of drives, pressure, the state of mounts, counts.
/// The log of changes leaves them out, and no comparison of two hosts takes them for a difference.
const RESTLESS: [&str; 8] = [
    "disk_health.*",
    "disk_limit.*",
    "nfs.*",
    "nic.*.carrier_changes",
    "sysctl.kernel.ns_last_pid",
    "sysctl.net.netfilter.nf_conntrack_count",
    "cpu.mhz*",
    "kernel.uptime*",
];

/// Whether the fact of a key changes without anything that sets it.
#[must_use]
pub fn changes_by_itself(key: &str) -> bool {
    RESTLESS.iter().any(|pattern| pattern_fits(pattern, key))
}

/// The part of a key after `netns.<path>|`.
#[must_use]
pub fn bare(key: &str) -> &str {
    if key.starts_with("netns.") { key.split_once('|').map_or(key, |(_, rest)| rest) } else { key }
}

/// Whether a key (without its namespace) fits a pattern, in which `*` stands for any run of characters.
#[must_use]
pub fn pattern_fits(pattern: &str, key: &str) -> bool {
    fn fits(pattern: &str, text: &str) -> bool {
        match pattern.split_once('*') {
            None => text.ends_with(pattern),
            Some((first, rest)) => {
                text.match_indices(first).any(|(at, part)| fits(rest, &text[at + part.len()..]))
            }
        }
    }
    let key = bare(key);
    match pattern.split_once('*') {
        None => key == pattern,
        Some((first, rest)) => key.strip_prefix(first).is_some_and(|text| fits(rest, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_by_itself_is_known_by_its_key() {
        assert!(changes_by_itself("disk_health.sda.temperature"));
        assert!(changes_by_itself("netns./run/x|nic.eth0.carrier_changes"));
        assert!(!changes_by_itself("nic.eth0.ring.rx") && !changes_by_itself("disk.sda.scheduler"));
    }
}
