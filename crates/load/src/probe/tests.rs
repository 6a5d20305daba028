//! Real probes over loopback.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::AtomicBool;

use linerate_model::probe::{PartnerCounts, ProbePartner, ProbeSpec};

use super::Probing;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn begin(number: u32) -> Probing {
    Probing::begin(ProbeSpec { bind: HERE, netns: None, token: [9; 16], number }).unwrap()
}

fn at(number: u32, probing: &Probing) -> ProbePartner {
    ProbePartner { number, at: probing.ports().iter().map(|port| SocketAddr::new(HERE, *port)).collect() }
}

/// Reports until one of a partner fits; each of them comes after ten seconds at the latest.
fn until(probing: &Probing, done: impl Fn(&PartnerCounts) -> bool) -> PartnerCounts {
    let go_on = AtomicBool::new(false);
    for _ in 0..6 {
        let report = probing.report(&go_on);
        if let Some(counts) = report.partners.into_iter().find(&done) {
            return counts;
        }
    }
    panic!("no report fits");
}

#[test]
fn two_hosts_probe_each_other_and_lose_nothing() {
    let (one, two) = (begin(1), begin(2));
    one.set_partners(&[at(2, &two)]).unwrap();
    two.set_partners(&[at(1, &one)]).unwrap();
    one.faster(10.0, 60_000).unwrap();
    // While two is kept from its CPU it counts as silent.
    let counts = until(&one, |counts| counts.arrived >= 20 && counts.lost == 0);
    assert_eq!(counts.number, 2, "{counts:?}");
    assert!(!counts.rtts_us.is_empty() && counts.rtts_us.is_sorted(), "{counts:?}");
}

#[test]
fn a_partner_that_ended_is_silent_and_counted_as_lost() {
    let (one, two) = (begin(1), begin(2));
    one.set_partners(&[at(2, &two)]).unwrap();
    two.set_partners(&[at(1, &one)]).unwrap();
    until(&one, |counts| counts.arrived > 0);
    drop(two);
    let counts = until(&one, |counts| counts.lost > 0);
    assert_eq!(counts.number, 2);
}

#[test]
fn a_stranger_is_not_answered_and_not_counted() {
    let one = begin(1);
    let two = begin(2);
    one.set_partners(&[at(2, &two)]).unwrap();
    let stranger = UdpSocket::bind((HERE, 0)).unwrap();
    stranger.set_nonblocking(true).unwrap();
    for length in [0, 1, 32, 56, 64, 1400] {
        stranger.send_to(&vec![7; length], SocketAddr::new(HERE, one.ports()[0])).unwrap();
    }
    // Two has no partner and answers none, so that nothing arrives at one.
    let counts = until(&one, |counts| counts.lost > 0);
    assert_eq!(counts.arrived, 0, "{counts:?}");
    assert!(stranger.recv_from(&mut [0; 64]).is_err());
}

#[test]
fn what_is_too_much_is_refused() {
    let one = begin(1);
    for (per_s, for_ms) in [(11.0, 1), (0.0, 1), (1e-30, 1), (f64::NAN, 1), (1.0, 120_001)] {
        assert!(one.faster(per_s, for_ms).is_err(), "{per_s} {for_ms}");
    }
    let partner = at(1, &one);
    assert!(one.set_partners(&vec![partner.clone(); 65]).is_err());
    assert!(one.set_partners(&[ProbePartner { at: Vec::new(), ..partner }]).is_err());
}
