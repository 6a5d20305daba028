//! Any setting of one host's kernel or NIC, changed by chance. Most harm nothing; what one does is measured
//! afterwards.

use std::path::Path;

use linerate_model::random::Random;
use linerate_sys::offload::OffloadSwitch;

use super::fault::{DrawnFault, Mechanism, at_host, two_hosts};
use crate::cluster::Cluster;
use crate::namespace::Namespace;
use crate::topology::OVERLAY;

/// Where the settings of a network namespace are.
const ROOTS: [&str; 2] = ["net/ipv4", "net/core"];
/// Deepest folder below them.
const DEPTH_MAX: usize = 3;

/// All keys with numbers that a namespace can change, in order.
fn keys(namespace: &Namespace) -> Vec<(String, String)> {
    let mut found = Vec::new();
    // A thread that cannot enter finds nothing.
    let _ = namespace.run(|| {
        for root in ROOTS {
            collect(&Path::new("/proc/sys").join(root), 0, &mut found);
        }
    });
    found.sort();
    found
}

fn collect(folder: &Path, depth: usize, found: &mut Vec<(String, String)>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && depth < DEPTH_MAX {
            collect(&path, depth + 1, found);
            continue;
        }
        let key = path.strip_prefix("/proc/sys").ok().and_then(|p| p.to_str()).map(|p| p.replace('/', "."));
        let is_number = |text: &String| text.split_whitespace().all(|word| word.parse::<i64>().is_ok());
        let value =
            std::fs::read_to_string(&path).ok().filter(|text| !text.trim().is_empty() && is_number(text));
        found.extend(key.zip(value));
    }
}

/// Another value: a switch is turned, a number is a sixteenth or sixteen times as large.
fn changed(value: &str, random: &mut Random) -> String {
    let up = random.below(2) == 0;
    let other = |word: &str| match word.parse::<i64>() {
        Ok(0) => "1".to_owned(),
        Ok(1) => "0".to_owned(),
        Ok(number) if up => number.saturating_mul(16).min(i64::from(i32::MAX)).to_string(),
        Ok(number) => (number / 16).to_string(),
        Err(_) => word.to_owned(),
    };
    value.split_whitespace().map(other).collect::<Vec<_>>().join(" ")
}

/// A sysctl from the whole list.
pub(super) fn of_the_kernel(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let (_, namespace) = cluster.hosts.iter().find(|(plan, _)| plan.name == host.name)?;
    let all = keys(namespace);
    let (key, old) = random.pick(&all)?.clone();
    let value = changed(&old, random);
    let name = host.name.clone();
    Some(DrawnFault {
        summary: format!("{key} of {name} is {value} instead of {}", old.trim()),
        truth: at_host(topology, &host, &[]),
        mechanism: Mechanism::Setting,
        signs: vec![format!("sysctl.{key}")],
        ends: (host.name, peer.name),
        make: Box::new(move |damage| {
            let (_, machine) = damage.host(&name)?;
            damage.sysctl(machine, &key, &value)
        }),
    })
}

/// An offload switch of one of its devices.
pub(super) fn of_a_nic(cluster: &Cluster, random: &mut Random) -> Option<DrawnFault> {
    use OffloadSwitch::{Gro, Gso, ScatterGather, Tso, TxChecksum};
    let topology = &cluster.topology;
    let (host, peer) = two_hosts(topology, random)?;
    let device = ["eth0", OVERLAY][random.below(2)];
    let switch = *random.pick(&[TxChecksum, ScatterGather, Tso, Gso, Gro])?;
    let name = host.name.clone();
    Some(DrawnFault {
        summary: format!("{switch:?} of {device} at {name} is turned"),
        truth: at_host(topology, &host, &[]),
        mechanism: Mechanism::Offload,
        signs: vec![format!("nic.{device}.feature")],
        ends: (host.name, peer.name),
        make: Box::new(move |damage| {
            let (_, machine) = damage.host(&name)?;
            let is_on = machine.of(damage.cluster).offload(device, switch)?;
            damage.offload(machine, device, &[(switch, !is_on)])
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_turn_and_numbers_change_by_a_factor() {
        assert_eq!(changed("0\n", &mut Random(1)), "1");
        assert_eq!(changed("1", &mut Random(1)), "0");
        let triple = changed("4096 131072 6291456", &mut Random(1));
        assert!(["256 8192 393216", "65536 2097152 100663296"].contains(&triple.as_str()), "{triple}");
        assert!(changed("2147483647", &mut Random(2)).parse::<i64>().unwrap() <= i64::from(i32::MAX));
    }
}
