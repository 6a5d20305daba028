//! The pages of a store with a history: every address that a page names is crawled, with usual and with
//! hostile names of hosts; requests of strangers are refused; and Chromium shows every page in both modes,
//! on a narrow and on a wide window, with and without scripts, and must have nothing to complain about. With
//! LINERATE_PICTURES=FOLDER the pages are written there as PNG, to be viewed.

#![allow(clippy::unwrap_used)]

mod access;
mod browser;
mod crawl;
mod requests;
mod served;
mod world;

use std::sync::Arc;

use linerate_page::link::Query;
use linerate_page::site::{self, Answer, Moment};
use linerate_page::{Source, read_view};

/// What an address of this folder shows, without a server.
fn answer(source: &Arc<Source>, address: &str) -> Answer {
    let store = (source.store)().unwrap();
    let view = Arc::new(read_view(source, &store, None).unwrap());
    let moment = Moment { run: view.run.clone(), view, minutes: Arc::default(), now_ms: (source.now_ms)() };
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    site::answer(&moment, path, &Query::parse(query))
}

fn page(source: &Arc<Source>, address: &str) -> String {
    match answer(source, address) {
        Answer::Page { text, is_missing: false } => text,
        other => panic!("{address}: {other:?}"),
    }
}

/// A filled folder, its source, and the names of its hosts.
fn filled(rename: &dyn Fn(&str) -> String) -> (tempfile::TempDir, Arc<Source>) {
    let folder = tempfile::tempdir().unwrap();
    let recorded = world::recorded(rename);
    world::fill(folder.path(), &recorded);
    let source = world::source(folder.path(), &recorded);
    (folder, source)
}

#[test]
fn a_finding_is_answered_in_two_clicks() {
    let (_folder, source) = filled(&str::to_owned);
    let first = page(&source, "/");
    // Who, which direction, since when, what changed, what to do.
    for answer in [
        "host arc-3, what it receives",
        "<dt>Since</dt>",
        "between 2026-11-22 03:55 and 2026-11-23 03:55 UTC",
        "changed then: arc-3 up0 feature.generic-receive-offload off -&gt; on by tuned.service",
        "<pre class=\"cmd\">linerate undo 20261126-035614-b4a7</pre>",
        "href=\"/host?name=arc-3\"",
    ] {
        assert!(first.contains(answer), "{answer} is not in {first}");
    }
    let host = page(&source, "/host?name=arc-3");
    for answer in ["class=\"moved worse\"", "path class=\"flag\"", "linerate facts arc-3", "receives"] {
        assert!(host.contains(answer), "{answer} is not in {host}");
    }
    let trial = page(&source, "/trial?id=20261126-035614-b4a7");
    assert!(trial.contains("<code>linerate undo 20261126-035614-b4a7</code>"), "{trial}");
    let changes = page(&source, "/changes?host=arc-3");
    assert!(changes.contains("tuned.service") && changes.contains("worse: "), "{changes}");
    let drift = page(&source, "/drift");
    assert!(drift.contains("1 of 1 kept settings drifted"), "{drift}");
}

#[test]
fn an_alarm_is_answered_in_two_clicks() {
    let (_folder, source) = filled(&str::to_owned);
    let first = page(&source, "/");
    let at = |what: &str| first.find(what).unwrap_or_else(|| panic!("{what} is not in {first}"));
    assert!(at("id=\"alarms\"") < at("id=\"verdict\""), "what is open comes first");
    let links = "<a href=\"/alarm?id=1795665357447-1\">arc-3 loses 2 % of what it receives</a>";
    assert!(first.contains(links) && first.contains("open for 20 min"), "{first}");
    let alarm = page(&source, "/alarm?id=1795665357447-1");
    // Who, which direction, since when, how much, what a measurement showed, what changed, what to do.
    for answer in [
        "<dt>Who</dt><dd><a href=\"/host?name=arc-3\">arc-3</a>",
        "<dt>Direction</dt><dd>what it receives</dd>",
        "<dt>Since</dt><dd>2026-11-26 04:36:00 UTC",
        "2 %: 192 of 9600 probes, seen with 3 hosts",
        "confirmed: vs-3 to arc-3 lost 41 of 2000 datagrams; control",
        "arc-3 up0 feature.generic-receive-offload off -&gt; on by tuned.service",
        "href=\"/changes?host=arc-3\"",
        "arc-3 receives 1.62 Mbit/s of 179 Mbit/s",
        "a rule of the firewall",
        "<code>linerate survey -i cluster.toml</code>",
        "linerate drops arc-3",
        "linerate changes arc-3",
    ] {
        assert!(alarm.contains(answer), "{answer} is not in {alarm}");
    }
    let all = page(&source, "/alarms");
    for answer in
        ["2 open alarms", "over after 5 min", "open when its watch ended", "the path from vs-3 to arc-3"]
    {
        assert!(all.contains(answer), "{answer} is not in {all}");
    }
    assert!(page(&source, "/host?name=vs-3").contains("the path from vs-3 to arc-3 loses 40 %"));
}

