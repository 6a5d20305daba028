//! Recorded stories (`crates/linerate/stories/`, one file each) replayed through the whole watch in virtual
//! time: simulated nodes below, the store, the history and the page above. A person at the page has to find
//! who, which direction, since when, what changed and what to do in two clicks.

mod page_text;
mod person;
mod story;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use clap::Parser;
use linerate_fleet::clock::virtual_time;
use linerate_fleet::simulated::SimulatedFleet;
use linerate_history::{AlarmRecord, History};
use linerate_model::watch::WatchAlarm;
use linerate_operator::watch::Watch;
use linerate_testkit::chromium::{self, Chromium};
use tokio::time::{Instant, sleep_until};

use self::story::{Expected, Happening, Story};
use crate::cli::serve::Page;

/// Set for the program of its own that replays one story: time, store and history are its own.
const ALONE: &str = "LINERATE_TEST_STORY";
/// In front of the line of a story's result.
const RESULT: &str = "story: ";
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/stories");

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    args: super::Args,
}

fn stories() -> Vec<PathBuf> {
    let files = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

#[test]
fn each_story_is_answered_in_two_clicks() {
    if let Some(file) = std::env::var_os(ALONE) {
        return replay(Path::new(&file));
    }
    let files = stories();
    assert!(files.len() >= 10, "{} stories in {FOLDER}", files.len());
    let (mut table, mut failed) = (String::new(), String::new());
    for file in files {
        let folder = tempfile::tempdir().unwrap();
        let name =
            format!("{}::each_story_is_answered_in_two_clicks", module_path!().split_once("::").unwrap().1);
        let output = Command::new(std::env::current_exe().unwrap())
            .args([&name, "--exact", "--nocapture"])
            .env(ALONE, &file)
            .env("LINERATE_DATA", folder.path())
            .env("LINERATE_STORE", "sqlite")
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let result = printed.lines().find_map(|line| line.split_once(RESULT)).map(|(_, result)| result);
        if let Some(result) = result.filter(|_| output.status.success()) {
            let _ = writeln!(table, "{result}");
        } else {
            let errors = String::from_utf8_lossy(&output.stderr);
            let _ = writeln!(failed, "{}:\n{printed}\n{errors}", file.display());
        }
    }
    println!("{:<58} {:>9} {:>8} {:>6}  verdict\n{table}", "story", "since off", "reported", "clicks");
    assert!(failed.is_empty(), "{failed}");
}

/// One story, in a process of its own.
fn replay(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let story = Story::parse(&file.display().to_string(), &text).unwrap();
    let lasts = format!("{}s", story.lasts.as_secs());
    let args = Line::parse_from(["watch", "-i", "cluster.toml", "--for", &lasts, "--json"]).args;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        virtual_time::begin(story.start_ms);
        let world = SimulatedFleet::of(story.hosts.clone(), 7);
        let fleet = Arc::new(world.open().await);
        let watch = Watch::begin(&fleet, &story.inventory).unwrap();
        tokio::spawn(play(world, story.happens.clone()));
        super::follow(&args, &story.inventory, "-i cluster.toml", watch).await.unwrap();
        // Nothing is awaited from here on: time stands still.
        let server = serve();
        picture(file, &server);
        let line = judge(&story, &server);
        println!("\n{RESULT}{line}");
    });
}

/// What happens, at its time.
async fn play(fleet: Arc<SimulatedFleet>, happens: Vec<(Duration, Happening)>) {
    let world = fleet.world();
    let start = Instant::now();
    let mut ends: BTreeMap<Duration, Vec<usize>> = BTreeMap::new();
    let mut moments: Vec<Duration> = happens.iter().map(|(at, _)| *at).collect();
    let lasting = |one: &(Duration, Happening)| match &one.1 {
        Happening::Path(_, Some(time)) => Some(one.0 + *time),
        _ => None,
    };
    moments.extend(happens.iter().filter_map(lasting));
    moments.sort_unstable();
    moments.dedup();
    for now in moments {
        sleep_until(start + now).await;
        for condition in ends.remove(&now).unwrap_or_default() {
            world.end(condition);
        }
        for (at, one) in happens.iter().filter(|(at, _)| *at == now) {
            match one.clone() {
                Happening::Path(condition, time) => {
                    let number = world.begin(condition);
                    if let Some(time) = time {
                        ends.entry(*at + time).or_default().push(number);
                    }
                }
                Happening::Setting { host, key, to, writer } => world.set(&host, &key, Some(to), writer),
                Happening::Reboot { host, time, settings } => world.reboot(&host, time, settings),
                Happening::Session { host, time } => world.cut(&host, time),
                Happening::FrontEnd { via, bps } => world.serve(&via, bps),
            }
        }
    }
}

