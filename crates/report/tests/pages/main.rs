//! Pages as Chromium draws them: six cases and a real survey, at both widths and in both modes. What has to
//! hold for any page is asserted with any fonts; boxes are compared with `golden/layout.json`, pictures with
//! `golden/*.png`, both with a tolerance that lets a word change but no layout, and only where the fonts are
//! there that they were made with. With LINERATE_BLESS=1 they are written instead.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use linerate_cases as case;
use linerate_knowledge::Knowledge;
use linerate_model::finding::Diagnosis;
use linerate_model::snapshot::Snapshot;
use linerate_model::trial::Trial;
use linerate_report::{html, words};
use linerate_testkit::chromium::{self, Chromium};
use serde::{Deserialize, Serialize};

/// A group, a host in both directions, packet loss, two levels, no matrix, tables of single tests.
const CASES: [&str; 6] =
    ["casebook-a3", "half-duplex", "conntrack-full", "casebook-c4", "drbd-apart", "casebook-a1"];
const WIDTHS: [u32; 2] = [1280, 400];
const FIRST_SCREEN: f64 = 900.0;
const HEIGHT_MAX: f64 = 2500.0;
/// A box may move or grow by so much: fonts differ in their hinting, texts by a word.
const BOX_PX: f64 = 24.0;
const BOX_SHARE: f64 = 0.08;
/// Of the squares of a picture that may differ.
const PICTURE_SHARE: f64 = 0.05;
/// Largest picture, and all of them, in bytes.
const PICTURE_MAX: usize = 100_000;
const PICTURES_MAX: usize = 1_500_000;

