//! Sentences that would be false: sizes that nothing states, notes that do not apply, results that stand for
//! others.

use linerate_import::Document;
use linerate_model::kind::UdpPlan;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;

use super::read_one;

fn read(text: &str) -> Snapshot {
    read_one(Document::new("mail.txt", text))
}

fn notes(text: &str) -> String {
    read(text).imported.unwrap().notes.join("\n")
}

fn rates(snapshot: &Snapshot) -> Vec<(String, String, f64)> {
    let rate = |s: &linerate_model::sample::Sample| match &s.outcome {
        Outcome::Measured(m) => m.throughput_bps.unwrap_or_default() / 1e6,
        _ => 0.0,
    };
    snapshot.samples.iter().map(|s| (s.test.from.clone(), s.test.to.clone(), rate(s))).collect()
}

/// What the report prints of a text.
fn printed(text: &str) -> String {
    let snapshot = read(text);
    let diagnosis = linerate_report::words::diagnose(&snapshot, crate::knowledge());
    linerate_report::text::page(&snapshot, &diagnosis, linerate_report::heat::Style::default())
}

#[test]
fn a_datagram_has_the_size_that_was_asked_for() {
    let size = |text: &str| {
        let sample = read(text).samples.remove(0);
        sample.test.kind.get().map(|plan: &UdpPlan| plan.payload_bytes)
    };
    let iperf2 = "Client connecting to 192.0.2.2, UDP port 5001\nSending 1200 byte datagrams, IPG target: 18.31 us (kalman adjust)\n[  3] local 192.0.2.1 port 40112 connected with 192.0.2.2 port 5001\n[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec   596 MBytes   500 Mbits/sec\n[  3] Server Report:\n[  3]  0.0-10.0 sec   580 MBytes   486 Mbits/sec   0.012 ms 14000/520834 (2.7%)\n";
    assert_eq!(size(iperf2), Some(1200));
    let iperf3 = |length: &str| {
        format!(
            "root@a1:~# iperf3 -c a2 -u -b 400M{length}\n[  5] local 192.0.2.1 port 40112 connected to 192.0.2.2 port 5201\n[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n[  5]   0.00-10.00  sec   476 MBytes   400 Mbits/sec  0.000 ms  0/61000 (0%)  sender\n[  5]   0.00-10.00  sec   456 MBytes   382 Mbits/sec  0.009 ms  2600/61000 (4.3%)  receiver\n"
        )
    };
    assert_eq!(size(&iperf3(" -l 8K")), Some(8192));
    assert_eq!(size(&iperf3("")), Some(8200));
    let page = printed(&iperf3(""));
    assert!(page.contains("of about 8200 bytes") && !page.contains("should carry"), "{page}");
}

#[test]
fn writes_that_wait_for_the_drive_are_not_those_of_the_page_cache() {
    let fio = |flag: &str| {
        format!(
            "$ fio --name=log --rw=write --bs=2300 --size=22m{flag}\nlog: (g=0): rw=write, bs=(R) 2300B-2300B, (W) 2300B-2300B, (T) 2300B-2300B, ioengine=sync, iodepth=1\nlog: (groupid=0, jobs=1): err= 0: pid=77: Fri Nov 27 10:00:00 2026\n  write: IOPS=120, BW=270KiB/s (276kB/s)(22.0MiB/83000msec); 0 zone resets\n  fsync/fdatasync/sync_file_range:\n    sync (usec): min=6000, max=60000, avg=8000.00, stdev=900.00\n"
        )
    };
    assert!(!notes(&fio(" --fdatasync=1")).contains("page cache"));
    let plain = fio("").replace("  fsync/fdatasync/sync_file_range:\n", "");
    assert!(notes(&plain).contains("page cache"));
    let copy =
        "1024+0 records in\n1024+0 records out\n1073741824 bytes (1.1 GB, 1.0 GiB) copied, 9.1 s, 118 MB/s\n";
    assert_eq!(notes(&format!("time dd if=/dev/zero of=/srv/x bs=1M count=1024 conv=fsync\n{copy}")), "");
    assert!(notes(&format!("dd if=/dev/zero of=/srv/x bs=1M count=1024\n{copy}")).contains("page cache"));
}

