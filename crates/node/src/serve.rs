//! A session with an operator: two streams (stdin and stdout, or those of a connection), and the work that is
//! asked for.
//!
//! In: frames on one stream. Out: frames on the other, and changes of this host that are taken back when the
//! operator is gone. The main thread owns the protocol and never blocks on anything else: one thread reads,
//! one writes, one makes the changes in their order, and every load and every reading of facts has its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::time::{Duration, Instant};

use linerate_model::kind::TestKind;
use linerate_wire::message::{
    BuildRequest, Event, Hello, ObserveRequest, PROTOCOL, Request, RequestId, SessionRequest,
};
use linerate_wire::session::{NodeEvent, NodeSession, is_last};

use crate::build::{self, Builds};
use crate::change_worker::{self, Order};
use crate::observe::{self, Reader};
use crate::session_event::SessionEvent;

/// Loads and readings that run at the same time; a host is in one test at a time, so that this is never
/// reached.
const JOBS_MAX: usize = 64;
/// After the operator is gone (4 s of silence) its loads have this long to end.
const LOADS_END_MS: u64 = 800;
/// After the operator is gone its changes have this long to be undone; then the guardians go on alone.
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
    scope: Scope,
    reader: Reader,
    /// Where steps are journalled; not before the operator said it.
    builds: Option<Arc<Builds>>,
}

/// What an operator may ask for in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Everything.
    All,
    /// What a watch needs: facts, counters, probes, load on the network. Nothing that writes to this host or
    /// to its disks.
    Watch,
}

impl Scope {
    fn allows(self, request: &Request) -> bool {
        match request {
            Request::Session(_) => true,
            Request::Observe(request) => match request {
                ObserveRequest::Load(spec) => self == Self::All || !matches!(spec.kind, TestKind::Disk(_)),
                ObserveRequest::Durability(_) | ObserveRequest::Audit(_) => self == Self::All,
                ObserveRequest::Facts { .. }
                | ObserveRequest::Follow { .. }
                | ObserveRequest::Notices
                | ObserveRequest::Drops
                | ObserveRequest::Probe(_)
                | ObserveRequest::Iperf3(_) => true,
            },
            Request::Trial(_) | Request::Build(_) => self == Self::All,
        }
    }
}

/// Where the operator speaks.
pub(crate) type Input = Box<dyn Read + Send>;
/// Where the operator listens.
pub(crate) type Output = Box<dyn Write + Send>;

/// Serves on stdin and stdout.
pub(crate) fn serve(sysfs_gap: Option<String>) {
    serve_over(sysfs_gap, Box::new(std::io::stdin()), Box::new(std::io::stdout()), Scope::All);
}

/// Serves until the operator says bye or is gone. `sysfs_gap` says why `/sys` is not that of our namespace,
/// where it is not.
pub(crate) fn serve_over(sysfs_gap: Option<String>, from_operator: Input, to_operator: Output, scope: Scope) {
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
        if caught(|| change_worker::run(&orders, &worker)).is_none() {
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
        scope,
        reader: Reader {
            sysfs_gap,
            etc_dir: "/etc".into(),
            times: Arc::default(),
            drops: Arc::default(),
            following: Arc::default(),
            probing: Arc::default(),
        },
        builds: None,
    };
    node.run();
    drop(node);
    // The thread ends by dropping its sender; an operator that does not read must not hold us up.
    let _ = all_written.recv_timeout(Duration::from_millis(FLUSH_MS));
}

/// What work gives; `None` where it ends by an error of the program.
fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).ok()
}