/// Serves the page in a thread of real time that ends with the process; gives host and port.
fn serve() -> String {
    let (to, address) = mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let page = Page::open(&"127.0.0.1:0".parse().unwrap(), None, None).unwrap();
            to.send(page.server.address()).unwrap();
            page.run().await;
        });
    });
    let address = address.recv().unwrap();
    address.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned()
}

/// The first page and the newest alarm as pictures, where they are asked for.
fn picture(file: &Path, server: &str) {
    let Some(folder) = std::env::var_os("LINERATE_PICTURES").map(PathBuf::from) else { return };
    let name = file.file_stem().unwrap().to_string_lossy();
    let links = person::get(server, "/").links();
    let alarm = links.into_iter().map(|(to, _)| to).find(|to| to.starts_with("/alarm?"));
    let mut browser = Chromium::start(chromium::program());
    std::fs::create_dir_all(&folder).unwrap();
    for (number, address) in std::iter::once("/".to_owned()).chain(alarm).enumerate() {
        browser.visit(&format!("http://{server}{address}"), (1280, 900), false, true);
        std::fs::write(folder.join(format!("{name}-{number}.png")), browser.whole_picture()).unwrap();
    }
}

/// The line of the table.
fn judge(story: &Story, server: &str) -> String {
    let alarms: Vec<AlarmRecord> = History::open_to_read().unwrap().records().unwrap();
    let title = &story.title;
    let Some(expected) = &story.expected else {
        assert!(alarms.is_empty(), "nothing is wrong in this story: {alarms:#?}");
        let clicks = quiet(story, server);
        return format!("{title:<58} {:>9} {:>8} {clicks:>6}  no alarm", "", "");
    };
    let is_false = |one: &&AlarmRecord| !is_of(&one.alarm, expected);
    let wrong: Vec<&AlarmRecord> = alarms.iter().filter(is_false).collect();
    assert!(wrong.is_empty(), "alarms of others: {wrong:#?}");
    let reported = alarms.iter().map(|one| one.alarm.reported_ms()).min().expect("an alarm");
    let begun = story.start_ms + expected.since.0.as_millis() as u64;
    let reported_s = reported.saturating_sub(begun) / 1000;
    let reached = person::find(server, story, expected).unwrap_or_else(|error| panic!("{error}"));
    assert!(reported_s <= expected.reported_within.as_secs(), "reported after {reported_s} s");
    let shown_off =
        alarms.iter().map(|one| one.alarm.since_ms()).min().unwrap_or(begun).abs_diff(begun) / 1000;
    let verdict = reached.page.beside("Measured");
    let verdict = verdict.split(": ").next().unwrap_or_default();
    let off = format!("{shown_off} s");
    format!("{title:<58} {off:>9} {:>8} {:>6}  {verdict}", format!("{reported_s} s"), reached.clicks)
}

/// Whether an alarm is of the suspect, or of a part of it that was named first.
fn is_of(alarm: &WatchAlarm, expected: &Expected) -> bool {
    let named = match (alarm.suspect(), alarm.downloads()) {
        (Some(suspect), _) => format!("{suspect:?}"),
        (_, Some(downloads)) => format!("{downloads:?}"),
        _ => String::new(),
    };
    expected.who.iter().any(|who| named.contains(&format!("\"{who}\"")))
}

/// Without an alarm: that there is none, and what changed all the same, can be read. Gives the clicks.
fn quiet(story: &Story, server: &str) -> usize {
    let overview = person::get(server, "/").text();
    assert!(
        overview.contains("No open alarm"),
        "the overview has to show that nothing is wrong:\n{overview}"
    );
    for (host, key) in &story.harmless {
        let line = format!("{host} {}", linerate_report::names::setting(key));
        assert!(overview.contains(&line), "the overview has to show what changed, {line}:\n{overview}");
    }
    0
}
