//! Every format: its fixture is recognised and read to the last detail, bad texts are refused with line and
//! hint, and no bytes make a reader panic.

use linerate_model::inventory::TransportSpec;
use proptest::prelude::*;

use super::draft::{ConnectMethod, ListRemark};
use super::reader::SourceText;
use super::readers::{READERS, understand};
use super::*;

fn fixture(name: &str) -> String {
    let path = format!("{}/tests/inventories/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// All fixtures with the format that each must be recognised as.
const FIXTURES: [(&str, &str); 16] = [
    ("hosts.txt", "hosts"),
    ("ssh_config", "ssh-config"),
    ("hosts.ini", "ansible"),
    ("hosts.yml", "ansible-yaml"),
    ("slurm-nodes.txt", "slurm"),
    ("slurm-sinfo.txt", "slurm"),
    ("slurm-sinfo.json", "slurm"),
    ("slurm-sinfo-new.json", "slurm"),
    ("slurm.conf", "slurm"),
    ("topology.conf", "slurm"),
    ("etc-hosts", "etc-hosts"),
    ("drbd84.res", "drbd"),
    ("drbd9.res", "drbd"),
    ("docker-node-ls.jsonl", "docker"),
    ("docker-node-inspect.json", "docker"),
    ("kubernetes.json", "kubernetes"),
];

fn read(name: &str) -> Understood {
    let text = fixture(name);
    let include = |pattern: &str| match pattern {
        "more.conf" => {
            Ok(vec![("more.conf".to_owned(), "Port 99\nHost inner\n  HostName 10.9.9.9\n".to_owned())])
        }
        _ => Err("no such file".to_owned()),
    };
    let source = SourceText { include: &include, ..SourceText::alone(name, &text) };
    understand(&source, None).unwrap_or_else(|e| panic!("{e}"))
}

/// A host in short: method, first address, groups.
fn line(understood: &Understood, name: &str) -> String {
    let host = understood.hosts.iter().find(|h| h.name == name).unwrap_or_else(|| panic!("no {name}"));
    let method = match &host.way {
        ConnectMethod::Known(TransportSpec::Local) => "local".to_owned(),
        ConnectMethod::Known(other) => format!("{other:?}"),
        ConnectMethod::Ssh(reach) => format!(
            "{}@{}:{}",
            reach.user.as_deref().unwrap_or("-"),
            reach.address.as_deref().unwrap_or("-"),
            reach.port.unwrap_or(0)
        ),
    };
    let address = host.endpoints.first().map_or("none".to_owned(), |e| e.address.to_string());
    format!("{method} {address} {}", host.groups.join(","))
}

fn names(understood: &Understood) -> String {
    understood.hosts.iter().map(|h| h.name.as_str()).collect::<Vec<_>>().join(" ")
}

fn groups(understood: &Understood) -> String {
    let one = |g: &linerate_model::inventory::Group| {
        format!("{}:{}{}", g.name, g.kind, g.parent.as_ref().map_or(String::new(), |p| format!("<{p}")))
    };
    understood.groups.iter().map(one).collect::<Vec<_>>().join(" ")
}

fn has(remarks: &[ListRemark], line: usize, part: &str) {
    let fits = |r: &ListRemark| r.line == line && format!("{}: {}", r.what, r.why).contains(part);
    assert!(remarks.iter().any(fits), "no remark at {line} with `{part}` in {remarks:#?}");
}

#[test]
fn every_fixture_is_recognised_and_every_format_has_one() {
    for (name, format) in FIXTURES {
        assert_eq!(read(name).format, format, "{name}");
    }
    for reader in READERS.iter().filter(|r| r.name() != "toml") {
        assert!(FIXTURES.iter().any(|(_, format)| *format == reader.name()), "{}", reader.name());
    }
}

#[test]
fn a_list_of_hosts() {
    let read = read("hosts.txt");
    assert_eq!(
        names(&read),
        "n001-ib n002-ib n003-ib n010-ib r1n8 r1n9 r2n8 r2n9 gw.example.org 10.0.0.9 fd00::9"
    );
    assert_eq!(line(&read, "r2n8"), "root@-:2222 none ");
    assert_eq!(line(&read, "fd00::9"), "-@-:22 fd00::9 ");
    assert_eq!(line(&read, "10.0.0.9"), "-@-:0 10.0.0.9 ");
    has(&read.ignored, 5, "n001-ib: a host of this name stands above");
}

#[test]
fn the_configuration_of_ssh() {
    let read = read("ssh_config");
    assert_eq!(names(&read), "inner arc-1 arc-2 arc-3 gate");
    // The first value counts, also from an included file and from a block with wildcards.
    assert_eq!(line(&read, "arc-1"), "ops@10.0.0.1:99 10.0.0.1 ");
    assert_eq!(line(&read, "arc-2"), "ops@arc-2.example.org:99 none ");
    assert_eq!(line(&read, "gate"), "-@192.0.2.1:99 192.0.2.1 ");
    assert_eq!(line(&read, "inner"), "late@10.9.9.9:99 10.9.9.9 ");
    has(&read.ignored, 10, "proxyjump for arc-2");
    has(&read.ignored, 11, "Match host arc-3");
    let text = fixture("ssh_config");
    let source = SourceText { known_to_ssh: true, ..SourceText::alone("config", &text) };
    let own = understand(&source, None).unwrap();
    assert_eq!(line(&own, "arc-1"), "-@-:0 10.0.0.1 ", "ssh knows the rest by the name");
    has(&own.ignored, 1, "Include more.conf: is not read here");
}

#[test]
fn files_of_ssh_that_include_each_other_end() {
    let include =
        |pattern: &str| Ok(vec![(pattern.to_owned(), format!("Include {pattern}\nInclude {pattern}\n"))]);
    let text = "Include a\nHost x\n";
    let source = SourceText { include: &include, ..SourceText::alone("config", text) };
    let error = understand(&source, None).unwrap_err().to_string();
    assert!(error.contains("include each other"), "{error}");
}

#[test]
fn inventories_of_ansible() {
    let ini = read("hosts.ini");
    assert_eq!(names(&ini), "gate web01.example.org web02.example.org web03.example.org 10.0.1.9 db-a db-b");
    assert_eq!(line(&ini, "gate"), "local none ");
    assert_eq!(line(&ini, "web02.example.org"), "www@-:0 none web,rack");
    assert_eq!(line(&ini, "10.0.1.9"), "ops@-:2222 10.0.1.9 web,rack");
    assert_eq!(line(&ini, "db-a"), "ops@10.0.2.1:2200 10.0.2.1 db,rack-1");
    assert_eq!(line(&ini, "db-b"), "ops@10.0.2.1:2200 none db");
    // `web` is in two groups: the first is its parent, the hosts are members of the other.
    assert_eq!(groups(&ini), "web:group<site db:group<site site:group rack-1:group<rack rack:group");
    has(&ini.notes, 3, "group web: is in rack too");
    has(&ini.ignored, 7, "10.0.2.1 of db-b: the address of host db-a already");
    has(&ini.ignored, 10, "ansible_password: a setting of Ansible's own");
    assert!(!format!("{ini:?}").contains("secret"), "values of other variables are not kept");

    let yaml = read("hosts.yml");
    for host in ["web02.example.org", "10.0.1.9", "db-a"] {
        assert_eq!(line(&yaml, host).split(' ').next(), line(&ini, host).split(' ').next(), "{host}");
    }
    assert_eq!(groups(&yaml), "site:group web:group<site db:group<site");
    has(&yaml.ignored, 20, "db-b: an alias");
    has(&yaml.ignored, 24, "ansible_host: a template");
    assert!(!format!("{yaml:?}").contains("secret"));
}

#[test]
fn what_slurm_prints() {
    let nodes = read("slurm-nodes.txt");
    assert_eq!(names(&nodes), "n3 n5");
    assert_eq!(line(&nodes, "n3"), "-@10.55.0.3:0 10.55.0.3 ");
    has(&nodes.notes, 1, "n3: is IDLE+DRAIN");
    has(&nodes.notes, 2, "n5: is DOWN+NOT_RESPONDING");
    has(&nodes.ignored, 1, "partition debug: has all hosts");

    for name in ["slurm-sinfo.json", "slurm.conf", "slurm-sinfo.txt"] {
        let read = read(name);
        assert_eq!(names(&read), "n1 n2 n3 n4 n5 n6", "{name}");
        assert_eq!(line(&read, "n6").split(' ').next(), Some("-@10.55.0.6:0"), "{name}");
    }
    let rows = read("slurm-sinfo.txt");
    assert_eq!(groups(&rows), "gpu:partition");
    assert_eq!(line(&rows, "n5"), "-@10.55.0.5:0 10.55.0.5 gpu");

    let new = read("slurm-sinfo-new.json");
    assert_eq!(groups(&new), "debug:partition gpu:partition");
    assert_eq!(line(&new, "n3"), "-@10.55.0.3:0 10.55.0.3 gpu");
    has(&new.notes, 11, "n3: is DOWN+NOT_RESPONDING");

    // Nodes and switches one behind the other.
    let both = fixture("slurm.conf") + &fixture("topology.conf");
    let both = understand(&SourceText::alone("both", &both), None).unwrap();
    assert_eq!(groups(&both), "leaf1:switch<spine leaf2:switch<spine spine:switch");
    assert_eq!(line(&both, "n4"), "-@10.55.0.4:0 10.55.0.4 leaf2");
    assert_eq!(names(&read("topology.conf")), "n1 n2 n3 n4 n5 n6", "a topology by itself has hosts too");
}

#[test]
fn the_hosts_file_of_a_machine() {
    let read = read("etc-hosts");
    assert_eq!(names(&read), "arc-1 arc-2 arc-3");
    assert_eq!(line(&read, "arc-1"), "-@10.0.0.1:0 10.0.0.1 ");
    has(&read.notes, 7, "arc-1: is also called archive");
    has(&read.ignored, 1, "127.0.0.1 localhost: a loopback address");
    has(&read.ignored, 5, "printer: not the address of one host");
    has(&read.ignored, 9, "fd00::2 of arc-2: 10.0.0.2 is measured");
    has(&read.ignored, 11, "10.0.0.3 arc-3-again: another name of arc-3");
}

#[test]
fn resources_of_drbd() {
    let old = read("drbd84.res");
    assert_eq!(names(&old), "alpha beta gamma");
    assert_eq!(groups(&old), "r0:drbd r1:drbd");
    assert_eq!(line(&old, "alpha"), "-@-:0 10.0.0.1 r0,r1");
    assert_eq!(line(&old, "gamma"), "-@-:0 fd00::3 r1");
    has(&old.notes, 7, "r0 volume 0: device /dev/drbd0");
    has(&old.notes, 18, "r1 on alpha: disk /dev/vda");
    has(&old.ignored, 18, "10.1.0.1 of alpha: 10.0.0.1 is measured");
    let new = read("drbd9.res");
    assert_eq!(names(&new), "alpha beta gamma delta 10.0.9.5");
    assert_eq!(line(&new, "delta"), "-@-:0 10.0.9.4 far");
    assert_eq!(line(&new, "gamma"), "-@-:0 10.0.0.3 home");
}

#[test]
fn nodes_of_a_swarm_and_of_kubernetes() {
    let list = read("docker-node-ls.jsonl");
    assert_eq!(names(&list), "arc-1 arc-2 arc-3");
    has(&list.notes, 3, "arc-3: is Down in the swarm");
    has(&list.notes, 3, "arc-3: takes no tasks: Drain");
    let inspected = read("docker-node-inspect.json");
    assert_eq!(line(&inspected, "arc-1"), "-@10.0.0.1:0 10.0.0.1 ");
    assert_eq!(line(&inspected, "arc-3"), "-@10.0.0.3:0 10.0.0.3 ");

    let nodes = read("kubernetes.json");
    assert_eq!(line(&nodes, "node-a"), "-@10.0.0.11:0 10.0.0.11 north-1");
    assert_eq!(groups(&nodes), "north-1:zone<north north:region north-2:zone<north");
    has(&nodes.notes, 9, "node-a: has its pods in 10.244.0.0/24 and fd00:244::/64");
    has(&nodes.notes, 32, "node-b: is not ready");
    has(&nodes.ignored, 9, "fd00::11 of node-a: 10.0.0.11 is measured");
}

/// A bad text, its format, the line of the error and words in it.
const REFUSED: [(&str, &str, usize, &str); 21] = [
    ("hosts", "a\nn[1-1000000000]\n", 2, "means 1000000000 hosts, at most 65536"),
    ("hosts", "n[1-2\n", 1, "has a `[` without its `]`"),
    ("hosts", "a:0\n", 1, "`0` is not a port"),
    ("hosts", "-oProxyCommand=x\n", 1, "host name"),
    ("hosts", "-l\n", 0, "not beginning with -"),
    ("hosts", "# nothing\n", 0, "no host is in it"),
    ("ssh-config", "Host a\nPort x\n", 2, "`x` is not a port"),
    ("ansible", "[a:kinder]\n", 1, "is no section"),
    ("ansible", "[a:children]\nb\n[b:children]\na\n", 1, "contains itself"),
    ("ansible", "[web]\nweb[1:99999999]\n", 2, "at most 65536"),
    ("ansible", "a b\n", 1, "behind a host has no `=`"),
    ("ansible-yaml", "- hosts: all\n", 1, "no map of groups"),
    ("ansible-yaml", "all:\n  hosts:\n    a: [\n", 4, "not YAML"),
    ("ansible-yaml", "all:\n  hosts: a\n", 2, "`hosts` is no map"),
    ("slurm", "NodeName=n[1-3] NodeAddr=10.0.0.[1-2]\n", 1, "3 names, but 2 addresses"),
    ("etc-hosts", "10.0.0.1 a\n10.0.0 b\n", 2, "`10.0.0` is not an IP address"),
    ("drbd", "resource r0 {\n on a { address x; }\n}\n", 2, "`x` is not an address"),
    ("drbd", "resource r0 {\n", 1, "has no `}`"),
    ("docker", "{\"Hostname\":\"a\"}\n{\"Hostname\":\n", 3, "not JSON"),
    ("kubernetes", "{\"apiVersion\":\"v1\",\n", 2, "not JSON"),
    (
        "kubernetes",
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\"}}",
        0,
        "no host is in it",
    ),
];

#[test]
fn bad_texts_are_refused_with_file_line_and_hint() {
    for (format, text, line, part) in REFUSED {
        let error = understand(&SourceText::alone("the-file", text), Some(format)).unwrap_err();
        let message = error.to_string();
        assert_eq!(error.line, line, "{format}: {text}\n{message}");
        assert!(message.contains(part) && message.starts_with("the-file:"), "{message}");
        assert!(message.contains("hint: "), "{message}");
    }
    let error = understand(&SourceText::alone("x", "?!\n"), None).unwrap_err().to_string();
    assert!(error.contains("--format: kubernetes, docker"), "{error}");
    let error = understand(&SourceText::alone("x", "a\n"), Some("ansibel")).unwrap_err().to_string();
    assert!(error.contains("did you mean `ansible`?"), "{error}");
}

#[test]
fn hosts_over_ssh_are_written_so_that_they_are_reached_the_same() {
    for (name, _) in FIXTURES {
        let first = read(name);
        let text = write::toml(&first);
        let second = understand(&SourceText::alone("again.toml", &text), None)
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        // And what was read back is written the same, but for the head.
        assert_eq!(
            second.clone().into_inventory().unwrap().hosts,
            first.into_inventory().unwrap().hosts,
            "{name}"
        );
        let again = understand(&SourceText::alone("third.toml", &write::toml(&second)), None).unwrap();
        assert_eq!(again.hosts, second.hosts, "{name}");
    }
}

#[test]
fn what_is_written_in_our_format_reads_the_same() {
    for (name, _) in FIXTURES {
        let mut first = read(name);
        // Hosts over ssh are as good as local ones for this.
        first.hosts.iter_mut().for_each(|host| host.way = ConnectMethod::Known(TransportSpec::Local));
        let text = write::toml(&first);
        let second = understand(&SourceText::alone("again.toml", &text), None)
            .unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(second.format, "toml", "{name}");
        assert_eq!((second.groups, second.hosts), (first.groups, first.hosts), "{name}");
    }
}

/// Reads the bytes in every format.
fn read_all(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let include = |pattern: &str| Ok(vec![(pattern.to_owned(), "Host x\n".to_owned())]);
    let source = SourceText { include: &include, ..SourceText::alone("x", &text) };
    let _ = understand(&source, None);
    for reader in READERS {
        reader.detects(&text);
        if let Ok(understood) = reader.read(&source) {
            let _ = write::toml(&understood);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        read_all(&bytes);
    }

    #[test]
    fn no_words_of_the_formats_make_a_reader_panic(
        words in proptest::collection::vec(
            proptest::sample::select(&[
                "Host", "*", "Include", "\n", " ", "[", "]", "a", ":", "{", "}", ";", "=", "\"", "resource", "on",
                "address", "NodeName", "SwitchName", "Switches", "[1-9]", "[0:3]", "10.0.0.1", "hosts", "children",
                "vars", "  ", "-", "#", "ansible_host", "|", ",", "{\"nodes\":[{\"name\":\"a\"}]}", "&x", "*x",
            ][..]),
            0..60,
        ),
    ) {
        read_all(words.concat().as_bytes());
    }

    #[test]
    fn no_damaged_fixture_makes_a_reader_panic(
        which in 0..FIXTURES.len(), at in 0.0..1.0_f64, len in 0_usize..60, with in "[\\[\\]{}=:;\"a-z0-9\n ]{0,12}",
    ) {
        let mut text = fixture(FIXTURES[which].0);
        let at = (text.len() as f64 * at) as usize;
        text.replace_range(at..(at + len).min(text.len()), &with);
        read_all(text.as_bytes());
    }
}
