//! What the pages of a made-up cluster cost: `cargo run --release -p linerate-page --example large -- FOLDER
//! HOSTS`. Writes the store where the folder has none, serves it, and has Chromium open each page: first
//! paint, bytes of the page and of all that it loads, compressed. Figures: `docs/dev/performance.md`.
#![allow(clippy::unwrap_used, clippy::print_stdout, dead_code)]

#[path = "../tests/pages/served.rs"]
mod served;
#[path = "../tests/pages/world.rs"]
mod world;

use std::path::PathBuf;
use std::time::Instant;

use linerate_testkit::chromium::{self, Chromium};

/// Visits of each page; the median counts.
const VISITS: usize = 9;
const PAGES: [&str; 7] =
    ["/", "/matrix", "/hosts", "/host?name=n0002", "/pair?from=n0001&to=n0002", "/changes", "/runs"];
/// First contentful paint, milliseconds; bytes of the page, and with what it loads, as they were sent.
const MEASURE: &str = "(() => {
  const page = performance.getEntriesByType('navigation')[0];
  const parts = performance.getEntriesByType('resource').filter((one) => !one.name.endsWith('/events'));
  const paint = performance.getEntriesByName('first-contentful-paint')[0];
  return [paint ? paint.startTime : 0, page.encodedBodySize, parts.reduce((sum, one) => sum + one.encodedBodySize, page.encodedBodySize)];
})()";

fn main() {
    let mut words = std::env::args_os().skip(1);
    let folder = PathBuf::from(words.next().unwrap());
    let hosts: usize = words.next().unwrap().to_string_lossy().parse().unwrap();
    let recorded = world::large(hosts);
    if !folder.join("linerate.sqlite").exists() {
        world::fill_large(&folder, &recorded);
    }
    let started = Instant::now();
    let address = served::start(&world::source(&folder, &recorded));
    println!("{hosts} hosts: read in {:.1} s", started.elapsed().as_secs_f64());
    let mut browser = Chromium::start(chromium::program());
    for page in PAGES {
        let mut paints = Vec::new();
        let (mut bytes, mut all) = (0.0, 0.0);
        for _ in 0..VISITS {
            browser.visit("about:blank", (1280, 900), false, true);
            browser.visit(&format!("http://{address}{page}"), (1280, 900), false, true);
            // Painted is what a frame later is there.
            let _: f64 = browser
                .evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(() => done(1), 50)))");
            let [paint, own, whole]: [f64; 3] = browser.evaluate(MEASURE);
            paints.push(paint);
            (bytes, all) = (own, f64::max(all, whole));
        }
        paints.sort_by(f64::total_cmp);
        let median = paints[VISITS / 2];
        println!(
            "{page}: {median:.0} ms ({:.0} to {:.0}), {bytes} B, first visit {all} B",
            paints[0],
            paints[VISITS - 1]
        );
    }
}
