//! Where the threads of a transfer run.
//!
//! What comes in: what was asked for, and the own address. What goes out: threads on their CPUs. By default
//! only a host with several memory nodes is narrowed, to the node of the NIC that has the address: memory of
//! another node costs up to a third of the rate. A reader beside its packets follows the CPU that handles
//! them, so that nothing crosses between caches; its sender then stays on one CPU, or the two would chase
//! each other.

use std::io;
use std::net::{IpAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use linerate_model::tuning::Pin;
use linerate_sys::{affinity, rtnetlink, stream, sysfs};

use crate::job::LoadError;

/// How often a reader samples the CPU that handles its packets.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// CPUs that a set of the kernel's names, at most.
const CPUS_MAX: u32 = 1024;

/// Whether threads can be put on these CPUs; the error names those that this host has.
pub(super) fn check(cpus: &[u32]) -> Result<(), LoadError> {
    let usable = usable().map_err(LoadError::io("read the CPUs of this host"))?;
    let missing: Vec<u32> = cpus.iter().copied().filter(|cpu| !usable.contains(cpu)).collect();
    if cpus.is_empty() {
        let reason = "at least one CPU is needed".to_owned();
        return Err(LoadError::Option { what: "list of CPUs", value: String::new(), reason });
    }
    if missing.is_empty() { Ok(()) } else { Err(lacks(&missing, &usable)) }
}

fn lacks(missing: &[u32], usable: &[u32]) -> LoadError {
    LoadError::Cpus {
        missing: sysfs::format_cpu_list(missing),
        allowed: sysfs::format_cpu_list(usable),
        example: usable.first().copied().unwrap_or(0),
    }
}

/// The CPUs on which a thread of this program may be put: those online, of the cpuset of its cgroup. A thread
/// may leave the CPUs that it was started on, so that one of its own is needed to ask.
fn usable() -> io::Result<Vec<u32>> {
    let ask = || {
        affinity::restrict(0, &(0..CPUS_MAX).collect::<Vec<_>>())?;
        affinity::allowed()
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("cpus".into()).spawn_scoped(scope, ask)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    })
}

/// The CPUs of one end.
#[derive(Debug, Default)]
pub(super) struct Placement {
    /// Where threads may be; empty: everywhere.
    cpus: Vec<u32>,
    /// Stream by stream on one CPU each.
    fixed: bool,
    /// Streams that stay on one CPU begin with the one on which this was made: the scheduler chose it for
    /// being free.
    begin: Option<u32>,
    /// A thread could not be put where it belongs.
    failed: AtomicBool,
}

impl Placement {
    /// For an end with this address.
    pub(super) fn of(pin: &Pin, bind: IpAddr) -> Self {
        match pin {
            Pin::None => Self::default(),
            Pin::Cpus(cpus) => Self { cpus: cpus.clone(), fixed: true, ..Self::default() },
            Pin::Auto => Self {
                cpus: beside_nic(Path::new("/sys"), bind).unwrap_or_default(),
                fixed: false,
                begin: affinity::current_cpu(),
                ..Self::default()
            },
        }
    }

    /// The CPUs, for the report; empty when nothing was narrowed, or a thread could not be put there.
    pub(super) fn cpus(&self) -> Vec<u32> {
        if self.failed.load(Ordering::Relaxed) { Vec::new() } else { self.cpus.clone() }
    }

    /// Whether every thread was where the user wanted it: a CPU may go while a test begins.
    pub(super) fn verdict(&self) -> Result<(), LoadError> {
        if self.fixed && self.failed.load(Ordering::Relaxed) {
            return check(&self.cpus).and(Err(lacks(&self.cpus, &[])));
        }
        Ok(())
    }

    /// Puts the calling thread where the work on a stream belongs; `alone`: on one CPU.
    pub(super) fn take(&self, stream: usize, alone: bool) {
        let list = if self.cpus.is_empty() && alone {
            affinity::allowed().unwrap_or_default()
        } else {
            self.cpus.clone()
        };
        let first = self.begin.and_then(|cpu| list.iter().position(|known| *known == cpu)).unwrap_or(0);
        let Some(&own) = list.get((first + stream) % list.len().max(1)) else { return };
        let put =
            if alone || self.fixed { affinity::restrict(0, &[own]) } else { affinity::restrict(0, &list) };
        // The thread goes on where it is, and the report does not claim the CPUs.
        self.failed.fetch_or(put.is_err(), Ordering::Relaxed);
    }
}

