//! Looking at the replicas of DRBD on many hosts: their states, what is in files and not in use, generation identifiers, what each side has marked.

use std::pin::Pin;

use linerate_diagnose::drbd::{Generation, Known, ProcDevice, read_names, read_proc, read_state};
use linerate_model::drbd::Replica;
use linerate_model::fact::Gap;
use linerate_model::step::Look;

use super::join;
use crate::build;
use crate::fleet::Fleet;

/// All that was seen at a moment.
#[derive(Debug, Default)]
pub struct Replicas {
    /// All replicas of all hosts.
    pub all: Vec<Replica>,
    /// Generations and marked KiB, by host and resource.
    pub known: Known,
    /// Hosts and resources that are in files and not in use.
    pub not_up: Vec<(String, String)>,
    /// `/proc/drbd` by host.
    pub proc: Vec<(String, Vec<ProcDevice>)>,
    /// What could not be seen.
    pub gaps: Vec<Gap>,
}

/// A look at a host under way.
type Looking<'a> = Pin<Box<dyn Future<Output = Replicas> + 'a>>;

/// Looks at all hosts of a fleet at the same time.
pub async fn look(fleet: &Fleet) -> Replicas {
    let hosts = fleet.hosts();
    let looks = hosts.iter().map(|host| Box::pin(one(fleet, host)) as Looking<'_>);
    let mut whole = Replicas { gaps: fleet.gaps.clone(), ..Replicas::default() };
    for seen in join::all(looks.collect()).await {
        whole.all.extend(seen.all);
        whole.known.extend(seen.known);
        whole.not_up.extend(seen.not_up);
        whole.proc.extend(seen.proc);
        whole.gaps.extend(seen.gaps);
    }
    whole.all.sort_by(|a, b| (&a.resource, &a.host).cmp(&(&b.resource, &b.host)));
    whole
}

async fn one(fleet: &Fleet, host: &str) -> Replicas {
    let mut seen = Replicas::default();
    let gap = |what: &str, reason: String| Gap { what: format!("{host}: {what}"), reason };
    match build::look(fleet, host, Look::DrbdState).await {
        Ok(state) if state.is_good() => seen.all = read_state(host, &state.out),
        Ok(state) => {
            seen.gaps.push(gap("drbd", state.err.trim().to_owned()));
            return seen;
        }
        Err(error) => {
            seen.gaps.push(gap("drbd", error.to_string()));
            return seen;
        }
    }
    // 9 has no such file, and everything that stands in it comes with the states.
    let devices =
        build::look(fleet, host, Look::DrbdProc).await.map_or_else(|_| Vec::new(), |s| read_proc(&s.out));
    for replica in &seen.all {
        let look = Look::DrbdGeneration { resource: replica.resource.clone() };
        let generation = match build::look(fleet, host, look).await {
            Ok(ids) => Generation::parse(&ids.out),
            Err(_) => None,
        };
        let is_ours = |device: &&ProcDevice| replica.volumes.iter().any(|v| v.minor == device.minor);
        let marked = devices.iter().filter(is_ours).map(|device| device.out_of_sync_kib).sum();
        seen.known.insert((host.to_owned(), replica.resource.clone()), (generation, marked));
    }
    if let Ok(files) = build::look(fleet, host, Look::DrbdFiles).await {
        let used = |name: &String| seen.all.iter().any(|r| r.resource == *name);
        let idle = read_names(&files.out).into_iter().filter(|name| !used(name));
        seen.not_up = idle.map(|name| (host.to_owned(), name)).collect();
    }
    seen.proc.push((host.to_owned(), devices));
    seen
}
