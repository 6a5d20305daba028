//! A test as the client: connects, drives the state machine, opens the streams.
//!
//! What comes in: a spec. What goes out: a [`TestRecord`], always: its `error` names what went wrong.
//! Bounded: every step has a deadline, a test without progress ends, and the caller's stop flag is checked
//! every 20 ms.

mod error;
mod options;
mod spec;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linerate_sys::cpu::ThreadTimes;
use linerate_sys::socket;
use linerate_sys::socket_options::{self, TcpPaths};

use super::SLICE;
use super::client::{Client, ClientAction, ClientFailure};
use super::control::{Came, Control, connect};
use super::parameters::{Iperf3Protocol, Parameters};
use super::protocol::{COOKIE_BYTES, Cookie, UDP_HELLO, cookie};
use super::record::{RecordInterval, TestRecord};
use super::results::{Results, ServerOutput};
use super::streams::Wire;
use super::traffic::Traffic;

pub use error::AskError;
pub(super) use error::io_error;
pub(super) use options::{Before, bind_device, finish_accepted, finish_tcp, finish_udp, prepare};
pub use spec::{AddressFamily, ClientSpec, Credentials};

/// Default block of TCP when time ends the test: divides well into what the kernel sends at once.
const BLOCK_LARGE: u32 = 1 << 20;
/// iperf3's own block, which counts where blocks are counted.
pub(super) const BLOCK: u32 = 128 << 10;
/// Largest default payload of a datagram, as in iperf3.
const PAYLOAD_MAX: u32 = 32 << 10;
/// How long a server may take to answer the opening of a UDP stream.
const UDP_REPLY_WAIT: Duration = Duration::from_secs(10);

/// Observes a running test.
pub trait Watcher {
    /// The streams are there.
    fn connected(&mut self, _record: &TestRecord) {}
    /// An interval has ended; it is the last one of the record.
    fn interval(&mut self, _record: &TestRecord, _interval: &RecordInterval) {}
    /// What was printed so far, for a client that asks its server.
    fn output(&mut self, _record: &TestRecord) -> Option<ServerOutput> {
        None
    }
    /// The test is over.
    fn finished(&mut self, _record: &TestRecord) {}
}

/// Observes nothing.
pub struct Nobody;

impl Watcher for Nobody {}

pub(super) fn unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as u64)
}

fn random_cookie() -> io::Result<Cookie> {
    let mut random = [0; COOKIE_BYTES - 1];
    io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut random)?;
    Ok(cookie(&random))
}

/// Makes a test.
pub fn run(spec: &ClientSpec, stop: &dyn Fn() -> bool, watcher: &mut dyn Watcher) -> TestRecord {
    let until = Instant::now() + spec.patience;
    loop {
        let mut record = empty(spec);
        match Asking::run(spec, stop, watcher, &mut record) {
            Err(error) if error.is_passing() && Instant::now() < until && !stop() => {
                std::thread::sleep(SLICE);
                continue;
            }
            Err(error) => record.error = Some(error.to_string()),
            Ok(()) => {}
        }
        watcher.finished(&record);
        return record;
    }
}

