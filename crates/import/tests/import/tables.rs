//! Tables that people make: what is a rate, in which unit, and who sends.

use super::{account, file, is, rates, read_one, whole};
use linerate_import::Document;
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;

#[test]
fn tables_that_people_make() {
    let read = read_one(file("matrix.md"));
    let rate = |from: &str, to: &str| {
        let sample = read.samples.iter().find(|s| s.test.from == from && s.test.to == to).unwrap();
        match &sample.outcome {
            Outcome::Measured(m) => m.throughput_bps.unwrap(),
            _ => 0.0,
        }
    };
    assert_eq!(read.samples.len(), 6);
    assert_eq!((rate("arc-1", "arc-2"), rate("arc-1", "arc-3"), rate("arc-2", "arc-3")), (9.4e9, 940e6, 0.0));
    assert_eq!((rate("arc-3", "arc-1"), rate("arc-3", "arc-2")), (936e6, 256e3));
    let csv = read_one(file("matrix.csv"));
    whole(&csv);
    assert_eq!(rates(&csv)[..2], [is("arc-1", "arc-2", 9400.0), is("arc-1", "arc-3", 9300.0)]);
    let list = read_one(file("list.csv"));
    whole(&list);
    assert_eq!(rates(&list), [is("arc-1", "arc-2", 9400.0), is("arc-2", "arc-1", 9390.0)]);
}

pub(crate) fn table(text: &str) -> Snapshot {
    read_one(Document::new("table.txt", text))
}

#[test]
fn a_comma_is_a_point_or_parts_thousands_for_the_whole_table() {
    let thousands = table("| Mbit/s | a | b |\n|--|--|--|\n| a | - | 9,400 |\n| b | 941 | - |\n");
    assert_eq!(rates(&thousands), [is("a", "b", 9400.0), is("b", "a", 941.0)]);
    assert!(account(&thousands).notes.iter().any(|n| n.contains("thousands")));
    let quoted = table("from,to,Mbit/s\na,b,\"9,400\"\nb,a,\"12,399,000\"\n");
    assert_eq!(rates(&quoted), [is("a", "b", 9400.0), is("b", "a", 12_399_000.0)]);
    let points = table("| Mbit/s | a | b |\n|--|--|--|\n| a | - | 9,400 |\n| b | 0,941 | - |\n");
    assert_eq!(rates(&points), [is("a", "b", 9.4), is("b", "a", 0.94)]);
    let large = table("| Gbit/s | a | b |\n|--|--|--|\n| a | - | 9,412 |\n| b | 9,398 | - |\n");
    assert_eq!(rates(&large), [is("a", "b", 9412.0), is("b", "a", 9398.0)]);
}

#[test]
fn a_unit_counts_wherever_it_stands() {
    let expected = [is("a", "b", 9400.0), is("b", "a", 3100.0)];
    for text in [
        "from to throughput\na b 9.4 Gbit/s\nb a 3.1 Gbit/s\n",
        "\"Gbit/s\",a,b\na,-,9.4\nb,3.1,-\n",
        "from/to,a [Gbit/s],b [Gbit/s]\na,-,9.4\nb,3.1,-\n",
        "from,a,b\na,-,9.4G\nb,3.1G,-\n",
    ] {
        let read = table(text);
        assert_eq!(rates(&read), expected, "{text}");
        assert!(!account(&read).notes.iter().any(|n| n.contains("no unit")), "{text}");
    }
}

