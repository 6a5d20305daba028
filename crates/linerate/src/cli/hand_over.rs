//! Commands that another program of ours carries out.
//!
//! In: the program and its arguments. Out: this process becomes that program; an error only where it cannot.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use linerate_fleet::programs::{OwnNode, lab_program};
use linerate_model::exit::ExitCode;

/// Becomes `linerate-node COMMAND`, which makes all the load and reads all the settings.
pub(super) fn to_node(command: &str, flags: &[OsString]) -> anyhow::Result<ExitCode> {
    let node = OwnNode::find()?;
    let first = node.role.iter().map(OsString::from).chain([command.into()]);
    become_it(&node.path, first.chain(flags.iter().cloned()))
}

/// Becomes `linerate-lab`, a program of its own because it breaks things.
pub(super) fn to_lab(arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    become_it(&lab_program()?, arguments)
}

fn become_it(program: &Path, arguments: impl Iterator<Item = OsString>) -> anyhow::Result<ExitCode> {
    let error = std::process::Command::new(program).args(arguments).exec();
    anyhow::bail!("cannot start {}: {error}", program.display())
}
