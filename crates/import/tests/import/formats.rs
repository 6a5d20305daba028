//! Each format from what its tool printed.

use super::tables::table;
use super::{account, bytes, counter, fact, file, is, measured, rates, read_one, under_prompt, whole};
use linerate_import::Document;
use linerate_model::fact::FactValue;
use linerate_model::kind::TcpPlan;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::StoragePattern;

const A: &str = "10.20.0.1";
const B: &str = "10.20.0.2";

#[test]
fn iperf3_client_and_server_report_the_same_transfer() {
    let client = read_one(file("iperf3-client.txt"));
    whole(&client);
    // What arrived counts, not what was sent.
    assert_eq!(rates(&client), [is(A, B, 191.0)]);
    assert_eq!(measured(&client.samples[0]).tx.as_ref().unwrap().series.len(), 3);
    assert_eq!(measured(&client.samples[0]).retransmits_per_s, Some(0.0));
    let server = read_one(file("iperf3-server.txt"));
    whole(&server);
    assert_eq!(rates(&server), [is(A, B, 191.0)]);
    // The last 10 ms are no interval.
    assert_eq!(measured(&server.samples[0]).rx.as_ref().unwrap().series.len(), 3);
    let both = linerate_import::read(
        &[file("iperf3-client.txt"), file("iperf3-server.txt")],
        &linerate_import::ImportOptions::default(),
    );
    assert_eq!(rates(&both), [is(A, B, 191.0)]);
    let m = measured(&both.samples[0]);
    assert!(
        m.tx.as_ref().is_some_and(|t| t.series.len() == 3)
            && m.rx.as_ref().is_some_and(|r| r.series.len() == 3)
    );
}

#[test]
fn iperf3_reverse_turns_the_ends() {
    for name in ["iperf3-reverse-verbose.txt", "iperf3-reverse.json"] {
        let read = read_one(file(name));
        whole(&read);
        assert_eq!(read.samples.len(), 1, "{name}");
        assert_eq!((read.samples[0].test.from.as_str(), read.samples[0].test.to.as_str()), (B, A), "{name}");
        assert!(read.samples[0].test.kind.get().is_some_and(|tcp: &TcpPlan| tcp.streams == 2), "{name}");
        let rate = measured(&read.samples[0]).throughput_bps.unwrap();
        assert!((185e6..196e6).contains(&rate), "{name}: {rate}");
    }
    let server = read_one(file("iperf3-server-reverse.txt"));
    whole(&server);
    assert_eq!(rates(&server), [is(B, A, 200.0)]);
}

#[test]
fn iperf3_in_both_directions_and_in_bytes() {
    let bidir = read_one(file("iperf3-bidir.txt"));
    whole(&bidir);
    assert_eq!(rates(&bidir), [is(A, B, 187.0), is(B, A, 185.0)]);
    assert_eq!(measured(&bidir.samples[0]).retransmits_per_s.map(|r| (r * 100.0).round()), Some(100.0));
    // 22.7 MBytes/sec are 22.7 x 1048576 bytes.
    assert_eq!(rates(&read_one(file("iperf3-mbytes.txt"))), [is(A, B, 190.42)]);
}

#[test]
fn iperf3_json_has_it_all() {
    let read = read_one(file("iperf3.json"));
    whole(&read);
    assert_eq!(rates(&read), [is(A, B, 191.23)]);
    let m = measured(&read.samples[0]);
    assert_eq!(m.rtt_loaded_us, Some(4168.0));
    let (tx, rx) = (m.tx.as_ref().unwrap(), m.rx.as_ref().unwrap());
    assert_eq!(tx.series.len(), 3);
    assert!(tx.core_busy_max.is_some_and(|c| (0.008..0.009).contains(&c)), "{:?}", tx.core_busy_max);
    assert!(rx.core_busy_max.is_some_and(|c| (0.079..0.080).contains(&c)));
    assert!(read.samples[0].start_ms > 1_700_000_000_000);
}

