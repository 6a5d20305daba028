//! Labs of emulated machines, for what namespaces cannot show: drives, what replicates them, and power cuts.
//!
//! In: `labs/vm-*.toml`. Out: one to four guests with the distribution's own kernel, reached over ssh, whose
//! drives and links are programs of ours that can be made slow, broken or dishonest while everything runs.
//! Needs qemu, neither root nor hardware virtualisation. It never touches a device of the machine that it
//! runs on, and leaves nothing behind.

pub mod command;
mod console;
pub mod disk;
pub mod faults;
mod guest;
pub mod image;
pub mod judge;
pub mod lab;
mod power;
mod reach;
pub mod request;
pub mod stages;
pub mod switch;
pub mod topology;

/// Why guests cannot run on this machine, if they cannot: the reason that a skipped test prints.
#[must_use]
pub fn missing() -> Option<String> {
    let there = |program: &str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&paths).any(|folder| folder.join(program).is_file())
    };
    guest::NEEDED
        .iter()
        .find(|(program, _)| !there(program))
        .map(|(program, package)| format!("no {program} here (install the package {package})"))
}
