//! Runs one end of a test: its thread, its namespace, and what the host's CPUs did meanwhile.
//!
//! What comes in: a spec, the caller's control, and the loads that may be asked for. What goes out: a report,
//! always: whatever goes wrong is written into `stopped`.

use std::path::Path;

use linerate_model::load::{CoreUse, HostCpu, LoadReport, LoadSpec, Role};
use linerate_sys::cpu;

use crate::job::{self, Job, LoadControl, LoadError};
use crate::load::AnyLoad;

/// Runs one end of a test on threads of its own, in the namespace that the spec names, and returns when it is
/// over: at its end, at `deadline_ms`, or soon after `stop` was set. The kind must be one of `loads`.
pub(crate) fn run(loads: &[&dyn AnyLoad], spec: &LoadSpec, control: &LoadControl) -> LoadReport {
    let job = Job::new(spec, control);
    let mut report = std::thread::scope(|scope| {
        let main =
            std::thread::Builder::new().name("load".into()).spawn_scoped(scope, || one_end(loads, &job));
        match main.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(report)) => report,
            Ok(Err(_)) => stopped("the thread of the load panicked".into()),
            Err(error) => stopped(format!("cannot start a thread: {error}")),
        }
    });
    job.complete(&mut report);
    add_host_load(&job.ticks_before(), &cpu::cpu_ticks(Path::new("/")), &mut report);
    if let Some(host) = &mut report.host_cpu {
        host.same_host = spec.same_host;
    }
    report
}

/// The report of a test that did not begin, or whose thread was lost.
pub(crate) fn stopped(reason: String) -> LoadReport {
    LoadReport { stopped: Some(reason), ..LoadReport::default() }
}

fn one_end(loads: &[&dyn AnyLoad], job: &Job<'_>) -> LoadReport {
    let mut report = LoadReport::default();
    if let Err(error) = enter_and_run(loads, job, &mut report) {
        report.refused = error.is_refusal();
        report.stopped = Some(error.to_string());
    }
    report
}

fn enter_and_run(loads: &[&dyn AnyLoad], job: &Job<'_>, report: &mut LoadReport) -> Result<(), LoadError> {
    if let Role::Sender { peer } = job.spec.role
        && peer.is_ipv4() != job.spec.bind.is_ipv4()
    {
        return Err(LoadError::Family { bind: job.spec.bind, peer });
    }
    if let Some(netns) = &job.spec.netns {
        job::enter(netns)?;
    }
    let name = job.spec.kind.name();
    let load = loads.iter().find(|load| load.name() == name).ok_or(LoadError::Unknown { name })?;
    load.run_checked(job, report)
}

/// With fewer ticks than this, the load of a CPU is unknown.
const TICKS_MIN: u64 = 10;

/// A host may have hundreds of CPUs, and a survey thousands of tests.
const CORES_MAX: usize = 16;

/// Ticks give no more digits.
fn thousandths(share: f64) -> f64 {
    (share * 1000.0).round() / 1000.0
}

/// Adds how busy the CPUs of the host were between two readings.
pub(crate) fn add_host_load(before: &[cpu::CpuTicks], after: &[cpu::CpuTicks], report: &mut LoadReport) {
    for now in after {
        let Some(then) = before.iter().find(|then| then.cpu == now.cpu) else { continue };
        let since = |now: u64, then: u64| now.saturating_sub(then);
        let (total, soft) = (since(now.total, then.total), since(now.softirq, then.softirq));
        if total >= TICKS_MIN {
            let share = since(now.busy, then.busy) as f64 / total as f64;
            report.core_busy_max = Some(report.core_busy_max.map_or(share, |most| most.max(share)));
            let softirq = thousandths(soft as f64 / total as f64);
            report.cores.push(CoreUse { cpu: now.cpu, busy: thousandths(share), softirq });
        }
    }
    report.cores.sort_by(|a, b| b.busy.total_cmp(&a.busy));
    report.cores.truncate(CORES_MAX);
    report.host_cpu = host_cpu(before, after);
    report.softirq_s = report.host_cpu.map(|host| host.softirq_s);
}

/// CPU time of the whole host between two readings; `None` where the kernel does not report it.
pub(crate) fn host_cpu(before: &[cpu::CpuTicks], after: &[cpu::CpuTicks]) -> Option<HostCpu> {
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let since = cpu::ticks_since(before, after);
    let seconds = |ticks: u64| ticks as f64 / cpu::ticks_per_second() as f64;
    Some(HostCpu {
        busy_s: seconds(since.busy),
        softirq_s: seconds(since.softirq),
        steal_s: seconds(since.steal),
        capacity_s: seconds(since.total),
        same_host: false,
    })
}
