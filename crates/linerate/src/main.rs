//! Program `linerate`: measures all pairs of a cluster, names the culprit, tries and proves the remedy.
//!
//! What comes in: the command line. What goes out: an exit code of `linerate_model::exit`. It never writes a
//! kernel setting itself: that is the node's work.

// In a program every `pub` is the border of a room, not of the crate.
#![allow(unreachable_pub)]

mod build;
mod cli;
#[cfg(test)]
#[path = "../../fleet/src/fake_node.rs"]
mod fake_node;
mod import;
mod observe;
mod run_id;
mod trial;

fn main() -> std::process::ExitCode {
    cli::main().into()
}
