//! The server: takes one test after the other.
//!
//! What comes in: an address to listen on. What goes out: a [`TestRecord`] per test, through the watcher. A
//! client that vanishes never blocks it: every step has its deadline, and a connection without a cookie keeps
//! no other out. A second client at the same time gets "busy". It listens until it is stopped, or for one
//! test.

mod error;
mod listener;
mod spec;

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_sys::cpu::ThreadTimes;
use linerate_sys::{affinity, socket, socket_options};

use super::SLICE;
use super::ask::{self, BLOCK, Watcher, finish_accepted, finish_udp, unix_ms};
use super::auth::Users;
use super::control::{Came, Control};
use super::lobby::Lobby;
use super::parameters::{Iperf3Protocol, Parameters};
use super::protocol::{Cookie, UDP_REPLY};
use super::record::TestRecord;
use super::results::Results;
use super::server::{Iperf3Server, ServerAction, ServerFailure};
use super::streams::Wire;
use super::traffic::Traffic;

pub use error::ServeError;
use error::io_error;
use listener::Listener;
pub use spec::{AccessPolicy, ServerSpec};

/// A client has so long for each step before and after the test itself.
const STEP_WAIT: Duration = Duration::from_secs(10);
/// A timed test may take this much longer than its duration.
const GRACE: Duration = Duration::from_secs(10);
/// Datagrams that may open a stream and are read at one time.
const DATAGRAMS_MAX: usize = 64;

/// Serves until `stop` returns true, or for one test. `ready` gets the listening address once, before any
/// thread is started.
pub fn run(
    spec: &ServerSpec,
    stop: &dyn Fn() -> bool,
    ready: &dyn Fn(SocketAddr) -> io::Result<()>,
    watcher: &mut dyn Watcher,
) -> Result<(), ServeError> {
    // Those that wait take descriptors too. If the limit cannot be raised, the oldest of them leaves earlier.
    let _ = affinity::raise_open_files();
    let mut listener = Listener::open(spec)?;
    let address = listener.address().map_err(io_error("read the own address"))?;
    ready(address).map_err(io_error("go on in the background"))?;
    let mut lobby = Lobby::default();
    while !stop() {
        if renew(&mut listener, &mut lobby).is_err() {
            // No descriptor or memory for another one: no client gets the options of the last test meanwhile.
            std::thread::sleep(SLICE);
            continue;
        }
        let waiting = lobby.sockets(listener.socket());
        socket::wait(&waiting, socket::Ready::Readable, SLICE).map_err(io_error("wait for clients"))?;
        drop(waiting);
        lobby.accept(listener.socket()).map_err(io_error("take a connection"))?;
        let Some((stream, cookie)) = lobby.next() else { continue };
        let Ok(control) = Control::new(stream) else { continue };
        let control = control.traced(spec.debug);
        control
            .tune(spec.keep_alive, spec.send_timeout_ms)
            .map_err(io_error("prepare the control connection"))?;
        let mut record = empty(&control, cookie, spec.interval);
        let mut serving = Serving {
            spec,
            stop,
            listener: &mut listener,
            udp: None,
            control,
            machine: Iperf3Server::default(),
            lobby: &mut lobby,
            traffic: None,
            last_event: Instant::now(),
            draining: false,
        };
        serving.machine.received(&cookie);
        if let Err(error) = serving.drive(watcher, &mut record) {
            serving.abort(&error, &mut record);
        }
        drop(serving);
        watcher.finished(&record);
        if spec.one_off {
            return Ok(());
        }
    }
    Ok(())
}

/// Ends the options of a test, for those in the lobby as well: they may have inherited them.
fn renew(listener: &mut Listener, lobby: &mut Lobby) -> io::Result<()> {
    if listener.is_tuned() {
        lobby.clear();
    }
    listener.renew()
}