/// What `-J` prints as one value, `--json-stream` prints as events.
#[test]
fn iperf3_json_as_a_stream() {
    let value: serde_json::Value = serde_json::from_slice(&bytes("iperf3.json")).unwrap();
    let event = |name: &str, data: &serde_json::Value| {
        serde_json::json!({ "event": name, "data": data }).to_string() + "\n"
    };
    let intervals: Vec<String> =
        value["intervals"].as_array().unwrap().iter().map(|i| event("interval", i)).collect();
    let (start, end) = (event("start", &value["start"]), event("end", &value["end"]));
    let text = format!("{start}{}{end}", intervals.concat());
    let streamed = table(&text);
    whole(&streamed);
    assert_eq!(streamed.samples, read_one(file("iperf3.json")).samples);
    let twice = table(&format!("{text}{}", text.replace("\"local_port\":", "\"local_port\":1")));
    whole(&twice);
    assert_eq!(twice.samples.len(), 2);
    let cut = table(&format!("{start}{}{}", intervals.concat(), &end[..40]));
    whole(&cut);
    assert!((190e6..205e6).contains(&measured(&cut.samples[0]).throughput_bps.unwrap()));
    assert!(account(&cut).notes[0].contains("ends in the middle"));
    let refused = table(
        "{\"event\":\"start\",\"data\":{\"connected\":[]}}\n\
         {\"event\":\"error\",\"data\":\"unable to connect to server: Connection refused\"}\n",
    );
    assert!(refused.samples.is_empty());
}

#[test]
fn iperf3_udp_reports_loss_and_refusals_are_no_evidence() {
    for name in ["iperf3-udp.txt", "iperf3-udp.json"] {
        let read = read_one(file(name));
        whole(&read);
        assert_eq!(read.samples[0].test.kind.name(), "udp", "{name}");
        assert!(measured(&read.samples[0]).loss.is_some_and(|l| l < 0.01), "{name}");
    }
    for name in ["iperf3-refused.txt", "iperf3-refused.json"] {
        let read = read_one(under_prompt(name, "iperf3 -c arc-2"));
        assert!(read.samples.is_empty(), "{name}: the port was closed, the network may be fine");
        assert!(super::account(&read).unread[0].why.contains("did not run"), "{name}");
    }
    let text = "[root@a ~]# iperf3 -c b\niperf3: error - unable to connect to server: No route to host\n";
    let read = read_one(linerate_import::Document::new("x.txt", text));
    assert!(matches!(read.samples[0].outcome, Outcome::NothingThrough { .. }));
}

#[test]
fn iperf2_in_all_its_forms() {
    let client = read_one(file("iperf2-client.txt"));
    whole(&client);
    assert_eq!(rates(&client), [is(A, B, 191.0)]);
    assert_eq!(measured(&client.samples[0]).tx.as_ref().unwrap().series.len(), 3);
    let enhanced = read_one(file("iperf2-enhanced.txt"));
    whole(&enhanced);
    assert_eq!(measured(&enhanced.samples[0]).rtt_loaded_us, Some(5006.0));
    let parallel = read_one(file("iperf2-p2-mbytes.txt"));
    whole(&parallel);
    assert_eq!(rates(&parallel), [is(A, B, 199.65)]);
    assert!(parallel.samples[0].test.kind.get().is_some_and(|tcp: &TcpPlan| tcp.streams == 2));
    let reverse = read_one(file("iperf2-reverse.txt"));
    whole(&reverse);
    assert_eq!(rates(&reverse), [is(B, A, 191.0)]);
    for name in ["iperf2-dual.txt", "iperf2-tradeoff.txt"] {
        let both = read_one(file(name));
        whole(&both);
        let ends: Vec<(&str, &str)> =
            both.samples.iter().map(|s| (s.test.from.as_str(), s.test.to.as_str())).collect();
        assert_eq!(ends, [(A, B), (B, A)], "{name}");
    }
    assert_eq!(rates(&read_one(file("iperf2.csv"))), [is(A, B, 190.67)]);
}

#[test]
fn iperf2_server_holds_many_tests() {
    let server = read_one(file("iperf2-server.txt"));
    whole(&server);
    let ends: Vec<&str> = server.samples.iter().map(|s| s.test.from.as_str()).collect();
    // Five tests of the client, one of the server's own, bidirectional, one in reverse.
    assert_eq!(ends, [A, A, A, A, A, B, A, B, B], "{:?}", rates(&server));
    assert!(rates(&server).iter().all(|(_, _, mbit)| (180.0..200.0).contains(mbit)), "{:?}", rates(&server));
    let udp = read_one(file("iperf2-udp-server.txt"));
    whole(&udp);
    assert_eq!(measured(&udp.samples[0]).loss, Some(0.0));
    let udp = read_one(file("iperf2-udp-client.txt"));
    whole(&udp);
    assert_eq!((udp.samples[0].test.kind.name(), measured(&udp.samples[0]).loss), ("udp", Some(0.0)));
}

