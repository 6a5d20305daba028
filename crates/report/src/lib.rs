//! Reports: a snapshot, its diagnosis and its trials in; text for people and programs out. Never measures,
//! never decides.
//!
//! To add a format: one file with a `Format`, one line in `FORMATS`.
#![deny(missing_docs)]

pub mod audit;
pub mod bench;
pub mod builds;
pub mod card;
pub mod cause;
pub mod changes;
pub mod chart;
pub mod connects;
pub mod differ;
pub mod disk_built;
pub mod disk_plan;
pub mod disk_survey;
pub mod disk_watch;
pub mod disks;
pub mod distribution;
pub mod drbd;
pub mod drbd_bench;
pub mod drift;
pub mod drops;
pub mod durability;
pub mod grid;
pub mod heat;
pub mod history;
mod host_cpu;
pub mod html;
pub mod http;
pub mod imported;
pub mod inside;
pub mod json;
pub mod latency;
pub mod markdown;
mod material;
pub mod names;
pub mod path_mtu;
pub mod profile;
pub mod rollout;
pub mod single;
mod slow;
mod spark;
pub mod steps;
pub mod sweep;
pub mod text;
pub mod timeline;
pub mod transfer;
pub mod udp;
pub mod verdict;
pub mod view;
pub mod watch;
pub mod words;
pub mod wrap;

pub use material::{Format, Material};

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

/// All formats.
pub static FORMATS: &[&dyn Format] = &[&text::Text, &html::Html, &markdown::Markdown, &json::Json];

/// The format of this name.
pub fn format(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|f| f.name() == name)
}
