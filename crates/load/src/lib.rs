//! Load made on purpose, between two endpoints or on a disk: paced, sampled, bounded.
//!
//! What comes in: one [`LoadSpec`] per end of a test. What goes out: a [`LoadReport`], always: whatever goes wrong is
//! written into `stopped`. Threads only. It never listens longer than its test, accepts nothing from a stream or a
//! datagram that does not show the token of the test, and never sets a buffer size of TCP unasked, because the
//! host's own limits are what is measured. Only [`iperf3`] speaks to strangers, by iperf3's own protocol, and sets what its
//! user asks for. A disk is written only in a file of the load's own, or where it provably holds nothing.
//!
//! To add a load: one file with a type that implements [`Load`], and one line in [`LOADS`].
#![deny(missing_docs)]

mod connects;
mod datagram;
mod disk;
mod door;
pub mod durable;
mod http;
pub mod iperf3;
mod job;
mod latency;
mod mtu;
mod path_mtu;
mod rtt;
mod sampler;
mod tcp;
mod token;
mod udp;
mod unproven;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use linerate_model::iperf3::Iperf3Spec;
use linerate_model::load::{CoreUse, LoadReport, LoadSpec, Role};
use linerate_sys::cpu;

pub use disk::guard;
pub use job::{Job, LoadError};

/// What the caller keeps in hand while a load runs.
pub struct Control {
    /// Set to end the load early; it ends within about 50 ms.
    pub stop: Arc<AtomicBool>,
    /// Called once by a receiver, with the port on which it is ready.
    pub listening: Box<dyn Fn(u16) + Send + Sync>,
}

/// A kind of traffic.
pub trait Load: Sync {
    /// Name of the kind in [`linerate_model::load::TestKind::name`].
    fn name(&self) -> &'static str;

    /// Runs one end and fills the report; what it filled before an error stays.
    fn run(&self, job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError>;
}

/// All loads.
pub static LOADS: &[&dyn Load] = &[
    &tcp::Tcp,
    &udp::Udp,
    &rtt::Rtt,
    &mtu::Mtu,
    &latency::Latency,
    &path_mtu::Search,
    &connects::Connects,
    &http::Http,
    &disk::Disk,
];

/// Names of all loads, and `iperf3` for [`run_against_iperf3`].
pub fn names() -> Vec<String> {
    LOADS.iter().map(|load| load.name()).chain(["iperf3"]).map(str::to_owned).collect()
}

/// Makes a whole test against a plain iperf3 server on threads of its own, in the namespace that the spec names. Returns when it
/// is over, at `deadline_ms`, or soon after `stop` was set. The report has the server's in `far`.
pub fn run_against_iperf3(spec: &Iperf3Spec, stop: &AtomicBool) -> LoadReport {
    let before = cpu::cpu_ticks(Path::new("/"));
    let mut report = std::thread::scope(|scope| {
        let work = || iperf3::survey::run(spec, stop);
        match std::thread::Builder::new().name("iperf3".into()).spawn_scoped(scope, work) {
            Ok(thread) => thread.join().unwrap_or_else(|_| stopped("the thread of the load panicked".into())),
            Err(error) => stopped(format!("cannot start a thread: {error}")),
        }
    });
    add_host_load(&before, &cpu::cpu_ticks(Path::new("/")), &mut report);
    report
}

/// Runs one end of a test on threads of its own, in the namespace that the spec names, and returns when it is over:
/// at its end, at `deadline_ms`, or soon after `stop` was set.
pub fn run(spec: &LoadSpec, control: &Control) -> LoadReport {
    let job = Job::new(spec, control);
    let mut report = std::thread::scope(|scope| {
        let main = std::thread::Builder::new().name("load".into()).spawn_scoped(scope, || one_end(&job));
        match main.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(report)) => report,
            Ok(Err(_)) => stopped("the thread of the load panicked".into()),
            Err(error) => stopped(format!("cannot start a thread: {error}")),
        }
    });
    job.complete(&mut report);
    add_host_load(&job.ticks_before(), &cpu::cpu_ticks(Path::new("/")), &mut report);
    report
}

fn stopped(reason: String) -> LoadReport {
    LoadReport { stopped: Some(reason), ..LoadReport::default() }
}

fn one_end(job: &Job<'_>) -> LoadReport {
    let mut report = LoadReport::default();
    if let Err(error) = enter_and_run(job, &mut report) {
        report.refused = error.is_refusal();
        report.stopped = Some(error.to_string());
    }
    report
}

fn enter_and_run(job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError> {
    if let Role::Sender { peer } = job.spec.role
        && peer.is_ipv4() != job.spec.bind.is_ipv4()
    {
        return Err(LoadError::Family { bind: job.spec.bind, peer });
    }
    if let Some(place) = &job.spec.netns {
        job::enter(place)?;
    }
    let name = job.spec.kind.name();
    let load = LOADS.iter().find(|load| load.name() == name).ok_or(LoadError::Unknown { name })?;
    load.run(job, report)
}

/// Fewer ticks than this in a test say nothing about how busy a CPU was.
const TICKS_MIN: u64 = 10;

/// A host may have hundreds of CPUs, and a survey thousands of tests.
const CORES_MAX: usize = 16;

/// Ticks give no more digits.
fn thousandths(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

fn add_host_load(before: &[cpu::CpuTicks], after: &[cpu::CpuTicks], report: &mut LoadReport) {
    let mut softirq = 0;
    for now in after {
        let Some(then) = before.iter().find(|then| then.cpu == now.cpu) else { continue };
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let (total, soft) = (since(now.total, then.total), since(now.softirq, then.softirq));
        softirq += soft;
        if total >= TICKS_MIN {
            let share = since(now.busy, then.busy) as f64 / total as f64;
            report.core_busy_max = Some(report.core_busy_max.map_or(share, |most| most.max(share)));
            let softirq = thousandths(soft as f64 / total as f64);
            report.cores.push(CoreUse { cpu: now.cpu, busy: thousandths(share), softirq });
        }
    }
    report.cores.sort_by(|a, b| b.busy.total_cmp(&a.busy));
    report.cores.truncate(CORES_MAX);
    if !before.is_empty() && !after.is_empty() {
        report.softirq_s = Some(softirq as f64 / cpu::ticks_per_second() as f64);
    }
}

#[cfg(test)]
mod tests;