/// iperf 2.0 prints `%4d/%5d`: a blank behind the stroke.
#[test]
fn iperf2_datagrams_with_padded_numbers() {
    let last = "[  3]  0.0-10.0 sec  1.19 MBytes   998 Kbits/sec   0.022 ms   45/  893 (5%)\n\
                [  3]  0.0-10.0 sec  2 datagrams received out-of-order\n";
    let server = format!(
        "Server listening on UDP port 5001\nReceiving 1470 byte datagrams\n\
         [  3] local 10.20.0.2 port 5001 connected with 10.20.0.1 port 43210\n\
         [ ID] Interval       Transfer     Bandwidth        Jitter   Lost/Total Datagrams\n{last}"
    );
    let client = format!(
        "Client connecting to 10.20.0.2, UDP port 5001\nSending 1470 byte datagrams\n\
         [  3] local 10.20.0.1 port 43210 connected with 10.20.0.2 port 5001\n\
         [ ID] Interval       Transfer     Bandwidth\n\
         [  3]  0.0-10.0 sec  1.25 MBytes  1.05 Mbits/sec\n[  3] Sent 893 datagrams\n\
         [  3] Server Report:\n{last}"
    );
    for text in [server, client] {
        let read = table(&text);
        whole(&read);
        assert_eq!(read.samples.len(), 1, "{text}");
        assert_eq!((read.samples[0].test.from.as_str(), read.samples[0].test.to.as_str()), (A, B));
        assert!((measured(&read.samples[0]).loss.unwrap() - 45.0 / 893.0).abs() < 1e-9);
    }
}

#[test]
fn nuttcp_needs_its_command() {
    let read = read_one(under_prompt("nuttcp-intervals.txt", "nuttcp -T3 -i1 10.20.0.2"));
    whole(&read);
    assert_eq!(rates(&read), [is("arc-1", B, 191.39)]);
    let m = measured(&read.samples[0]);
    assert_eq!((m.rtt_idle_us, m.rx.as_ref().unwrap().core_busy_max), (Some(120.0), Some(0.06)));
    assert_eq!(m.rx.as_ref().unwrap().series.len(), 3);
    let received = read_one(under_prompt("nuttcp-receive.txt", "nuttcp -T2 -r 10.20.0.2"));
    assert_eq!(rates(&received), [is(B, "arc-1", 191.49)]);
    let keyed = read_one(under_prompt("nuttcp-parse.txt", "nuttcp -T2 -fparse 10.20.0.2"));
    assert_eq!(rates(&keyed), [is("arc-1", B, 191.49)]);
    let udp = read_one(under_prompt("nuttcp-udp.txt", "nuttcp -T2 -u -R50m 10.20.0.2"));
    assert_eq!(measured(&udp.samples[0]).loss, Some(0.0));
    let bare = read_one(file("nuttcp.txt"));
    assert!(bare.samples.is_empty() && super::account(&bare).unread[0].why.contains("between which hosts"));
}

#[test]
fn nuttcp_between_two_others() {
    let line = " 1121.6250 MB /  10.01 sec =  940.0112 Mbps 3 %TX 9 %RX 0 retrans 0.21 msRTT\n";
    let under = |command: &str| table(&format!("[root@admin ~]# {command}\n{line}"));
    let read = under("nuttcp -T 10 arc-1 arc-2");
    whole(&read);
    assert_eq!(rates(&read), [is("arc-1", "arc-2", 940.01)]);
    // The sender's count is missing, and it is not zero.
    let m = measured(&read.samples[0]);
    assert_eq!(m.tx.as_ref().unwrap().bytes, m.rx.as_ref().unwrap().bytes);
    assert_eq!(rates(&under("nuttcp -r -i1 arc-1 arc-2")), [is("arc-2", "arc-1", 940.01)]);
    assert_eq!(rates(&under("nuttcp -T 10 -i 0.5 -w 4m -I run1 10.20.0.2")), [is("admin", B, 940.01)]);
    assert_eq!(rates(&under("nuttcp -T 10 10.20.0.1 10.20.0.2")), [is(A, B, 940.01)]);
    assert_eq!(rates(&under("nuttcp -T 10 2nd 3com")), [is("2nd", "3com", 940.01)]);
    assert!(under("nuttcp arc-1 arc-1").samples.is_empty());
}

