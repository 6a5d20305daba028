//! What a process has cost so far, from the kernel's own account.

/// CPU time of all threads of this process, seconds; of running ones as far as the kernel has counted.
#[must_use]
pub fn cpu_s() -> f64 {
    cpu_s_of(std::process::id()).unwrap_or(0.0)
}

/// The same of another process; `None` once it has ended.
#[must_use]
pub fn cpu_s_of(pid: u32) -> Option<f64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("schedstat")).ok();
    let ns = |text: String| text.split_ascii_whitespace().next()?.parse::<f64>().ok();
    let all: f64 = tasks.flatten().filter_map(|task| ns(of(task)?)).sum();
    (all > 0.0).then_some(all / 1e9)
}

/// A size in the status of this process, MB: `VmRSS:`, `VmHWM:`.
#[must_use]
pub fn memory_mb(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(name)).unwrap_or_default();
    line.split_ascii_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}
