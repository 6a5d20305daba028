//! A CPU quota on every process in one namespace. It is the only part of the lab outside namespaces: the
//! kernel starves processes by control groups alone.
//!
//! In: a namespace and a quota. Out: a control group with the processes that are or will be inside. Dropping
//! it lets them go and removes the group; what a killed lab leaves (an empty group) is removed by the next
//! one.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use linerate_sys::sched;

use crate::error::{LabError, Result};
use crate::namespace::Namespace;
use crate::periodic::Periodic;

const PREFIX: &str = "linerate-lab-";
/// How soon a process that starts in the namespace is caught.
const PERIOD: Duration = Duration::from_millis(50);
/// Daemons by which a host is reached. With a quota they would time out, and the survey would report a gap
/// instead of a fault. Their children are caught.
const ACCESS_DAEMONS: [&str; 3] = ["slurmd", "slurmstepd", "sshd"];
const REMOVE_WITHIN: Duration = Duration::from_secs(2);

/// A quota in force.
#[derive(Debug)]
pub struct CpuQuota {
    group: PathBuf,
    catcher: Option<Periodic>,
}

impl CpuQuota {
    /// Gives the processes of the namespace together `quota_us` of CPU time in every `period_us`.
    pub fn start(namespace: &Namespace, quota_us: u32, period_us: u32) -> Result<Self> {
        let hierarchy = Hierarchy::find()?;
        let group = hierarchy.base.join(format!("{PREFIX}{}-{}", std::process::id(), namespace.name));
        let step = || format!("making the control group {}", group.display());
        std::fs::create_dir(&group).map_err(LabError::at(step()))?;
        let mut quota = Self { group: group.clone(), catcher: None };
        hierarchy.limit(&group, quota_us, period_us).map_err(LabError::at(step()))?;
        let inode = namespace
            .inode()
            .map_err(LabError::at(format!("looking at the namespace of {}", namespace.name)))?;
        let wanted = format!("net:[{inode}]");
        quota.catcher = Some(Periodic::start("cpu-quota", PERIOD, move || catch(&group, &wanted))?);
        Ok(quota)
    }
}

impl Drop for CpuQuota {
    fn drop(&mut self) {
        drop(self.catcher.take());
        remove(&self.group);
    }
}

/// Puts every process of the namespace that is not in the group yet into it.
fn catch(group: &Path, namespace: &str) {
    let own = std::process::id().to_string();
    let caught = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let Ok(processes) = std::fs::read_dir("/proc") else { return };
    for process in processes.flatten() {
        let name = process.file_name();
        let Some(number) = name.to_str().filter(|n| n.bytes().all(|b| b.is_ascii_digit())) else { continue };
        let inside =
            std::fs::read_link(process.path().join("ns/net")).is_ok_and(|l| l.as_os_str() == namespace);
        let is_access_daemon = || {
            let name = std::fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            ACCESS_DAEMONS.contains(&name.trim())
        };
        if inside && number != own && !caught.lines().any(|line| line == number) && !is_access_daemon() {
            drop_real_time(&process.path());
            // The process may end meanwhile.
            let _ = std::fs::write(group.join("cgroup.procs"), number);
        }
    }
}

/// Real-time threads know no quota, and some kernels do not even let them into such a group.
fn drop_real_time(process: &Path) {
    let Ok(threads) = std::fs::read_dir(process.join("task")) else { return };
    for thread in threads.flatten() {
        if let Some(number) = thread.file_name().to_str().and_then(|n| n.parse().ok()) {
            // The thread may end meanwhile.
            let _ = sched::set_normal(number);
        }
    }
}

/// Lets the processes of a group go to its parent and removes it.
fn remove(group: &Path) {
    let Some(parent) = group.parent() else { return };
    let deadline = Instant::now() + REMOVE_WITHIN;
    while group.exists() && Instant::now() < deadline {
        let members = std::fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
        for process in members.lines() {
            // The process may end meanwhile.
            let _ = std::fs::write(parent.join("cgroup.procs"), process);
        }
        // Refused as long as a process that is just ending is still counted.
        if std::fs::remove_dir(group).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Removes the groups of labs that are gone.
pub fn sweep() {
    let Ok(hierarchy) = Hierarchy::find() else { return };
    let Ok(groups) = std::fs::read_dir(&hierarchy.base) else { return };
    for group in groups.flatten() {
        let name = group.file_name();
        let owner = name.to_str().and_then(|n| n.strip_prefix(PREFIX)).and_then(|n| n.split('-').next());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            remove(&group.path());
        }
    }
}

/// The hierarchy with the CPU controller.
struct Hierarchy {
    base: PathBuf,
    unified: bool,
}

impl Hierarchy {
    fn find() -> Result<Self> {
        let root = Path::new("/sys/fs/cgroup");
        for first in ["cpu", "cpu,cpuacct"] {
            if root.join(first).join("cpu.shares").exists()
                || root.join(first).join("cpu.cfs_quota_us").exists()
            {
                return Ok(Self { base: root.join(first), unified: false });
            }
        }
        let enabled = std::fs::read_to_string(root.join("cgroup.subtree_control")).unwrap_or_default();
        if enabled.split_ascii_whitespace().any(|c| c == "cpu") {
            return Ok(Self { base: root.into(), unified: true });
        }
        Err(LabError::Unknown("this system has no CPU control group that the lab could use".into()))
    }

    fn limit(&self, group: &Path, quota_us: u32, period_us: u32) -> io::Result<()> {
        if self.unified {
            return std::fs::write(group.join("cpu.max"), format!("{quota_us} {period_us}"));
        }
        std::fs::write(group.join("cpu.cfs_period_us"), period_us.to_string())?;
        std::fs::write(group.join("cpu.cfs_quota_us"), quota_us.to_string())
    }
}
