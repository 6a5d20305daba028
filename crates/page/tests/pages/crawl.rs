//! Every address that a page names leads somewhere, and no page has code, style or an attribute of a name.

use std::collections::{BTreeSet, VecDeque};

use linerate_page::link::Query;
use linerate_page::site::{self, Answer, Moment};
use linerate_page::{Source, read_run, read_view};
use linerate_store::Store;
use std::sync::Arc;

use super::world;

/// Pages that are visited at most.
const PAGES_MAX: usize = 1500;

/// Names that break out of text, attributes, addresses and columns. Each host gets another one.
pub(crate) fn hostile(name: &str) -> String {
    let number = ["arc-1", "arc-2", "arc-3", "arc-4", "arc-5", "arc-6", "vs-2", "vs-3", "vs-4"];
    match number.iter().position(|of| *of == name) {
        Some(0) => "<script>alert(1)</script>".to_owned(),
        Some(1) => "\"'><img src=x onerror=alert(1)>".to_owned(),
        Some(2) => "../../etc/passwd".to_owned(),
        Some(3) => "..".to_owned(),
        Some(4) => format!("x{}", "9".repeat(199)),
        Some(5) => "a b&c=d%2e#?/+;".to_owned(),
        Some(6) => "javascript:alert(1)".to_owned(),
        Some(7) => "</title></style><style>*{display:none}</style>".to_owned(),
        Some(8) => "$(reboot)`id`'\\\u{202e}\u{1b}[2J".to_owned(),
        _ => "ü\u{0}\u{7f}".to_owned(),
    }
}

/// Values of an attribute, unescaped.
fn values(page: &str, attribute: &str) -> Vec<String> {
    let head = format!(" {attribute}=\"");
    let parts = page.split(&head).skip(1).filter_map(|rest| rest.split('"').next());
    let plain = |text: &str| {
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
    };
    parts.map(plain).collect()
}

/// Visits every page that can be reached.
fn crawl(source: &Arc<Source>) -> Vec<(String, String)> {
    let store = (source.store)().unwrap();
    let view = Arc::new(read_view(source, &store, None).unwrap());
    let (mut waiting, mut known) = (VecDeque::from(["/".to_owned()]), BTreeSet::from(["/".to_owned()]));
    let mut pages = Vec::new();
    while let Some(address) = waiting.pop_front() {
        assert!(pages.len() < PAGES_MAX, "more than {PAGES_MAX} pages");
        let (path, query) = address.split_once('?').unwrap_or((&address, ""));
        let query = Query::parse(query);
        let asked = query.get("run").and_then(|id| view.runs.iter().find(|row| row.id == id)).cloned();
        let run = match asked {
            Some(row) => read_run(source, &store, row).unwrap().map(Arc::new),
            None => view.run.clone(),
        };
        let moment =
            Moment { run, view: Arc::clone(&view), minutes: Arc::default(), now_ms: (source.now_ms)() };
        let text = match site::file(path).unwrap_or_else(|| site::answer(&moment, path, &query)) {
            Answer::Page { text, is_missing: false } => text,
            Answer::Page { .. } => panic!("{address} leads nowhere"),
            // Files, pictures and squares name no pages.
            _ => continue,
        };
        for to in values(&text, "href").into_iter().chain(values(&text, "src")) {
            let to = to.split('#').next().unwrap_or_default().to_owned();
            if to.is_empty() || to == "data:," {
                continue;
            }
            assert!(to.starts_with('/') && !to.starts_with("//"), "{address} names {to}");
            // Of older runs the first page will do: their pages are those of the newest.
            if (!to.contains("run=") || address == "/runs") && known.insert(to.clone()) {
                waiting.push_back(to);
            }
        }
        pages.push((address, text));
    }
    pages
}

/// What stands in tags: neither code nor style, and attributes of ours alone.
fn check(address: &str, page: &str) {
    for hostile in ["<script>", "<img src=x", "<style", "</title></style>", "\u{202e}", "\u{1b}", "\u{0}"] {
        assert!(!page.contains(hostile), "{address} has {hostile:?}");
    }
    assert_eq!(page.matches("<script").count(), 1, "{address}");
    for tag in page.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        let bare: String = tag.split('"').step_by(2).collect::<Vec<_>>().join("\"");
        assert!(!bare.contains(" on") && !bare.contains(" style="), "{address}: <{tag}>");
    }
    assert!(!values(page, "href").iter().any(|to| to.starts_with("javascript:")), "{address}");
}

#[test]
fn every_address_of_every_page_leads_somewhere() {
    let (_folder, source) = super::filled(&str::to_owned);
    let pages = crawl(&source);
    assert!(pages.len() > 60, "{} pages", pages.len());
    for (address, page) in &pages {
        check(address, page);
    }
    for path in [
        "/",
        "/alarms",
        "/matrix",
        "/hosts",
        "/host?name=arc-3",
        "/drops",
        "/changes",
        "/trials",
        "/drift",
        "/runs",
    ] {
        assert!(pages.iter().any(|(address, _)| address == path), "{path} cannot be reached");
    }
    for path in ["/pair?", "/alarm?", "/drops?"] {
        assert!(pages.iter().any(|(address, _)| address.starts_with(path)), "no {path} can be reached");
    }
}

#[test]
fn hostile_names_are_text_in_every_page() {
    let (_folder, source) = super::filled(&hostile);
    let pages = crawl(&source);
    assert!(pages.len() > 60, "{} pages", pages.len());
    for (address, page) in &pages {
        check(address, page);
    }
    // They are shown, and lead to pages of their own.
    let first = pages.iter().find(|(address, _)| address == "/hosts").unwrap();
    assert!(first.1.contains("&lt;script&gt;alert(1)"), "{}", first.1);
    for name in ["..", "../../etc/passwd", "<script>alert(1)</script>"] {
        let is_of = |address: &str| {
            address
                .split_once('?')
                .is_some_and(|(path, query)| path == "/host" && Query::parse(query).get("name") == Some(name))
        };
        assert!(pages.iter().any(|(address, _)| is_of(address)), "no page of {name}");
    }
}

#[test]
fn what_would_be_code_is_seen() {
    for page in [
        "<script src=\"/a\"></script><script>1</script>",
        "<script src=\"a\"></script><p onclick=\"x\">",
        "<p style=\"x\"><script>",
    ] {
        assert!(std::panic::catch_unwind(|| check("/", page)).is_err(), "{page}");
    }
    check("/", "<script src=\"/page.js\"></script><p title=\" onclick=\">text on it</p>");
}

#[test]
fn a_survey_that_ends_after_one_that_began_later_is_shown_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = world::recorded(&str::to_owned);
    let source = world::source(folder.path(), &recorded);
    let mut store = Store::open(&folder.path().join("linerate.sqlite")).unwrap();
    let now_ms = (source.now_ms)();
    let began = [now_ms - 9000, now_ms - 7000, now_ms - 5000];
    world::add_run(&mut store, &recorded, 0, began[0]);
    world::add_run(&mut store, &recorded, 2, began[2]);
    let view = read_view(&source, &store, None).unwrap();
    assert_eq!(view.over_time.surveys.len(), 2);
    let same = read_view(&source, &store, Some(&view)).unwrap();
    assert!(Arc::ptr_eq(&same.over_time, &view.over_time), "nothing new is not computed again");
    world::add_run(&mut store, &recorded, 1, began[1]);
    let view = read_view(&source, &store, Some(&same)).unwrap();
    let shown: Vec<u64> = view.over_time.surveys.iter().map(|one| one.start_ms).collect();
    assert_eq!(shown, began);
}
