//! The vocabulary of keys of facts: their families and their parts.

use linerate_model::fact::check_key;
pub use linerate_model::fact::{bare, pattern_fits};

/// Beginnings of the keys of facts.
const FAMILIES: &[&str] = &[
    "sysctl.",
    "nic.",
    "cpu.",
    "kernel.",
    "module.",
    "route.",
    "rule.",
    "table.",
    "mount.",
    "disk.",
    "disk_health.",
    "disk_limit.",
    "nfs.",
    "raid.",
    "storage.",
    "drbd.",
    "machine.",
    "gluster.",
    "audit.",
    "firewall.",
    "ata.",
    "usb.",
    "socket.",
    "btrfs.",
    "request.",
    "zpool.",
    "sentence.",
];

/// Whether something is a key of a fact, or a pattern of such keys.
pub(crate) fn is_fact(key: &str) -> bool {
    check_key(key) && FAMILIES.iter().any(|family| key.starts_with(family))
}

/// The NIC that a key speaks of.
#[must_use]
pub fn nic_of(key: &str) -> Option<&str> {
    bare(key).strip_prefix("nic.")?.split('.').next()
}

/// The topics whose keys name a block device behind them.
pub const OF_DEVICES: [&str; 3] = ["disk.", "disk_health.", "disk_limit."];

/// The block device that a key speaks of.
#[must_use]
pub fn device_of(key: &str) -> Option<&str> {
    let key = bare(key);
    OF_DEVICES.iter().find_map(|topic| key.strip_prefix(topic))?.split('.').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        assert!(pattern_fits("nic.*.feature.rx-gro-hw", "nic.em1.feature.rx-gro-hw"));
        assert!(pattern_fits("nic.*.mtu", "netns./run/x|nic.eth0.mtu"));
        assert!(!pattern_fits("nic.*.mtu", "nic.eth0.mtus"));
        assert!(pattern_fits("sysctl.sunrpc.rdma*", "sysctl.sunrpc.rdma_inline"));
        assert!(!pattern_fits("a", "ab"));
        assert_eq!(nic_of("netns./a|nic.eth0.mtu"), Some("eth0"));
        assert_eq!(device_of("disk_health.sda.state"), Some("sda"));
        assert_eq!(device_of("nic.eth0.mtu"), None);
    }
}
