//! An operator for tests: starts the real program and speaks with it over its pipes.
//!
//! In: requests. Out: events, waited for with a deadline. It keeps the session alive only while it waits.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use linerate_model::change::Change;
use linerate_model::fact::FactValue;
use linerate_wire::message::{Event, Request, RequestId, SessionRequest, Setup, TrialRequest};
use linerate_wire::session::{OperatorEvent, OperatorSession, is_last};

/// Nothing in these tests may take longer, also on a machine that is busy with others.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) const SACK: &str = "sysctl.net.ipv4.tcp_sack";

/// A network namespace and folders of a host, all of which vanish with it.
pub(crate) struct Scene {
    pub(crate) namespace: File,
    pub(crate) folder: tempfile::TempDir,
}

impl Scene {
    /// `None`, with the reason printed, where namespaces are forbidden.
    pub(crate) fn new() -> Option<Self> {
        match linerate_sys::netns::create() {
            Ok(namespace) => Some(Self { namespace, folder: tempfile::tempdir().unwrap() }),
            Err(error) => {
                println!("SKIPPED a test of lost operators: cannot make a network namespace: {error}");
                None
            }
        }
    }

    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub(crate) fn etc_dir(&self) -> PathBuf {
        self.folder.path().join("etc")
    }

    pub(crate) fn journal(&self, trial: &str) -> PathBuf {
        self.state_dir().join("trials").join(format!("{trial}.json"))
    }

    /// Value of `net.ipv4.tcp_sack` inside.
    pub(crate) fn sack(&self) -> String {
        let read = || std::fs::read_to_string("/proc/sys/net/ipv4/tcp_sack").unwrap();
        linerate_sys::netns::run_in(&self.namespace, read).unwrap().trim().to_owned()
    }

    /// State in the journal, empty when there is none.
    pub(crate) fn state(&self, trial: &str) -> String {
        let text = std::fs::read_to_string(self.journal(trial)).unwrap_or_default();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        value["state"].as_str().unwrap_or_default().to_owned()
    }

    /// Processes that guard a trial of this scene.
    pub(crate) fn guardians(&self, trial: &str) -> Vec<u32> {
        let path = self.journal(trial);
        std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok())
            .filter(|pid: &u32| {
                let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.split(|b| *b == 0).any(|a| a == path.as_os_str().as_encoded_bytes())
            })
            .collect()
    }
}

/// The change that the tests make.
pub(crate) fn sack_off() -> Vec<Change> {
    let (from, to) = (FactValue::Int(1), FactValue::Int(0));
    vec![Change { host: "arc-1".into(), key: SACK.into(), from, to }]
}

/// Waits until a condition holds; fails with `what` after [`PATIENCE`].
pub(crate) fn until(what: &str, holds: impl FnMut() -> bool) -> Duration {
    linerate_testkit::wait_within(PATIENCE, what, holds)
}

/// Sends a signal by its name to a process that the test started.
pub(crate) fn signal(name: &str, pid: u32) {
    let status = Command::new("sh").args(["-c", "kill -\"$0\" \"$1\"", name, &pid.to_string()]).status();
    assert!(status.unwrap().success(), "kill -{name} {pid}");
}

pub(crate) struct Operator {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    bytes: Receiver<Vec<u8>>,
    session: OperatorSession,
    start: Instant,
}

