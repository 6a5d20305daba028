//! Nothing of the original survives, and the rest does.

use linerate_model::inventory::{Endpoint, Group, Host, Layer, SshSpec};
use linerate_model::kind::RttPlan;

use super::*;

fn inventory() -> Inventory {
    let host = |name: &str, last: u8| Host {
        name: name.to_owned(),
        transport: TransportSpec::Ssh(SshSpec {
            host: format!("{name}.example.org"),
            user: Some("operator".to_owned()),
            port: None,
            sudo: true,
        }),
        groups: vec!["rack-blue".to_owned()],
        endpoints: vec![Endpoint {
            address: [10, 7, 0, last].into(),
            layer: Layer::Underlay,
            netns: Some("/var/run/docker/netns/secretbox".into()),
            link_bps: None,
        }],
        state_dir: Some("/srv/private".into()),
        etc_dir: None,
        cache_dir: None,
    };
    Inventory {
        name: "bluecluster".to_owned(),
        groups: vec![Group { name: "rack-blue".to_owned(), kind: "rack".to_owned(), ..Group::default() }],
        hosts: vec![host("arc-1", 1), host("arc-10", 2)],
        ..Inventory::default()
    }
}

#[test]
fn texts_lose_names_and_addresses_and_keep_the_rest() {
    let mut renamer = Renamer::new(&inventory());
    assert_eq!(renamer.text("arc-10 to arc-1: no answer"), "host-2 to host-1: no answer");
    assert_eq!(renamer.text("operator@arc-1.example.org: refused"), "user@host-1: refused");
    assert_eq!(renamer.text("arc-100 and barc-1"), "arc-100 and barc-1");
    let route = renamer.text("default via 10.7.0.254 dev eth0 src 10.7.0.1 metric 50");
    assert!(!route.contains("10.7.0") && route.ends_with("metric 50"), "{route}");
    assert_eq!(renamer.text("10.7.0.254:5201"), renamer.text("10.7.0.254") + ":5201");
    assert_eq!(renamer.text("10.7.0.1/24 fe80::1/64").matches('/').count(), 2);
    let mac = renamer.text("link/ether 52:54:00:12:34:56 brd ff:ff:ff:ff:ff:ff");
    assert!(mac.starts_with("link/ether 02:00:00:00:00:") && mac.ends_with("ff:ff:ff:ff:ff:ff"), "{mac}");
    let root = renamer.text("root=UUID=0a1b2c3d-1111-2222-3333-444455556666 ro quiet");
    assert_eq!(root, "root=UUID=00000000-0000-4000-8000-000000000001 ro quiet");
    for same in ["127.0.0.1", "kernel 5.10.0-28-amd64", "4096 131072 6291456", "12:30:15", "0.0.0.0", ""] {
        assert_eq!(renamer.text(same), same);
    }
}

#[test]
fn addresses_in_keys_are_those_of_the_values() {
    let mut renamer = Renamer::new(&inventory());
    let new = renamer.text("10.7.0.9").replace('.', "/");
    assert_eq!(renamer.key("route.10/7/0/9-32.50"), format!("route.{new}-32.50"));
    assert_eq!(renamer.key("nic.eth0.neighbour.10/7/0/9"), format!("nic.eth0.neighbour.{new}"));
    assert_eq!(renamer.key("route.default.50"), "route.default.50");
    assert!(!renamer.key("route.fd07::9-64.1024.eth0").contains("fd07"));
}

#[test]
fn nothing_of_the_original_survives() {
    let facts = |n: u8| HostFacts {
        readings: [
            ("netns./var/run/docker/netns/secretbox|nic.eth0.addresses".to_owned(), format!("10.7.0.{n}/24")),
            ("nic.eth0.mac".to_owned(), format!("52:54:00:aa:bb:{n:02x}")),
            ("route.0".to_owned(), "default via 10.7.0.254 dev eth0".to_owned()),
            ("mount./home/bluecluster".to_owned(), "nfs filer.example.org:/export rw".to_owned()),
            ("machine.uuid".to_owned(), "4c4c4544-0042-3510-8053-b4c04f564433".to_owned()),
            ("sysctl.kernel.hostname".to_owned(), format!("arc-{n}")),
            ("kernel.cmdline".to_owned(), "root=/dev/sda1 ip=10.7.0.1::10.7.0.254 name=arc-1".to_owned()),
        ]
        .into_iter()
        .map(|(key, value)| (key, FactValue::Text(value)))
        .collect(),
        ..HostFacts::default()
    };
    let test = linerate_model::plan::Test {
        id: 1,
        ..linerate_model::plan::Test::new(
            "arc-1".to_owned(),
            "arc-10".to_owned(),
            Layer::Underlay,
            RttPlan { count: 1 }.into(),
        )
    };
    let reason = "no answer from 10.7.0.2 (arc-10.example.org)".to_owned();
    let snapshot = Snapshot {
        id: "20261121-083015-4f2a".to_owned(),
        inventory: inventory(),
        facts: [("arc-1".to_owned(), facts(1)), ("arc-10".to_owned(), facts(2))].into(),
        samples: vec![Sample {
            test,
            start_ms: 5,
            outcome: Outcome::NothingThrough { reason },
            tx_counters: [("nic.eth0.stat.rx_bytes".to_owned(), 1)].into(),
            rx_counters: BTreeMap::new(),
        }],
        gaps: vec![linerate_model::fact::Gap {
            what: "arc-1".into(),
            reason: "operator@arc-1.example.org: permission denied".to_owned(),
        }],
        ..Snapshot::default()
    };
    let (copy, renamer) = anonymous(&snapshot);
    let text = serde_json::to_string(&copy).unwrap();
    assert_eq!(renamer.left_in(&text), Vec::<String>::new(), "{text}");
    for secret in [
        "arc-1",
        "example",
        "blue",
        "operator",
        "10.7.0",
        "52:54",
        "4c4c4544",
        "secretbox",
        "filer",
        "private",
        "export",
    ] {
        assert!(!text.contains(secret), "{secret} is still in {text}");
    }
    // The same thing has the same new name wherever it stands.
    let endpoint = copy.inventory.hosts[0].endpoints[0].address.to_string();
    assert!(
        copy.facts["host-1"].readings.values().any(|v| v.to_string().starts_with(&format!("{endpoint}/")))
    );
    assert_eq!(copy.samples[0].test.from, "host-1");
}