#[test]
fn netperf_streams_and_turns() {
    let read = read_one(file("netperf.txt"));
    whole(&read);
    let tcp: Vec<_> = rates(&read).into_iter().filter(|(_, _, mbit)| *mbit > 0.0).collect();
    let mbytes = 1122.4 * 8.0 * 1.048_576;
    assert_eq!(
        tcp,
        [
            is("arc-1", B, 9415.33),
            is(B, "arc-1", 4120.5),
            is("arc-1", B, (mbytes * 100.0_f64).round() / 100.0),
            is("arc-1", B, 408.76),
            is("arc-1", B, 9410.0),
            is("arc-1", B, 9400.0),
        ]
    );
    let turns = read.samples.iter().find(|s| s.test.kind.name() == "rtt").unwrap();
    assert_eq!(measured(turns).rtt_idle_us, Some(50.0));
    let udp = read.samples.iter().find(|s| s.test.kind.name() == "udp").unwrap();
    assert_eq!(measured(udp).loss, Some(0.025));
}

#[test]
fn netperf_omni() {
    let under = |options: &str, kind: &str, row: &str| {
        table(&format!(
            "[root@arc-1 ~]# netperf -H 10.20.0.2 -t omni {options}\n\
             OMNI {kind} TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.20.0.2 () port 0 AF_INET : demo\n\
             Local       Remote      Local   Elapsed Throughput Throughput  Local Local  Remote Remote\n\
             Send Socket Recv Socket Send    Time               Units       CPU   CPU    CPU    CPU\n\
             Size        Size        Size    (sec)                          Util  Util   Util   Util\n\
             Final       Final                                              %     Method %      Method\n{row}\n"
        ))
    };
    let row = "2626560     6291456     16384   10.00   9414.92    10^6bits/s  2.16  S      6.55   S      0.451   1.369   usec/KB  ";
    let read = under("-c -C", "Send", row);
    whole(&read);
    assert_eq!(rates(&read), [is("arc-1", B, 9414.92)]);
    assert_eq!(rates(&under("", "Receive", row)), [is(B, "arc-1", 9414.92)]);
    assert!(under("-- -T udp", "Send", row).samples.is_empty());
    let bytes = "2626560 6291456 16384 10.00 100.00 MBytes/s";
    assert_eq!(rates(&under("-f M", "Send", bytes)), [is("arc-1", B, 838.86)]);
    let turns = under("-- -d rr", "Send|Recv", "16384 87380 1 10.00 20000.00 Trans/s");
    assert_eq!(measured(&turns.samples[0]).rtt_idle_us, Some(50.0));
}

/// ethtool of 2009 has blanks in its names.
#[test]
fn ethtool_of_old() {
    let read = table(
        "[root@n1 ~]# ethtool -k eth0\nOffload parameters for eth0:\n\
         Cannot get device udp large send offload settings: Operation not supported\nrx-checksumming: on\n\
         tcp segmentation offload: off\nudp fragmentation offload: off\ngeneric segmentation offload: on\n\
         generic-receive-offload: off\n",
    );
    whole(&read);
    let flag = |name: &str| fact(&read, "n1", &format!("nic.eth0.feature.{name}")).cloned();
    assert_eq!(flag("tcp-segmentation-offload"), Some(FactValue::Flag(false)));
    assert_eq!(flag("generic-segmentation-offload"), Some(FactValue::Flag(true)));
    assert_eq!(read.facts["n1"].readings.len(), 5);
}

#[test]
fn ethtool_in_all_its_forms() {
    let key = |rest: &str| format!("nic.eth0.{rest}");
    let read = read_one(under_prompt("ethtool-k-eth0.txt", "ethtool -k eth0"));
    whole(&read);
    assert_eq!(fact(&read, "arc-1", &key("feature.tx-gso-robust")), Some(&FactValue::Flag(true)));
    assert_eq!(fact(&read, "arc-1", &key("feature.large-receive-offload")), Some(&FactValue::Flag(false)));
    assert!(read.facts["arc-1"].readings.len() > 30);
    let read = read_one(under_prompt("ethtool-g-eth0.txt", "ethtool -g eth0"));
    whole(&read);
    assert_eq!(fact(&read, "arc-1", &key("ring.rx")), Some(&FactValue::Int(256)));
    assert_eq!(fact(&read, "arc-1", &key("ring.tx_max")), Some(&FactValue::Int(256)));
    let read = read_one(under_prompt("ethtool-c-eth0.txt", "ethtool -c eth0"));
    whole(&read);
    assert_eq!(fact(&read, "arc-1", &key("coalesce.rx-frames")), Some(&FactValue::Int(1)));
    assert_eq!(fact(&read, "arc-1", &key("coalesce.adaptive-rx")), Some(&FactValue::Flag(false)));
    assert_eq!(fact(&read, "arc-1", &key("coalesce.adaptive-tx")), None);
    // Neither of these names its device: the file's name does.
    let read = read_one(file("ethtool-i-eth0.txt"));
    whole(&read);
    assert_eq!(fact(&read, "unnamed-host", &key("driver")), Some(&FactValue::Text("virtio_net".into())));
    let read = read_one(file("ethtool-S-eth0.txt"));
    whole(&read);
    assert_eq!(counter(&read, "unnamed-host", &key("stat.rx_kicks")), Some(2932));
    let read = read_one(under_prompt("ethtool-l-va.txt", "ethtool -l va"));
    whole(&read);
    assert_eq!(fact(&read, "arc-1", "nic.va.channels.rx_max"), Some(&FactValue::Int(2)));
    let read = read_one(under_prompt("ethtool-va.txt", "ethtool va"));
    whole(&read);
    assert_eq!(fact(&read, "arc-1", "nic.va.speed_mbit"), Some(&FactValue::Int(10_000)));
    assert_eq!(fact(&read, "arc-1", "nic.va.duplex"), Some(&FactValue::Text("full".into())));
}

