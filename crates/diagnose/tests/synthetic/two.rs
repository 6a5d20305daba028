//! Two hosts: throughput alone cannot tell sender, receiver and way apart, so the true place has to be among
//! those that are offered, and the cause has to be right all the same.

use linerate_knowledge::Knowledge;
use linerate_model::finding::{Diagnosis, Direction, Finding, Suspect};
use linerate_model::inventory::Layer;

use super::cluster::{Cluster, Layout, Path};
use super::diagnose;
use super::faults::{self, Fault, Spot};

const TWO: Layout = &[("left", &["east-1"]), ("right", &["west-1"])];

/// Of two hosts nobody can know that the way should be shorter.
const NO_PEERS: &[&str] = &["path-longer"];

fn offered(finding: &Finding, fault: &Fault, spot: &Spot, cluster: &Cluster) -> bool {
    finding.places.iter().any(|place| fault.accepts(spot, &place.suspect, place.direction, cluster))
}

fn told(diagnosis: &Diagnosis) -> Vec<&str> {
    diagnosis.findings.iter().map(|f| f.sentence.as_str()).collect()
}

#[test]
fn every_fault_between_two_hosts_is_attributed_and_its_place_offered() {
    let knowledge = Knowledge::builtin().unwrap();
    let (mut runs, mut wrong) = (0, Vec::new());
    for fault in faults::ALL.iter().filter(|f| !NO_PEERS.contains(&f.cause)) {
        for (number, spot) in fault.spots(TWO).into_iter().enumerate() {
            let mut cluster = Cluster::new(TWO);
            let damage = fault.inject(&mut cluster, &spot);
            let diagnosis = diagnose(&cluster.measure(2000 + number as u64, &*damage), &knowledge);
            runs += 1;
            let first = diagnosis.findings.first();
            let is_right = first.is_some_and(|f| {
                offered(f, fault, &spot, &cluster) && f.causes.first().is_some_and(|c| c.id == fault.cause)
            });
            if !is_right {
                wrong.push(format!(
                    "{} at {spot:?}: {}; {:#?}",
                    fault.name,
                    diagnosis.headline,
                    told(&diagnosis)
                ));
            }
        }
    }
    println!("{runs} runs, {} wrong\n{}", wrong.len(), wrong.join("\n"));
    // Open: a limit of windows whose two repeats differ by a fifth, and a delay that jitters alike in both
    // directions.
    assert!(wrong.len() * 15 <= runs, "{} of {runs} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn two_healthy_hosts_stay_silent() {
    let knowledge = Knowledge::builtin().unwrap();
    let cluster = Cluster::new(TWO);
    let alarms: Vec<String> = (0..300)
        .flat_map(|seed| diagnose(&cluster.measure(seed, &|_, _, _, _| {}), &knowledge).findings)
        .map(|finding| finding.sentence)
        .collect();
    assert!(alarms.is_empty(), "{} alarms:\n{}", alarms.len(), alarms.join("\n"));
}

/// What holds packets back in one direction delays the acknowledgements of the other: TCP suffers in both,
/// datagrams tell which.
#[test]
fn datagrams_tell_the_direction_when_tcp_suffers_in_both() {
    let knowledge = Knowledge::builtin().unwrap();
    let damage = |_: &str, to: &str, _: Layer, path: &mut Path| {
        path.rate_bps *= 0.78;
        if to == "east-1" {
            path.stall_us = 100_000.0;
        }
    };
    let diagnosis = diagnose(&Cluster::new(TWO).measure(7, &damage), &knowledge);
    let finding = &diagnosis.findings[0];
    assert_eq!(finding.causes[0].id, "path-pauses", "{:#?}", told(&diagnosis));
    let of_hosts = finding.places.iter().filter_map(|p| match &p.suspect {
        Suspect::Host(host) => Some((host.as_str(), p.direction)),
        _ => None,
    });
    let of_hosts: Vec<_> = of_hosts.collect();
    assert!(!of_hosts.is_empty(), "{:?}", finding.places);
    for (host, direction) in of_hosts {
        let expected = if host == "east-1" { Direction::Rx } else { Direction::Tx };
        assert_eq!(direction, expected, "{:?}", finding.places);
    }
}
