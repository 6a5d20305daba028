//! Every page in a real Chromium: nothing to complain about, nothing cut, with and without scripts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use linerate_page::Source;
use linerate_store::Store;
use linerate_testkit::chromium::{self, Chromium};
use serde_json::Value;

use super::crawl::hostile;
use super::{filled, served, world};

/// One of each kind.
const PAGES: [(&str, &str); 14] = [
    ("overview", "/"),
    ("alarms", "/alarms"),
    ("alarm", "/alarm?id=1795665357447-1"),
    ("rtt", "/alarm?id=1795665357447-5"),
    ("download", "/alarm?id=1795665357447-6"),
    ("drops", "/drops"),
    ("matrix", "/matrix"),
    ("hosts", "/hosts"),
    ("host", "/host?name=NAME"),
    ("pair", "/pair?from=FROM&to=NAME"),
    ("changes", "/changes"),
    ("trials", "/trials"),
    ("drift", "/drift"),
    ("missing", "/host?name=nowhere"),
];
/// Scripts of the report's tests, which see what is cut and how wide a page is.
const MEASURE: &str = include_str!("../../../report/tests/pages/measure.js");

/// Writes what is shown where the pictures are to be viewed.
fn keep(browser: &mut Chromium, name: &str) {
    if let Some(folder) = std::env::var_os("LINERATE_PICTURES").map(PathBuf::from) {
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("{name}.png")), browser.whole_picture()).unwrap();
    }
}

/// What is wrong with the pages of a store.
fn wrong(
    browser: &mut Chromium,
    source: &Arc<Source>,
    kind: &str,
    rename: &dyn Fn(&str) -> String,
) -> Vec<String> {
    let server = format!("http://{}", served::start(source));
    let mut wrong = Vec::new();
    let encoded = |name: &str| linerate_model::uri::encoded(&rename(name));
    for (name, address) in PAGES {
        let address = address.replace("NAME", &encoded("arc-3")).replace("FROM", &encoded("arc-1"));
        for (width, is_dark, has_scripts) in
            [(1280, false, true), (400, true, true), (1280, true, false), (400, false, false)]
        {
            browser.visit(&format!("{server}{address}"), (width, 900), is_dark, has_scripts);
            let mode = if is_dark { "dark" } else { "light" };
            let shown =
                format!("{kind}-{name}-{width}-{mode}{}", if has_scripts { "" } else { "-no-script" });
            let expected_missing = |text: &String| name == "missing" && text.contains("404");
            let complaints = browser.complaints(&server).into_iter();
            // Chromium itself reports a missing page.
            let complaints = complaints
                .filter(|text| name != "missing" || !(expected_missing(text) || text.contains("nowhere")));
            wrong.extend(complaints.map(|text| format!("{shown}: {text}")));
            let measured: BTreeMap<String, Value> = browser.evaluate(MEASURE);
            let is_wide = measured["width"].as_f64() > Some(f64::from(width));
            wrong.extend(is_wide.then(|| format!("{shown}: {} px wide", measured["width"])));
            let cut = measured["cut"].as_array().unwrap().iter();
            wrong.extend(cut.map(|what| format!("{shown}: cut without a hint: {what}")));
            let words = measured["words"].as_u64().unwrap();
            wrong.extend((words < 20).then(|| format!("{shown}: {words} words on the first screen")));
            keep(browser, &shown);
        }
    }
    wrong
}

fn browser(test: &str) -> Option<Chromium> {
    let program = chromium::program();
    linerate_testkit::has(test, program, "chromium").then(|| Chromium::start(program))
}

