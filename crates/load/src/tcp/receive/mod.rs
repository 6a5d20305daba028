//! The ways of receiving: how bytes leave the kernel.
//!
//! What comes in: a stream. What goes out: how many bytes were taken, and a checksum where one was asked for.
//! To add one: one file with a type that implements [`ReceiveWay`] of `method.rs`, and one line in [`WAYS`].

pub(super) mod method;
mod read;
mod truncate;

use self::method::ReceiveWay;

/// All ways of receiving; the first is used when nobody chooses, the first that verifies where that is asked
/// for.
pub(crate) static WAYS: &[&dyn ReceiveWay] = &[
    &truncate::Truncate { name: "truncate", beside: false },
    &truncate::Truncate { name: "truncate-beside", beside: true },
    &read::Read { name: "read", verifies: false },
    &read::Read { name: "verify", verifies: true },
];

/// Names of all ways.
pub(crate) fn names() -> Vec<&'static str> {
    WAYS.iter().map(|way| way.name()).collect()
}
