//! Program `linerate`: measures all pairs of a cluster, names the culprit, tries and proves the remedy.
//!
//! What comes in: the command line. What goes out: an exit code of `linerate_model::exit`. It never writes a
//! kernel setting itself: that is the node's work. Where it is alone it is started a second time as the node,
//! by its name or by its first argument.

// In a program every `pub` is the border of a room, not of the crate.
#![allow(unreachable_pub)]

mod cli;
mod import;
mod prometheus;

use std::ffi::OsStr;
use std::path::Path;

use linerate_fleet::programs::NODE_ROLE;

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args_os();
    let own_name = arguments.next().unwrap_or_default();
    let mut arguments = arguments.peekable();
    // A copy on a host is run by its descriptor: its file has the name.
    let file = std::env::current_exe().unwrap_or_default();
    if is_node(&own_name)
        || is_node(file.as_os_str())
        || arguments.next_if(|first| first == NODE_ROLE).is_some()
    {
        return linerate_node::main(arguments);
    }
    cli::main().into()
}

/// Whether a program that is called so is the node.
fn is_node(path: &OsStr) -> bool {
    let name = Path::new(path).file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b"linerate-node")
}
