//! iperf3's protocol, so that whatever only has iperf3 can be one end of a test.
//!
//! The pure part: [`protocol`] (states, cookie, framing), [`parameters`] and [`results`] (the messages), [`client`] and
//! [`server`] (the two state machines): bytes in, bytes and events out, no socket and no clock. Around it [`ask`] and [`serve`],
//! which drive them over sockets, with one thread per stream; [`flags`], [`json`], [`text`] and [`printer`] for the command
//! line; `survey` for one test of a survey.
pub mod ask;
pub mod auth;
mod board;
pub mod client;
mod control;
pub mod flags;
pub mod json;
mod lenient;
mod lobby;
pub mod parameters;
pub mod printer;
pub mod protocol;
pub mod record;
pub mod results;
pub mod serve;
pub mod server;
mod streams;
pub(crate) mod survey;
mod tally;
pub mod text;
mod traffic;

#[cfg(test)]
mod machine_tests;
