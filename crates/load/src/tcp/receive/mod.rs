//! Receive methods: how bytes leave the kernel.
//!
//! What comes in: a stream. What goes out: how many bytes were taken, and a checksum where one was asked for.
//! To add one: one file with a type that implements [`ReceiveMethod`] of `method.rs`, and one line in
//! [`METHODS`].

pub(super) mod method;
mod read;
mod truncate;

use self::method::ReceiveMethod;

/// All receive methods. The first is the default; the first that verifies is the default of verified tests.
pub(crate) static METHODS: &[&dyn ReceiveMethod] = &[
    &truncate::Truncate { name: "truncate", beside: false },
    &truncate::Truncate { name: "truncate-beside", beside: true },
    &read::Read { name: "read", verifies: false, beside: false },
    &read::Read { name: "read-beside", verifies: false, beside: true },
    &read::Read { name: "verify", verifies: true, beside: false },
];

/// Names of all methods.
pub(crate) fn names() -> Vec<&'static str> {
    METHODS.iter().map(|method| method.name()).collect()
}