/// A table of RTTs or losses has no throughput.
#[test]
fn a_table_of_something_else_is_quoted_and_not_read() {
    let rows = "| n1 | - | 0.21 | 0.35 |\n| n2 | 0.22 | - | 4.1 |\n| n3 | 0.33 | 4.2 | - |\n";
    for (title, corner) in [
        ("RTT in ms", "from/to"),
        ("Packet loss %", "from/to"),
        ("", "from/to latency [ms]"),
        ("", "from/to (s)"),
        ("", "from \\ to [µs]"),
        ("Retr", "from/to"),
        ("iperf3 -u: jitter", "from/to"),
    ] {
        let text = format!("{title}\n\n| {corner} | n1 | n2 | n3 |\n|---|---|---|---|\n{rows}");
        let read = table(&text);
        assert!(read.samples.is_empty(), "{text}");
        let unread = &account(&read).unread;
        assert_eq!((unread.len(), unread[0].line, unread[0].lines), (1, 3, 1), "{text}: {unread:?}");
        assert!(unread[0].why.contains("not of throughput"), "{}", unread[0].why);
    }
    let csv = table("from/to,n1 [ms],n2 [ms],n3 [ms]\nn1,,0.21,0.35\nn2,0.22,,4.1\nn3,0.33,4.2,\n");
    assert!(csv.samples.is_empty() && account(&csv).unread[0].why.contains("table of times"));
    for (title, corner) in [
        ("lossless Ethernet between ms1 and us1", "from/to"),
        ("Since Monday we have packet loss, here is what iperf3 says", "from/to"),
        ("RTT is 0.2 ms", "from/to"),
        ("iperf3 and ping between all nodes", "from/to"),
        ("Latency and loss", "from/to Mbit/s"),
        ("Throughput in Mbit, RTT is normal", "from/to"),
        ("All host(s)", "from/to"),
    ] {
        let text = format!(
            "{title}\n\n| {corner} | ms1 | us1 |\n|---|---|---|\n| ms1 | - | 941 |\n| us1 | 940 | - |\n"
        );
        assert_eq!(rates(&table(&text)), [is("ms1", "us1", 941.0), is("us1", "ms1", 940.0)], "{text}");
    }
    let beside = "from,to,throughput,retransmits\nn1,n2,9.41 Gbits/sec,3\nn2,n1,941 Mbits/sec,1200\n";
    assert_eq!(rates(&table(beside)), [is("n1", "n2", 9410.0), is("n2", "n1", 941.0)]);
    let both = format!(
        "RTT in ms\n\n| from/to | n1 | n2 | n3 |\n|---|---|---|---|\n{rows}\nThroughput\n\n\
         | from/to | n1 | n2 |\n|---|---|---|\n| n1 | - | 941 |\n| n2 | 940 | - |\n"
    );
    assert_eq!(rates(&table(&both)), [is("n1", "n2", 941.0), is("n2", "n1", 940.0)]);
}

#[test]
fn a_unit_without_its_time_counts_in_a_head() {
    let expected = [is("n1", "n2", 9410.0), is("n2", "n1", 9400.0)];
    for text in [
        "from,to,bandwidth_gbps\nn1,n2,9.41\nn2,n1,9.40\n",
        "src;dst;Gbit\nn1;n2;9,41\nn2;n1;9,40\n",
        "Throughput in Gbit\n\n| from \\ to | n1 | n2 |\n|--|--|--|\n| n1 | - | 9.41 |\n| n2 | 9.40 | - |\n",
        "| from \\ to (Gbit) | n1 | n2 |\n|--|--|--|\n| n1 | - | 9.41 |\n| n2 | 9.40 | - |\n",
        "from/to,n1 [Gb],n2 [Gb]\nn1,-,9.41\nn2,9.40,-\n",
        "The cluster has 10 Mbit/s links\nfrom/to (Gb),n1,n2\nn1,-,9.41\nn2,9.40,-\n",
    ] {
        let read = table(text);
        assert_eq!(rates(&read), expected, "{text}");
        assert!(!account(&read).notes.iter().any(|n| n.contains("no unit")), "{text}");
    }
    let twice =
        "Throughput in Gbit\n\n| (Gbit/s) | n1 | n2 |\n|--|--|--|\n| n1 | - | 9.41 |\n| n2 | 9.40 | - |\n";
    whole(&table(twice));
    // What the network is made of is not what the numbers are.
    let network = table("Hosts with 10 Gbit/s ports:\nfrom/to,n1,n2\nn1,-,9410\nn2,9400,-\n");
    assert_eq!(rates(&network), expected);
}

