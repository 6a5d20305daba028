//! iperf3's protocol, so that a device that has only iperf3 can be one end of a test.
//!
//! The pure part: [`protocol`] (states, cookie, framing), [`parameters`] and [`results`] (the messages),
//! [`client`] and [`server`] (the two state machines): bytes in, bytes and events out, no socket and no
//! clock. Around it [`ask`] and [`serve`], which drive them over sockets, with one thread per stream;
//! [`flags`], [`json`], [`text`], [`printer`] and [`command`] for the command line. Unlike the loads it
//! accepts connections without a token, as iperf3's protocol has none, and sets the options that its user
//! asks for.
#![deny(missing_docs)]

pub mod ask;
pub mod auth;
mod board;
pub mod client;
pub mod command;
mod control;
pub mod flags;
pub mod json;
mod lenient;
mod lobby;
pub mod parameters;
mod printable;
pub mod printer;
pub mod protocol;
pub mod record;
pub mod results;
pub mod serve;
pub mod server;
mod streams;
mod tally;
pub mod text;
mod trace;
mod traffic;

use std::time::Duration;

/// How long any thread waits at most before it reads its stop flag again.
const SLICE: Duration = Duration::from_millis(20);

#[cfg(test)]
mod machine_tests;
