//! Send methods: how bytes come from memory into the kernel.
//!
//! What comes in: the content and a stream. What goes out: bytes that the kernel took. Byte number `p` of
//! every stream is byte `p` modulo the length of the content, whatever the method and however short a write
//! was. To add one: one file with a type that implements [`SendMethod`] of `method.rs`, and one line in
//! [`METHODS`].

pub(super) mod content;
pub(super) mod method;
mod sendfile;
mod splice;
mod write;
mod zerocopy;

use self::method::SendMethod;

/// All send methods; the first is the default.
pub(crate) static METHODS: &[&dyn SendMethod] = &[
    &write::Write { name: "write", call_bytes: 1 << 20 },
    &write::Write { name: "write-4m", call_bytes: 4 << 20 },
    &sendfile::SendFile,
    &zerocopy::ZeroCopy,
    &splice::Splice,
];

/// Names of all methods.
pub(crate) fn names() -> Vec<&'static str> {
    METHODS.iter().map(|method| method.name()).collect()
}
