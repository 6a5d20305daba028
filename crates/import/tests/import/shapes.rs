//! Shapes in which people hand texts over, and figures that are easily read wrongly: omitted intervals, both
//! directions at once, standstills, blank cells, titles instead of prompts.

use super::tables::table;
use super::{account, fact, is, measured, rates, read_one, whole};
use linerate_import::Document;
use linerate_model::fact::FactValue;

#[test]
fn omitted_intervals_count_for_nothing() {
    let read = table(
        "[root@a1 ~]# iperf3 -c a2 -O 2 -t 3\n\
         Connecting to host a2, port 5201\n\
         [  5] local 10.0.0.1 port 41000 connected to 10.0.0.2 port 5201\n\
         [ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n\
         [  5]   0.00-1.00   sec  12.0 MBytes   101 Mbits/sec   90    320 KBytes       (omitted)\n\
         [  5]   1.00-2.00   sec  40.0 MBytes   336 Mbits/sec   10    640 KBytes       (omitted)\n\
         [  5]   0.00-1.00   sec   112 MBytes   941 Mbits/sec    0   1.10 MBytes\n\
         [  5]   1.00-2.00   sec  0.00 Bytes  0.00 bits/sec    3   1.10 MBytes\n\
         [  5]   2.00-3.00   sec   112 MBytes   941 Mbits/sec    0   1.10 MBytes\n",
    );
    whole(&read);
    let m = measured(&read.samples[0]);
    let series: Vec<f64> = m.tx.as_ref().unwrap().series.iter().map(|i| i.throughput_bps).collect();
    // The second without a byte stays in it.
    assert_eq!(series, [941e6, 0.0, 941e6]);
    assert!((m.throughput_bps.unwrap() - 2.0 / 3.0 * 941e6).abs() < 1e3, "{:?}", m.throughput_bps);
    assert_eq!(m.retransmits_per_s, Some(1.0));
    let missing = &account(&read).missing;
    assert!(!missing.iter().any(|m| m.what.contains("retransmissions")), "{missing:?}");
}

const BOTH: &str = "------------------------------------------------------------\n\
    Server listening on TCP port 5001\n------------------------------------------------------------\n\
    ------------------------------------------------------------\n\
    Client connecting to 10.0.0.2, TCP port 5001\n\
    ------------------------------------------------------------\n\
    [  5] local 10.0.0.1 port 44182 connected with 10.0.0.2 port 5001\n[ ID] Interval       Transfer     Bandwidth\n\
    [  5]  0.0- 1.0 sec  112 MBytes   940 Mbits/sec\n\
    [  4] local 10.0.0.1 port 5001 connected with 10.0.0.2 port 56222\n\
    [  5]  1.0- 2.0 sec  112 MBytes   942 Mbits/sec\n[  4]  0.0- 1.0 sec  36 MBytes   300 Mbits/sec\n\
    [SUM]  0.0- 2.0 sec  260 MBytes  1242 Mbits/sec\n\
    [  5]  0.0- 2.0 sec  224 MBytes   941 Mbits/sec\n[  4]  0.0- 2.0 sec  72 MBytes   300 Mbits/sec\n\
    [SUM]  0.0- 2.0 sec  296 MBytes  1241 Mbits/sec\n";

#[test]
fn a_sum_over_both_directions_is_none_of_them() {
    let expected = [is("10.0.0.1", "10.0.0.2", 941.0), is("10.0.0.2", "10.0.0.1", 300.0)];
    assert_eq!(rates(&table(BOTH)), expected);
    let bare: String = BOTH.split_inclusive('\n').filter(|l| !l.contains(" connected with ")).collect();
    let bare = table(&format!("[root@a1 ~]# iperf -c a2 -d\n{bare}"));
    assert!(bare.samples.is_empty());
    assert!(
        account(&bare).unread.iter().any(|u| u.why.contains("both directions")),
        "{:?}",
        account(&bare).unread
    );
    let duplex = table(
        "Client connecting to 10.0.0.2, TCP port 5001\n\
         [  1] local 10.0.0.1 port 35810 connected with 10.0.0.2 port 5001 (full-duplex)\n\
         [ ID] Interval       Transfer     Bandwidth\n\
         [ *1] 0.0000-2.0000 sec  72 MBytes   300 Mbits/sec\n\
         [  1] 0.0000-2.0000 sec  224 MBytes   941 Mbits/sec\n\
         [SUM] 0.0000-2.0000 sec  296 MBytes  1241 Mbits/sec\n",
    );
    let mut both = rates(&duplex);
    both.sort_by(|a, b| b.2.total_cmp(&a.2));
    assert_eq!(both, expected);
}