#[test]
fn sysctls_without_secrets() {
    let read = read_one(under_prompt("sysctl-a.txt", "sysctl -a"));
    whole(&read);
    let facts = &read.facts["arc-1"].readings;
    assert_eq!(facts["sysctl.net.ipv4.tcp_rmem"].number(2), Some(33_554_432.0));
    assert!(
        facts
            .keys()
            .all(|k| !k.contains("fastopen_key") && !k.contains("random.uuid") && !k.contains("hostname"))
    );
    assert!(
        facts.contains_key("sysctl.kernel.randomize_va_space") && !facts.contains_key("sysctl.fs.file-max")
    );
}

#[test]
fn ip_as_json_and_as_text() {
    for name in ["ip-s-j-link.json", "ip-s-link.txt"] {
        let read = read_one(under_prompt(name, "ip -s link"));
        whole(&read);
        assert_eq!(fact(&read, "arc-1", "nic.va.mtu"), Some(&FactValue::Int(1500)), "{name}");
        assert_eq!(fact(&read, "arc-1", "nic.va.qdisc"), Some(&FactValue::Text("tbf".into())), "{name}");
        assert_eq!(counter(&read, "arc-1", "nic.va.stat.rx_packets"), Some(266_194), "{name}");
        assert_eq!(counter(&read, "arc-1", "nic.va.stat.tx_carrier_errors"), Some(0), "{name}");
    }
    for name in ["ip-j-addr.json", "ip-addr.txt"] {
        let read = read_one(under_prompt(name, "ip addr"));
        whole(&read);
        let addresses = fact(&read, "arc-1", "nic.va.addresses");
        assert_eq!(addresses, Some(&FactValue::List(vec!["10.20.0.1/24".into()])), "{name}");
    }
}

#[test]
fn tables_of_the_kernel() {
    let read = read_one(under_prompt("softnet_stat", "cat /proc/net/softnet_stat"));
    whole(&read);
    assert_eq!(counter(&read, "arc-1", "softnet.time_squeeze"), Some(0x74 + 0xaf));
    let read = read_one(under_prompt("interrupts", "cat /proc/interrupts"));
    whole(&read);
    assert_eq!(counter(&read, "arc-1", "irq.38"), Some(11_185));
    let read = read_one(under_prompt("diskstats", "cat /proc/diskstats"));
    whole(&read);
    assert_eq!(counter(&read, "arc-1", "disk.vda.stat.reads"), Some(2_179_130));
    assert_eq!(counter(&read, "arc-1", "disk.loop0.stat.reads"), None);
}

#[test]
fn disks_under_load() {
    let read = read_one(under_prompt("iostat-x.txt", "iostat -x 1 3"));
    whole(&read);
    let write = read.storage.iter().find(|f| f.pattern == StoragePattern::Write).unwrap();
    // The first report counts since boot.
    assert_eq!((write.variant.as_str(), write.requests_per_s), ("vda", Some(26.0)));
    assert!(write.busy.is_some_and(|b| (b - 0.028).abs() < 1e-9), "{:?}", write.busy);
    assert!((write.bytes_per_s / (40_212.0 * 1024.0) - 1.0).abs() < 1e-9);
    whole(&read_one(under_prompt("iostat-dmxt.txt", "iostat -dmxt 1 2")));
    // Its heading names the host, which a word in the name of a file does not outdo.
    let heading = Document::new("disks-of-today.txt", bytes("iostat-x.txt"));
    assert_eq!(read_one(heading).storage[0].host, "arc-1");
    let raid = read_one(under_prompt("iostat-raid.txt", "iostat -dmx 2"));
    whole(&raid);
    assert_eq!(raid.storage.len(), 10);
    let fio = read_one(file("fio-write.json"));
    whole(&fio);
    assert_eq!(
        (fio.storage[0].pattern, fio.storage[0].bytes_per_s),
        (StoragePattern::Write, 2_796_202_666.0)
    );
    assert!(super::account(&fio).notes.iter().any(|n| n.contains("direct=1")));
    let fio = read_one(file("fio-randrw.json"));
    assert_eq!(
        fio.storage.iter().map(|f| f.pattern).collect::<Vec<_>>(),
        [StoragePattern::RandomRead, StoragePattern::RandomWrite]
    );
    let tiotest = read_one(file("tiotest.txt"));
    whole(&tiotest);
    assert_eq!(tiotest.storage.len(), 3);
    assert!((tiotest.storage[0].bytes_per_s / (253.6 * 1_048_576.0) - 1.0).abs() < 1e-9);
    assert_eq!(tiotest.storage[0].host, "left");
}

