//! The protocol between operator and node: bytes in, events out. No I/O, no clock.
#![deny(missing_docs)]
pub mod message;