fn empty(spec: &ClientSpec) -> TestRecord {
    TestRecord {
        server: false,
        parameters: spec.parameters.clone(),
        cookie: [0; COOKIE_BYTES],
        target: (spec.host.clone(), spec.port),
        start_unix_ms: unix_ms(),
        mss: 0,
        block: spec.parameters.len.unwrap_or(0),
        buffers: (0, 0),
        lanes: Vec::new(),
        interval_s: spec.interval.as_secs_f64(),
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

struct Asking<'a> {
    spec: &'a ClientSpec,
    stop: &'a dyn Fn() -> bool,
    peer: SocketAddr,
    control: Control,
    machine: Client,
    parameters: Parameters,
    traffic: Traffic,
    running: bool,
    /// When something happened last.
    last_event: Instant,
}

impl<'a> Asking<'a> {
    fn run(
        spec: &'a ClientSpec,
        stop: &'a dyn Fn() -> bool,
        watcher: &mut dyn Watcher,
        record: &mut TestRecord,
    ) -> Result<(), AskError> {
        spec.parameters.check()?;
        let mut parameters = spec.parameters.clone();
        if let Some(credentials) = &spec.credentials {
            let now_s = unix_ms() / 1000;
            let token = credentials.rsa.token(&credentials.user, &credentials.password, now_s)?;
            parameters.authtoken = Some(token);
        }
        let (stream, peer) = dial(spec, stop)?;
        record.mss = socket_options::segment(&stream).unwrap_or(0);
        if parameters.protocol == Iperf3Protocol::Udp {
            let payload = parameters.len.unwrap_or(record.mss.clamp(16, PAYLOAD_MAX));
            parameters.len = Some(payload);
        }
        let large =
            parameters.protocol == Iperf3Protocol::Tcp && parameters.by_time() && parameters.rate_bps == 0;
        record.block = parameters.len.unwrap_or(if large { BLOCK_LARGE } else { BLOCK });
        record.cookie = random_cookie().map_err(io_error("make a cookie"))?;
        record.start_unix_ms = unix_ms();
        let mut asking = Asking {
            spec,
            stop,
            peer,
            control: Control::new(stream)
                .map_err(io_error("prepare the control connection"))?
                .traced(spec.debug),
            machine: Client::new(&record.cookie, parameters.to_json())
                .wanting_output(parameters.get_server_output),
            traffic: Traffic::new(&parameters, false, record.block, spec.interval, spec.cpu),
            parameters,
            running: false,
            last_event: Instant::now(),
        };
        asking
            .control
            .tune(spec.keep_alive, spec.send_timeout_ms)
            .map_err(io_error("prepare the control connection"))?;
        if let Some(time) = spec.time {
            asking.traffic.set_time(time);
        }
        let result = asking.drive(watcher, record);
        if result.is_err() && asking.traffic.missing() == 0 && record.ends.is_empty() {
            asking.traffic.stop();
            record.ends = asking.traffic.ends();
            record.cpu_percent = asking.traffic.cpu_percent();
            record.costs = asking.traffic.costs();
        }
        result
    }

    fn drive(&mut self, watcher: &mut dyn Watcher, record: &mut TestRecord) -> Result<(), AskError> {
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
                // The server may be gone already; what counts is that we stop.
                let _ = self.flush();
                return Err(ClientFailure::ClientStopped.into());
            }
            if self.running {
                self.check(watcher, record)?;
            } else if self.last_event.elapsed() > self.spec.silence {
                return Err(self.silence(self.machine.waits_for()));
            }
            let wait = if self.running { self.traffic.due().min(SLICE) } else { SLICE };
            socket::wait(&[self.control.stream().as_fd()], socket::Ready::Readable, wait)
                .map_err(io_error("wait for the server"))?;
            match self.control.read() {
                Came::Bytes(bytes) => self.machine.received(&bytes),
                Came::End => self.machine.closed(),
                Came::Nothing => {}
            }
        }
    }

    fn flush(&mut self) -> Result<(), AskError> {
        let bytes = self.machine.take_output();
        self.control.send(&bytes).map_err(io_error("write to the server"))
    }

    fn silence(&self, what: &'static str) -> AskError {
        AskError::Silence { what, waited_s: self.spec.silence.as_secs() }
    }

    /// Checks the clock and a running test.
    fn check(&mut self, watcher: &mut dyn Watcher, record: &mut TestRecord) -> Result<(), AskError> {
        if let Some(interval) = self.traffic.tick() {
            Traffic::keep(record, interval);
            notify(watcher, record);
        }
        if let Some(why) = self.traffic.error() {
            return Err(AskError::Stream(why));
        }
        if self.traffic.is_enough() {
            return self.end(watcher, record);
        }
        let quiet = self.traffic.elapsed().saturating_sub(self.traffic.last_byte());
        if quiet > self.spec.silence {
            return Err(self.silence("data"));
        }
        Ok(())
    }

    /// Our senders stop, then the server is notified.
    fn end(&mut self, watcher: &mut dyn Watcher, record: &mut TestRecord) -> Result<(), AskError> {
        self.running = false;
        if let Some(interval) = self.traffic.drain() {
            Traffic::keep(record, interval);
            notify(watcher, record);
        }
        self.traffic.join_senders();
        if !self.parameters.by_time() {
            self.traffic.wait_until_acknowledged();
        }
        self.machine.end_test();
        self.flush()?;
        self.traffic.close_senders();
        Ok(())
    }

    fn event(
        &mut self,
        event: ClientAction,
        watcher: &mut dyn Watcher,
        record: &mut TestRecord,
    ) -> Result<(), AskError> {
        match event {
            ClientAction::OpenStreams => {
                while self.traffic.missing() > 0 {
                    let wire = self.open(record)?;
                    self.traffic.add(wire).map_err(io_error("take a stream"))?;
                }
                record.lanes = self.traffic.lanes();
                record.buffers = self.traffic.buffers();
                record.congestion = self.traffic.congestion();
                watcher.connected(record);
            }
            ClientAction::Start => {}
            ClientAction::Run => {
                self.traffic.go().map_err(io_error("start the streams"))?;
                self.running = true;
            }
            ClientAction::Results => {
                if self.running {
                    // The server has had enough first.
                    self.end(watcher, record)?;
                }
                self.traffic.run_dry();
                record.ends = self.traffic.ends();
                record.cpu_percent = self.traffic.cpu_percent();
                record.costs = self.traffic.costs();
                self.machine.results(&self.traffic.results(record));
            }
            ClientAction::Finished(theirs) => self.finish(&theirs, record),
            ClientAction::Failed(failure) => return Err(failure.into()),
        }
        Ok(())
    }

    fn finish(&mut self, theirs: &Results, record: &mut TestRecord) {
        record.merge(theirs, &self.traffic.omitted());
        self.machine.finish();
    }

    /// Opens the next stream.
    fn open(&self, record: &TestRecord) -> Result<Wire, AskError> {
        let number = self.parameters.streams() - self.traffic.missing();
        let port = match self.spec.client_port {
            0 => 0,
            first => first.checked_add(number as u16).unwrap_or(0),
        };
        let any = if self.peer.is_ipv4() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        } else {
            IpAddr::V6(Ipv6Addr::UNSPECIFIED)
        };
        let wanted = self.spec.bind.is_some() || port != 0;
        let local = wanted.then(|| SocketAddr::new(self.spec.bind.unwrap_or(any), port));
        let (parameters, device) = (&self.parameters, self.spec.device.as_deref());
        let label = parameters.flow_label;
        let prepare = |socket: BorrowedFd<'_>| {
            prepare(parameters, device, socket, self.peer.is_ipv6())?;
            match (self.peer, label) {
                (SocketAddr::V6(peer), Some(label)) => socket_options::set_flow_label(&socket, peer, label),
                _ => Ok(()),
            }
        };
        let peer = labelled(self.peer, label);
        let paths = if parameters.mptcp { TcpPaths::Several } else { TcpPaths::One };
        match self.parameters.protocol {
            Iperf3Protocol::Tcp => {
                let stream = connect(local, peer, paths, self.spec.connect_wait, self.stop, &prepare)
                    .map_err(|source| AskError::Connect { peer: self.peer, source })?;
                finish_tcp(&self.parameters, &stream)
                    .and_then(|()| {
                        let ms = self.spec.send_timeout_ms;
                        ms.map_or(Ok(()), |ms| socket_options::set_user_timeout(&stream, ms))
                    })
                    .map_err(io_error("set the options of a stream"))?;
                let mut first = Control::new(stream.try_clone().map_err(io_error("open a stream"))?)
                    .map_err(io_error("open a stream"))?;
                first.send(&record.cookie).map_err(io_error("show the cookie on a stream"))?;
                stream
                    .set_nodelay(self.parameters.nodelay)
                    .map_err(io_error("set the options of a stream"))?;
                Ok(Wire::Tcp(Arc::new(stream)))
            }
            Iperf3Protocol::Udp => {
                let udp = UdpSocket::bind(local.unwrap_or(SocketAddr::new(any, 0)))
                    .map_err(io_error("open a UDP socket"))?;
                prepare(udp.as_fd()).map_err(io_error("set the options of a stream"))?;
                finish_udp(&self.parameters, &udp);
                udp.connect(peer).map_err(io_error("open a stream"))?;
                self.handshake(&udp)?;
                Ok(Wire::Udp(Arc::new(udp)))
            }
        }
    }

    /// The opening words of a UDP stream.
    fn handshake(&self, udp: &UdpSocket) -> Result<(), AskError> {
        let cannot = io_error("open a UDP stream");
        udp.set_read_timeout(Some(SLICE)).map_err(&cannot)?;
        udp.send(&UDP_HELLO).map_err(&cannot)?;
        let until = Instant::now() + UDP_REPLY_WAIT;
        let mut buffer = [0; 64];
        while Instant::now() < until && !(self.stop)() {
            match udp.recv(&mut buffer) {
                // Data may overtake the reply when the server sends.
                Ok(length) if length == UDP_HELLO.len() => return Ok(()),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) => return Err(cannot(error)),
            }
        }
        Err(AskError::Silence {
            what: "the answer to the opening of a UDP stream",
            waited_s: UDP_REPLY_WAIT.as_secs(),
        })
    }
}

