//! Requests to a file or a block device: random or sequential, reads and writes in any share, direct or
//! cached.
//!
//! What comes in: a target and phases. What goes out: for each phase requests, bytes, how long each request
//! took, a point every tenth of a second, the CPU time, what the device below counted, and why a figure is no
//! evidence. It is bounded in time, bytes and requests. After a stop it ends with the requests in flight. It
//! never writes anything but a file of its own or a device that provably holds nothing ([`guard`]).

mod below;
mod doubt;
pub mod guard;
mod methods;
mod seal;
mod target;
#[cfg(test)]
mod tests;
mod worker;

use std::fs::File;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use linerate_model::disk_load::{DiskEnd, DiskPhase, DiskResult, DiskTarget, Durable, THREADS_MAX};
use linerate_model::kind::DiskPlan;
use linerate_model::load::LoadReport;
use linerate_sys::cpu;
use linerate_sys::pages::Buffer;
use linerate_sys::root::Root;

use self::doubt::Seen;
use self::methods::queue::Method;
use self::target::Target;
use self::worker::{Tally, Work};
use crate::job::{Job, LoadError};
use crate::load::Load;

/// The load `disk`.
pub(crate) struct Disk;

impl Load for Disk {
    type Plan = DiskPlan;

    fn run(&self, job: &Job<'_>, plan: &DiskPlan, report: &mut LoadReport) -> Result<(), LoadError> {
        writes_only_what_it_may(plan)?;
        let begun = Instant::now();
        let mut end = DiskEnd { memory_bytes: memory_bytes(&Root::live()), ..DiskEnd::default() };
        let result = all(job, plan, &mut end);
        report.elapsed_s = begun.elapsed().as_secs_f64();
        report.bytes = end.phases.iter().map(|p| p.read.bytes + p.write.bytes).sum();
        report.disk = Some(Box::new(end));
        result
    }
}

fn writes_only_what_it_may(plan: &DiskPlan) -> Result<(), LoadError> {
    let Some(phase) = plan.phases.iter().find(|p| p.writes() && !plan.target.is_writable()) else {
        return Ok(());
    };
    let (path, hint) = (plan.target.path().clone(), "what is there is only read: --read");
    Err(LoadError::Target { path, reason: format!("`{phase}` would write it"), hint })
}