impl Operator {
    /// Starts a node, inside a scene when there is one, and waits for its hello.
    pub(crate) fn start(scene: Option<&Scene>) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_linerate-node")), scene)
    }

    /// The same by a command that takes the arguments of the node.
    pub(crate) fn start_by(mut command: Command, scene: Option<&Scene>) -> Self {
        if let Some(scene) = scene {
            let path = format!("/proc/{}/fd/{}", std::process::id(), scene.namespace.as_raw_fd());
            command.args(["--netns", &path]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let (to_us, bytes) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(n @ 1..) = stdout.read(&mut buffer) {
                if to_us.send(buffer[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take();
        let mut operator =
            Self { child, stdin, bytes, session: OperatorSession::new(), start: Instant::now() };
        assert!(matches!(operator.event(), OperatorEvent::Hello(_)));
        operator
    }

    /// The same with the folders of the scene set up.
    pub(crate) fn set_up(scene: &Scene) -> Self {
        let mut operator = Self::start(Some(scene));
        let (state_dir, etc_dir) = (scene.state_dir(), scene.etc_dir());
        let events = operator.ask(SessionRequest::Setup(Setup { state_dir, etc_dir, host: "arc-1".into() }));
        assert_eq!(events, [Event::Done]);
        operator
    }

    fn now_ms(&self) -> u64 {
        self.start.elapsed().as_millis() as u64
    }

    fn flush(&mut self) {
        let bytes = self.session.take_output();
        if let Some(stdin) = &mut self.stdin {
            // A node that is gone shows in the events.
            let _ = stdin.write_all(&bytes);
        }
    }

    /// Raw bytes past the session.
    pub(crate) fn write_raw(&mut self, bytes: &[u8]) {
        let _ = self.stdin.as_mut().unwrap().write_all(bytes);
    }

    /// The next event.
    pub(crate) fn event(&mut self) -> OperatorEvent {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(event) = self.session.poll_event() {
                return event;
            }
            assert!(Instant::now() < until, "nothing from the node for {PATIENCE:?}");
            // What is there is taken before the time is looked at: our own sleep is not the node's silence.
            if let Ok(bytes) = self.bytes.try_recv() {
                self.session.received(self.now_ms(), &bytes);
                continue;
            }
            let now_ms = self.now_ms();
            self.session.tick(now_ms);
            self.flush();
            match self.bytes.recv_timeout(Duration::from_millis(100)) {
                Ok(bytes) => self.session.received(self.now_ms(), &bytes),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => self.session.closed(self.now_ms()),
            }
        }
    }

    pub(crate) fn send(&mut self, request: impl Into<Request>) -> RequestId {
        let id = self.session.request(self.now_ms(), request);
        self.flush();
        id
    }

    /// All events of one request.
    pub(crate) fn answers(&mut self, wanted: RequestId) -> Vec<Event> {
        let mut events = Vec::new();
        loop {
            match self.event() {
                OperatorEvent::Event { id, body } if id == wanted => {
                    events.push(body);
                    if events.last().is_some_and(is_last) {
                        return events;
                    }
                }
                OperatorEvent::Event { .. } => {}
                other => panic!("instead of an answer to {wanted}: {other:?}"),
            }
        }
    }

    pub(crate) fn ask(&mut self, request: impl Into<Request>) -> Vec<Event> {
        let id = self.send(request);
        self.answers(id)
    }

    pub(crate) fn apply(&mut self, trial: &str, deadline_s: u32) {
        let events = self.ask(TrialRequest::Apply { trial: trial.into(), changes: sack_off(), deadline_s });
        assert_eq!(
            events,
            [Event::Changed { read_back: vec![(SACK.into(), FactValue::Int(0))] }, Event::Done]
        );
    }

    /// Closes the node's stdin, as the end of the operator's process does.
    pub(crate) fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Waits for the end of the node without keeping the session alive.
    pub(crate) fn wait(&mut self) -> (ExitStatus, Duration) {
        let mut status = None;
        let took = until("the node ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        (status.unwrap(), took)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // Only a failed test leaves a node behind.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether something listens on a TCP port of the namespace of the caller.
pub(crate) fn listens(path: &Path, port: u16) -> bool {
    let table = std::fs::read_to_string(path).unwrap_or_default();
    let wanted = format!(":{port:04X}");
    table.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        fields.next().is_some_and(|local| local.ends_with(&wanted)) && fields.nth(1) == Some("0A")
    })
}
