//! From an address to what is answered: pages, the picture of a matrix, its squares, the two files. Pure.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, LazyLock};

use linerate_model::finding::Suspect;
use linerate_model::slow::DownloadSuspect;
use linerate_report::html::STYLE;
use maud::html;

use super::layout::{Body, Files, Shown, document};
use super::link::{self, Query};
use super::pages::{self, PAGES};
use super::picture;
use super::view::{Minutes, RunView, SiteView, WatchedSeries};

static STYLE_FILE: LazyLock<String> = LazyLock::new(|| format!("{STYLE}{}", include_str!("assets/page.css")));
/// Compiled from `assets/page.ts` by `cargo xtask script`.
const SCRIPT_FILE: &str = include_str!("assets/page.js");
static STYLE_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("/style.css?v={}", digest(STYLE_FILE.as_bytes())));
static SCRIPT_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("/page.js?v={}", digest(SCRIPT_FILE.as_bytes())));

/// The same for the same bytes in one version of this program.
pub(crate) fn digest(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// What a request sees: one view, and the run that it asks for.
#[derive(Debug, Clone)]
pub struct Moment {
    /// What is known.
    pub view: Arc<SiteView>,
    /// The newest run, or that of the query; `None` where there is none.
    pub run: Option<Arc<RunView>>,
    /// Minutes of what is [`watched`].
    pub minutes: Arc<Vec<Minutes>>,
    /// Now, Unix milliseconds.
    pub now_ms: u64,
}

/// What is answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// A page.
    Page {
        /// The document.
        text: String,
        /// Whether it is of something that is not there.
        is_missing: bool,
    },
    /// A file that is the same as long as its address is.
    File {
        /// Media type.
        kind: &'static str,
        /// Content.
        bytes: Vec<u8>,
    },
    /// A picture.
    Picture(Vec<u8>),
    /// A line of text.
    Text(String),
    /// Another page.
    To(String),
}

/// Whether an address needs nothing of the store.
#[must_use]
pub fn file(path: &str) -> Option<Answer> {
    let of = |kind, text: &str| Some(Answer::File { kind, bytes: text.as_bytes().to_vec() });
    match path {
        "/style.css" => of("text/css; charset=utf-8", &STYLE_FILE),
        "/page.js" => of("text/javascript; charset=utf-8", SCRIPT_FILE),
        _ => None,
    }
}

/// What a page shows the minutes of: a host or a pair, and downloads.
#[must_use]
pub fn watched(view: &SiteView, path: &str, query: &Query) -> WatchedSeries {
    let of = |suspect: Option<Suspect>| WatchedSeries { suspect, ..WatchedSeries::default() };
    match path {
        "/host" => query.get("name").map(|name| WatchedSeries {
            suspect: Some(Suspect::Host(name.to_owned())),
            downloads: Some(DownloadSuspect { host: Some(name.to_owned()), ..DownloadSuspect::default() }),
            cluster: None,
        }),
        "/pair" => query
            .get("from")
            .zip(query.get("to"))
            .map(|(from, to)| of(Some(Suspect::Pair(from.to_owned(), to.to_owned())))),
        "/alarm" => pages::asked_alarm(view, query).map(|one| WatchedSeries {
            suspect: one.alarm.suspect().cloned(),
            downloads: one.alarm.downloads().cloned(),
            cluster: Some(one.cluster.clone()),
        }),
        _ => None,
    }
    .unwrap_or_default()
}

/// What an address shows.
#[must_use]
pub fn answer(moment: &Moment, path: &str, query: &Query) -> Answer {
    let run = moment.run.as_deref();
    let shown = Shown { view: &moment.view, run, query, minutes: &moment.minutes, now_ms: moment.now_ms };
    let found = match path {
        "/matrix/picture" => run.and_then(|run| pages::sorted_grid(run, query)).map(|grid| {
            let colours = pages::colours(query.get("theme") == Some("dark"));
            Answer::Picture(picture::png(&grid, colours))
        }),
        "/matrix/cell" => run.and_then(|run| pages::cell(run, query)).map(Answer::Text),
        "/matrix/pair" => pages::page_at(&shown).map(Answer::To),
        _ => {
            PAGES.iter().find(|page| page.path == path).map(|page| whole(&shown, &(page.body)(&shown), path))
        }
    };
    found.unwrap_or_else(|| {
        let text = html! { h1 { "No such page" } p { a href=(link::to("/", &[])) { "Overview" } } };
        whole(&shown, &Body::missing("No such page", text), path)
    })
}

fn whole(shown: &Shown<'_>, body: &Body, path: &str) -> Answer {
    let named: Vec<(&str, &str)> =
        PAGES.iter().filter(|page| !page.name.is_empty()).map(|page| (page.name, page.path)).collect();
    let files = Files { style: &STYLE_ADDRESS, script: &SCRIPT_ADDRESS };
    let text = document(shown, body, path, &named, files);
    Answer::Page { text, is_missing: body.is_missing }
}