/// An address with a flow label, which only IPv6 has.
fn labelled(peer: SocketAddr, label: Option<u32>) -> SocketAddr {
    match (peer, label) {
        (SocketAddr::V6(mut peer), Some(label)) => {
            peer.set_flowinfo(label.to_be());
            peer.into()
        }
        _ => peer,
    }
}

fn notify(watcher: &mut dyn Watcher, record: &TestRecord) {
    if let Some(interval) = record.intervals.last() {
        watcher.interval(record, interval);
    }
}

fn dial(spec: &ClientSpec, stop: &dyn Fn() -> bool) -> Result<(TcpStream, SocketAddr), AskError> {
    let unknown = |why: String| AskError::Resolve { host: spec.host.clone(), why };
    let addresses = (spec.host.as_str(), spec.port).to_socket_addrs().map_err(|e| unknown(e.to_string()))?;
    let mut last = unknown("none of the wanted family".to_owned());
    let fits = |peer: &SocketAddr| {
        spec.family.takes(peer) && spec.bind.is_none_or(|bind| bind.is_ipv4() == peer.is_ipv4())
    };
    for peer in addresses.filter(fits) {
        let local = spec.bind.map(|bind| socket::local_end(bind, peer));
        let prepare = |socket: BorrowedFd<'_>| bind_device(spec.device.as_deref(), socket);
        match connect(local, peer, TcpPaths::One, spec.connect_wait, stop, &prepare) {
            Ok(stream) => return Ok((stream, peer)),
            Err(source) => last = AskError::Connect { peer, source },
        }
    }
    Err(last)
}
