//! Load made on purpose, between two endpoints or on a disk: paced, sampled, bounded.
//!
//! What comes in: one [`LoadSpec`] per end of a test. What goes out: a [`LoadReport`], always: whatever goes
//! wrong is written into `stopped`. Threads only. It never listens longer than its test, accepts nothing from
//! a stream or a datagram that does not show the token of the test, and never sets a buffer size of TCP
//! unasked, because the host's own limits are what is measured. A disk is written only in a file of the
//! load's own, or where it provably holds nothing.
//!
//! To add a load: one file with a type that implements [`Load`], and one line in [`LOADS`]. What it is asked
//! for is a [`linerate_model::kind::TestPlan`].
#![deny(missing_docs)]

mod admission;
mod connects;
mod datagram;
mod disk;
pub mod durable;
mod endpoint;
mod http;
mod job;
mod latency;
mod load;
mod path_mtu_probe;
mod path_mtu_search;
mod probe;
mod rtt;
mod sampler;
mod tcp;
mod token;
mod udp;
pub mod unproven;

use std::path::Path;

use linerate_model::load::{LoadReport, LoadSpec};
use linerate_sys::cpu;

use self::endpoint::{add_host_load, stopped};

pub use disk::guard;
pub use http::{GetAnswer, GetError, GetLimits, get};
pub use job::{Job, LoadControl, LoadError, enter};
pub use load::{AnyLoad, Load};
pub use probe::Probing;
pub use sampler::INTERVAL;

/// All loads.
pub static LOADS: &[&dyn AnyLoad] = &[
    &tcp::Tcp,
    &udp::Udp,
    &rtt::Rtt,
    &path_mtu_probe::Mtu,
    &latency::Latency,
    &path_mtu_search::Search,
    &connects::Connects,
    &http::Http,
    &disk::Disk,
];

/// Names of all loads.
pub fn names() -> Vec<String> {
    LOADS.iter().map(|load| load.name().to_owned()).collect()
}

/// Runs one end of a test on threads of its own, in the namespace that the spec names, and returns when it is
/// over: at its end, at `deadline_ms`, or soon after `stop` was set.
pub fn run(spec: &LoadSpec, control: &LoadControl) -> LoadReport {
    endpoint::run(LOADS, spec, control)
}

/// Runs a test that another crate makes on a thread with this name. Adds to its report what the CPUs of the
/// host did meanwhile.
pub fn run_external(name: &str, test: impl FnOnce() -> LoadReport + Send) -> LoadReport {
    let before = cpu::cpu_ticks(Path::new("/"));
    let mut report = std::thread::scope(|scope| {
        match std::thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, test) {
            Ok(thread) => thread.join().unwrap_or_else(|_| stopped("the thread of the load panicked".into())),
            Err(error) => stopped(format!("cannot start a thread: {error}")),
        }
    });
    add_host_load(&before, &cpu::cpu_ticks(Path::new("/")), &mut report);
    report
}

#[cfg(test)]
mod tests;
