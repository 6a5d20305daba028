//! Read-only pages for operators: the store in, HTML out, and a small server for both ends.
//!
//! `view` is what pages show, read from the store by `load` and again by `live` whenever the database
//! changes. `site` finds the page of an address: one file in `pages` and one line in its list for each.
//! Pages are pure functions of a view and a query, complete without scripts. `server` hands them out: GET
//! and HEAD, on a loopback address or a unix socket.
#![deny(missing_docs)]

mod layout;
pub mod link;
pub mod live;
mod load;
mod pages;
mod picture;
pub mod server;
pub mod site;
pub mod view;

pub use load::{Source, read_run, read_view};
