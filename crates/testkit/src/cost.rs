//! What this process has cost so far, from the kernel's own account.

/// CPU time of all threads, seconds; of running ones as far as the kernel has counted.
#[must_use]
pub fn cpu_s() -> f64 {
    let threads = std::fs::read_dir("/proc/self/task").map_or(0.0, |tasks| {
        let of = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("schedstat")).ok();
        let ns = |text: String| text.split_ascii_whitespace().next()?.parse::<f64>().ok();
        tasks.flatten().filter_map(|task| ns(of(task)?)).sum()
    });
    threads / 1e9
}

/// A size in the status of the process, MB: `VmRSS:`, `VmHWM:`.
#[must_use]
pub fn memory_mb(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with(name)).unwrap_or_default();
    line.split_ascii_whitespace().nth(1).and_then(|kb| kb.parse::<u64>().ok()).unwrap_or(0) / 1024
}
