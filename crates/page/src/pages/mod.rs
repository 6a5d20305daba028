//! Pages, each complete without scripts. To add one: a file here and a line in the list.

mod alarms;
mod changes;
mod drift;
mod drops;
mod findings;
mod host;
mod matrix;
mod overview;
mod pair;
mod runs;
mod series;
mod trials;

pub(crate) use alarms::asked as asked_alarm;
pub(crate) use matrix::{cell, colours, page_at, sorted_grid};

use super::layout::{Body, Shown};

/// A page.
pub(crate) struct PageKind {
    /// Where it is.
    pub(crate) path: &'static str,
    /// Its name in the navigation; empty for a page that others lead to.
    pub(crate) name: &'static str,
    pub(crate) body: fn(&Shown<'_>) -> Body,
}

/// All pages, in the order of the navigation.
pub(crate) static PAGES: &[PageKind] = &[
    PageKind { path: "/", name: "Overview", body: overview::body },
    PageKind { path: "/alarms", name: "Alarms", body: alarms::list },
    PageKind { path: "/alarm", name: "", body: alarms::body },
    PageKind { path: "/matrix", name: "Matrix", body: matrix::body },
    PageKind { path: "/hosts", name: "Hosts", body: host::list },
    PageKind { path: "/host", name: "", body: host::body },
    PageKind { path: "/pair", name: "", body: pair::body },
    PageKind { path: "/drops", name: "Drops", body: drops::body },
    PageKind { path: "/changes", name: "Changes", body: changes::body },
    PageKind { path: "/trials", name: "Trials", body: trials::list },
    PageKind { path: "/trial", name: "", body: trials::body },
    PageKind { path: "/drift", name: "Drift", body: drift::body },
    PageKind { path: "/runs", name: "Runs", body: runs::body },
];