#[test]
fn what_is_slow_is_answered_in_two_clicks() {
    let (_folder, source) = filled(&str::to_owned);
    let first = page(&source, "/");
    let rtt = "<a href=\"/alarm?id=1795665357447-5\">RTT of arc-3 rose from 180 us to 900 us</a>";
    let download = "downloads through 192.0.2.77:8080 fail (status 503 by vs-3)";
    for answer in [rtt, "<td>confirmed</td>", download] {
        assert!(first.contains(answer), "{answer} is not in {first}");
    }
    let shown = |address: &str, answers: &[&str]| {
        let text = page(&source, address);
        for answer in answers {
            assert!(text.contains(answer), "{answer} is not in {text}");
        }
    };
    // Who, which direction, since when, how much, on what it rests, what changed, what to do.
    shown(
        "/alarm?id=1795665357447-5",
        &[
            "<dt>Who</dt><dd><a href=\"/host?name=arc-3\">arc-3</a>",
            "<dd>not known: a probe and its answer pass both directions</dd>",
            "<dt>Since</dt><dd>2026-11-26 04:36:00 UTC, open for 20 min",
            "<dt>RTT</dt><dd>rose from 180 us to 900 us, seen with 8 pairs</dd>",
            "confirmed: vs-3 to arc-3 took 910 us, usual 180 us; control vs-3 to vs-3 took 190 us, usual 180 us",
            "arc-3 up0 feature.generic-receive-offload off -&gt; on by tuned.service",
            "<code>linerate survey -i cluster.toml</code>",
            "linerate drops arc-3",
        ],
    );
    shown(
        "/alarm?id=1795665357447-6",
        &[
            "front end 10.77.0.2 (<a href=\"/host?name=arc-2\">arc-2</a>), by <a href=\"/host?name=arc-3\">arc-3</a>",
            ", of http://files.example/vs-3.iso",
            "<dd>what the front end sends</dd>",
            "over after 5 min",
            "<dt>Downloads</dt><dd>at 256 kbit/s, before 800 Mbit/s, 3125 times slower, 8 paths of a host, URL and front end</dd>",
            "<code>linerate measure http http://files.example/vs-3.iso</code>",
            "shows in which step it is slow",
            "linerate changes arc-3 arc-2",
        ],
    );
    shown(
        "/alarm?id=1795665357447-7",
        &["front end 192.0.2.77:8080, by every host that downloads", "linerate survey -i cluster.toml"],
    );
    // A host has those of its downloads and of what it serves, a pair those of its ends.
    let of_download = "before 800 Mbit/s, 3125 times slower, of http://files.example/vs-3.iso";
    shown("/host?name=arc-3", &[rtt, of_download]);
    shown("/host?name=arc-2", &[of_download]);
    shown("/pair?from=arc-1&to=arc-3", &[rtt, "arc-3 loses 2 %"]);
    let healthy = page(&source, "/host?name=arc-1");
    assert!(!healthy.contains("<h2>Alarms</h2>"), "{healthy}");
}

#[test]
fn drops_have_who_why_and_the_hosts_that_drop_the_same() {
    let (_folder, source) = filled(&str::to_owned);
    let drops = page(&source, "/drops");
    for answer in [
        "1 host drops packets that are not harmless",
        "arc-3, vs-3 drop the same: IPV6DISABLED IPv6, 376 packets, correlation 0.99 (certain)",
        "<li>sysctl.net.ipv6.conf.all.disable_ipv6 is 1</li>",
        "<td>NETFILTER_DROP</td><td>IPv6 up0</td><td class=\"n\">720</td><td class=\"n\">12</td>",
        "Harmless drops (2)",
        "<code>nft list ruleset</code>",
        "counters alone, without the kernel's reasons: needs root",
        "<code>linerate drops -i cluster.toml</code>",
        "tail-probe: 30",
        "2026-11-25",
    ] {
        assert!(drops.contains(answer), "{answer} is not in {drops}");
    }
    let host = page(&source, "/host?name=arc-3");
    assert!(host.contains("a rule of the firewall") && host.contains("/drops?id="), "{host}");
    assert!(!page(&source, "/host?name=vs-3").contains("a rule of the firewall"));
}