/// `iostat -xh` prints a device in several tables, with its name behind.
#[test]
fn disks_for_humans() {
    let report = |written: &str, busy: &str| {
        format!(
            "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n\
             \x20          2.1%    0.0%    1.2%    0.3%    0.0%   96.4%\n\n\
             \x20    r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz Device\n\
             \x20   1.20     32.1k     0.30  20.1%    0.42    26.8k sda\n\n\
             \x20    w/s     wkB/s   wrqm/s  %wrqm w_await wareq-sz Device\n\
             \x20  26.00     {written}     0.00   0.0%    1.50     2.0M sda\n\n\
             \x20    d/s     dkB/s   drqm/s  %drqm d_await dareq-sz Device\n\
             \x20   0.00      0.0k     0.00   0.0%    0.00     0.0k sda\n\n\
             \x20    f/s f_await  aqu-sz  %util Device\n    0.00    0.00    0.10   {busy} sda\n\n"
        )
    };
    let head = "Linux 5.4.0-42-generic (store-1) \t07/21/20 \t_x86_64_\t(4 CPU)\n\n";
    let both = table(&format!("{head}{}{}", report("1.0k", "99.0%"), report("2.5M", "45.5%")));
    whole(&both);
    let write = both.storage.iter().find(|f| f.pattern == StoragePattern::Write).unwrap();
    assert_eq!((both.storage.len(), write.host.as_str(), write.variant.as_str()), (2, "store-1", "sda"));
    // The first report counts since boot.
    assert_eq!((write.bytes_per_s, write.requests_per_s), (2.5 * 1_048_576.0, Some(26.0)));
    assert!(write.busy.is_some_and(|b| (b - 0.455).abs() < 1e-9), "{:?}", write.busy);
    let read = both.storage.iter().find(|f| f.pattern == StoragePattern::Read).unwrap();
    assert!((read.bytes_per_s / (32.1 * 1024.0) - 1.0).abs() < 1e-9);
    let cut = report("2.5M", "45.5%");
    let cut = table(&format!("{head}{}", cut.split_once("     w/s").unwrap().0));
    assert!(cut.storage.is_empty());
    assert!(account(&cut).unread[0].why.contains("other tables"), "{:?}", account(&cut).unread);
}

#[test]
fn what_is_set_for_a_resource_of_drbd() {
    let read = read_one(file("drbd-show.txt"));
    assert_eq!(fact(&read, "arc-1", "drbd.r0.net.max-buffers"), Some(&FactValue::Int(8000)));
    assert_eq!(fact(&read, "arc-1", "drbd.r0.disk.c-max-rate"), Some(&FactValue::Text("12288k".into())));
    assert_eq!(fact(&read, "arc-1", "drbd.r0.address_family"), Some(&FactValue::Text("ipv4".into())));
}

/// Casebook D4.
#[test]
fn an_audit_of_a_data_node_names_what_is_lost() {
    let read = read_one(file("audit-hadoop.json"));
    let count = |class: &str| fact(&read, "dn-3", &format!("audit.hadoop.{class}./data/1/dfs/dn"));
    assert_eq!(count("empty"), Some(&FactValue::Int(300_127)));
    assert_eq!((count("meta-missing"), count("whole")), (Some(&FactValue::Int(412)), None));
}

/// Casebook D5.
#[test]
fn a_gluster_node_that_waits_for_its_own_lock() {
    let read = read_one(file("gluster-lock.log"));
    let held = fact(&read, "arc-1", "gluster.lock.held_by");
    assert!(held.is_some() && held == fact(&read, "arc-1", "gluster.lock.waits_for"), "{held:?}");
}