fn empty(control: &Control, cookie: Cookie, interval: Duration) -> TestRecord {
    let peer = control.stream().peer_addr();
    TestRecord {
        server: true,
        parameters: Parameters { parallel: 1, ..Parameters::default() },
        cookie,
        target: peer.map_or((String::new(), 0), |peer| (peer.ip().to_canonical().to_string(), peer.port())),
        start_unix_ms: unix_ms(),
        mss: socket_options::segment(control.stream()).unwrap_or(0),
        block: 0,
        buffers: (0, 0),
        lanes: Vec::new(),
        interval_s: interval.as_secs_f64(),
        intervals: Vec::new(),
        ends: Vec::new(),
        cpu_percent: [0.0; 3],
        costs: ThreadTimes::default(),
        cpu_percent_remote: [0.0; 3],
        congestion: None,
        congestion_remote: None,
        server_output: None,
        user: None,
        error: None,
    }
}

struct Serving<'a> {
    spec: &'a ServerSpec,
    stop: &'a dyn Fn() -> bool,
    listener: &'a mut Listener,
    /// Takes the next stream of UDP.
    udp: Option<UdpSocket>,
    control: Control,
    machine: Iperf3Server,
    lobby: &'a mut Lobby,
    traffic: Option<Traffic>,
    /// When the client did something last.
    last_event: Instant,
    draining: bool,
}