#[test]
fn a_host_with_itself_is_no_network() {
    for text in [
        "[root@a1 ~]# iperf3 -c 127.0.0.1\nConnecting to host 127.0.0.1, port 5201\n\
         [  5] local 127.0.0.1 port 41000 connected to 127.0.0.1 port 5201\n\
         [  5]   0.00-10.00  sec  21.0 GBytes  18.0 Gbits/sec                  receiver\n",
        "[root@a1 ~]# iperf -c localhost\nClient connecting to localhost, TCP port 5001\n\
         [  3]  0.0-10.0 sec  21.0 GBytes  18.0 Gbits/sec\n",
        "[root@a1 ~]# iperf3 -c 10.0.0.1\n\
         [  5] local 10.0.0.1 port 41000 connected to 10.0.0.1 port 5201\n\
         [  5]   0.00-10.00  sec  21.0 GBytes  18.0 Gbits/sec                  receiver\n",
    ] {
        let read = table(text);
        assert!(read.samples.is_empty(), "{text}");
        let limit = fact(&read, "a1", "loopback.throughput_mbit");
        assert_eq!(limit, Some(&FactValue::Int(18_000)), "{text}: {:?}", account(&read));
        assert!(account(&read).notes.iter().any(|n| n.contains("own limit")), "{text}");
    }
}

#[test]
fn two_transfers_keep_their_order() {
    let one = |mbit: u32| {
        format!(
            "Connecting to host a2, port 5201\n\
             [  5] local 10.0.0.1 port 4{mbit} connected to 10.0.0.2 port 5201\n\
             [  5]   0.00-10.00  sec  1.1 GBytes   {mbit} Mbits/sec                  receiver\n"
        )
    };
    let read = table(&format!("{}{}", one(288), one(941)));
    assert_eq!(rates(&read).iter().map(|r| r.2).collect::<Vec<_>>(), [288.0, 941.0]);
    assert_eq!((read.samples[0].test.repeat, read.samples[1].test.repeat), (0, 1));
}

#[test]
fn the_last_state_of_a_replica_counts() {
    let state = |state: &str, rest: &str| {
        format!("version: 8.4.11 (api:1/proto:86-101)\n 0: {state} C r-----\n{rest}")
    };
    let waits = state("cs:WFConnection ro:Secondary/Unknown ds:Inconsistent/DUnknown", "");
    let syncs = state(
        "cs:SyncTarget ro:Secondary/Primary ds:Inconsistent/UpToDate",
        "    ns:0 nr:51246 dw:51246 dr:0 al:0 bm:3 lo:0 pe:0 ua:0 ap:0 ep:1 wo:f oos:2096060\n\
         \t[>....................] sync'ed:  2.5% (2096060/2147260)K\n\
         \tfinish: 2:19:44 speed: 244 (248) want: 250 K/sec\n",
    );
    let done = state("cs:Connected ro:Secondary/Primary ds:UpToDate/UpToDate", "");
    let read = table(&format!("[root@s1 ~]# cat /proc/drbd\n{waits}[root@s1 ~]# cat /proc/drbd\n{syncs}"));
    whole(&read);
    assert_eq!(fact(&read, "s1", "drbd.0.connection"), Some(&FactValue::Text("SyncTarget".into())));
    assert_eq!(fact(&read, "s1", "drbd.0.resync.percent_of_limit"), Some(&FactValue::Int(98)));
    assert_eq!(fact(&read, "s1", "drbd.0.resync.limit"), Some(&FactValue::Text("250 KiB/s (want)".into())));
    let read = table(&format!("[root@s1 ~]# cat /proc/drbd\n{syncs}{done}"));
    assert_eq!(fact(&read, "s1", "drbd.0.resync.limit"), None);
}

#[test]
fn a_blank_diagonal_shifts_nothing() {
    let rows = [("a1", "9.4  9.3"), ("a2", "9.1       0.3"), ("a3", "9.2  8.8")];
    let text = rows.map(|(n, values)| format!("{n}   {values}\n")).concat();
    let expected = [
        is("a1", "a2", 9400.0),
        is("a1", "a3", 9300.0),
        is("a2", "a1", 9100.0),
        is("a2", "a3", 300.0),
        is("a3", "a1", 9200.0),
        is("a3", "a2", 8800.0),
    ];
    for head in ["        a1   a2   a3", "from/to a1   a2   a3"] {
        let read = table(&format!("Gbit/s:\n{head}\n{text}"));
        assert_eq!(rates(&read), expected, "{head}");
    }
    for text in [
        "Gbit/s\n\ta1\ta2\ta3\na1\t\t9.4\t9.3\na2\t9.1\t\t0.3\na3\t9.2\t8.8\t\n",
        "Gbit/s\n\ta1\ta2\ta3\na1\t\t9.4\t9.3\na2\t9.1\t\t0.3\na3\t9.2\t8.8\n",
        "| Gbit/s | a1 | a2 | a3 |\n|---|---|---|---|\n| a1 || 9.4 | 9.3 |\n| a2 | 9.1 || 0.3 |\n| a3 | 9.2 | 8.8 ||\n",
        "Gbit/s,a1,a2,a3\na1,,9.4,9.3\na2,9.1,,0.3\na3,9.2,8.8,\n",
    ] {
        let read = table(text);
        assert_eq!(rates(&read), expected, "{text}");
        whole(&read);
    }
}

