//! What a session measures and reads, each request on a thread of its own.
//!
//! In: a request. Out: its events. Changes nothing but the files that a load makes for itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_load::Probing;
use linerate_model::fact::{FactDecl, FactKey, Gap};
use linerate_model::load::LoadReport;
use linerate_model::probe::{ProbeReport, ProbeRequest};
use linerate_sys::root::Root;
use linerate_wire::message::{Event, ObserveRequest};

use crate::disk_times::DiskTimes;
use crate::notices::Following;
use crate::packet_drops::DropCounts;
use crate::{against_iperf3, audit, disk_times, packet_drops};

/// What readings of facts need of their session.
#[derive(Clone)]
pub(crate) struct Reader {
    /// Why `/sys` is not that of our namespace; goes into every answer with facts.
    pub(crate) sysfs_gap: Option<String>,
    /// What stands for `/etc` on this host.
    pub(crate) etc_dir: PathBuf,
    /// How long requests to disks take, from when it was asked first.
    pub(crate) times: Arc<DiskTimes>,
    /// The packets that the kernel drops, from when it is asked first.
    pub(crate) drops: Arc<DropCounts>,
    /// The facts that are followed.
    pub(crate) following: Arc<Mutex<Option<Following>>>,
    /// Probes between this host and others.
    pub(crate) probing: Arc<Mutex<Option<Arc<Probing>>>>,
}

/// Everything that can be read here, counters included.
pub(crate) fn declarations() -> Vec<FactDecl> {
    let of_programs = disk_times::declarations().into_iter().chain(packet_drops::declarations());
    linerate_facts::declarations().into_iter().chain(of_programs).collect()
}

/// Carries a request out; the last of its events are returned, `send` takes those before the end.
pub(crate) fn answer(
    reader: &Reader,
    request: ObserveRequest,
    stop: &Arc<AtomicBool>,
    send: impl Fn(Event) + Send + Sync + 'static,
) -> Vec<Event> {
    let answered = match request {
        ObserveRequest::Facts { prefixes, netns } => {
            let mut facts = linerate_facts::read(&Root::live(), &prefixes, &netns);
            reader.times.add(&prefixes, &mut facts);
            linerate_facts::boot_files::add(&Root::live(), &reader.etc_dir, &prefixes, &mut facts);
            let gap = |reason| Gap { what: "nic.".into(), reason };
            facts.gaps.extend(reader.sysfs_gap.clone().map(gap));
            Ok(Event::Facts(Box::new(facts)))
        }
        ObserveRequest::Drops => {
            let mut facts = linerate_facts::loss_counters(&Root::live());
            reader.drops.add(&mut facts);
            facts.gaps.extend(reader.sysfs_gap.clone().map(|reason| Gap { what: "nic.".into(), reason }));
            Ok(Event::Facts(Box::new(facts)))
        }
        ObserveRequest::Follow { prefixes, writers } => {
            let read = |wanted: &[FactKey]| linerate_facts::read(&Root::live(), wanted, &[]);
            let (facts, following) = Following::begin(prefixes, writers, read);
            *reader.following.lock().unwrap_or_else(PoisonError::into_inner) = Some(following);
            Ok(Event::Facts(Box::new(facts)))
        }
        ObserveRequest::Notices => {
            let following = reader.following.lock().unwrap_or_else(PoisonError::into_inner);
            let notices = following.as_ref().map(|following| following.notices(stop));
            notices
                .map(Event::Noticed)
                .ok_or_else(|| "no facts are followed\nhint: ask to follow first".to_owned())
        }
        ObserveRequest::Probe(request) => match probe(reader, request, stop) {
            Ok(Some(report)) => Ok(Event::Probed(report)),
            Ok(None) => return vec![Event::Done],
            Err(error) => Err(error),
        },
        ObserveRequest::Load(spec) => {
            let listening = Box::new(move |port| send(Event::Listening { port }));
            let control = linerate_load::LoadControl { stop: Arc::clone(stop), listening };
            return vec![with_counters(|| linerate_load::run(&spec, &control))];
        }
        ObserveRequest::Iperf3(spec) => return vec![with_counters(|| against_iperf3::run(&spec, stop))],
        ObserveRequest::Durability(request) => linerate_load::durable::run(&request, stop)
            .map(|answer| Event::Durability(Box::new(answer)))
            .map_err(|error| error.to_string()),
        ObserveRequest::Audit(request) => {
            audit::run(&request, stop).map(|part| Event::Audit(Box::new(part))).map_err(|e| e.to_string())
        }
    };
    match answered {
        Ok(event) => vec![event, Event::Done],
        Err(error) => vec![Event::failed(&error, false)],
    }
}