/// What the script of `measure.js` returns.
#[derive(Debug, Deserialize)]
struct Measured {
    /// Page, and what is wider than it.
    width: f64,
    height: f64,
    /// Words on the first screen.
    words: usize,
    /// Boxes by selector: left, top, width, height.
    boxes: BTreeMap<String, [f64; 4]>,
    /// Anchors of the closed sections, in order.
    sections: Vec<String>,
    /// What sticks out of the page, or is cut without a hint.
    cut: Vec<String>,
    /// Sections that are open.
    open: usize,
    legend: usize,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Layout {
    height: f64,
    sections: Vec<String>,
    boxes: BTreeMap<String, [f64; 4]>,
}

/// A survey of the lab with receive offload under an overlay, and the trial whose change was kept.
#[derive(Deserialize)]
struct Survey {
    snapshot: Snapshot,
    diagnosis: Diagnosis,
    trials: Vec<Trial>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pages")
}

fn pages() -> Vec<(String, String)> {
    let knowledge = Knowledge::builtin().unwrap();
    let cases: BTreeMap<String, case::Case> = case::builtin().unwrap().into_iter().collect();
    let page = |name: &&str| {
        let case = &cases[*name];
        let diagnosis = words::written(case::diagnose(case, &knowledge));
        ((*name).to_owned(), html::page(&case.snapshot, &diagnosis, &[], None))
    };
    let mut pages: Vec<(String, String)> = CASES.iter().map(page).collect();
    let survey: Survey = serde_json::from_str(include_str!("survey.json")).unwrap();
    pages.push(("survey".into(), html::page(&survey.snapshot, &survey.diagnosis, &survey.trials, None)));
    pages
}

#[test]
fn pages_are_as_recorded() {
    let (test, program) = ("pages_are_as_recorded", chromium::program());
    if !linerate_testkit::has(test, program, "chromium") {
        return;
    }
    let other_fonts = chromium::other_fonts();
    assert!(other_fonts.is_none() || !is_blessed(), "{other_fonts:?}");
    let pages = pages();
    let mut browser = Chromium::start(program);
    let (mut layouts, mut wrong, mut bytes) = (BTreeMap::new(), Vec::new(), 0);
    for (name, page) in pages {
        for width in WIDTHS {
            for is_dark in [false, true] {
                browser.show(&page, width, FIRST_SCREEN as u32, is_dark);
                let measured: Measured = browser.evaluate(include_str!("measure.js"));
                let key = format!("{name} {width}");
                wrong.extend(broken_rules(&measured, width).into_iter().map(|rule| format!("{key}: {rule}")));
                println!("{key}: {} px, {} words on the first screen", measured.height, measured.words);
                layouts.entry(key).or_insert(Layout {
                    height: measured.height,
                    sections: measured.sections,
                    boxes: measured.boxes,
                });
                if other_fonts.is_some() {
                    continue;
                }
                let mode = if is_dark { "dark" } else { "light" };
                let (size, differs) = picture(&mut browser, &format!("{name}-{width}-{mode}"));
                bytes += size;
                wrong.extend(differs);
            }
        }
    }
    drop(browser);
    wrong.extend(other_layouts(&layouts, other_fonts.is_none()));
    if let Some(why) = other_fonts {
        linerate_testkit::skip("the comparison of pictures", &format!("fonts: {why}"));
    }
    assert!(bytes <= PICTURES_MAX, "the pictures have {bytes} bytes");
    assert!(
        wrong.is_empty(),
        "{}\nif that is right: LINERATE_BLESS=1, and view the pictures",
        wrong.join("\n")
    );
}

/// What holds for any page of at most a dozen hosts.
fn broken_rules(page: &Measured, width: u32) -> Vec<String> {
    let mut broken: Vec<String> = page.cut.iter().map(|what| format!("cut without a hint: {what}")).collect();
    let mut rule = |holds: bool, text: String| {
        if !holds {
            broken.push(text);
        }
    };
    rule(page.width <= f64::from(width), format!("the page is {} px wide", page.width));
    rule(page.height <= HEIGHT_MAX, format!("the page is {} px high", page.height));
    rule(page.open == 0, format!("{} sections are open", page.open));
    let has_matrix = page.boxes.contains_key(".heat");
    rule(page.legend == usize::from(has_matrix), format!("{} legends", page.legend));
    if width > 1000 {
        for what in ["h1", ".lines", ".cmd", ".proof", ".heat"] {
            let bottom = page.boxes.get(what).map_or(0.0, |at| at[1] + at[3]);
            rule(bottom <= FIRST_SCREEN, format!("{what} ends at {bottom}, below the first screen"));
        }
    }
    broken
}

fn is_blessed() -> bool {
    std::env::var_os("LINERATE_BLESS").is_some()
}

/// Layouts that are not those of the golden file; without its fonts the order of the sections is compared.
fn other_layouts(now: &BTreeMap<String, Layout>, has_fonts: bool) -> Vec<String> {
    let path = folder().join("golden/layout.json");
    if is_blessed() {
        std::fs::write(&path, serde_json::to_string_pretty(now).unwrap() + "\n").unwrap();
        return Vec::new();
    }
    let golden: BTreeMap<String, Layout> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let mut wrong = Vec::new();
    for (key, now) in now {
        match golden.get(key) {
            None => wrong.push(format!("{key}: not in golden/layout.json")),
            Some(then) => {
                let mut all = other_sections(then, now);
                if has_fonts {
                    all.extend(moved(then, now));
                }
                wrong.extend(all.into_iter().map(|what| format!("{key}: {what}")));
            }
        }
    }
    wrong
}

fn other_sections(then: &Layout, now: &Layout) -> Vec<String> {
    let differ = then.sections != now.sections;
    differ.then(|| format!("sections {:?}, were {:?}", now.sections, then.sections)).into_iter().collect()
}

fn moved(then: &Layout, now: &Layout) -> Vec<String> {
    let mut moved = Vec::new();
    let is_near = |a: f64, b: f64| (a - b).abs() <= BOX_PX + BOX_SHARE * a.abs();
    if !is_near(then.height, now.height) {
        moved.push(format!("the page is {} px high, was {}", now.height, then.height));
    }
    for what in then.boxes.keys().chain(now.boxes.keys().filter(|k| !then.boxes.contains_key(*k))) {
        match (then.boxes.get(what), now.boxes.get(what)) {
            (Some(a), Some(b)) if a.iter().zip(b).all(|(a, b)| is_near(*a, *b)) => {}
            (a, b) => moved.push(format!("{what} is at {b:?}, was at {a:?}")),
        }
    }
    moved
}

/// Compares what is shown with the picture of that name: its bytes, and how it differs.
fn picture(browser: &mut Chromium, name: &str) -> (usize, Option<String>) {
    let path = folder().join(format!("golden/{name}.png"));
    let now = browser.picture();
    if is_blessed() {
        std::fs::write(&path, browser.indexed(&now)).unwrap();
    }
    let Ok(golden) = std::fs::read(&path) else { return (0, Some(format!("no golden/{name}.png"))) };
    let share = browser.difference(&now, &golden);
    let differs = match share {
        _ if golden.len() > PICTURE_MAX => Some(format!("{name}.png has {} bytes", golden.len())),
        share if share > PICTURE_SHARE => Some(format!("{name}.png: {:.1} % of it differ", share * 100.0)),
        _ => None,
    };
    (golden.len(), differs)
}

#[test]
fn a_moved_box_and_a_lost_section_are_seen() {
    let layout = |y: f64, sections: &[&str]| Layout {
        height: 900.0,
        sections: sections.iter().map(|s| (*s).to_owned()).collect(),
        boxes: BTreeMap::from([(".heat".to_owned(), [50.0, y, 400.0, 200.0])]),
    };
    assert!(moved(&layout(300.0, &["about"]), &layout(330.0, &["about"])).is_empty());
    assert_eq!(moved(&layout(300.0, &["about"]), &layout(400.0, &["about"])).len(), 1);
    assert_eq!(other_sections(&layout(300.0, &["about"]), &layout(300.0, &[])).len(), 1);
    assert!(other_sections(&layout(300.0, &["about"]), &layout(400.0, &["about"])).is_empty());
}

#[test]
fn what_chromium_sees_breaks_rules() {
    let program = chromium::program();
    if !linerate_testkit::has("what_chromium_sees_breaks_rules", program, "chromium") {
        return;
    }
    let mut browser = Chromium::start(program);
    let style = "<style>.scroll{overflow-x:auto}.hide{overflow:hidden}</style>";
    let wide = "<p style='width:2000px'>wide</p>";
    let mut broken = |body: &str| {
        browser.show(&format!("<!DOCTYPE html>{style}<main>{body}</main>"), 1280, 900, false);
        broken_rules(&browser.evaluate(include_str!("measure.js")), 1280)
    };
    assert!(broken("<p>fine</p>").is_empty());
    assert!(!broken(wide).is_empty());
    assert!(!broken(&format!("<div class=hide>{wide}</div>")).is_empty());
    assert!(
        !broken(&format!("<div class=scroll>{wide}</div>")).is_empty(),
        "no shadow and no words hint at it"
    );
    assert!(!broken("<div style='height:3000px'></div>").is_empty());
    assert!(!broken("<h1 style='margin-top:950px'>below</h1>").is_empty());
    assert!(!broken("<details open>x</details>").is_empty());
    browser.show("<body style='background:#000'>", 400, 900, false);
    let black = browser.picture();
    browser.show("<body style='background:#fff'>", 400, 900, false);
    let white = browser.picture();
    assert!(browser.difference(&white, &black) > 0.9);
    let indexed = browser.indexed(&white);
    assert!(browser.difference(&white, &indexed) < 0.001);
}