#[test]
fn groups_stand_in_brackets_behind_hosts() {
    for text in [
        "| Mbit/s | a1 (vs-4) | a2 (vs-4) | a3 (vs-3) |\n|---|---|---|---|\n| a1 (vs-4) | - | 941 | 940 |\n\
         | a2 (vs-4) | 941 | - | 939 |\n| a3 (vs-3) | 2 | 3 | - |\n",
        "Mbit/s, hosts with (hypervisor)\nfrom      a1 (vs-4)  a2 (vs-4)  a3 (vs-3)\n\
         a1 (vs-4)  -  941  940\na2 (vs-4)  941  -  939\na3 (vs-3)  2  3  -\n",
    ] {
        let read = table(text);
        assert_eq!(rates(&read).len(), 6, "{text}");
        let groups: Vec<(&str, &str)> = read
            .inventory
            .hosts
            .iter()
            .filter_map(|h| Some((h.name.as_str(), h.groups.first()?.as_str())))
            .collect();
        assert_eq!(groups, [("a1", "vs-4"), ("a2", "vs-4"), ("a3", "vs-3")], "{text}");
        assert_eq!(read.inventory.groups[0].kind, "hypervisor");
    }
}

#[test]
fn titles_name_the_ends_of_a_test() {
    let figures = "[ ID] Interval           Transfer     Bitrate         Retr\n\
                   [  5]   0.00-10.00  sec  1.10 GBytes   941 Mbits/sec    0             sender\n";
    for (there, back) in
        [("a1 -> a2:", "a2 -> a1:"), ("from a1 to a2", "from a2 to a1"), ("**a1 → a2**", "a2 to a1:")]
    {
        let read = table(&format!("{there}\n{figures}\n{back}\n{}", figures.replace("941", "288")));
        assert_eq!(rates(&read), [is("a1", "a2", 941.0), is("a2", "a1", 288.0)], "{there}");
    }
}

#[test]
fn a_mail_breaks_long_lines() {
    let read = table(
        "> Connecting to host 10.0.0.2, port 5201\n\
         >[  5] local 10.0.0.1 port 41000 connected to\n>10.0.0.2 port 5201\n\
         >[  5]   0.00-10.00  sec  1.10 GBytes   941\n>Mbits/sec  210             sender\n\
         >[  5]   0.00-10.00  sec  1.10 GBytes   940 Mbits/sec\n>receiver\n",
    );
    whole(&read);
    assert_eq!(rates(&read), [is("10.0.0.1", "10.0.0.2", 940.0)]);
    assert_eq!(measured(&read.samples[0]).retransmits_per_s, Some(21.0));
}

#[test]
fn headings_and_prompts_of_archives_name_the_host() {
    for text in [
        "node1:\nnet.core.rmem_max = 212992\nnode2:\nnet.core.rmem_max = 4194304\n",
        "On node1:\nnet.core.rmem_max = 212992\nOn node2 (vs-1):\nnet.core.rmem_max = 4194304\n",
        "[root at node1 ~]# sysctl net.core.rmem_max\nnet.core.rmem_max = 212992\n\
         root at node2:~# sysctl net.core.rmem_max\nnet.core.rmem_max = 4194304\n",
        "[10:00:01] root@node1:~# sysctl -a\nnet.core.rmem_max = 212992\n\
         root@node2 10:00:01 ~ # sysctl -a\nnet.core.rmem_max = 4194304\n",
    ] {
        let read = read_one(Document::new("slow-cluster.txt", text));
        whole(&read);
        assert_eq!(read.facts.keys().collect::<Vec<_>>(), ["node1", "node2"], "{text}");
    }
}

#[test]
fn the_text_has_priority_over_the_name_of_its_file() {
    let text = "net.core.rmem_max = 212992\n";
    let named = |name: &str, text: &str| {
        read_one(Document::new(name, text)).facts.keys().cloned().collect::<Vec<_>>()
    };
    assert_eq!(named("vienna.txt", text), ["vienna"]);
    assert_eq!(
        named("vienna.txt", &format!("{text}[root@arc-1 ~]# sysctl -a\n{text}")),
        ["arc-1"],
        "above the only prompt stands what the same machine printed"
    );
    let mail = format!("From: a\nSubject: slow\nDate: today\n\n{text}");
    assert_eq!(named("vienna.txt", &mail), ["unnamed-host"]);
}

#[test]
fn both_ends_of_one_file_may_have_prompts() {
    let run = |host: &str, mbit: u32| {
        format!(
            "[root@{host} ~]# iperf3\n[  5]   0.00-10.00  sec  1.1 GBytes   {mbit} Mbits/sec   0   sender\n"
        )
    };
    let text = format!("{}{}", run("a1", 941), run("a2", 288));
    let read = read_one(Document::new("a1-to-a2.txt", text));
    assert_eq!(rates(&read), [is("a1", "a2", 941.0), is("a2", "a1", 288.0)]);
}
