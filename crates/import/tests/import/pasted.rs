//! Texts as people hand them over: sessions, mails, folders, broken files. Names of hosts, what is quoted,
//! what is missing.

use linerate_import::{Document, ImportOptions, is_wanted_of_sosreport, read};
use linerate_model::fact::FactValue;
use linerate_model::inventory::Layer;

use super::{account, bytes, fact, file, files, is, measured, rates, read_one, under_prompt};

fn text(text: &str) -> Document {
    Document::new("session.txt", text)
}

#[test]
fn a_session_with_many_pieces() {
    let session = "\
Hello list, since Monday it is slow.

[root@arc-1 ~]# ethtool -k em1 | grep gro
rx-gro-hw: on
[root@arc-1 ~]# ssh arc-2 ethtool -k em1 | grep gro
rx-gro-hw: off [fixed]
[root@arc-2 ~]# ping -c 1 arc-1
PING arc-1 (10.0.0.1) 56(84) bytes of data.
64 bytes from arc-1 (10.0.0.1): icmp_seq=1 ttl=64 time=0.210 ms
[root@arc-2 ~]# dmesg | tail -1
[12.3] something else altogether
[root@arc-2 ~]# sysctl net.ipv4.tcp_rmem
net.ipv4.tcp_rmem = 4096 131072 6291456
";
    let read = read_one(text(session));
    assert_eq!(fact(&read, "arc-1", "nic.em1.feature.rx-gro-hw"), Some(&FactValue::Flag(true)));
    assert_eq!(fact(&read, "arc-2", "nic.em1.feature.rx-gro-hw"), Some(&FactValue::Flag(false)));
    assert_eq!((read.samples[0].test.from.as_str(), read.samples[0].test.to.as_str()), ("arc-2", "arc-1"));
    assert!(fact(&read, "arc-2", "sysctl.net.ipv4.tcp_rmem").is_some());
    let quoted: Vec<(usize, &str)> =
        account(&read).unread.iter().map(|u| (u.line, u.text.as_str())).collect();
    assert_eq!(
        quoted,
        [(1, "Hello list, since Monday it is slow."), (11, "[12.3] something else altogether")]
    );
    assert_eq!(account(&read).unread_lines, 2);
    let pieces: Vec<(&str, &str, usize)> =
        account(&read).pieces.iter().map(|p| (p.format.as_str(), p.host.as_str(), p.line)).collect();
    assert_eq!(
        pieces,
        [("ethtool-k", "arc-1", 4), ("ethtool-k", "arc-2", 6), ("ping", "", 8), ("sysctl", "arc-2", 13)]
    );
}

#[test]
fn a_mail_that_quotes_with_other_line_ends() {
    let plain = String::from_utf8(bytes("iperf3-client.txt")).unwrap();
    let quoted = format!("> {}\r\n", plain.trim_end().replace('\n', "\r\n> "));
    let marked = [&b"\xef\xbb\xbf"[..], quoted.as_bytes()].concat();
    let read = read_one(Document::new("mail.txt", marked));
    assert_eq!(rates(&read), [is("10.20.0.1", "10.20.0.2", 191.0)]);
    assert_eq!(account(&read).unread, []);
}

#[test]
fn latin_1_and_binary() {
    let mut latin = b"Gr\xfc\xdfe von der Messstelle\n".to_vec();
    latin.extend(bytes("iperf3-client.txt"));
    let read = read_one(Document::new("mail.txt", latin));
    assert_eq!(read.samples.len(), 1);
    assert_eq!(account(&read).unread[0].text, "Grüße von der Messstelle");
    let binary = read_one(Document::new("core", b"\x7fELF\0\0\0".to_vec()));
    assert_eq!((account(&binary).unread[0].line, account(&binary).unread[0].why.as_str()), (0, "not a text"));
}

#[test]
fn json_that_ends_in_the_middle() {
    let whole = bytes("iperf3.json");
    for part in [2, 3, 4] {
        let read = read_one(Document::new("a.json", whole[..whole.len() * part / 5].to_vec()));
        assert_eq!(read.samples.len(), 1, "{part} fifths");
        assert!((190e6..205e6).contains(&measured(&read.samples[0]).throughput_bps.unwrap()));
        assert!(account(&read).notes[0].contains("ends in the middle"));
    }
    let read = read_one(Document::new("a.json", whole[..30].to_vec()));
    assert!(read.samples.is_empty() && !account(&read).unread.is_empty());
}

#[test]
fn addresses_become_hosts_where_a_text_names_them() {
    let both = [file("iperf3-client.txt"), under_prompt("ip-addr.txt", "ip addr"), file("hosts")];
    let snapshot = read(&both, &ImportOptions::default());
    // The address belongs to the host of the prompt, the other name comes from the table.
    assert_eq!(rates(&snapshot), [is("arc-1", "arc-2", 191.0)]);
    assert_eq!(snapshot.inventory.hosts[0].endpoints[0].address.to_string(), "10.20.0.1");
    let by_file = read_one(Document::new("iperf3-arc-1-to-arc-2.txt", bytes("iperf3-client.txt")));
    assert_eq!(rates(&by_file), [is("arc-1", "arc-2", 191.0)]);
    let by_option = read(
        &[file("iperf3-client.txt")],
        &ImportOptions { host: Some("arc-1".into()), ..ImportOptions::default() },
    );
    assert_eq!(rates(&by_option), [is("arc-1", "10.20.0.2", 191.0)]);
}

