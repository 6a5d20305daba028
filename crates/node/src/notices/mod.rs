//! Changes of facts as they happen: the kernel reports that something was written, and what that may have
//! changed is read again.
//!
//! In: which keys are followed. Out: all of them once, then a notice for each change, until it is stopped.
//! Nothing is polled but every quarter of an hour, for what no source reports. Adding a source: one file
//! with a [`Source`], one line in [`SOURCES`].

mod drivers;
mod files;
mod firewall;
mod known;
mod links;
mod requesters;
mod source;
mod writers;
mod written;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linerate_model::fact::{FactKey, Gap, HostFacts};
use linerate_model::notice::{self, FactNotice, NoticeSource};
use linerate_sys::socket::{Ready, wait};

use known::Known;
use requesters::Requests;
use source::{Notice, Opened, Source};
pub(crate) use writers::own_namespace;

/// Opens a source.
type Open = fn() -> Opened;

/// All sources, each with the subject of its gap.
const SOURCES: [(&str, Open); 5] = [
    ("notices of written values", written::open),
    ("notices of links and routes", links::open),
    ("notices of drivers", drivers::open),
    ("notices of the firewall", firewall::open),
    ("notices of files", files::open),
];

/// Only for who asks for them: programs in the kernel.
const WRITERS: [(&str, Open); 2] =
    [(notice::WRITERS, writers::open), (notice::LINK_WRITERS, requesters::open)];

/// Everything is read again after this time. Fifteen minutes: what no source reports is rare, and a reading
/// takes a tenth of a second of CPU.
const AGAIN: Duration = Duration::from_secs(900);
/// After a notice others of the same command follow: a reading waits until none came for this time…
const QUIET: Duration = Duration::from_millis(30);
/// … and no longer than this, so that a host that is written to all the time is read five times a second.
const GATHER_MAX: Duration = Duration::from_millis(200);
/// How late a stop may be noticed.
const STOP_WAIT: Duration = Duration::from_millis(200);

/// Notices that wait to be asked for. When they are more, the sources wait, and lose some: then all is read
/// again.
const WAITING_MAX: usize = 64;
/// An answer without a notice comes after this time at the latest.
const ANSWER_MAX: Duration = Duration::from_secs(30);

/// Facts that are followed until this is dropped.
pub(crate) struct Following {
    notices: Receiver<FactNotice>,
    stop: Arc<AtomicBool>,
}

impl Following {
    /// Follows keys that begin so, all without beginnings, with the processes that write to sysctls and
    /// change links for `writers`; `read` reads such facts. Returns all of them, with a gap for each source
    /// that there is not.
    pub(crate) fn begin(
        wanted: Vec<FactKey>,
        writers: bool,
        read: impl Fn(&[FactKey]) -> HostFacts + Send + 'static,
    ) -> (HostFacts, Self) {
        let mut sources = Vec::new();
        let mut gaps = Vec::new();
        for (what, open) in SOURCES.into_iter().chain(WRITERS.into_iter().filter(|_| writers)) {
            match open() {
                Ok(source) => sources.push(source),
                Err(reason) => gaps.push(Gap { what: what.into(), reason }),
            }
        }
        // Read after the sources were opened: what changes in between is reported.
        let mut facts = read(&wanted);
        let known = Known::new(&facts);
        facts.gaps.extend(gaps);
        let (to_operator, notices) = mpsc::sync_channel(WAITING_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&stop);
        std::thread::spawn(move || follow(&wanted, sources, known, read, AGAIN, &ends, &to_operator));
        (facts, Self { notices, stop })
    }