/// A reader that follows its packets.
pub(super) struct Follower {
    active: bool,
    at: Option<u32>,
    next: Instant,
}

impl Follower {
    pub(super) fn new(active: bool) -> Self {
        Self { active, at: None, next: Instant::now() }
    }

    /// Moves the calling thread to the CPU that handled the last packet, now and then.
    pub(super) fn follow(&mut self, stream: &TcpStream, now: Instant) {
        if !self.active || now < self.next {
            return;
        }
        self.next = now + POLL_EVERY;
        let Some(cpu) = stream::incoming_cpu(stream) else { return };
        if self.at != Some(cpu) {
            // Where it may not go it stays, and does not ask again until the packets move.
            let _ = affinity::restrict(0, &[cpu]);
            self.at = Some(cpu);
        }
    }
}

/// The CPUs of the memory node of the NIC that has this address; `None` on a host with one node, or where it
/// is not known.
fn beside_nic(sys: &Path, address: IpAddr) -> Option<Vec<u32>> {
    let read = |path: &Path| std::fs::read_to_string(path).ok();
    if !sys.join("devices/system/node/node1").exists() {
        return None;
    }
    let link = rtnetlink::addresses().ok()?.into_iter().find(|known| known.address == address)?.link;
    let name = rtnetlink::links().ok()?.into_iter().find(|known| known.index == link)?.name;
    let node: u32 = read(&sys.join("class/net").join(name).join("device/numa_node"))?.trim().parse().ok()?;
    let cpus = sysfs::cpu_list(&read(&sys.join(format!("devices/system/node/node{node}/cpulist")))?)?;
    let allowed = affinity::allowed().ok()?;
    let usable: Vec<u32> = cpus.into_iter().filter(|cpu| allowed.contains(cpu)).collect();
    (!usable.is_empty()).then_some(usable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_take_turns_on_the_cpus_that_were_asked_for() {
        let here = affinity::allowed().unwrap();
        std::thread::spawn(move || {
            let placement = Placement::of(&Pin::Cpus(here.clone()), IpAddr::from([127, 0, 0, 1]));
            for (stream, cpu) in here.iter().enumerate() {
                placement.take(stream, false);
                assert_eq!(affinity::allowed().unwrap(), [*cpu]);
            }
            placement.take(here.len(), false);
            assert_eq!(affinity::allowed().unwrap(), [here[0]]);
            assert_eq!(placement.cpus(), here);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_and_never_reported() {
        let here = usable().unwrap();
        assert!(check(&here).is_ok() && check(&[]).is_err());
        let refused = check(&[here[0], 1023]).unwrap_err().to_string();
        let expected = format!("this host allows CPU {}", sysfs::format_cpu_list(&here));
        assert!(refused.starts_with("cannot run on CPU 1023:") && refused.contains(&expected), "{refused}");
        // As when it goes offline between the check and the start.
        let placement = Placement::of(&Pin::Cpus(vec![1023]), IpAddr::from([127, 0, 0, 1]));
        assert!(placement.verdict().is_ok());
        placement.take(0, false);
        assert!(placement.cpus().is_empty() && placement.verdict().is_err());
    }

    #[test]
    fn a_thread_may_be_put_on_a_cpu_that_the_program_was_not_started_on() {
        let here = usable().unwrap();
        std::thread::spawn(move || {
            affinity::restrict(0, &here[..1]).unwrap();
            assert_eq!(usable().unwrap(), here);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn nothing_is_narrowed_where_nothing_is_known() {
        let before = affinity::allowed().unwrap();
        Placement::of(&Pin::None, IpAddr::from([127, 0, 0, 1])).take(3, false);
        assert_eq!(affinity::allowed().unwrap(), before);
        assert_eq!(beside_nic(Path::new("/nonexistent"), IpAddr::from([127, 0, 0, 1])), None);
    }
}
