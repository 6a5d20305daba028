//! The protocol between operator and node: bytes in, events out. No I/O, no clock.
//!
//! [`message`] defines requests and events, [`frame`] their encoding, [`session`] their order, [`silence`]
//! when an end is given up, [`sealed`] the encryption where a session goes over a network, [`agent`] the file
//! of an agent. The owner of the pipe feeds received bytes and the time, and writes the bytes that come out.
#![deny(missing_docs)]
pub mod agent;
pub mod frame;
pub mod message;
pub mod sealed;
pub mod session;
pub mod silence;

/// Build id: operator and node of the same build have the same. Packagers set `LINERATE_BUILD` when they
/// compile.
pub const BUILD: &str = match option_env!("LINERATE_BUILD") {
    Some(build) => build,
    None => concat!(env!("CARGO_PKG_VERSION"), "-unmarked"),
};