#[test]
fn a_matrix_of_an_earlier_survey_keeps_layer_metric_and_order() {
    let (_folder, source) = filled(&str::to_owned);
    let matrix = page(&source, "/matrix?layer=overlay&metric=throughput&sort=receives");
    let earlier =
        "/matrix?layer=overlay&amp;metric=throughput&amp;sort=receives&amp;run=20261126-035508-aaaa";
    assert!(matrix.contains(earlier), "{matrix}");
    assert!(matrix.contains("All 10 runs"), "{matrix}");
}

#[test]
fn minutes_of_a_watch_are_drawn_beside_the_surveys() {
    let (folder, source) = filled(&str::to_owned);
    let server = served::start(&source);
    let page = served::get(&server, "/host?name=arc-3");
    assert!(page.contains("over minutes") && page.contains("over surveys"), "{page}");
    // An alarm and a setting on the axis of the minutes.
    let minutes = page.split_once("over minutes").unwrap().1.split("</figure>").next().unwrap();
    assert!(minutes.contains("alarm: arc-3 loses 2 %") && minutes.contains("minute, UTC"), "{minutes}");
    assert!(minutes.contains("mtu 1500 -&gt; 9000"), "{minutes}");
    assert!(!served::get(&server, "/host?name=arc-1").contains("over minutes"));
    // Each alarm has the series in which it shows, and no other.
    for (address, alarm) in [
        ("/host?name=arc-3", "alarm: RTT of arc-3 rose"),
        ("/host?name=arc-3", "alarm: downloads through"),
        ("/alarm?id=1795665357447-5", "alarm: RTT of arc-3 rose"),
        ("/alarm?id=1795665357447-6", "alarm: downloads through"),
    ] {
        let page = served::get(&server, address);
        assert!(page.contains(alarm), "{alarm} is not in {page}");
        let bands = page.matches("class=\"moved worse\"").count();
        let drawn = page.matches("over minutes</figcaption>").count();
        if address.starts_with("/alarm") {
            assert_eq!((drawn, bands), (1, 1), "{page}");
        } else {
            assert_eq!(drawn, 3, "{page}");
        }
    }
    drop(folder);
}

#[test]
fn an_empty_store_has_a_page_with_the_command_that_fills_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = world::source(folder.path(), &world::recorded(&str::to_owned));
    let first = page(&source, "/");
    assert!(first.contains("linerate survey HOST HOST"), "{first}");
    assert!(page(&source, "/drops").contains("linerate drops"));
    for address in ["/alarms", "/matrix", "/hosts", "/changes", "/trials", "/drift", "/runs"] {
        page(&source, address);
    }
}

#[test]
fn a_square_of_a_picture_leads_to_its_pair_and_the_diagonal_to_its_host() {
    let (_folder, source) = filled(&str::to_owned);
    // Six hosts have squares of 24 pixels.
    let to = |point: &str| match answer(
        &source,
        &format!("/matrix/pair?layer=underlay&metric=throughput&at=?{point}"),
    ) {
        Answer::To(to) => to,
        other => panic!("{other:?}"),
    };
    let pair = to("30,2");
    assert!(pair.starts_with("/pair?from=arc-") && pair.contains("&to=arc-"), "{pair}");
    assert!(to("2,2").starts_with("/host?name=arc-"));
    assert_eq!(to("9000,2"), "/matrix?layer=underlay&metric=throughput");
    let Answer::Text(text) = answer(&source, "/matrix/cell?layer=underlay&metric=throughput&at=30,2") else {
        panic!()
    };
    assert!(text.contains(" to ") && text.contains("bit/s"), "{text}");
    let Answer::Picture(png) = answer(&source, "/matrix/picture?layer=underlay&metric=throughput") else {
        panic!()
    };
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(&png[16..24], [0, 0, 0, 144, 0, 0, 0, 144]);
}

#[test]
fn an_older_run_stays_in_the_addresses_of_its_pages() {
    let (_folder, source) = filled(&str::to_owned);
    let address = served::start(&source);
    let old = served::get(&address, "/?run=20261126-035502-aaaa");
    assert!(old.contains("not the newest") && old.contains("/matrix?run=20261126-035502-aaaa"), "{old}");
    let newest = served::get(&address, "/?run=nonsense");
    assert!(!newest.contains("not the newest") && !newest.contains("run=nonsense"), "{newest}");
}