impl Serving<'_> {
    fn drive(&mut self, watcher: &mut dyn Watcher, record: &mut TestRecord) -> Result<(), ServeError> {
        loop {
            self.flush()?;
            while let Some(event) = self.machine.poll_event() {
                self.last_event = Instant::now();
                self.event(event, watcher, record)?;
                self.flush()?;
            }
            if self.machine.is_over() {
                return Ok(());
            }
            if (self.stop)() {
                self.machine.stop();
                // The client may be gone already.
                let _ = self.flush();
                return Err(ServerFailure::ServerStopped.into());
            }
            self.visitors(watcher, record)?;
            self.check(watcher, record)?;
            self.wait()?;
            match self.control.read() {
                Came::Bytes(bytes) => self.machine.received(&bytes),
                Came::End => self.machine.closed(),
                Came::Nothing => {}
            }
        }
    }

    fn flush(&mut self) -> Result<(), ServeError> {
        let bytes = self.machine.take_output();
        self.control.send(&bytes).map_err(io_error("write to the client"))
    }

    fn wait(&self) -> Result<(), ServeError> {
        let mut sockets = self.lobby.sockets(self.listener.socket());
        sockets.push(self.control.stream().as_fd());
        sockets.extend(self.udp.as_ref().map(AsFd::as_fd));
        let due = self.traffic.as_ref().map_or(SLICE, |traffic| traffic.due().min(SLICE));
        socket::wait(&sockets, socket::Ready::Readable, due).map_err(io_error("wait for the client"))?;
        Ok(())
    }

    fn is_running(&self) -> bool {
        self.traffic.as_ref().is_some_and(|t| t.missing() == 0) && !self.draining
    }

    /// Streams of this test are taken; all others get "busy".
    fn visitors(&mut self, watcher: &mut dyn Watcher, record: &mut TestRecord) -> Result<(), ServeError> {
        self.lobby.accept(self.listener.socket()).map_err(io_error("take a connection"))?;
        let missing = self.traffic.as_ref().map_or(0, Traffic::missing);
        if missing == 0 {
            self.lobby.deny_shown();
            return Ok(());
        }
        while let Some((stream, cookie)) = self.lobby.next() {
            let wanted = record.parameters.protocol == Iperf3Protocol::Tcp
                && cookie == record.cookie
                && self.traffic.as_ref().is_some_and(|traffic| traffic.missing() > 0);
            if !wanted {
                Lobby::deny(&stream);
                continue;
            }
            finish_accepted(&record.parameters, &stream)
                .and_then(|()| {
                    let ms = self.spec.send_timeout_ms;
                    ms.map_or(Ok(()), |ms| socket_options::set_user_timeout(&stream, ms))
                })
                .map_err(io_error("set the options of a stream"))?;
            self.add(Wire::Tcp(Arc::new(stream)))?;
        }
        self.datagram_streams(record)?;
        if self.traffic.as_ref().is_some_and(|traffic| traffic.missing() == 0) {
            self.begin(watcher, record)?;
        }
        Ok(())
    }

    fn add(&mut self, wire: Wire) -> Result<(), ServeError> {
        self.last_event = Instant::now();
        match &mut self.traffic {
            Some(traffic) => traffic.add(wire).map_err(io_error("take a stream")),
            None => Ok(()),
        }
    }

    /// Each stream of UDP opens with a datagram to the shared port. A call takes a bounded number of
    /// datagrams: those of other hosts do not hold up the clock, the control connection or a stop.
    fn datagram_streams(&mut self, record: &TestRecord) -> Result<(), ServeError> {
        let cannot = io_error("open a UDP stream");
        let client = self.control.stream().peer_addr().map_err(&cannot)?.ip().to_canonical();
        for _ in 0..DATAGRAMS_MAX {
            let Some(udp) = self.udp.take() else { return Ok(()) };
            let mut buffer = [0; 64];
            let from = match udp.recv_from(&mut buffer) {
                // Datagrams of others open nothing.
                Ok((_, from)) if from.ip().to_canonical() == client => from,
                Ok(_) => {
                    self.udp = Some(udp);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.udp = Some(udp);
                    return Ok(());
                }
                Err(source) => return Err(cannot(source)),
            };
            udp.connect(from).map_err(&cannot)?;
            if self.traffic.as_ref().is_some_and(|traffic| traffic.missing() > 1) {
                self.udp = Some(self.bind_udp(&record.parameters)?);
            }
            udp.send(&UDP_REPLY).map_err(&cannot)?;
            self.add(Wire::Udp(Arc::new(udp)))?;
        }
        Ok(())
    }

    fn bind_udp(&self, parameters: &Parameters) -> Result<UdpSocket, ServeError> {
        let cannot = io_error("open a UDP socket");
        let at = self.listener.address().map_err(&cannot)?;
        let udp = socket_options::bind_shared(at).map_err(&cannot)?;
        udp.set_nonblocking(true).map_err(&cannot)?;
        ask::prepare(parameters, self.spec.device.as_deref(), udp.as_fd(), at.is_ipv6()).map_err(&cannot)?;
        finish_udp(parameters, &udp);
        Ok(udp)
    }

    fn event(
        &mut self,
        event: ServerAction,
        watcher: &mut dyn Watcher,
        record: &mut TestRecord,
    ) -> Result<(), ServeError> {
        match event {
            ServerAction::Parameters { parameters, unfit, .. } => {
                record.parameters = *parameters;
                if let Some(unfit) = unfit {
                    return Err(unfit.into());
                }
                self.judge(record)?;
                self.prepare(record)?;
                self.machine.accept();
            }
            ServerAction::End => {
                self.draining = true;
                if let Some(traffic) = &mut self.traffic {
                    if let Some(interval) = traffic.drain() {
                        Traffic::keep(record, interval);
                        notify(watcher, record);
                    }
                    traffic.join_senders();
                    traffic.close_senders();
                    traffic.run_dry();
                    record.ends = traffic.ends();
                    record.cpu_percent = traffic.cpu_percent();
                }
                self.machine.stopped();
            }
            ServerAction::Results(theirs) => self.results(&theirs, watcher, record),
            ServerAction::Done => {}
            ServerAction::Failed(failure) => return Err(failure.into()),
        }
        Ok(())
    }

    /// Whether this client may have this test.
    fn judge(&self, record: &mut TestRecord) -> Result<(), ServeError> {
        let parameters = &record.parameters;
        if let Some(listener) = &self.spec.listener {
            let users = Users::load(&listener.users, listener.skew_s)?;
            let token = parameters.authtoken.as_deref();
            record.user = Some(listener.rsa.user(token, &users, unix_ms() / 1000)?);
        }
        let parameters = &record.parameters;
        let limit = u64::from(self.spec.duration_s_max);
        let time = u64::from(parameters.time_s) + u64::from(parameters.omit_s);
        // A test that bytes end may take any time, which a server with a limit does not give.
        if limit > 0 && (time > limit || parameters.time_s == 0 || !parameters.by_time()) {
            return Err(ServeError::Limit { what: "the time", value: time, limit });
        }
        let total = parameters.rate_bps.saturating_mul(parameters.streams() as u64);
        let limit = self.spec.rate_bps_max;
        if limit > 0 && (total > limit || parameters.rate_bps == 0) {
            return Err(ServeError::Limit { what: "the total rate", value: total, limit });
        }
        Ok(())
    }

    /// Makes ready for the streams.
    fn prepare(&mut self, record: &mut TestRecord) -> Result<(), ServeError> {
        let parameters = &record.parameters;
        match parameters.protocol {
            Iperf3Protocol::Tcp => {
                // What is set on the listener holds for the streams that it takes.
                self.listener.prepare(parameters).map_err(io_error("set the options of the streams"))?;
            }
            Iperf3Protocol::Udp => self.udp = Some(self.bind_udp(parameters)?),
        }
        let payload = record.mss.clamp(16, BLOCK);
        record.block = parameters.len.unwrap_or(if parameters.protocol == Iperf3Protocol::Udp {
            payload
        } else {
            BLOCK
        });
        self.traffic = Some(Traffic::new(
            parameters,
            true,
            record.block,
            self.spec.interval,
            parameters.server_cpu.or(self.spec.cpu),
        ));
        Ok(())
    }

    fn begin(&mut self, watcher: &mut dyn Watcher, record: &mut TestRecord) -> Result<(), ServeError> {
        self.udp = None;
        self.lobby.deny_shown();
        // The streams have their options; whatever connects from here on is of another test. Should there be
        // no descriptor for another listener now, there is before the next client.
        let _ = renew(self.listener, self.lobby);
        let Some(traffic) = &mut self.traffic else { return Ok(()) };
        record.lanes = traffic.lanes();
        record.buffers = traffic.buffers();
        record.congestion = traffic.congestion();
        watcher.connected(record);
        self.machine.run();
        self.flush()?;
        match &mut self.traffic {
            Some(traffic) => traffic.go().map_err(io_error("start the streams")),
            None => Ok(()),
        }
    }

    /// Checks the clock and a running test.
    fn check(&mut self, watcher: &mut dyn Watcher, record: &mut TestRecord) -> Result<(), ServeError> {
        let silence = |what, limit: Duration| ServeError::Silence { what, waited_s: limit.as_secs() };
        if !self.is_running() {
            return if self.last_event.elapsed() > STEP_WAIT {
                Err(silence(self.machine.waits_for(), STEP_WAIT))
            } else {
                Ok(())
            };
        }
        let Some(traffic) = &mut self.traffic else { return Ok(()) };
        if let Some(interval) = traffic.tick() {
            Traffic::keep(record, interval);
            notify(watcher, record);
        }
        let parameters = &record.parameters;
        if parameters.by_time() {
            let planned = Duration::from_secs(u64::from(parameters.time_s) + u64::from(parameters.omit_s));
            if traffic.elapsed() > planned + GRACE {
                return Err(silence("the end of the test", planned + GRACE));
            }
        }
        if traffic.elapsed().saturating_sub(traffic.last_byte()) > self.spec.silence {
            return Err(silence("data", self.spec.silence));
        }
        Ok(())
    }

    fn results(&mut self, theirs: &Results, watcher: &mut dyn Watcher, record: &mut TestRecord) {
        let Some(traffic) = &self.traffic else { return };
        record.merge(theirs, &traffic.omitted());
        record.server_output =
            if record.parameters.get_server_output { watcher.output(record) } else { None };
        self.machine.results(&traffic.results(record));
    }

    /// Ends a test early; the client gets the reason, where it still listens.
    fn abort(&mut self, error: &ServeError, record: &mut TestRecord) {
        if let Some(traffic) = &mut self.traffic {
            traffic.stop();
            if record.ends.is_empty() {
                record.ends = traffic.ends();
                record.cpu_percent = traffic.cpu_percent();
            }
        }
        record.error = Some(error.to_string());
        let errno = match error {
            ServeError::Io { source, .. } => source.raw_os_error().unwrap_or(0),
            _ => 0,
        };
        self.machine.refuse(error.number(), errno);
        // It may be gone.
        let _ = self.flush();
    }
}

fn notify(watcher: &mut dyn Watcher, record: &TestRecord) {
    if let Some(interval) = record.intervals.last() {
        watcher.interval(record, interval);
    }
}
