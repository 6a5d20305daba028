//! Two names of one host: what has exactly the addresses of a host before is that host.
//!
//! In: hosts with their addresses. Out: each machine once, and the names that are left out with the first
//! one. What a file has twice is refused when it is read: `crates/inventory/src/check.rs`.

use linerate_model::fact::{Gap, GapSubject};

/// Machines with their addresses, and further names with the first one of the same machine.
pub(super) struct Apart<H, A> {
    pub(super) machines: Vec<(H, Vec<A>)>,
    pub(super) twice: Vec<(H, H)>,
}

/// Parts machines from further names of them. A host without an address is one of its own.
pub(super) fn apart<H: Copy, A: PartialEq>(hosts: impl Iterator<Item = (H, Vec<A>)>) -> Apart<H, A> {
    let mut apart = Apart { machines: Vec::new(), twice: Vec::new() };
    for (host, addresses) in hosts {
        let same = |other: &&(H, Vec<A>)| !addresses.is_empty() && other.1 == addresses;
        match apart.machines.iter().find(same) {
            Some((first, _)) => apart.twice.push((host, *first)),
            None => apart.machines.push((host, addresses)),
        }
    }
    apart
}

/// Why the second name takes no part.
pub(super) fn gap(name: &str, first: &str) -> Gap {
    let reason = format!("it is the same machine as {first}, by its addresses; it takes part once");
    Gap { what: GapSubject::Host(name.to_owned()), reason }
}
