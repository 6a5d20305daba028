//! Looking at the replicas of DRBD on many hosts: their states, what is in files and not in use, generation
//! identifiers, what each side has marked.

use std::path::PathBuf;
use std::pin::Pin;

use linerate_diagnose::replica_limits::SideFacts;
use linerate_model::drbd::Replica;
use linerate_model::fact::{FactValue, Gap, HostFacts};
use linerate_model::inventory::Inventory;
use linerate_model::step::HostQuery;
use linerate_storage::drbd::{Generation, KnownGenerations, ProcDevice, read_names, read_proc, read_state};

use super::join;
use super::run::read_facts;
use crate::build;
use linerate_fleet::Fleet;

/// All that was seen at a moment.
#[derive(Debug, Default)]
pub struct Replicas {
    /// All replicas of all hosts.
    pub all: Vec<Replica>,
    /// Generations and marked KiB, by host and resource.
    pub known: KnownGenerations,
    /// Hosts and resources that are in files and not in use.
    pub not_up: Vec<(String, String)>,
    /// `/proc/drbd` by host.
    pub proc: Vec<(String, Vec<ProcDevice>)>,
    /// What could not be seen.
    pub gaps: Vec<Gap>,
}

impl Replicas {
    /// A resource on a host.
    #[must_use]
    pub fn of(&self, host: &str, resource: &str) -> Option<&Replica> {
        self.all.iter().find(|replica| replica.host == host && replica.resource == resource)
    }
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

/// Facts `drbd.*` of all hosts, and the room of what is mounted from their resources. What cannot be seen is
/// left out: the states are what counts.
pub async fn sides(fleet: &Fleet, inventory: &Inventory, now: &Replicas) -> Vec<SideFacts> {
    let hosts = fleet.hosts();
    let looks = hosts
        .iter()
        .map(|host| Box::pin(side(fleet, inventory, now, host)) as Pin<Box<dyn Future<Output = _> + '_>>);
    join::all(looks.collect()).await
}

async fn side(fleet: &Fleet, inventory: &Inventory, now: &Replicas, host: &str) -> SideFacts {
    let wanted = ["drbd.", "mount."].map(str::to_owned);
    let facts = read_facts(fleet, inventory, host, &wanted).await.unwrap_or_default();
    let mut mounted = Vec::new();
    for replica in now.all.iter().filter(|r| r.host == host && r.role == "Primary") {
        for (folder, source) in mounts(&facts) {
            let is_its = |minor: u32| is_device(&source, &format!("/dev/drbd{minor}"), &replica.resource);
            if !replica.volumes.iter().any(|volume| is_its(volume.minor)) {
                continue;
            }
            let look = HostQuery::Space { folder: folder.display().to_string() };
            let seen = build::look(fleet, host, look).await;
            if let Some(space) = seen.ok().and_then(|seen| serde_json::from_str(&seen.out).ok()) {
                mounted.push((replica.resource.clone(), folder.display().to_string(), space));
            }
        }
    }
    SideFacts { host: host.to_owned(), facts, mounted }
}

/// Folders of a host with what is mounted there.
#[must_use]
pub fn mounts(facts: &HostFacts) -> Vec<(PathBuf, String)> {
    let each = facts.readings.iter().filter_map(|(key, value)| {
        let FactValue::Text(text) = value else { return None };
        let source = text.split_ascii_whitespace().nth(1)?;
        Some((PathBuf::from(key.strip_prefix("mount.")?), source.to_owned()))
    });
    each.collect()
}

/// Whether a source of a mount is the device of a resource, by number or by one of the names that udev makes.
#[must_use]
pub fn is_device(source: &str, device: &str, resource: &str) -> bool {
    let by_name = source.strip_prefix("/dev/drbd/by-res/").and_then(|rest| rest.split('/').next());
    source == device || by_name == Some(resource)
}

/// The words of an error about a host that is named before them.
fn bare(host: &str, error: &str) -> String {
    let words = error.strip_prefix(&format!("host {host}: ")).unwrap_or(error);
    words.strip_prefix(&format!("{host}: ")).unwrap_or(words).to_owned()
}

async fn one(fleet: &Fleet, host: &str) -> Replicas {
    let mut seen = Replicas::default();
    let gap = |what: &str, reason: String| Gap { what: format!("{host}: {what}").into(), reason };
    match build::look(fleet, host, HostQuery::DrbdState).await {
        Ok(state) if state.is_good() => seen.all = read_state(host, &state.out),
        Ok(state) => {
            seen.gaps.push(gap("drbd", state.err.trim().to_owned()));
            return seen;
        }
        Err(error) => {
            seen.gaps.push(gap("drbd", bare(host, &error.to_string())));
            return seen;
        }
    }
    // 9 has no such file, and everything that stands in it comes with the states.
    let devices = build::look(fleet, host, HostQuery::DrbdProc)
        .await
        .map_or_else(|_| Vec::new(), |s| read_proc(&s.out));
    for replica in &seen.all {
        let look = HostQuery::DrbdGeneration { resource: replica.resource.clone() };
        let generation = match build::look(fleet, host, look).await {
            Ok(ids) => Generation::parse(&ids.out),
            Err(_) => None,
        };
        let is_ours = |device: &&ProcDevice| replica.volumes.iter().any(|v| v.minor == device.minor);
        let marked = devices.iter().filter(is_ours).map(|device| device.out_of_sync_kib).sum();
        seen.known.insert((host.to_owned(), replica.resource.clone()), (generation, marked));
    }
    if let Ok(files) = build::look(fleet, host, HostQuery::DrbdFiles).await {
        let used = |name: &String| seen.all.iter().any(|r| r.resource == *name);
        let idle = read_names(&files.out).into_iter().filter(|name| !used(name));
        seen.not_up = idle.map(|name| (host.to_owned(), name)).collect();
    }
    seen.proc.push((host.to_owned(), devices));
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_is_said_once_for_each_host_and_its_package_once() {
        let error = |host: &str| {
            format!(
                "host {host}: {host}: cannot run drbdsetup: No such file\nhint: install drbd-utils on that host"
            )
        };
        let gap = |host: &str| Gap { what: format!("{host}: drbd").into(), reason: bare(host, &error(host)) };
        assert_eq!(
            Gap::reasons(&[gap("one"), gap("two")]),
            "one: drbd: cannot run drbdsetup: No such file; two: drbd: cannot run drbdsetup: No such file\nhint: install drbd-utils on that host"
        );
        assert_eq!(bare("one", "host two: x"), "host two: x");
    }
}