#[test]
fn a_result_before_and_one_after_stand_beside_each_other() {
    let result = |rate: &str| {
        format!(
            "root@a1:~# iperf3 -c a2\nConnecting to host a2, port 5201\n[  5] local 192.0.2.1 port 40112 connected to 192.0.2.2 port 5201\n[ ID] Interval           Transfer     Bitrate         Retr\n[  5]   0.00-10.00  sec  1.00 GBytes  {rate} Mbits/sec    0             sender\n[  5]   0.00-10.00  sec  1.00 GBytes  {rate} Mbits/sec                  receiver\n"
        )
    };
    let text = format!(
        "Before the new firmware of the switch:\n\n{}\nAnd after it:\n\n{}",
        result("800"),
        result("880")
    );
    let snapshot = read(&text);
    assert_eq!(rates(&snapshot), [("a1".to_owned(), "a2".to_owned(), 880.0)]);
    let page = printed(&text);
    assert!(page.contains("800 Mbit/s") && page.contains("880 Mbit/s"), "{page}");
}

#[test]
fn results_of_iperf_without_names_are_those_of_a_client_and_a_server() {
    let text =
        "[ ID] Interval       Transfer     Bandwidth\n[  3]  0.0-10.0 sec   112 MBytes  93.9 Mbits/sec\n";
    assert_eq!(rates(&read(text)), [("client".to_owned(), "server".to_owned(), 93.9)]);
    assert!(notes(text).contains("names no hosts"));
}

#[test]
fn a_result_without_names_is_that_of_the_only_other_pair() {
    let result =
        |gbit: &str| format!("[  4]   0.00-10.00  sec  28.5 GBytes  {gbit} Gbits/sec   22   sender\n");
    let head = "[ ID] Interval           Transfer     Bandwidth       Retr\n";
    let named = |host: &str| {
        let to = format!("[root@a ~]# iperf3 -c {host}\nConnecting to host {host}, port 5201\n");
        format!(
            "{to}[  4] local 192.0.2.1 port 45002 connected to 192.0.2.2 port 5201\n{head}{}",
            result("27.7")
        )
    };
    let quoted =
        format!("[root@a ~]# uptime\n\nResult before was\n\n> {head}> {}\nand is now\n\n", result("24.5"));
    let text = format!("{quoted}{}", named("b"));
    let of = |text: &str| rates(&read(text)).into_iter().map(|(from, to, _)| (from, to)).collect::<Vec<_>>();
    assert!(of(&text).iter().all(|(from, to)| (from.as_str(), to.as_str()) == ("a", "b")), "{:?}", of(&text));
    assert!(notes(&text).contains("names no hosts: it is taken as one between a and b"), "{}", notes(&text));
    assert!(printed(&text).contains("24.5"), "{}", printed(&text));
    // With two others it may be either.
    let two = format!("{text}{}", named("c").replace("192.0.2.2", "192.0.2.3"));
    assert!(of(&two).iter().any(|(_, to)| to == "server"), "{:?}", of(&two));
}

#[test]
fn wrong_checksums_and_errors_of_the_phy_are_read() {
    let text = "The tunnel stalls:\n\n    192.0.2.7.8472 > 192.0.2.9.8472: [bad udp cksum 0x1c2d -> 0x0a4f!] OTV, flags [I] (0x08)\n";
    let snapshot = read(text);
    let diagnosis = linerate_diagnose::diagnose(&snapshot, crate::knowledge());
    assert!(diagnosis.asked[0].command.contains("ethtool -k NIC | grep checksum"), "{:?}", diagnosis.asked);
    let text = "gw:~# ethtool -S eth0\nNIC statistics:\n     tx_packets: 900000\n     phy_receive_errors: 52011\n     phy_idle_errors: 255\n";
    assert!(printed(text).contains("errors of the PHY"), "{}", printed(text));
}

#[test]
fn the_other_direction_is_asked_for_without_options_that_turn_it() {
    let text = "root@a1:~# iperf3 -c a2 -R\nConnecting to host a2, port 5201\nReverse mode, remote host a2 is sending\n[  5] local 192.0.2.1 port 40112 connected to 192.0.2.2 port 5201\n[ ID] Interval           Transfer     Bitrate\n[  5]   0.00-10.00  sec  1.00 GBytes  880 Mbits/sec                  receiver\n";
    let missing = read(text).imported.unwrap().missing;
    let other = missing.iter().find(|m| m.what.contains("other direction")).unwrap();
    assert_eq!(other.command, "`iperf3 -s` on a2, then `iperf3 -c a2 -t 20 -J` on a1");
}