/// Begins, changes or reads the probes of a session.
fn probe(reader: &Reader, request: ProbeRequest, stop: &AtomicBool) -> Result<Option<ProbeReport>, String> {
    let mut probing = reader.probing.lock().unwrap_or_else(PoisonError::into_inner);
    if let ProbeRequest::Begin(spec) = request {
        // One that was there before ends: its ports are no longer used.
        let begun = probing.insert(Arc::new(Probing::begin(spec).map_err(|error| error.to_string())?));
        return Ok(Some(ProbeReport { ports: begun.ports().to_vec(), partners: Vec::new() }));
    }
    let begun = probing.clone().ok_or("no probes are answered\nhint: ask to begin first")?;
    // A report waits; other requests need not.
    drop(probing);
    match request {
        ProbeRequest::Partners { partners } => begun.set_partners(&partners).map(|()| None),
        ProbeRequest::Faster { per_s, for_ms } => begun.faster(per_s, for_ms).map(|()| None),
        ProbeRequest::Counts | ProbeRequest::Begin(_) => Ok(Some(begun.report(stop))),
    }
    .map_err(|error| error.to_string())
}

/// The answer to a request that an error of the program ended.
pub(crate) fn broken(request: &ObserveRequest) -> Event {
    let error = match request {
        ObserveRequest::Load(_) | ObserveRequest::Iperf3(_) => {
            let stopped = Some("the load ended early by an error of the program".to_owned());
            let report = Box::new(LoadReport { stopped, ..LoadReport::default() });
            return Event::LoadDone { report, counters: BTreeMap::new() };
        }
        ObserveRequest::Facts { .. }
        | ObserveRequest::Follow { .. }
        | ObserveRequest::Notices
        | ObserveRequest::Drops => {
            "reading the facts ended early\nhint: ask for fewer prefixes to find the one"
        }
        ObserveRequest::Durability(_) | ObserveRequest::Audit(_) | ObserveRequest::Probe(_) => {
            "it ended early by an error of the program"
        }
    };
    Event::failed(error, false)
}

/// Runs a load between two readings of the counters; keeps those that changed.
fn with_counters(load: impl FnOnce() -> LoadReport) -> Event {
    let root = Root::live();
    let before = linerate_facts::counters(&root);
    let report = Box::new(load());
    let mut counters = linerate_facts::counters(&root);
    counters.retain(|key, value| {
        // A counter that appeared with its device has no change to speak of.
        *value = before.get(key).map_or(0, |old| growth(*old, *value));
        *value != 0
    });
    Event::LoadDone { report, counters }
}

/// What was counted between two readings. A counter that went back began anew meanwhile, with its cgroup or
/// its device.
fn growth(before: i64, after: i64) -> i64 {
    let grown = after.wrapping_sub(before);
    if grown < 0 { after.max(0) } else { grown }
}

#[cfg(test)]
mod tests {
    use super::growth;

    #[test]
    fn a_counter_that_began_anew_has_grown_by_what_it_shows() {
        assert_eq!(growth(10, 46), 36);
        assert_eq!(growth(31, 0), 0);
        assert_eq!(growth(31, 5), 5);
        assert_eq!(growth(i64::MAX, i64::MIN), 1);
    }
}
