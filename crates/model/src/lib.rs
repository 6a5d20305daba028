//! The nouns of linerate, in the order of the flow:
//!
//! `Inventory` -> `Plan` -> (samples, readings, gaps) -> `Snapshot` -> findings -> `Remedy` -> `Trial` ->
//! report and store.
//!
//! What comes in: nothing. What goes out: plain types that cross a crate border, the wire or the disk. It
//! never reads a file, a clock or a socket. Its logic is validation, what the reports of a test come to, the
//! order of names, the arithmetic of a histogram, seeded numbers, and how a number or an imported text is
//! written for people.
#![deny(missing_docs)]

pub mod advice;
pub mod agents;
pub mod announced;
pub mod audit;
pub mod ceiling;
pub mod change;
pub mod check;
pub mod clue;
pub mod connects;
pub mod datagram;
pub mod day_hours;
pub mod difference;
pub mod disk;
pub mod disk_load;
pub mod disk_user;
pub mod download;
pub mod drbd;
pub mod drbd_bench;
pub mod drift;
pub mod drops;
pub mod durability;
pub mod exit;
pub mod fact;
pub mod fact_change;
pub mod fact_map;
pub mod finding;
pub mod histogram;
pub mod http;
pub mod imported;
pub mod inside;
pub mod inventory;
pub mod iperf3;
pub mod kind;
pub mod latency;
pub mod load;
pub mod names;
pub mod notice;
pub mod notify;
pub mod outlier;
pub mod path_methods;
pub mod path_mtu;
pub mod plan;
pub mod printable;
pub mod probe;
pub mod random;
pub mod remark;
mod response;
pub mod retry;
pub mod rounds;
pub mod run_id;
pub mod sample;
pub mod shell;
pub mod slow;
pub mod snapshot;
pub mod statistics;
pub mod step;
pub mod suspect;
pub mod symptom;
pub mod throughput;
pub mod trial;
pub mod tuning;
pub mod units;
pub mod uri;
pub mod verdict;
pub mod watch;
pub mod writable;

/// Version of every stored or sent shape of this crate. Raised when a field changes its meaning or goes away;
/// a new optional field does not raise it.
pub const SCHEMA: u32 = 1;
