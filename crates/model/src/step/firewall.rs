//! The program that lists the rules of the old iptables: it only reads.

use super::operation::{Argv, argv};

/// Folders of an administrator's programs, the usual one first.
const FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The program by each of its paths, for IPv4 or IPv6. It lists all tables that the kernel has, with the
/// packets that each rule has met.
#[must_use]
pub fn legacy_rules(ipv6: bool) -> Vec<Argv> {
    let name = if ipv6 { "ip6tables-legacy-save" } else { "iptables-legacy-save" };
    FOLDERS.iter().map(|folder| argv(&format!("{folder}/{name}"), &["-c"], &[])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_is_named_by_its_whole_path() {
        for argv in [legacy_rules(false), legacy_rules(true)].concat() {
            assert!(argv[0].starts_with('/') && argv[0].ends_with("tables-legacy-save"), "{argv:?}");
            assert_eq!(argv[1..], ["-c"]);
        }
    }
}
