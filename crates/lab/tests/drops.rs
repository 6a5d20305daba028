//! `linerate drops` on a real cluster of network namespaces: reasons are named where packets are dropped, and
//! the two of six hosts that drop the same are found, with what they have and the others lack.
//!
//! In: root, `ip`, `nft`; the programs `linerate` and `linerate-node` (named by `LINERATE` and
//! `LINERATE_NODE`, or beside the lab's).
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Instant;

use linerate_lab::lab::Lab;
use linerate_lab::topology::Topology;
use linerate_testkit::{self as testkit, TestPrograms};
use serde_json::Value;

/// They drop multicasts of the others.
const WITHOUT_IPV6: [&str; 2] = ["arc-2", "arc-5"];
const DISABLED: &str = "disable_ipv6";

/// Packets of a burst: each second has a level of its own, so that hosts that are read a little apart still
/// show the same.
const LEVELS: [usize; 12] = [3, 12, 0, 7, 1, 16, 5, 0, 10, 2, 14, 8];

/// A burst: multicasts of IPv6 to all hosts, and packets to a host whose firewall drops them.
fn send(packets: usize, target: SocketAddr) {
    let links = linerate_sys::rtnetlink::links().unwrap();
    let scope = links.iter().find(|link| link.name == "eth0").unwrap().index;
    let all = SocketAddrV6::new(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1), 9, 0, scope);
    let (to_all, to_one) = (UdpSocket::bind("[::]:0").unwrap(), UdpSocket::bind("0.0.0.0:0").unwrap());
    for _ in 0..packets {
        // A host sends nothing until its address is checked for duplicates.
        drop(to_all.send_to(&[0; 100], all));
        drop(to_one.send_to(&[0; 100], target));
    }
}

#[test]
fn two_of_six_hosts_that_drop_the_same_are_grouped_and_reasons_are_named() {
    let test = "two_of_six_hosts_that_drop_the_same_are_grouped_and_reasons_are_named";
    let programs = TestPrograms::beside(env!("CARGO_BIN_EXE_linerate-lab"));
    if let Some(reason) = programs.missing() {
        println!("SKIPPED {test}: {reason}");
        return;
    }
    let lab = Lab::up(Topology::load("casebook-a").unwrap()).unwrap();
    let cluster = &lab.cluster;
    // The lab is without IPv6; four hosts of six get it.
    for (plan, host) in cluster.hosts.iter().filter(|(plan, _)| !WITHOUT_IPV6.contains(&plan.name.as_str())) {
        host.write_sysctl(&format!("net.ipv6.conf.all.{DISABLED}"), "0").unwrap();
        println!("IPv6 on {}", plan.name);
    }
    let (target, behind_firewall) = cluster.host("arc-4").unwrap();
    behind_firewall
        .nft(
            "add table inet x\nadd chain inet x c { type filter hook input priority 0; }\n\
             add rule inet x c udp dport 7 drop\n",
        )
        .unwrap();
    let mut child = Command::new(&programs.linerate)
        .args(["drops", "--json", "--for", "12s", "-i", cluster.inventory_path().to_str().unwrap()])
        .args(cluster.hosts.iter().map(|(plan, _)| &plan.name))
        .env("LINERATE_DATA", lab.folder.path().join("data"))
        .env("LINERATE_NODE", &programs.node)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(notes.by_ref().any(|line| line.contains("counting on 6 hosts")));
    let (_, sender) = cluster.host("arc-1").unwrap();
    let (target, begun) = (SocketAddr::from((target.underlay(), 7)), Instant::now());
    while child.try_wait().unwrap().is_none() {
        let level = LEVELS[begun.elapsed().as_secs() as usize % LEVELS.len()];
        sender.run(|| send(level, target)).unwrap();
        testkit::pause();
    }
    let mut text = String::new();
    child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    let alone = found["hosts"].as_array().unwrap().iter().find_map(|host| host["counters_alone"].as_str());
    if let Some(reason) = alone {
        testkit::skip(test, reason);
        return;
    }
    let rows = |host: &str| {
        let of = found["hosts"].as_array().unwrap().iter().find(|one| one["host"] == host).unwrap();
        of["rows"].as_array().unwrap().clone()
    };
    let firewall = rows("arc-4").into_iter().find(|row| row["reason"] == "NETFILTER_DROP").unwrap();
    assert_eq!(firewall["class"]["id"], "firewall", "{firewall:#}");
    assert_eq!(firewall["device"], "eth0", "{firewall:#}");
    let same = |group: &&Value| group["reason"] == "IPV6DISABLED";
    let group = found["groups"].as_array().unwrap().iter().find(same).unwrap_or_else(|| panic!("{found:#}"));
    assert_eq!(group["hosts"], serde_json::json!(WITHOUT_IPV6), "{group:#}");
    assert_eq!(group["shared"][0], format!("sysctl.net.ipv6.conf.all.{DISABLED} is 1"), "{group:#}");
    assert!(group["probability"].as_f64().unwrap() > 0.95, "{group:#}");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let page = programs.page(&lab.folder.path().join("data"), "", "/drops");
    for part in ["NETFILTER_DROP", "arc-2, arc-5 drop the same: IPV6DISABLED", "a rule of the firewall"] {
        assert!(page.contains(part), "{part} is not in {page}");
    }
}
