//! Where the threads of a transfer run.
//!
//! What comes in: what was asked for, and the own address. What goes out: threads on their CPUs. By default only a host with
//! several memory nodes is narrowed, to the node of the NIC that has the address: memory of another node costs up to a
//! third of the rate. A reader beside its packets follows the CPU that handles them, so that nothing crosses between caches;
//! its sender then stays on one CPU, or the two would chase each other.

use std::net::{IpAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use linerate_model::tuning::Pin;
use linerate_sys::{affinity, rtnetlink, stream, sysfs};

/// How often a reader looks where its packets are handled.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The CPUs of one end.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// Where threads may be; empty: everywhere.
    cpus: Vec<u32>,
    /// Stream by stream on one CPU each.
    fixed: bool,
    /// Streams that stay on one CPU begin with the one on which this was made: the scheduler chose it for being free.
    begin: Option<u32>,
}

impl Place {
    /// For an end with this address.
    pub(super) fn of(pin: &Pin, bind: IpAddr) -> Self {
        match pin {
            Pin::None => Self::default(),
            Pin::Cpus(cpus) => Self { cpus: cpus.clone(), fixed: true, begin: None },
            Pin::Auto => Self {
                cpus: beside_nic(Path::new("/sys"), bind).unwrap_or_default(),
                fixed: false,
                begin: affinity::current_cpu(),
            },
        }
    }

    /// The CPUs, for the report; empty when nothing was narrowed.
    pub(super) fn cpus(&self) -> &[u32] {
        &self.cpus
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
        // A CPU that is not there, or not ours, leaves the thread where it is; the report says what was asked for.
        let _ =
            if alone || self.fixed { affinity::restrict(0, &[own]) } else { affinity::restrict(0, &list) };
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
        self.next = now + LOOK_EVERY;
        let Some(cpu) = stream::incoming_cpu(stream) else { return };
        if self.at != Some(cpu) {
            // Where it may not go it stays, and does not ask again until the packets move.
            let _ = affinity::restrict(0, &[cpu]);
            self.at = Some(cpu);
        }
    }
}

/// The CPUs of the memory node of the NIC that has this address; `None` on a host with one node, or where it is not known.
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
            let place = Place::of(&Pin::Cpus(here.clone()), IpAddr::from([127, 0, 0, 1]));
            for (stream, cpu) in here.iter().enumerate() {
                place.take(stream, false);
                assert_eq!(affinity::allowed().unwrap(), [*cpu]);
            }
            place.take(here.len(), false);
            assert_eq!(affinity::allowed().unwrap(), [here[0]]);
            assert_eq!(place.cpus(), here);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn nothing_is_narrowed_where_nothing_is_known() {
        let before = affinity::allowed().unwrap();
        Place::of(&Pin::None, IpAddr::from([127, 0, 0, 1])).take(3, false);
        assert_eq!(affinity::allowed().unwrap(), before);
        assert_eq!(beside_nic(Path::new("/nonexistent"), IpAddr::from([127, 0, 0, 1])), None);
    }
}