/// Memory of this host, bytes; 0 when it is not to be seen.
fn memory_bytes(root: &Root) -> u64 {
    let text = root.read("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0).saturating_mul(1024)
}

fn all(job: &Job<'_>, plan: &DiskPlan, end: &mut DiskEnd) -> Result<(), LoadError> {
    let mut target = target::prepare(job, &plan.target, end)?;
    let root = Root::live();
    describe(&root, &mut target, &plan.target, end);
    let result = phases(job, plan, &target, &root, end);
    let device = end.device.clone();
    end.remarks.extend(target.put_back(&device));
    result
}

fn phases(
    job: &Job<'_>,
    plan: &DiskPlan,
    target: &Target,
    root: &Root,
    end: &mut DiskEnd,
) -> Result<(), LoadError> {
    for (index, phase) in plan.phases.iter().enumerate() {
        job.check("measuring")?;
        let result = one(job, plan, phase, target, root, (index as u64, end.memory_bytes))?;
        end.phases.push(result);
    }
    job.check("measuring")
}

/// Names of the device and of the file system, for people.
fn describe(root: &Root, target: &mut Target, asked: &DiskTarget, end: &mut DiskEnd) {
    let Some(number) = target.device else {
        let path = asked.path().to_string_lossy();
        end.filesystem = filesystem_of(root, |m| path.starts_with(&m.point));
        return;
    };
    let link = root.link_name(&format!("/sys/dev/block/{number}"));
    end.device = link.unwrap_or_else(|_| number.to_string());
    target.is_memory |= ["ram", "zram"].iter().any(|start| end.device.starts_with(start));
    if matches!(asked, DiskTarget::Folder { .. }) {
        end.filesystem = filesystem_of(root, |m| m.number == number.to_string());
    }
}

/// Type of the last matching mount: the longest path.
fn filesystem_of(root: &Root, is_it: impl Fn(&linerate_sys::procfs::Mount) -> bool) -> String {
    let text = root.read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = linerate_sys::procfs::mounts(&text);
    let found = mounts.into_iter().filter(|m| is_it(m)).max_by_key(|m| m.point.len());
    found.map_or_else(String::new, |m| m.kind)
}

/// How a phase is divided among threads.
struct Shares {
    threads: u64,
    depth: usize,
    /// Of all threads together.
    requests_max: u64,
}

/// A method with one request per thread in flight gets more threads.
fn shares(plan: &DiskPlan, phase: &DiskPhase, method: &dyn Method) -> Shares {
    let (threads, depth) = if method.many() {
        (u64::from(phase.threads), usize::from(phase.depth))
    } else {
        (u64::from(phase.outstanding().min(THREADS_MAX.into())), 1)
    };
    let by_bytes = plan.bytes_max.map_or(u64::MAX, |bytes| bytes / u64::from(phase.block_bytes));
    let all = by_bytes.min(plan.requests_max.unwrap_or(u64::MAX));
    Shares { threads, depth, requests_max: all.max(1) }
}

fn one(
    job: &Job<'_>,
    plan: &DiskPlan,
    phase: &DiskPhase,
    target: &Target,
    root: &Root,
    (index, memory_bytes): (u64, u64),
) -> Result<DiskResult, LoadError> {
    let file = target.open(phase)?;
    let (method, mut remark) = methods::choose(plan.way.as_deref(), &file)?;
    let shares = shares(plan, phase, method);
    let block = u64::from(phase.block_bytes);
    if target.bytes / shares.threads < block {
        let bytes = (target.bytes / shares.threads) as f64;
        return Err(LoadError::Spec {
            what: "the part of each thread",
            value: bytes,
            limit: "a request or more",
        });
    }
    let works: Vec<Work> =
        (0..shares.threads).map(|n| work(plan, phase, target, &shares, (n, index))).collect();
    let (before, cpu_before) = (below::sample(root, target.device), cpu::process_times());
    let (mut tally, worker_remark) = together(job, method, &file, &works)?;
    let mut last_flush = Duration::ZERO;
    if !phase.direct && phase.writes() && phase.durable == Durable::Never {
        let begun = Instant::now();
        file.sync_data().map_err(LoadError::io("flush"))?;
        last_flush = begun.elapsed();
    }
    let (after, cpu_after) = (below::sample(root, target.device), cpu::process_times());
    remark = remark.or(worker_remark);
    tally.elapsed += last_flush;
    let spent = |(user, kernel): (Duration, Duration)| (user + kernel).as_secs_f64();
    let device = after.device(&before);
    let seen = Seen {
        requests: tally.read.requests + tally.write.requests,
        read_bytes: tally.read.bytes,
        from_storage: after.storage_read(&before),
        write_bytes: tally.write.bytes,
        to_device: device.map(|share| share.write_bytes),
        target_bytes: target.bytes,
        memory_bytes,
        is_memory: target.is_memory,
        checked: tally.checked,
        zero: tally.zero,
    };
    Ok(DiskResult {
        phase: *phase,
        read: tally.read,
        write: tally.write,
        flush_ns: tally.flush_ns,
        elapsed_s: tally.elapsed.as_secs_f64(),
        last_flush_s: last_flush.as_secs_f64(),
        cpu_s: (spent(cpu_after) - spent(cpu_before)).max(0.0),
        series: tally.series,
        way: method.name().to_owned(),
        remark,
        device,
        doubts: doubt::doubts(phase, &seen),
    })
}

/// What thread `n` does in a phase.
fn work(
    plan: &DiskPlan,
    phase: &DiskPhase,
    target: &Target,
    shares: &Shares,
    (n, index): (u64, u64),
) -> Work {
    let block = u64::from(phase.block_bytes);
    let (start, bytes) = if phase.random {
        (target.start, target.bytes)
    } else {
        let part = target.bytes / shares.threads / block * block;
        (target.start + n * part, part)
    };
    Work {
        phase: *phase,
        start,
        blocks: bytes / block,
        slots: shares.depth,
        // What does not divide goes to the first ones.
        requests_max: shares.requests_max / shares.threads
            + u64::from(n < shares.requests_max % shares.threads),
        limit: Duration::from_millis(plan.phase_ms.into()),
        seed: (index << 32) + n + 1,
    }
}

/// Runs all threads of a phase, which begin together; with what their queues lack.
fn together(
    job: &Job<'_>,
    method: &dyn Method,
    file: &File,
    works: &[Work],
) -> Result<(Tally, Option<String>), LoadError> {
    let begin = Barrier::new(works.len());
    let results: Vec<Result<(Tally, Option<String>), LoadError>> = std::thread::scope(|scope| {
        let threads: Vec<_> = works
            .iter()
            .map(|work| scope.spawn(|| job.account(|| thread(job, method, file, *work, &begin))))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(panicked()))).collect()
    });
    let mut tally = Tally::default();
    let mut remark = None;
    for result in results {
        let (one, worker_remark) = result?;
        tally.merge(one);
        remark = remark.or(worker_remark);
    }
    Ok((tally, remark))
}

fn panicked() -> LoadError {
    LoadError::Io { what: "make requests", source: std::io::Error::other("a thread of the load panicked") }
}

fn thread(
    job: &Job<'_>,
    method: &dyn Method,
    file: &File,
    work: Work,
    begin: &Barrier,
) -> Result<(Tally, Option<String>), LoadError> {
    let slot_bytes = work.phase.block_bytes as usize;
    let queue = Buffer::new(work.slots * slot_bytes)
        .and_then(|buffer| file.try_clone().map(|file| (buffer, file)))
        .and_then(|(buffer, file)| method.open(file, buffer, slot_bytes));
    // All wait for all, also for one that cannot begin.
    begin.wait();
    let mut queue = queue.map_err(LoadError::io("open a queue"))?;
    let tally = worker::run(job, work, &mut *queue)?;
    Ok((tally, queue.remark()))
}
