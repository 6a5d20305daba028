//! Virtual clusters with faults of known truth: the only code of the project that breaks things.
//!
//! In: `labs/*.toml`, names of faults. Out: running clusters in network namespaces or in emulated machines,
//! with faults in them. It never touches the network of the machine that it runs on, and leaves nothing
//! behind.

pub mod access;
pub mod cgroup;
pub mod cluster;
pub mod control;
pub mod damage;
pub mod demo;
pub mod device_watch;
pub mod error;
pub mod faults;
pub mod folder;
pub mod grammar;
pub mod lab;
mod lab_file;
pub mod namespace;
pub mod operator;
pub mod periodic;
pub mod readiness;
pub mod supervisor;
pub mod topology;
pub mod vm;
pub mod wire;
