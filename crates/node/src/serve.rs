//! A session with an operator: two streams (stdin and stdout, or those of a connection), and the work that is
//! asked for.
//!
//! In: frames on one stream. Out: frames on the other, and changes of this host that are taken back when the
//! operator is gone. The main thread owns the protocol and never blocks on anything else: one thread reads,
//! one writes, one makes the changes in their order, and every load and every reading of facts has its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::{Duration, Instant};

use linerate_model::audit::AuditRequest;
use linerate_model::durability::DurabilityRequest;
use linerate_model::fact::Gap;
use linerate_model::iperf3::Iperf3Spec;
use linerate_model::load::{LoadReport, LoadSpec};
use linerate_sys::root::Root;
use linerate_wire::message::{Event, Hello, PROTOCOL, Request, RequestId};
use linerate_wire::session::{NodeEvent, NodeSession, is_last};

use crate::against_iperf3;
use crate::audit;
use crate::build::{self, Builds};
use crate::change_worker::{self, Order};
use crate::disk_times::DiskTimes;
use crate::facts;
use crate::session_event::SessionEvent;

/// Loads and readings that run at the same time; a host is in one test at a time, so that this is never
/// reached.
const JOBS_MAX: usize = 64;
/// After the operator is gone (4 s of silence) its loads have this long to end.
const LOADS_END_MS: u64 = 800;
/// After the operator is gone its changes have this long to be taken back; then the guardians go on alone.
const CHANGES_END_MS: u64 = 20_000;
/// Events that wait; more block the thread that sends them, so that a flood costs no memory.
const EVENTS_MAX: usize = 64;
/// The last answers may take this long to be written.
const FLUSH_MS: u64 = 2_000;

struct Node {
    session: NodeSession,
    start: Instant,
    events: Receiver<SessionEvent>,
    to_self: SyncSender<SessionEvent>,
    output: Sender<Vec<u8>>,
    changes: Sender<Order>,
    /// Loads and readings under way, with what stops them.
    jobs: BTreeMap<RequestId, Arc<AtomicBool>>,
    /// Those of them that change volumes and replicas.
    building: BTreeSet<RequestId>,
    /// `Bye` was asked.
    leaving: bool,
    /// Goes into every answer with facts.
    sysfs_gap: Option<String>,
    /// Where steps are journalled; not before the operator said it.
    builds: Option<Arc<Builds>>,
    /// How long requests to disks take, from when it was asked first.
    times: Arc<DiskTimes>,
}

/// Where the operator speaks.
pub(crate) type Input = Box<dyn Read + Send>;
/// Where the operator listens.
pub(crate) type Output = Box<dyn Write + Send>;

/// Serves on stdin and stdout.
pub(crate) fn serve(sysfs_gap: Option<String>) {
    serve_over(sysfs_gap, Box::new(std::io::stdin()), Box::new(std::io::stdout()));
}

/// Serves until the operator says bye or is gone. `sysfs_gap` says why `/sys` is not that of our namespace,
/// where it is not.
pub(crate) fn serve_over(sysfs_gap: Option<String>, from_operator: Input, to_operator: Output) {
    let (to_self, events) = mpsc::sync_channel(EVENTS_MAX);
    let (output, to_write) = mpsc::channel::<Vec<u8>>();
    let (changes, orders) = mpsc::channel();
    let (written, all_written) = mpsc::channel::<()>();
    let reader = to_self.clone();
    std::thread::spawn(move || read(from_operator, &reader));
    std::thread::spawn(move || {
        write(to_operator, &to_write);
        drop(written);
    });
    let worker = to_self.clone();
    std::thread::spawn(move || {
        let work = std::panic::AssertUnwindSafe(|| change_worker::run(&orders, &worker));
        if std::panic::catch_unwind(work).is_err() {
            // Nobody here knows any more what is in force; the guardians do, and act when we are gone.
            std::process::abort();
        }
    });
    let mut node = Node {
        session: NodeSession::new(hello()),
        start: Instant::now(),
        events,
        to_self,
        output,
        changes,
        jobs: BTreeMap::new(),
        building: BTreeSet::new(),
        leaving: false,
        sysfs_gap,
        builds: None,
        times: Arc::default(),
    };
    node.run();
    drop(node);
    // The thread ends by dropping its sender; an operator that does not read must not hold us up.
    let _ = all_written.recv_timeout(Duration::from_millis(FLUSH_MS));
}