#[test]
fn drbd_with_a_resync() {
    let read = read_one(file("drbd-sync.txt"));
    whole(&read);
    assert_eq!(fact(&read, "arc-1", "drbd.0.connection"), Some(&FactValue::Text("SyncSource".into())));
    assert_eq!(fact(&read, "arc-1", "drbd.1.protocol"), Some(&FactValue::Text("C".into())));
    assert_eq!(counter(&read, "arc-1", "drbd.0.stat.oos"), Some(407_720));
    let speeds: Vec<(&str, f64)> = read.storage.iter().map(|f| (f.variant.as_str(), f.bytes_per_s)).collect();
    assert_eq!(speeds, [("drbd0", 1828.0 * 1024.0), ("drbd1", 28.0 * 1024.0)]);
}

#[test]
fn the_inside_of_connections() {
    for name in ["ss-ti.txt", "ss-tin.txt"] {
        let read = read_one(under_prompt(name, "ss -ti"));
        whole(&read);
        // The control connection moved too little to prove anything.
        assert_eq!(read.samples.len(), 1, "{name}");
        let m = measured(&read.samples[0]);
        assert_eq!(
            (read.samples[0].test.from.as_str(), m.rtt_loaded_us),
            ("arc-1", Some(10_715.0)),
            "{name}"
        );
        let tcp = m.tx.as_ref().unwrap().tcp.as_ref().unwrap();
        assert_eq!((tcp.mss, tcp.congestion.as_str(), tcp.wscale), (1448, "bbr", (10, 10)), "{name}");
        assert_eq!(m.throughput_bps, None, "{name}: what the kernel guesses is no measurement");
    }
    whole(&read_one(under_prompt("ss-ti-receiver.txt", "ss -ti")));
}

/// `-o` and `-m` put words in front of the name of the congestion control.
#[test]
fn the_inside_of_connections_with_flags_and_memory() {
    for (inside, name) in [
        ("ts sack bbr", "bbr"),
        ("skmem:(r0,rb369280,t0,tb2626560,f0,w2000000,o0,bl0,d0) cubic", "cubic"),
        ("skmem:(r0,rb369280) ts sack ecn ecnseen fastopen dctcp", "dctcp"),
        ("ts sack", ""),
    ] {
        let read = table(&format!(
            "[root@arc-1 ~]# ss -tiom\nState Recv-Q Send-Q Local Address:Port Peer Address:Port\n\
             ESTAB 0 2871384 10.20.0.1:49650 10.20.0.2:5001 timer:(on,204ms,0)\n\
             \t {inside} wscale:7,7 rto:204 rtt:1.52/0.31 mss:1448 cwnd:812 bytes_acked:981221444 busy:10000ms\n"
        ));
        whole(&read);
        let tcp = measured(&read.samples[0]).tx.as_ref().unwrap().tcp.as_ref().unwrap();
        assert_eq!((tcp.congestion.as_str(), tcp.wscale), (name, (7, 7)), "{inside}");
    }
}

#[test]
fn pings_that_are_lost_in_part() {
    let read = |sent: u32, received: u32| {
        table(&format!(
            "[root@c1 ~]# ping -c {sent} -i 0.2 -q c2\nPING c2 (192.168.1.10) 56(84) bytes of data.\n\n\
             --- c2 ping statistics ---\n\
             {sent} packets transmitted, {received} received, 12% packet loss, time 20100ms\n\
             rtt min/avg/max/mdev = 0.312/0.352/0.412/0.043 ms\n"
        ))
    };
    let lossy = read(100, 88);
    let m = measured(&lossy.samples[0]);
    assert!(m.loss.is_some_and(|l| (l - 0.12).abs() < 1e-9), "{:?}", m.loss);
    assert_eq!(m.rtt_idle_us, Some(352.0));
    let notes = &account(&lossy).notes;
    assert!(notes.iter().any(|n| n.contains("88 of 100 pings from c1 to c2")), "{notes:?}");
    // One of ten may be the first one, which waited for an address.
    assert_eq!(measured(&read(10, 9).samples[0]).loss, None);
    assert_eq!(measured(&read(100, 100).samples[0]).loss, None);
}

