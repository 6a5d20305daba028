//! The pages of a store with a history: every address that a page names is crawled, with usual and with
//! hostile names of hosts; requests of strangers are refused; and Chromium shows every page in both modes,
//! on a narrow and on a wide window, with and without scripts, and must have nothing to complain about. With
//! LINERATE_PICTURES=FOLDER the pages are written there as PNG, to be viewed.

#![allow(clippy::unwrap_used)]

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
fn minutes_of_a_watch_are_drawn_beside_the_surveys() {
    let (folder, source) = filled(&str::to_owned);
    let address = served::start(&source);
    let page = served::get(&address, "/host?name=arc-3");
    assert!(page.contains("over minutes") && page.contains("over surveys"), "{page}");
    assert!(!served::get(&address, "/host?name=arc-1").contains("over minutes"));
    drop(folder);
}

#[test]
fn an_empty_store_has_a_page_with_the_command_that_fills_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = world::source(folder.path(), &world::recorded(&str::to_owned));
    let first = page(&source, "/");
    assert!(first.contains("linerate survey HOST HOST"), "{first}");
    for address in ["/matrix", "/hosts", "/changes", "/trials", "/drift", "/runs"] {
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