#[test]
fn a_comma_is_a_point_where_semicolons_part_the_fields() {
    let read = table("from/to Mbit/s;n1;n2;n3\nn1;;941,234;940,112\nn2;941,337;;1.940,551\n");
    let expected =
        [is("n1", "n2", 941.23), is("n1", "n3", 940.11), is("n2", "n1", 941.34), is("n2", "n3", 1940.55)];
    assert_eq!(rates(&read), expected);
}

#[test]
fn the_line_above_names_the_sending_side() {
    let ends = |title: &str| {
        let read = table(&format!(
            "{title}\n\n|   | n1 | n2 |\n|---|---|---|\n| n1 | - | 9.4 |\n| n2 | 0.9 | - |\n"
        ));
        (rates(&read)[0].clone(), account(&read).clone())
    };
    for title in ["Bandwidth (Gb/s), sender in the column, receiver in the row:", "Gbit/s, rows receive"] {
        let (first, account) = ends(title);
        assert_eq!((first, account.unread.len()), (is("n2", "n1", 9400.0), 0), "{title}");
    }
    assert_eq!(ends("Gbit/s; rows send, columns receive").0, is("n1", "n2", 9400.0));
    let (first, account) = ends("Gbit/s; rows and columns: sender, receiver");
    assert_eq!((first, account.unread.len()), (is("n1", "n2", 9400.0), 1));
    assert!(account.notes.iter().any(|n| n.contains("rows are taken for senders")), "{:?}", account.notes);
}

#[test]
fn words_for_what_did_not_come_through() {
    let read =
        table("from/to Mbit/s,n1,n2,n3\nn1,-,941,error\nn2,timed out,-,941\nn3,941,No route to host,-\n");
    whole(&read);
    let dead: Vec<(&str, &str)> = read
        .samples
        .iter()
        .filter(|s| matches!(s.outcome, Outcome::NothingThrough { .. }))
        .map(|s| (s.test.from.as_str(), s.test.to.as_str()))
        .collect();
    assert_eq!((read.samples.len(), dead), (6, vec![("n1", "n3"), ("n2", "n1"), ("n3", "n2")]));
}

#[test]
fn an_odd_cell_is_quoted_and_the_others_are_read() {
    for odd in ["-5", "NaN", "inf", "~9.4", "ERROR: unable to connect"] {
        let read = table(&format!("from (Gbit/s),a,b,c\na,-,9.4,{odd}\nb,9.3,-,9.2\nc,3.1,3.2,-\n"));
        assert_eq!(read.samples.len(), 5, "{odd}");
        let unread = &account(&read).unread;
        assert_eq!((unread.len(), unread[0].line), (1, 2), "{odd}");
        assert_eq!(unread[0].why, format!("`{odd}` is no rate"));
    }
    let short = table("from (Gbit/s),a,b,c\na,-,9.4\nb,9.3,-,9.2\nc,3.1,3.2,-\n");
    assert_eq!((short.samples.len(), account(&short).unread.len()), (4, 1));
}

#[test]
fn one_slow_cell_of_a_table_is_in_the_first_sentence() {
    let row = |from: u32| {
        let rate = |to: u32| match (from, to) {
            _ if from == to => "-",
            (3, 5) => "900",
            _ => "9400",
        };
        format!("h{from},{}", (1..=5).map(rate).collect::<Vec<_>>().join(","))
    };
    let rows: Vec<String> = (1..=5).map(row).collect();
    let text = format!("from (Mbit/s),h1,h2,h3,h4,h5\n{}\n", rows.join("\n"));
    let read = table(&text);
    let found = linerate_report::words::diagnose(&read, crate::knowledge());
    assert!(
        found.headline.ends_with("suspected and not tested again: traffic from h3 to h5"),
        "{}",
        found.headline
    );
    assert!(found.notes.iter().any(|n| n.contains("measure that again before")), "{:?}", found.notes);
}