#[test]
fn a_format_can_be_named() {
    let options =
        ImportOptions { format: Some("sysctl".into()), host: Some("a".into()), ..ImportOptions::default() };
    let snapshot = read(&[text("net.core.rmem_max=1\nnot a sysctl\n")], &options);
    assert!(fact(&snapshot, "a", "sysctl.net.core.rmem_max").is_some());
    let overlay = ImportOptions { layer: Some(Layer::Overlay), ..ImportOptions::default() };
    assert_eq!(read(&[file("iperf3-client.txt")], &overlay).samples[0].test.layer, Layer::Overlay);
}

#[test]
fn a_container_network_is_the_overlay() {
    let session = "root@arc-1:~# nsenter --net=/run/docker/netns/ingress_sbox iperf3 -c 10.255.0.4\n\
        [  5]   0.00-10.00  sec  1.15 MBytes   300 Kbits/sec  210             sender\n";
    let read = read_one(text(session));
    assert_eq!(read.samples[0].test.layer, Layer::Overlay);
    assert_eq!(rates(&read), [is("arc-1", "10.255.0.4", 0.3)]);
}

fn tree(folder: &str, filter: impl Fn(&str) -> bool) -> Vec<Document> {
    let mut documents = Vec::new();
    let mut todo = vec![files().join(folder)];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
            continue;
        }
        let name = path.strip_prefix(files()).unwrap().to_str().unwrap().to_owned();
        if filter(name.strip_prefix(&format!("{folder}/")).unwrap()) {
            documents.push(Document::new(name, std::fs::read(&path).unwrap()));
        }
    }
    documents.sort_by(|a, b| a.name.cmp(&b.name));
    documents
}

#[test]
fn a_sosreport_is_one_host() {
    let documents = tree("sosreport-arc-1-2026-11-21-abcdefg", is_wanted_of_sosreport);
    assert_eq!(documents.len(), 11, "all but the log");
    let snapshot = read(&documents, &ImportOptions::default());
    assert_eq!(account(&snapshot).unread, [], "{:#?}", account(&snapshot).unread);
    assert_eq!(snapshot.facts.keys().collect::<Vec<_>>(), ["arc-1"]);
    let facts = &snapshot.facts["arc-1"];
    for key in [
        "nic.eth0.feature.generic-receive-offload",
        "nic.eth0.driver",
        "nic.eth0.ring.rx",
        "sysctl.net.ipv4.tcp_rmem",
    ] {
        assert!(
            facts.readings.contains_key(key),
            "{key}: {:?}",
            facts.readings.keys().take(9).collect::<Vec<_>>()
        );
    }
    for key in ["softnet.processed", "irq.36", "nic.eth0.stat.rx_kicks", "disk.vda.stat.writes"] {
        assert!(facts.counters.contains_key(key), "{key}");
    }
}

#[test]
fn what_is_missing_has_its_command() {
    let snapshot = read_one(under_prompt("iperf3-client.txt", "iperf3 -c arc-2"));
    let missing = &account(&snapshot).missing;
    let has = |what: &str, command: &str| {
        missing.iter().any(|m| m.what.contains(what) && m.command.contains(command))
    };
    assert!(has("from arc-2 to arc-1", "iperf3 -c arc-1 -t 20 -J"), "{missing:#?}");
    assert!(has("speed of the links of arc-1, arc-2", "ethtool NIC"), "{missing:#?}");
    assert!(has("settings of the devices", "for o in k i g c l"), "{missing:#?}");
    assert!(has("sysctls", "sysctl -a"), "{missing:#?}");
    assert!(has("RTT", "ping -c 10 arc-2"), "{missing:#?}");
    assert!(has("full size", "ping -M do"), "{missing:#?}");
    assert_eq!(snapshot.gaps.len(), missing.len());
    assert!(account(&read_one(text(""))).missing.is_empty());
}

/// First cause and its probability, of a text.
fn first(text: &str) -> Option<(String, f64)> {
    let snapshot = read(&[Document::new("x.txt", text)], &ImportOptions::default());
    let knowledge = crate::knowledge();
    let finding = linerate_diagnose::diagnose(&snapshot, knowledge).findings.into_iter().next()?;
    finding.causes.first().map(|cause| (cause.id.clone(), cause.probability))
}

#[test]
fn counts_since_boot_are_possible_causes_and_no_more() {
    let of = |missed: u64, packets: u64| {
        first(&format!(
            "[root@arc-1 ~]# ethtool -S eth0\nNIC statistics:\n     rx_packets: {packets}\n     \
             rx_missed_errors: {missed}\n"
        ))
    };
    let (id, probability) = of(7_012_345, 9_000_000_000).unwrap();
    assert!(id == "rx-ring-small" && probability > 0.3 && probability < 0.7, "{id} {probability}");
    // A few of very many, and few at all, are the life of every card.
    assert_eq!(of(2000, 9_000_000_000), None);
    assert_eq!(of(12, 100_000), None);
}

#[test]
fn a_log_that_names_a_hang_is_a_trace_of_its_cause() {
    let line = "[ 1023.72] e1000e 0000:00:19.0 eth0: Detected Hardware Unit Hang:\n";
    assert_eq!(first(&line.repeat(3)).unwrap().0, "nic-transmit-hang");
    assert_eq!(first("[ 1023.72] e1000e 0000:00:19.0 eth0: NIC Link is Up 1000 Mbps Full Duplex\n"), None);
}