/// Who we are.
pub(crate) fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: linerate_wire::BUILD.to_owned(),
        facts: facts::declarations(),
        loads: linerate_load::names().into_iter().chain([against_iperf3::NAME.to_owned()]).collect(),
        root: linerate_sys::sandbox::is_root(),
        wall_ms: std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .ok()
            .map(|since| since.as_millis() as u64),
    }
}

fn read(mut from_operator: Input, to_main: &SyncSender<SessionEvent>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let event = match from_operator.read(&mut buffer) {
            Ok(n) if n > 0 => SessionEvent::Bytes(buffer[..n].to_vec()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            _ => SessionEvent::Closed,
        };
        let end = matches!(event, SessionEvent::Closed);
        if to_main.send(event).is_err() || end {
            return;
        }
    }
}

fn write(mut to_operator: Output, to_write: &Receiver<Vec<u8>>) {
    for bytes in to_write {
        // An operator that does not read is noticed by its silence or the end of its stream.
        if to_operator.write_all(&bytes).and_then(|()| to_operator.flush()).is_err() {
            return;
        }
    }
}

impl Node {
    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    fn run(&mut self) {
        loop {
            // Everything that is there is taken before the time is looked at: a node that was stopped itself
            // must not take its own sleep for the operator's silence.
            while let Ok(event) = self.events.try_recv() {
                if self.take(event) {
                    return self.end("the operator said bye");
                }
            }
            self.session.tick(self.now_ms());
            while let Some(event) = self.session.poll_event() {
                match event {
                    NodeEvent::Request { id, body } => self.begin(id, body),
                    NodeEvent::OperatorLost { reason } => {
                        return self.end(&format!("the operator is lost: {reason}"));
                    }
                }
            }
            self.flush();
            let wait_ms = self.session.next_wakeup_ms().unwrap_or(0).saturating_sub(self.now_ms());
            match self.events.recv_timeout(Duration::from_millis(wait_ms)) {
                Ok(event) => {
                    if self.take(event) {
                        return self.end("the operator said bye");
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                // We hold a sender ourselves.
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn flush(&mut self) {
        let bytes = self.session.take_output();
        if !bytes.is_empty() {
            // A writer that ended has met a closed pipe; the reader will meet the end of its own.
            let _ = self.output.send(bytes);
        }
    }

    /// Takes one event; `true` when the last answer of the session is out.
    fn take(&mut self, event: SessionEvent) -> bool {
        let now_ms = self.now_ms();
        match event {
            SessionEvent::Bytes(bytes) => self.session.received(now_ms, &bytes),
            SessionEvent::Closed => self.session.closed(now_ms),
            SessionEvent::Answer(id, event) => {
                if is_last(&event) {
                    self.job_ended(id);
                }
                self.session.respond(now_ms, id, event);
                self.flush();
            }
            SessionEvent::ChangesEnded => return self.leaving,
        }
        false
    }

    fn begin(&mut self, id: RequestId, body: Request) {
        let order = |request| Order::Request { id, request };
        match body {
            Request::Heartbeat => {}
            Request::Facts { prefixes, netns } => self.read_facts(id, prefixes, netns),
            Request::Load(spec) => self.load(id, spec),
            Request::Iperf3(spec) => self.iperf3(id, spec),
            Request::Durability(request) => self.durability(id, request),
            Request::Audit(request) => self.audit(id, request),
            Request::StopLoad { load } => {
                if let Some(stop) = self.jobs.get(&load) {
                    stop.store(true, Ordering::Relaxed);
                }
                self.session.respond(self.now_ms(), id, Event::Done);
            }
            Request::Look(_)
            | Request::Step { .. }
            | Request::Unbuild { .. }
            | Request::Built { .. }
            | Request::Builds => self.build(id, body),
            Request::Bye => {
                self.leaving = true;
                self.stop_jobs();
                self.order(order(Request::Bye));
            }
            request => {
                if let Request::Setup { state_dir, host, .. } = &request
                    && linerate_model::inventory::check_folder(state_dir).is_ok()
                {
                    self.builds = Some(Arc::new(Builds::new(state_dir, host)));
                }
                self.order(order(request));
            }
        }
    }

    /// Looks and steps have a thread each: a step may take minutes, and one of them at a time is let through
    /// by their lock.
    fn build(&mut self, id: RequestId, request: Request) {
        let changes = matches!(request, Request::Step { .. } | Request::Unbuild { .. });
        let builds = self.builds.clone();
        self.job(id, move |to_main, stop| {
            let work = std::panic::AssertUnwindSafe(|| build::answer(builds.as_deref(), &request, &stop));
            let events = std::panic::catch_unwind(work).unwrap_or_else(|_| {
                vec![Event::Failed {
                    error: "the step ended early by an error of the program".to_owned(),
                    hint: "its journal says how far it came".to_owned(),
                    undo_failed: false,
                }]
            });
            for event in events {
                // Nobody listens any more when the session has ended.
                let _ = to_main.send(SessionEvent::Answer(id, event));
            }
        });
        if changes && self.jobs.contains_key(&id) {
            self.building.insert(id);
        }
    }

    fn order(&self, order: Order) {
        // The worker ends only after we do.
        let _ = self.changes.send(order);
    }

    fn job_ended(&mut self, id: RequestId) {
        self.jobs.remove(&id);
        self.building.remove(&id);
    }

    fn stop_jobs(&self) {
        self.jobs.values().for_each(|stop| stop.store(true, Ordering::Relaxed));
    }

    /// Starts a thread of a request, with the flag that stops it. What prevents it is answered.
    fn job(
        &mut self,
        id: RequestId,
        work: impl FnOnce(&SyncSender<SessionEvent>, Arc<AtomicBool>) + Send + 'static,
    ) {
        let stop = Arc::new(AtomicBool::new(false));
        let (to_main, stop_job) = (self.to_self.clone(), Arc::clone(&stop));
        let job = std::thread::Builder::new();
        let error = if self.leaving {
            "the session ends".to_owned()
        } else if self.jobs.len() >= JOBS_MAX {
            format!("{JOBS_MAX} loads and readings run already, no more may")
        } else {
            match job.spawn(move || work(&to_main, stop_job)) {
                Ok(_) => {
                    self.jobs.insert(id, stop);
                    return;
                }
                Err(error) => format!("cannot start a thread: {error}"),
            }
        };
        let hint = "wait for other requests to end, or start a new session".to_owned();
        self.session.respond(self.now_ms(), id, Event::Failed { error, hint, undo_failed: false });
    }

    fn read_facts(&mut self, id: RequestId, prefixes: Vec<String>, netns: Vec<PathBuf>) {
        let gap = self.sysfs_gap.clone().map(|reason| Gap { what: "nic.".to_owned(), reason });
        let times = Arc::clone(&self.times);
        self.job(id, move |to_main, _| {
            let read = std::panic::catch_unwind(|| {
                let mut facts = facts::read(&Root::live(), &prefixes, &netns);
                times.add(&prefixes, &mut facts);
                facts
            });
            let events = match read {
                Ok(mut facts) => {
                    facts.gaps.extend(gap);
                    vec![Event::Facts(Box::new(facts)), Event::Done]
                }
                Err(_) => vec![Event::Failed {
                    error: "reading the facts ended early".to_owned(),
                    hint: "ask for fewer prefixes to find the one".to_owned(),
                    undo_failed: false,
                }],
            };
            for event in events {
                // Nobody listens any more when the session has ended.
                let _ = to_main.send(SessionEvent::Answer(id, event));
            }
        });
    }

    fn durability(&mut self, id: RequestId, request: DurabilityRequest) {
        self.answer(id, move |stop| match linerate_load::durable::run(&request, stop) {
            Ok(answer) => Ok(Event::Durability(Box::new(answer))),
            Err(error) => Err((error.to_string(), error.hint().to_owned())),
        });
    }

    fn audit(&mut self, id: RequestId, request: AuditRequest) {
        self.answer(id, move |stop| match audit::run(&request, stop) {
            Ok(part) => Ok(Event::Audit(Box::new(part))),
            Err(words) => {
                let (error, hint) = words.split_once("\nhint: ").unwrap_or((&words, ""));
                Err((error.to_owned(), hint.to_owned()))
            }
        });
    }

    /// Does work of one answer on a thread of its own. An error is its words and a hint.
    fn answer(
        &mut self,
        id: RequestId,
        work: impl FnOnce(&AtomicBool) -> Result<Event, (String, String)> + Send + 'static,
    ) {
        self.job(id, move |to_main, stop| {
            let work = std::panic::AssertUnwindSafe(|| work(&stop));
            let failed = |(error, hint)| vec![Event::Failed { error, hint, undo_failed: false }];
            let events = match std::panic::catch_unwind(work) {
                Ok(Ok(event)) => vec![event, Event::Done],
                Ok(Err(words)) => failed(words),
                Err(_) => failed(("it ended early by an error of the program".into(), String::new())),
            };
            for event in events {
                // Nobody listens any more when the session has ended.
                let _ = to_main.send(SessionEvent::Answer(id, event));
            }
        });
    }

    fn load(&mut self, id: RequestId, spec: LoadSpec) {
        self.traffic(id, move |to_main, stop| {
            let listener = to_main.clone();
            let listening = Box::new(move |port| {
                drop(listener.send(SessionEvent::Answer(id, Event::Listening { port })));
            });
            linerate_load::run(&spec, &linerate_load::Control { stop, listening })
        });
    }

    fn iperf3(&mut self, id: RequestId, spec: Iperf3Spec) {
        self.traffic(id, move |_, stop| against_iperf3::run(&spec, &stop));
    }

    /// Starts a load on a thread of its own, between two readings of the counters.
    fn traffic(
        &mut self,
        id: RequestId,
        run: impl Fn(&SyncSender<SessionEvent>, Arc<AtomicBool>) -> LoadReport
        + std::panic::UnwindSafe
        + Send
        + 'static,
    ) {
        self.job(id, move |to_main, stop| {
            let work = std::panic::AssertUnwindSafe(|| with_counters(|| run(to_main, stop)));
            let (report, counters) = std::panic::catch_unwind(work).unwrap_or_else(|_| {
                let stopped = Some("the load ended early by an error of the program".to_owned());
                (LoadReport { stopped, ..LoadReport::default() }, BTreeMap::new())
            });
            let _ = to_main
                .send(SessionEvent::Answer(id, Event::LoadDone { report: Box::new(report), counters }));
        });
    }

    /// Stops all loads, takes back what is not confirmed, and waits for both within bounds; a step under way
    /// comes to its end, so that its journal says what it did.
    fn end(&mut self, why: &str) {
        self.flush();
        self.stop_jobs();
        let start = Instant::now();
        let mut changes_end = self.leaving;
        if !changes_end {
            self.order(Order::Lost(why.to_owned()));
        }
        loop {
            let waited_ms = start.elapsed().as_millis() as u64;
            let jobs_end_ms =
                if self.building.is_empty() { LOADS_END_MS } else { build::END_LIMIT.as_millis() as u64 };
            let limit_ms = match (self.jobs.is_empty() || waited_ms >= jobs_end_ms, changes_end) {
                (true, true) => return,
                (_, false) => CHANGES_END_MS.max(jobs_end_ms),
                (false, true) => jobs_end_ms,
            };
            if waited_ms >= limit_ms {
                return;
            }
            match self.events.recv_timeout(Duration::from_millis((limit_ms - waited_ms).min(50))) {
                Ok(SessionEvent::ChangesEnded) => changes_end = true,
                Ok(SessionEvent::Answer(id, event)) if is_last(&event) => self.job_ended(id),
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Runs a load between two readings of the counters; gives those that changed.
fn with_counters(load: impl FnOnce() -> LoadReport) -> (LoadReport, BTreeMap<String, i64>) {
    let root = Root::live();
    let before = facts::counters(&root);
    let report = load();
    let mut counters = facts::counters(&root);
    counters.retain(|key, value| {
        // A counter that appeared with its device has no change to speak of.
        *value = before.get(key).map_or(0, |old| growth(*old, *value));
        *value != 0
    });
    (report, counters)
}

/// What was counted between two readings. A counter that went back began anew meanwhile, with its cgroup or
/// its device.
fn growth(before: i64, after: i64) -> i64 {
    let grown = after.wrapping_sub(before);
    if grown < 0 { after.max(0) } else { grown }
}

#[cfg(test)]
mod tests {
    use super::{growth, hello};

    #[test]
    fn the_hello_names_all_loads_and_iperf3_which_is_no_load_of_its_own() {
        let loads = hello().loads;
        let (last, rest) = loads.split_last().unwrap();
        assert_eq!((last.as_str(), rest), ("iperf3", &linerate_load::names()[..]));
    }

    #[test]
    fn a_counter_that_began_anew_has_grown_by_what_it_shows() {
        assert_eq!(growth(10, 46), 36);
        assert_eq!(growth(31, 0), 0);
        assert_eq!(growth(31, 5), 5);
        assert_eq!(growth(i64::MAX, i64::MIN), 1);
    }
}
