//! The ways of sending: how bytes come from memory into the kernel.
//!
//! What comes in: the content and a stream. What goes out: bytes that the kernel took. Byte number `p` of
//! every stream is byte `p` modulo the length of the content, whatever the way and however short a write was.
//! To add one: one file with a type that implements [`SendWay`] of `method.rs`, and one line in [`WAYS`].

pub(super) mod content;
pub(super) mod method;
mod sendfile;
mod splice;
mod write;
mod zerocopy;

use self::method::SendWay;

/// All ways of sending; the first is used when nobody chooses.
pub(crate) static WAYS: &[&dyn SendWay] = &[
    &write::Write { name: "write", call_bytes: 1 << 20 },
    &write::Write { name: "write-4m", call_bytes: 4 << 20 },
    &sendfile::SendFile,
    &zerocopy::ZeroCopy,
    &splice::Splice,
];

/// Names of all ways.
pub(crate) fn names() -> Vec<&'static str> {
    WAYS.iter().map(|way| way.name()).collect()
}