/// Who we are.
pub(crate) fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: linerate_wire::BUILD.to_owned(),
        facts: observe::declarations(),
        loads: linerate_load::names().into_iter().chain([linerate_model::iperf3::NAME.to_owned()]).collect(),
        root: linerate_sys::sandbox::is_root(),
        wall_ms: std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .ok()
            .map(|since| since.as_millis() as u64),
        boot_id: linerate_sys::cpu::boot_id(),
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
        if !self.scope.allows(&body) {
            let error =
                "the agent of this host serves a watch, which changes nothing\nhint: reach the host over ssh";
            self.session.respond(self.now_ms(), id, Event::failed(error, false));
            return;
        }
        match body {
            // Old journals, and folders that stand for others, are none of its business either.
            Request::Session(SessionRequest::Setup(_)) if self.scope == Scope::Watch => {
                self.session.respond(self.now_ms(), id, Event::Done);
            }
            Request::Session(SessionRequest::Setup(setup)) => {
                if linerate_model::inventory::check_folder(&setup.state_dir).is_ok() {
                    self.builds = Some(Arc::new(Builds::new(&setup.state_dir, &setup.host)));
                }
                self.reader.etc_dir.clone_from(&setup.etc_dir);
                self.order(Order::Setup { id, setup });
            }
            Request::Session(SessionRequest::StopLoad { load }) => {
                if let Some(stop) = self.jobs.get(&load) {
                    stop.store(true, Ordering::Relaxed);
                }
                self.session.respond(self.now_ms(), id, Event::Done);
            }
            Request::Session(SessionRequest::Bye) => {
                self.leaving = true;
                self.stop_jobs();
                self.order(Order::Bye { id });
            }
            Request::Observe(request) => {
                let (reader, to_main) = (self.reader.clone(), self.to_self.clone());
                let send = move |event| drop(to_main.send(SessionEvent::Answer(id, event)));
                self.job(id, observe::broken(&request), move |stop| {
                    observe::answer(&reader, request, stop, send)
                });
            }
            Request::Trial(request) => self.order(Order::Trial { id, request }),
            Request::Build(request) => self.build(id, request),
        }
    }

    /// Looks and steps have a thread each: a step may take minutes, and one of them at a time is let through
    /// by their lock.
    fn build(&mut self, id: RequestId, request: BuildRequest) {
        let changes = matches!(request, BuildRequest::Step { .. } | BuildRequest::Unbuild { .. });
        let builds = self.builds.clone();
        let broken =
            "the step ended early by an error of the program\nhint: its journal says how far it came";
        let broken = Event::failed(broken, false);
        self.job(id, broken, move |stop| build::answer(builds.as_deref(), &request, stop));
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

    /// Carries a request out on a thread of its own, with the flag that stops it, and sends its events;
    /// `broken` where an error of the program ends it. What prevents it is answered.
    fn job(
        &mut self,
        id: RequestId,
        broken: Event,
        work: impl FnOnce(&Arc<AtomicBool>) -> Vec<Event> + Send + 'static,
    ) {
        let stop = Arc::new(AtomicBool::new(false));
        let (to_main, stop_job) = (self.to_self.clone(), Arc::clone(&stop));
        let carry_out = move || {
            for event in caught(|| work(&stop_job)).unwrap_or_else(|| vec![broken]) {
                // Nobody listens any more when the session has ended.
                let _ = to_main.send(SessionEvent::Answer(id, event));
            }
        };
        let error = if self.leaving {
            "the session ends".to_owned()
        } else if self.jobs.len() >= JOBS_MAX {
            format!("{JOBS_MAX} loads and readings run already, no more may")
        } else {
            match std::thread::Builder::new().spawn(carry_out) {
                Ok(_) => {
                    self.jobs.insert(id, stop);
                    return;
                }
                Err(error) => format!("cannot start a thread: {error}"),
            }
        };
        let error = format!("{error}\nhint: wait for other requests to end, or start a new session");
        self.session.respond(self.now_ms(), id, Event::failed(&error, false));
    }

    /// Stops all loads, undoes what is not confirmed, and waits for both within bounds; a step under way
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

#[cfg(test)]
mod tests {
    use linerate_model::durability::DurabilityRequest;
    use linerate_wire::message::{BuildRequest, ObserveRequest, Request, SessionRequest, TrialRequest};

    use super::{Scope, hello};

    #[test]
    fn a_watch_may_ask_for_nothing_that_writes() {
        let reads: [Request; 4] = [
            SessionRequest::Bye.into(),
            ObserveRequest::Facts { prefixes: vec![], netns: vec![] }.into(),
            ObserveRequest::Notices.into(),
            ObserveRequest::Drops.into(),
        ];
        let writes: [Request; 3] = [
            TrialRequest::Undo { trial: "t".into() }.into(),
            BuildRequest::Built { build: "b".into() }.into(),
            ObserveRequest::Durability(DurabilityRequest::Patterns).into(),
        ];
        assert!(reads.iter().chain(&writes).all(|request| Scope::All.allows(request)));
        assert!(reads.iter().all(|request| Scope::Watch.allows(request)));
        assert!(!writes.iter().any(|request| Scope::Watch.allows(request)));
    }

    #[test]
    fn the_hello_names_all_loads_and_iperf3_which_is_no_load_of_its_own() {
        let loads = hello().loads;
        let (last, rest) = loads.split_last().unwrap();
        assert_eq!((last.as_str(), rest), ("iperf3", &linerate_load::names()[..]));
    }
}
