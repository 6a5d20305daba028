//! How a node program is started on a host: what a transport is.
//!
//! What comes in: a host of the inventory and the path of the node program. What goes out: the command line
//! to run here. A transport never speaks the protocol and decides nothing about the host.

use std::ffi::OsString;
use std::path::Path;

use linerate_model::inventory::Host;

/// One way to reach a host. To add one: a file beside this one, a line in `TRANSPORTS` (see `transports`), a
/// variant in the model.
pub(crate) trait Transport: Sync {
    /// The command line that runs the node program on this host, with its stdin and stdout as the session;
    /// `None` when the host is reached in another way. Where the program first has to get there (ssh) it
    /// starts the talk that copies it.
    fn argv(&self, host: &Host, program: &Path) -> Option<Vec<OsString>>;
}
