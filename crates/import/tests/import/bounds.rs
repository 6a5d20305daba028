//! Texts without bounds: what is beyond a limit is reported with number and limit, and the time goes with the
//! length of a text. The sizes are such that a reader that scans the rest of the text at every piece would
//! not come to its end.

use std::fmt::Write as _;

use linerate_import::{Document, ImportOptions, read};
use linerate_model::snapshot::Snapshot;

use super::{account, fact, read_one};

fn of_text(text: String) -> Snapshot {
    read(
        &[Document::new("x.txt", text)],
        &ImportOptions { host: Some("h".to_owned()), ..ImportOptions::default() },
    )
}

fn matrix(rows: usize, columns: usize) -> String {
    let mut text = "from".to_owned();
    (0..columns).for_each(|n| write!(text, ",h{n}").unwrap());
    for row in 0..rows {
        write!(text, "\nh{row}").unwrap();
        (0..columns).for_each(|_| text.push_str(",9400"));
    }
    text
}

#[test]
fn a_table_of_more_pairs_than_the_limit_is_refused_as_a_whole() {
    let snapshot = of_text(matrix(300, 300));
    assert!(snapshot.samples.is_empty());
    let unread = &account(&snapshot).unread;
    assert_eq!(unread.len(), 1, "{unread:?}");
    assert_eq!(
        unread[0].why,
        "a table of 300 rows x 300 columns has 90000 pairs, at most 65536 are read: cut it into smaller tables"
    );
    let mut list = "from,to,Mbit/s".to_owned();
    (0..65_537).for_each(|n| write!(list, "\nh{},g{},9400", n / 256, n % 256).unwrap());
    let snapshot = of_text(list);
    assert!(snapshot.samples.is_empty());
    assert!(account(&snapshot).unread[0].why.contains("65537 rows x 1 columns has 65537 pairs"));
}

#[test]
fn the_largest_table_is_read_with_what_is_missing_in_it() {
    let snapshot = of_text(matrix(256, 256));
    assert_eq!(snapshot.samples.len(), 256 * 255);
    assert!(account(&snapshot).missing.iter().any(|m| m.command.contains("ping -c 10")));
}

#[test]
fn many_small_tables_are_each_read_once() {
    let snapshot = of_text("x a b\na 1 2\nb 2 1\n".repeat(30_000));
    assert_eq!(account(&snapshot).pieces.len(), 30_000);
    assert_eq!(snapshot.samples.len(), 60_000);
}

#[test]
fn many_reports_of_iostat_and_lines_between_are_each_read_once() {
    let report = "avg-cpu:  %user   %nice %system %iowait  %steal   %idle\n 1.00 0.00 1.00 0.00 0.00 98.00\n";
    let snapshot = of_text(format!("{report}and then it was slow\n").repeat(30_000));
    assert_eq!(account(&snapshot).unread_lines, 30_000);
}

#[test]
fn many_lines_of_ping_without_their_title_are_one_test() {
    let snapshot = of_text("64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=0.2 ms\n".repeat(100_000));
    let read = account(&snapshot);
    assert_eq!((read.unread.len(), read.pieces.len(), read.pieces[0].lines), (0, 1, 100_000));
    assert_eq!(super::measured(&snapshot.samples[0]).rtt_idle_us, Some(200.0));
}

#[test]
fn a_long_line_is_reported_and_what_follows_is_read() {
    let snapshot = of_text(format!("{}\nnet.core.rmem_max = 1\n", "a b ".repeat(1 << 20)));
    let unread = &account(&snapshot).unread;
    assert_eq!(unread[0].why, "a line of 4194304 bytes, at most 65536 are read");
    assert!(unread[0].text.len() < 200);
    assert!(fact(&snapshot, "h", "sysctl.net.core.rmem_max").is_some());
    // A long line inside of a piece ends the piece.
    let table = format!("| x | a | b |\n| a | - | 9 |\n| {} | 9 | - |\n", "b".repeat(70_000));
    assert_eq!(account(&of_text(table)).unread.len(), 1);
}

#[test]
fn json_may_stand_on_one_long_line() {
    let padding = "x".repeat(100_000);
    let text = format!("[{{\"ifname\":\"em1\",\"mtu\":9000,\"padding\":\"{padding}\"}}]");
    assert!(fact(&of_text(text), "h", "nic.em1.mtu").is_some());
}

#[test]
fn json_of_too_many_parts_is_refused_before_it_is_built() {
    let snapshot = of_text(format!("[{{\"ifname\":\"em1\"}}{}]", ",{\"a\":1}".repeat(600_000)));
    let why = &account(&snapshot).unread[0].why;
    assert!(why.contains("more than 524288 objects and lists"), "{why}");
    let event = "{\"event\":\"interval\",\"data\":{\"sum\":{\"bits_per_second\":1}}}\n";
    let start = "{\"event\":\"start\",\"data\":{\"connected\":[]}}\n";
    let snapshot = of_text(format!("{start}{}", event.repeat(200_000)));
    assert!(account(&snapshot).notes.iter().any(|note| note.contains("ends in the middle")));
}

#[test]
fn a_text_of_too_many_lines_is_refused() {
    let snapshot = read_one(Document::new("x.txt", "\n".repeat((4 << 20) + 1)));
    assert_eq!(account(&snapshot).unread[0].why, "4194305 lines, at most 4194304 are read");
}

#[test]
fn folders_of_many_hosts_find_the_name_of_each() {
    let documents: Vec<Document> = (0..3000)
        .flat_map(|n| {
            let sysctl = Document::new(format!("all/f{n}/proc/sysctl.txt"), "net.core.rmem_max = 1\n");
            [Document::new(format!("all/f{n}/etc/hostname"), format!("host-{n}\n")), sysctl]
        })
        .collect();
    let snapshot = read(&documents, &ImportOptions::default());
    assert!(fact(&snapshot, "host-2999", "sysctl.net.core.rmem_max").is_some());
}