#[test]
fn pings_are_round_trips_or_probes() {
    for name in ["ping.txt", "ping-q.txt"] {
        let read = read_one(under_prompt(name, "ping -c 4 10.20.0.2"));
        whole(&read);
        assert_eq!(read.samples[0].test.kind.name(), "rtt");
        assert!(
            measured(&read.samples[0]).rtt_idle_us.is_some_and(|us| (40.0..80.0).contains(&us)),
            "{name}"
        );
    }
    let probe = |name: &str, size: u32| {
        let read = read_one(under_prompt(name, &format!("ping -M do -c 3 -s {size} 10.20.0.2")));
        whole(&read);
        let probe = measured(&read.samples[0]).mtu[0].clone();
        (probe.bytes, probe.sent, probe.answered, probe.refused_mtu)
    };
    assert_eq!(probe("ping-do-1472.txt", 1472), (1500, 3, 3, None));
    assert_eq!(probe("ping-do-1473.txt", 1473), (1501, 2, 0, Some(1500)));
    assert_eq!(probe("ping-do-lost.txt", 1452), (1480, 3, 0, None));
}

/// Where a system counts no retransmissions, the heading of a client that sends is that of one that receives.
#[test]
fn an_iperf3_client_sends_by_default() {
    let pasted = |reverse: &str| {
        format!(
            "Connecting to host 10.20.0.2, port 5201\n{reverse}\
             [  4] local 10.20.0.1 port 50000 connected to 10.20.0.2 port 5201\n\
             [ ID] Interval           Transfer     Bandwidth\n\
             [  4]   0.00-1.00   sec   112 MBytes   941 Mbits/sec\n\
             [  4]   1.00-2.00   sec   112 MBytes   941 Mbits/sec\n\
             [ ID] Interval           Transfer     Bandwidth\n\
             [  4]   0.00-2.00   sec   224 MBytes   941 Mbits/sec                  sender\n\
             [  4]   0.00-2.00   sec   224 MBytes   941 Mbits/sec                  receiver\n"
        )
    };
    assert_eq!(rates(&table(&pasted(""))), [is(A, B, 941.0)]);
    let reverse = "Reverse mode, remote host 10.20.0.2 is sending\n";
    assert_eq!(rates(&table(&pasted(reverse))), [is(B, A, 941.0)]);
}

#[test]
fn datagrams_are_counted_at_both_ends() {
    let read = table(
        "Connecting to host 10.20.0.2, port 5201\n\
         [  5] local 10.20.0.1 port 50000 connected to 10.20.0.2 port 5201\n\
         [ ID] Interval           Transfer     Bitrate         Total Datagrams\n\
         [  5]   0.00-5.00   sec  59.6 MBytes   100 Mbits/sec  43160\n\
         [ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n\
         [  5]   0.00-5.00   sec  59.6 MBytes   100 Mbits/sec  0.000 ms  0/43160 (0%)  sender\n\
         [  5]   0.00-5.00   sec  52.4 MBytes   88.0 Mbits/sec  0.013 ms  5179/43160 (12%)  receiver\n",
    );
    assert_eq!(rates(&read).len(), 1);
    let m = measured(&read.samples[0]);
    let counted =
        |end: &Option<Box<linerate_model::load::LoadReport>>| end.as_ref().unwrap().udp.unwrap().datagrams;
    assert_eq!((counted(&m.tx), counted(&m.rx)), (43160, 37981));
    assert!((m.loss.unwrap() - 0.12).abs() < 1e-3);
}

/// An alarm of `linerate drbd status` is a finding of the same text when it is pasted.
#[test]
fn a_replica_in_trouble_is_a_finding() {
    let causes = |state: &str, kib: u32| {
        let text = format!(
            "[root@store-1 ~]# cat /proc/drbd\nversion: 8.4.11 (api:1/proto:86-101)\n 0: {state} C r-----\n    \
             ns:51246 nr:2050 dw:539041 dr:510197 al:11 bm:0 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:{kib}\n"
        );
        let read = table(&text);
        whole(&read);
        let found = linerate_diagnose::diagnose(&read, crate::knowledge());
        found.findings.into_iter().map(|f| f.causes[0].id.clone()).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    assert_eq!(causes("cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate", 0), none);
    assert_eq!(causes("cs:SyncSource ro:Primary/Secondary ds:UpToDate/Inconsistent", 4096), none);
    assert_eq!(causes("cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate", 64), ["drbd-blocks-differ"]);
    assert_eq!(causes("cs:StandAlone ro:Primary/Unknown ds:UpToDate/DUnknown", 4096), ["drbd-apart"]);
    assert_eq!(causes("cs:Connected ro:Primary/Secondary ds:Diskless/UpToDate", 300), ["drbd-no-disk"]);
    // New, before its first synchronisation.
    assert_eq!(causes("cs:Connected ro:Secondary/Secondary ds:Inconsistent/Inconsistent", 409_548), none);
}