#[test]
fn chromium_has_nothing_to_complain_about() {
    let Some(mut browser) = browser("chromium_has_nothing_to_complain_about") else { return };
    let (_folder, source) = filled(&str::to_owned);
    let mut all = wrong(&mut browser, &source, "usual", &str::to_owned);
    let (_folder, source) = filled(&hostile);
    all.extend(wrong(&mut browser, &source, "hostile", &hostile));
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn what_a_page_must_not_do_is_complained_about() {
    let Some(mut browser) = browser("what_a_page_must_not_do_is_complained_about") else { return };
    let (_folder, source) = filled(&str::to_owned);
    let server = format!("http://{}", served::start(&source));
    let mut complaints = |script: &str| {
        browser.visit(&format!("{server}/runs"), (1280, 900), false, true);
        assert_eq!(browser.complaints(&server), Vec::<String>::new());
        let _: Value = browser.evaluate(script);
        browser.complaints(&server).join("\n")
    };
    let inline =
        complaints("document.body.insertAdjacentHTML('beforeend', '<p style=\"color:red\">x</p>'), 1");
    assert!(inline.contains("Content Security Policy"), "{inline}");
    let failed = complaints("fetch('/nothing').then(() => 1)");
    assert!(failed.contains("/nothing"), "{failed}");
    let elsewhere = complaints("fetch('http://127.0.0.2:9/').then(() => 1, () => 1)");
    assert!(elsewhere.contains("127.0.0.2"), "{elsewhere}");
    let error = complaints(
        "setTimeout(() => { throw new Error('broken') }, 0), new Promise(done => setTimeout(() => done(1), 10))",
    );
    assert!(error.contains("broken"), "{error}");
}

#[test]
fn a_page_follows_the_store() {
    let Some(mut browser) = browser("a_page_follows_the_store") else { return };
    let (folder, source) = filled(&str::to_owned);
    let server = format!("http://{}", served::start(&source));
    browser.visit(&format!("{server}/runs"), (1280, 900), false, true);
    let mut store = Store::open(&folder.path().join("linerate.sqlite")).unwrap();
    let recorded = world::recorded(&str::to_owned);
    world::add_run(&mut store, &recorded, 99, (source.now_ms)() - 1000);
    linerate_testkit::wait_until("the page to have the new run", || {
        browser.evaluate::<bool>("document.body.textContent.includes('20261126-035599-aaaa')")
    });
    assert_eq!(browser.complaints(&server), Vec::<String>::new());
}

#[test]
fn an_alarm_is_shown_when_it_opens() {
    let Some(mut browser) = browser("an_alarm_is_shown_when_it_opens") else { return };
    let (folder, source) = filled(&str::to_owned);
    let server = format!("http://{}", served::start(&source));
    browser.visit(&format!("{server}/alarms"), (1280, 900), false, true);
    let is_shown = "document.querySelector('h1').textContent";
    assert_eq!(browser.evaluate::<String>(is_shown), "2 open alarms");
    world::open_another(folder.path(), &world::recorded(&str::to_owned));
    linerate_testkit::wait_until("the third alarm", || {
        browser.evaluate::<String>(is_shown) == "3 open alarms"
    });
    assert_eq!(browser.complaints(&server), Vec::<String>::new());
}

#[test]
fn a_picture_has_a_cursor_and_its_squares_lead_to_pairs() {
    let Some(mut browser) = browser("a_picture_has_a_cursor_and_its_squares_lead_to_pairs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let recorded = world::large(40);
    world::fill_large(folder.path(), &recorded);
    let source = world::source(folder.path(), &recorded);
    let server = format!("http://{}", served::start(&source));
    let matrix = format!("{server}/matrix");
    let is_drawn = "document.querySelector('.picture img').naturalWidth";
    // Without scripts the browser sends the point.
    browser.visit(&matrix, (1280, 900), false, false);
    assert_eq!(browser.evaluate::<u32>(is_drawn), 640);
    let at: [f64; 2] = browser
        .evaluate("(r => [r.left, r.top])(document.querySelector('.picture img').getBoundingClientRect())");
    browser.click(at[0] + 3.0 * 16.0 + 5.0, at[1] + 5.0);
    linerate_testkit::wait_until("the page of the pair", || {
        browser
            .evaluate::<String>("location.pathname + location.search")
            .starts_with("/pair?from=n0000&to=n0003")
    });
    assert_eq!(browser.complaints(&server), Vec::<String>::new());
    // With them a keyboard moves over it.
    browser.visit(&matrix, (1280, 900), true, true);
    let _: bool = browser.evaluate("document.querySelector('a.picture').focus(), true");
    for key in ["ArrowRight", "ArrowRight", "ArrowDown"] {
        browser.press(key);
    }
    linerate_testkit::wait_until("the text of the square", || {
        browser
            .evaluate::<String>("document.querySelector('#cell').textContent")
            .starts_with("n0001 to n0002")
    });
    keep(&mut browser, "large-matrix-1280-dark");
    browser.press("Enter");
    linerate_testkit::wait_until("the page of the pair", || {
        browser.evaluate::<String>("location.search").starts_with("?from=n0001&to=n0002")
    });
    assert_eq!(browser.complaints(&server), Vec::<String>::new());
    browser.visit(&matrix, (400, 900), false, true);
    keep(&mut browser, "large-matrix-400-light");
    assert_eq!(browser.complaints(&server), Vec::<String>::new());
}
