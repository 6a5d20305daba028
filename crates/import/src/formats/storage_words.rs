//! Storage in titles, file names and commands: what a figure was measured on, and over which transport.

use linerate_model::snapshot::StorageSubject;

use crate::context::Context;

/// Transports under a replication that are no plain Ethernet.
pub(super) const TRANSPORTS: [&str; 4] = ["ipoib", "sdp", "rdma", "srp"];

/// `Cache Status: Permanently Disabled` of the tools of a controller: name and value.
pub(super) fn field(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let name = name.trim();
    let is_name =
        name.len() <= 40 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b" /()-_".contains(&b));
    (is_name && !name.is_empty()).then(|| (name, value.trim()))
}

/// The transport that is named, if any.
pub(crate) fn transport(context: &Context) -> Option<String> {
    TRANSPORTS.iter().find(|word| context.mentions(word)).map(|word| (*word).to_owned())
}

/// The transport that the announcement above the command names, if it is one.
pub(super) fn announced_transport(context: &Context) -> Option<String> {
    let title = context.title.to_lowercase();
    let mut named =
        TRANSPORTS.iter().filter(|word| title.split(|c: char| !c.is_alphanumeric()).any(|w| w == **word));
    named.next().filter(|_| named.next().is_none()).map(|word| (*word).to_owned())
}

/// A replica where DRBD or another replication is named, else a disk alone.
pub(crate) fn location(context: &Context) -> StorageSubject {
    if ["drbd", "replicat", "gluster", "ceph", "rbd"].iter().any(|word| context.mentions(word)) {
        StorageSubject::Replicated
    } else {
        StorageSubject::LocalDisk
    }
}