    /// What was noticed since the last call; waits for the first.
    pub(crate) fn notices(&self, stop: &AtomicBool) -> Vec<FactNotice> {
        let until = Instant::now() + ANSWER_MAX;
        loop {
            if let Ok(first) = self.notices.recv_timeout(STOP_WAIT) {
                return std::iter::once(first).chain(self.notices.try_iter().take(WAITING_MAX)).collect();
            }
            if stop.load(Ordering::Relaxed) || Instant::now() >= until {
                return Vec::new();
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn follow(
    wanted: &[FactKey],
    mut sources: Vec<Box<dyn Source>>,
    mut known: Known,
    read: impl Fn(&[FactKey]) -> HostFacts,
    again: Duration,
    stop: &AtomicBool,
    to_operator: &SyncSender<FactNotice>,
) {
    let mut last_whole = Instant::now();
    let mut unread = Vec::new();
    let mut later = Collected::default();
    let mut requests = Requests::default();
    while !stop.load(Ordering::Relaxed) {
        let mut collected = collected(&mut sources, std::mem::take(&mut later));
        let is_whole = last_whole.elapsed() >= again || !collected.is_whole;
        let may_report =
            |notice: &Notice| notice.write.as_ref().is_none_or(|write| known.may_report(&write.change.key));
        requests.take(&mut collected.notices, Instant::now());
        collected.notices.retain(may_report);
        collected.notices.splice(0..0, std::mem::take(&mut unread));
        if is_whole {
            collected.notices.push(Notice::everything());
            last_whole = Instant::now();
        }
        let notices = collected.notices;
        if notices.is_empty() {
            continue;
        }
        let keys = wider(&notices, wanted);
        let changes =
            if keys.is_empty() && !is_whole { Vec::new() } else { known.learn(&read(&keys), &keys) };
        // What was written before the values were read was reported before that.
        later.drain(&mut sources);
        let reported = source::share(notices, &later.notices, changes, &known);
        unread = reported.unread;
        for mut notice in reported.notices {
            requests.name(&mut notice, Instant::now());
            notice.at_ms = collected.at_ms;
            notice.read_after_ms = now_ms().saturating_sub(collected.at_ms);
            // The session has ended, or follows something else.
            if to_operator.send(notice).is_err() {
                return;
            }
        }
    }
}

/// What the sources reported.
struct Collected {
    notices: Vec<Notice>,
    /// None of it was lost.
    is_whole: bool,
    /// When the first of it was reported.
    at_ms: u64,
}

impl Default for Collected {
    fn default() -> Self {
        Self { notices: Vec::new(), is_whole: true, at_ms: 0 }
    }
}

impl Collected {
    /// Takes what there is.
    fn drain(&mut self, sources: &mut [Box<dyn Source>]) {
        if self.notices.is_empty() {
            self.at_ms = now_ms();
        }
        for source in sources {
            self.is_whole &= source.drain(&mut self.notices);
        }
    }
}

/// What the sources report within the next moment, after what was reported already.
fn collected(sources: &mut [Box<dyn Source>], mut collected: Collected) -> Collected {
    let mut since = (!collected.notices.is_empty()).then(Instant::now);
    loop {
        let patience = if since.is_some() { QUIET } else { STOP_WAIT };
        let descriptors: Vec<_> = sources.iter().map(|source| source.as_fd()).collect();
        if !wait(&descriptors, Ready::Readable, patience).unwrap_or(false) {
            if collected.notices.is_empty() {
                collected.at_ms = now_ms();
            }
            return collected;
        }
        collected.drain(sources);
        if since.get_or_insert_with(Instant::now).elapsed() >= GATHER_MAX {
            return collected;
        }
    }
}

/// The beginnings of keys that notices are about, as far as they are wanted. Those of all are none.
fn wider(notices: &[Notice], wanted: &[FactKey]) -> Vec<FactKey> {
    if notices.iter().any(|notice| notice.source == NoticeSource::Reading) {
        return wanted.to_vec();
    }
    let mut keys: Vec<FactKey> = notices.iter().flat_map(|notice| notice.keys.iter().cloned()).collect();
    if !wanted.is_empty() {
        // The narrower of both.
        let narrowed = |key: &FactKey| {
            let inside = wanted.iter().filter(|wanted| wanted.starts_with(key.as_str())).cloned();
            let is_below = wanted.iter().any(|wanted| key.starts_with(wanted.as_str()));
            inside.chain(is_below.then(|| key.clone())).collect::<Vec<_>>()
        };
        keys = keys.iter().flat_map(narrowed).collect();
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use linerate_model::fact::FactValue;

    use super::*;

    fn keys(list: &[&str]) -> Vec<FactKey> {
        list.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn what_no_source_reports_is_found_when_everything_is_read_again() {
        let facts = |value| {
            let mut facts = HostFacts::default();
            facts.readings.insert("cpu.count".to_owned(), FactValue::Int(value));
            facts
        };
        let (to_operator, notices) = mpsc::sync_channel(WAITING_MAX);
        let stop = Arc::new(AtomicBool::new(false));
        let (ends, known) = (Arc::clone(&stop), Known::new(&facts(4)));
        let again = Duration::from_millis(1);
        let thread = std::thread::spawn(move || {
            follow(&[], Vec::new(), known, |_| facts(8), again, &ends, &to_operator);
        });
        let notice = notices.recv().unwrap();
        assert_eq!((notice.source, notice.changes.len()), (NoticeSource::Reading, 1));
        assert_eq!(notice.changes[0].to, Some(FactValue::Int(8)));
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap();
        assert_eq!(AGAIN, Duration::from_secs(15 * 60));
    }

    #[test]
    fn what_is_read_again_is_what_was_reported_and_is_wanted() {
        let about = |list: &[&str]| Notice { keys: keys(list), ..Notice::of(NoticeSource::Link, "eth0") };
        let notices = [about(&["nic.eth0."]), about(&["route.", "nic.eth0."])];
        assert_eq!(wider(&notices, &[]), ["nic.eth0.", "route."]);
        assert_eq!(wider(&notices, &keys(&["nic."])), ["nic.eth0."]);
        assert_eq!(wider(&notices, &keys(&["nic.eth0.mtu", "cpu."])), ["nic.eth0.mtu"]);
        assert_eq!(wider(&notices, &keys(&["cpu."])), Vec::<FactKey>::new());
        assert_eq!(wider(&[Notice::everything()], &keys(&["cpu."])), ["cpu."]);
    }
}
