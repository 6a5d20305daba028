//! What all pages share: head, navigation, where a reader is, and how a page asks for others. Markup in, a
//! whole document out.

use linerate_model::printable::is_control;
use linerate_model::{shell, units};
use maud::{DOCTYPE, Markup, html};

use super::link::{self, Query};
use super::view::{Minutes, RunView, SiteView};

/// What a page is made of.
pub(crate) struct Shown<'a> {
    pub(crate) view: &'a SiteView,
    /// The run that is shown: the newest one, or the one that was asked for.
    pub(crate) run: Option<&'a RunView>,
    pub(crate) query: &'a Query,
    /// Minutes of the host or pair of the page.
    pub(crate) minutes: &'a [Minutes],
    /// Now, Unix milliseconds.
    pub(crate) now_ms: u64,
}

impl Shown<'_> {
    /// The run in addresses: empty for the newest one, so that those stay current.
    fn asked_run(&self) -> &str {
        let newest = self.view.run.as_ref().map(|run| run.row.id.as_str());
        let shown = self.run.map(|run| run.row.id.as_str());
        shown.filter(|id| Some(*id) != newest).unwrap_or_default()
    }

    /// The address of a page about the same run.
    pub(crate) fn to(&self, path: &str, query: &[(&str, &str)]) -> String {
        let mut all = query.to_vec();
        all.push(("run", self.asked_run()));
        link::to(path, &all)
    }

    pub(crate) fn host(&self, name: &str) -> String {
        self.to("/host", &[("name", name)])
    }

    pub(crate) fn pair(&self, from: &str, to: &str) -> String {
        self.to("/pair", &[("from", from), ("to", to)])
    }

    /// A command that reaches hosts, with the inventory where it is not found by itself.
    pub(crate) fn on_hosts(&self, command: &str) -> String {
        let typed = self.run.and_then(|run| run.snapshot.inventory.typed.as_deref());
        typed.map_or_else(|| command.to_owned(), |file| format!("{command} -i {}", shell::path(file)))
    }

    /// Whether a host has a page in the run that is shown.
    pub(crate) fn has_host(&self, name: &str) -> bool {
        self.run.is_some_and(|run| run.has_host(name))
    }

    /// A host as a link to its page, where it has one.
    pub(crate) fn host_link(&self, name: &str) -> Markup {
        html! { @if self.has_host(name) { a href=(self.host(name)) { (name) } } @else { (name) } }
    }
}

/// A page without what all pages share.
pub(crate) struct Body {
    /// For the title of the window.
    pub(crate) title: String,
    /// What stands between the overview and this page: name and address.
    pub(crate) above: Vec<(&'static str, String)>,
    pub(crate) markup: Markup,
    /// Whether it is of something that is not there.
    pub(crate) is_missing: bool,
}

impl Body {
    pub(crate) fn new(title: impl Into<String>, markup: Markup) -> Self {
        Self { title: title.into(), above: Vec::new(), markup, is_missing: false }
    }

    /// Below another page.
    pub(crate) fn below(self, name: &'static str, address: String) -> Self {
        Self { above: vec![(name, address)], ..self }
    }

    /// Of something that is not there.
    pub(crate) fn missing(title: impl Into<String>, markup: Markup) -> Self {
        Self { is_missing: true, ..Self::new(title, markup) }
    }
}

/// Addresses of the style sheet and of the script, with their versions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Files<'a> {
    pub(crate) style: &'a str,
    pub(crate) script: &'a str,
}

/// The document. `pages` are names and paths of the navigation.
pub(crate) fn document(
    shown: &Shown<'_>,
    body: &Body,
    path: &str,
    pages: &[(&str, &str)],
    files: Files<'_>,
) -> String {
    let cluster = shown.run.map_or("linerate", |run| run.snapshot.inventory.name.as_str());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (body.title) " - " (cluster) }
                link rel="stylesheet" href=(files.style);
                link rel="icon" href="data:,";
                script src=(files.script) defer {}
            }
            body data-version=(shown.view.version) {
                a.skip href="#main" { "Skip to content" }
                nav.pages aria-label="Pages" {
                    @for (name, to) in pages {
                        a href=(shown.to(to, &[])) aria-current=[(*to == path).then_some("page")] { (name) }
                    }
                }
                main id="main" {
                    p.crumbs {
                        a href=(shown.to("/", &[])) { (if cluster.is_empty() { "linerate" } else { cluster }) }
                        @for (name, to) in &body.above { " › " a href=(to) { (name) } }
                        @if path != "/" { " › " span { (body.title) } }
                    }
                    (notices(shown))
                    (body.markup)
                }
                footer {
                    p.small id="live" role="status" {}
                    p.small { "linerate " (env!("CARGO_PKG_VERSION")) ". Nothing can be changed here: commands are for a terminal." }
                }
            }
        }
    }
    .into_string()
    .replace(|c: char| is_control(c) && c != '\n', "")
}

/// What stands above a page when it is not of the newest state.
fn notices(shown: &Shown<'_>) -> Markup {
    let newest = shown.view.run.as_ref();
    let older = shown.run.filter(|run| newest.is_some_and(|newest| newest.row.id != run.row.id));
    let running = shown.view.runs.first().filter(|run| !run.finished && run.diagnosable);
    html! {
        @if let Some(trouble) = &shown.view.trouble { p.notice.wrong { "The store cannot be read: " (trouble) } }
        @if let Some(run) = older {
            p.notice { "Run " (run.row.id) " of " (units::date_minute(run.row.start_ms)) " UTC, not the newest: " a href="/" { "show the newest" } }
        }
        @if let Some(run) = running {
            p.notice { "Run " (run.id) " of " (run.cluster) " has not ended: " (run.samples) " tests so far." }
        }
    }
}

/// Commands to copy, each with what it does.
pub(crate) fn commands(list: &[(String, &str)]) -> Markup {
    html! {
        section.commands {
            h2 { "Commands" }
            @for (command, does) in list { p { pre.cmd { code { (command) } } " " span.on { (does) } } }
        }
    }
}
