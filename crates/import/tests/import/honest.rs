//! What pasted texts cannot show is not reported: no unread setting is blamed, no fault is found in an
//! overloaded test, and what is dead is reported as dead.

use linerate_diagnose::diagnose;
use linerate_import::{Document, ImportOptions, read};
use linerate_model::finding::{Diagnosis, Suspect};
use linerate_report::words::written;

fn diagnosed(texts: &[&str]) -> Diagnosis {
    let documents = [Document::new("session.txt", texts.concat())];
    written(diagnose(&read(&documents, &ImportOptions::default()), crate::knowledge()))
}

fn first_cause(diagnosis: &Diagnosis) -> (&str, f64) {
    let cause = &diagnosis.findings[0].causes[0];
    (cause.id.as_str(), cause.probability)
}

/// Rates alone show where, not why.
#[test]
fn no_unread_setting_is_blamed() {
    let table = "Mbit/s\n\n| from \\ to | a | b | c | d |\n|---|---|---|---|---|\n\
                 | a | - | 9412 | 12 | 9410 |\n| b | 9408 | - | 11 | 9411 |\n\
                 | c | 9400 | 9402 | - | 9411 |\n| d | 9411 | 9404 | 13 | - |\n";
    let diagnosis = diagnosed(&[table]);
    let found = &diagnosis.findings[0];
    assert_eq!(found.places[0].suspect, Suspect::Host("c".into()));
    assert!(found.causes.iter().all(|cause| cause.probability < 0.3), "{:?}", found.causes);
    assert!(diagnosis.headline.contains("the cause is not known"), "{}", diagnosis.headline);
    assert!(!found.sentence.contains("To try"), "{}", found.sentence);
}

const LINKS: &str = "[root@a ~]# iperf3 -c b -t 3\nConnecting to host b, port 5201\n[  5] local 10.0.0.1 port 41000 connected to 10.0.0.2 port 5201\n[ ID] Interval           Transfer     Bitrate         Retr\n[  5]   0.00-3.00   sec   335 MBytes   939 Mbits/sec                  receiver\n[root@a ~]# ethtool eth0 | grep Speed\n\tSpeed: 1000Mb/s\n[root@b ~]# ethtool eth0 | grep Speed\n\tSpeed: 1000Mb/s\n";

fn udp(asked: &str, sent: &str, arrived: &str) -> String {
    format!(
        "[root@a ~]# iperf3 -c b -u -b {asked} -t 3\nConnecting to host b, port 5201\n\
         [  5] local 10.0.0.1 port 41001 connected to 10.0.0.2 port 5201\n\
         [ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n\
         [  5]   0.00-3.00   sec   {sent}  0.000 ms  0/51434 (0%)  sender\n\
         [  5]   0.00-3.00   sec   {arrived}  0.012 ms  21165/51434 (41%)  receiver\n"
    )
}

#[test]
fn a_flood_above_the_link_is_no_fault() {
    let flood = diagnosed(&[LINKS, &udp("2G", "572 MBytes  1.60 Gbits/sec", "335 MBytes   937 Mbits/sec")]);
    assert!(flood.findings.is_empty(), "{}", flood.headline);
    assert!(flood.refused.iter().any(|line| line.contains("can be carried")), "{:?}", flood.refused);
    let paced = diagnosed(&[LINKS, &udp("200M", "72 MBytes  200 Mbits/sec", "43 MBytes   118 Mbits/sec")]);
    assert_eq!(first_cause(&paced).0, "packet-loss");
}

#[test]
fn what_is_dead_is_reported_without_anything_to_compare_it_with() {
    let dead = diagnosed(&[
        "[root@c1 ~]# iperf3 -c c2\niperf3: error - unable to connect to server: No route to host\n\
         [root@c2 ~]# iperf3 -c c1\niperf3: error - unable to connect to server: Connection timed out\n",
    ]);
    assert_eq!(first_cause(&dead).0, "path-blocked");
    assert!(dead.headline.contains("nothing gets through"), "{}", dead.headline);
}

#[test]
fn it_takes_two_to_differ() {
    let address = |host: u8, mtu: u32| {
        format!(
            "[root@h{host} ~]# ip addr show em1\n2: em1: <BROADCAST,UP,LOWER_UP> mtu {mtu} qdisc mq state UP group default qlen 1000\n    \
             link/ether 52:54:00:12:34:5{host} brd ff:ff:ff:ff:ff:ff\n    inet 172.16.77.1{host}/24 brd 172.16.77.255 scope global em1\n"
        )
    };
    let ping = "[root@h1 ~]# ping -c 3 -q h2\nPING h2 (172.16.77.12) 56(84) bytes of data.\n\n--- h2 ping statistics ---\n\
                3 packets transmitted, 3 received, 0% packet loss, time 2031ms\nrtt min/avg/max/mdev = 0.210/0.212/0.214/0.003 ms\n";
    let differ = diagnosed(&[&address(1, 9000), &address(2, 1500), ping]);
    assert_eq!(differ.findings.len(), 1, "{}", differ.headline);
    let Suspect::Mismatch(_, hosts) = &differ.findings[0].places[0].suspect else {
        panic!("{}", differ.headline)
    };
    assert_eq!(hosts, &["h1", "h2"]);
}

/// Retransmissions in one direction only are loss, also without datagrams.
#[test]
fn retransmissions_indicate_a_loss() {
    let direction = |flag: &str, rate: &str, again: u32| {
        format!(
            "user@desktop:~$ iperf3 -c nas {flag}\nConnecting to host nas, port 5201\n{}\
             [  5] local 192.0.2.5 port 41000 connected to 192.0.2.10 port 5201\n\
             [ ID] Interval           Transfer     Bitrate         Retr\n\
             [  5]   0.00-3.00   sec   103 MBytes   {rate} Mbits/sec  {again}             sender\n\
             [  5]   0.00-3.00   sec   102 MBytes   {rate} Mbits/sec                  receiver\n",
            if flag.is_empty() { "" } else { "Reverse mode, remote host nas is sending\n" }
        )
    };
    let lost = diagnosed(&[&direction("", "941", 3), &direction("-R", "288", 934)]);
    assert_eq!(first_cause(&lost).0, "packet-loss", "{}", lost.headline);
}

/// Casebook C3 as pasted text: two streams fill the wire, and no window of that RTT is so small.
#[test]
fn one_stream_far_below_two_is_a_cpu_and_no_window() {
    let text = String::from_utf8(crate::bytes("one-stream-two-streams.txt")).unwrap();
    let one = diagnosed(&[&text]);
    assert_eq!(first_cause(&one).0, "stream-on-one-cpu", "{}", one.headline);
}
