//! A fleet in memory, for tests: thousands of nodes that speak the real protocol over streams inside this
//! process.
//!
//! What comes in: how many, a seed, who is sick. What goes out: an inventory and its open sessions. Delays,
//! failures and figures are drawn from the seed; time is the runtime's, so with virtual time a minute of
//! measuring takes as long as the operator's work on it. No socket, no process, no clock.
#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "part of tests alone")]

mod downloads;
mod meter;
mod probing;
mod world;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_model::fact::{FactValue, Gap, GapSubject, HostFacts};
use linerate_model::inventory::{
    Endpoint, Group, Host, HostName, Inventory, Layer, SlurmSpec, TransportSpec,
};
use linerate_model::kind::{HttpPlan, MtuPlan, RttPlan, TcpPlan, TestKind, UdpPlan};
use linerate_model::load::{Interval, LoadReport, LoadSpec, Role, TcpEnd, UdpEnd};
use linerate_model::path_mtu::MtuProbe;
use linerate_model::probe::ProbeRequest;
use linerate_wire::message::{Event, Hello, ObserveRequest, PROTOCOL, Request, RequestId, SessionRequest};
use linerate_wire::session::{NodeEvent, NodeSession};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until};

use self::meter::Meter;
use self::probing::{Probing, ProbingHost};
use super::link::HELLO_WAIT;
use super::open::OPENING_MAX;
use super::pipes::Pipes;
use super::{Fleet, LinkError, NodeLink};
use linerate_model::random::Random;
pub use world::{PathCondition, SimulatedHost, World};

/// Rate of every host's link, and hosts in a rack. Racks are oversubscribed two to one.
const LINK_BPS: f64 = 25e9;
const RACK: usize = 40;
/// One host of so many never answers, one dies in the middle, and one test of so many is refused.
const SILENT_ONE_IN: usize = 500;
const DYING_ONE_IN: usize = 500;
const REFUSED_ONE_IN: usize = 2000;
/// The largest receive buffer of the sick host: a third of the rate that its path would carry.
const SICK_RMEM_BYTES: f64 = 98_304.0;
/// Readings and counters of a host with one fast NIC and some virtual ones, as the node program finds them.
const SYSCTLS: usize = 480;
const NICS: usize = 4;
const NIC_READINGS: usize = 110;
const COUNTERS: usize = 600;
/// A node answers so late that nothing was noticed.
const NOTICES_AFTER: Duration = Duration::from_secs(30);

/// All nodes.
pub struct SimulatedFleet {
    seed: u64,
    sick: usize,
    names: Vec<HostName>,
    /// What happens to them while they are watched; `None`: nothing does.
    world: Option<World>,
    numbers: HashMap<IpAddr, usize>,
    /// Receivers that wait for the report of their sender, by token.
    flows: Mutex<HashMap<[u8; 16], oneshot::Sender<LoadReport>>>,
    /// What the nodes themselves cost.
    meter: Meter,
    /// Whether nodes die, are silent and refuse tests.
    fails: bool,
}

/// What one node is like.
struct Character {
    hello_after: Duration,
    silent: bool,
    dies_after: Option<Duration>,
}

/// The inventory: racks of [`RACK`] hosts.
pub fn inventory(hosts: usize) -> Inventory {
    let rack = |number: usize| Group {
        name: format!("rack{number:03}"),
        kind: "rack".to_owned(),
        uplink_bps: Some(LINK_BPS * RACK as f64 / 2.0),
        ..Group::default()
    };
    let host = |number: usize| Host {
        name: name(number),
        // Machines of their own, as far as a survey is concerned.
        transport: TransportSpec::Slurm(SlurmSpec { node: name(number), ..SlurmSpec::default() }),
        groups: vec![format!("rack{:03}", number / RACK)],
        endpoints: vec![Endpoint {
            address: address(number),
            layer: Layer::Underlay,
            netns: None,
            link_bps: None,
        }],
        state_dir: None,
        etc_dir: None,
        cache_dir: None,
    };
    Inventory {
        name: "simulated".to_owned(),
        groups: (0..hosts.div_ceil(RACK)).map(rack).collect(),
        hosts: (0..hosts).map(host).collect(),
        ..Inventory::default()
    }
}

fn name(number: usize) -> String {
    format!("n{number:05}")
}

/// The address of the host of this number.
pub fn address(number: usize) -> IpAddr {
    Ipv4Addr::from(0x0a00_0001 + number as u32).into()
}

impl SimulatedFleet {
    /// A world in which the host of this number has a receive buffer that is too small.
    pub fn new(hosts: usize, sick: usize, seed: u64) -> Arc<Self> {
        Self::made(hosts, sick, seed, true)
    }

    /// A world in which nothing fails.
    pub fn healthy(hosts: usize, seed: u64) -> Arc<Self> {
        Self::made(hosts, usize::MAX, seed, false)
    }

    /// These hosts, numbered from 0, to which something happens while they are watched.
    pub fn of(hosts: Vec<SimulatedHost>, seed: u64) -> Arc<Self> {
        let names = hosts.iter().map(|host| host.name.clone()).collect();
        Self::with(names, Some(World::of(hosts)), usize::MAX, seed, false)
    }

    fn made(hosts: usize, sick: usize, seed: u64, fails: bool) -> Arc<Self> {
        Self::with((0..hosts).map(name).collect(), None, sick, seed, fails)
    }

    fn with(names: Vec<HostName>, world: Option<World>, sick: usize, seed: u64, fails: bool) -> Arc<Self> {
        let numbers = (0..names.len()).map(|number| (address(number), number)).collect();
        let (flows, meter) = (Mutex::default(), Meter::default());
        Arc::new(Self { seed, sick, names, world, numbers, flows, meter, fails })
    }

    /// What happens to hosts that are made by [`Self::of`].
    pub fn world(&self) -> &World {
        self.world.as_ref().unwrap()
    }

    /// Time that this process has spent as the nodes, not as their operator.
    pub fn spent(&self) -> Duration {
        self.meter.spent()
    }

    /// Opens a session with every node, as many at once as with real ones.
    pub async fn open(self: &Arc<Self>) -> Fleet {
        let turns = Arc::new(Semaphore::new(OPENING_MAX));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..self.numbers.len() {
            let (world, turns) = (Arc::clone(self), Arc::clone(&turns));
            tasks.spawn(async move {
                let _turn = turns.acquire().await;
                (number, world.open_one(number).await)
            });
        }
        let (mut links, mut gaps) = (Vec::new(), Vec::new());
        while let Some(joined) = tasks.join_next().await {
            match joined.unwrap() {
                (_, Ok(link)) => links.push(link),
                (number, Err(error)) => {
                    let what = GapSubject::Host(self.names[number].clone());
                    gaps.push(Gap { what, reason: error.to_string() });
                }
            }
        }
        gaps.sort_by(|a, b| a.what.cmp(&b.what));
        let world = Arc::clone(self);
        Fleet::of(links, gaps).reopened_by(move |host| Box::pin(Arc::clone(&world).reopen(host)))
    }

    /// Opens a session with one node.
    async fn open_one(self: Arc<Self>, number: usize) -> Result<NodeLink, LinkError> {
        let name = self.names[number].clone();
        let (ours, theirs) = tokio::io::duplex(8 << 10);
        let meter = self.meter.clone();
        tokio::spawn(meter.over(node(self, number, theirs)));
        let (from_node, to_node) = tokio::io::split(ours);
        let pipes = Pipes::without_child(Box::new(from_node), Box::new(to_node));
        NodeLink::over(&name, pipes, Vec::new(), HELLO_WAIT).await
    }

    /// Opens a session again, where the host is reached.
    async fn reopen(self: Arc<Self>, host: HostName) -> Result<NodeLink, LinkError> {
        let number = self.names.iter().position(|name| *name == host);
        let away = || self.world.as_ref()?.away(number?);
        match (number, away()) {
            (Some(number), None) => self.open_one(number).await,
            (_, away) => {
                let reason = away.unwrap_or_else(|| "no such host is simulated".to_owned());
                Err(LinkError::Lost { host, reason })
            }
        }
    }

    fn random(&self, what: usize, number: usize) -> Random {
        let mut random = Random(self.seed ^ (what as u64) << 48 ^ number as u64);
        random.next_u64();
        random
    }

    fn character(&self, number: usize) -> Character {
        let mut random = self.random(1, number);
        let well = number == self.sick || !self.fails;
        let hello_after = Duration::from_millis(5 + random.below(300) as u64);
        let silent = random.below(SILENT_ONE_IN) == 0 && !well;
        let dies = random.below(DYING_ONE_IN) == 0 && !well;
        let dies_after = dies.then(|| Duration::from_secs(5 + random.below(120) as u64));
        Character { hello_after, silent, dies_after }
    }

    fn facts(&self, number: usize, prefixes: &[String]) -> HostFacts {
        if let Some(world) = &self.world {
            return world.facts(number, prefixes);
        }
        let wanted = |key: &str| prefixes.is_empty() || prefixes.iter().any(|p| key.starts_with(p.as_str()));
        let mut readings = BTreeMap::new();
        let mut put = |key: String, value: FactValue| {
            if wanted(&key) {
                readings.insert(key, value);
            }
        };
        let mut random = self.random(2, number);
        for i in 0..SYSCTLS {
            put(format!("sysctl.net.ipv4.simulated_setting_{i}"), FactValue::Int(i as i64));
        }
        let rmem = if number == self.sick {
            format!("4096 16384 {SICK_RMEM_BYTES}")
        } else {
            "4096 131072 33554432".to_owned()
        };
        put("sysctl.net.ipv4.tcp_rmem".to_owned(), FactValue::Text(rmem));
        put("sysctl.net.ipv4.tcp_wmem".to_owned(), FactValue::Text("4096 16384 33554432".to_owned()));
        put("sysctl.net.ipv4.tcp_congestion_control".to_owned(), FactValue::Text("cubic".to_owned()));
        for nic in 0..NICS {
            for i in 0..NIC_READINGS {
                let value = FactValue::Flag(i % 3 == 0);
                put(format!("nic.ens{nic}.feature.simulated-offload-{i}"), value);
            }
            put(format!("nic.ens{nic}.mtu"), FactValue::Int(9000));
            let mac = format!("02:00:00:{:02x}:{:02x}:{nic:02x}", number >> 8, number & 255);
            put(format!("nic.ens{nic}.mac"), FactValue::Text(mac));
        }
        put("nic.ens0.addresses".to_owned(), FactValue::List(vec![format!("{}/8", address(number))]));
        put("nic.ens0.speed_mbit".to_owned(), FactValue::Int((LINK_BPS / 1e6) as i64));
        put("nic.ens0.driver".to_owned(), FactValue::Text("mlx5_core".to_owned()));
        let counters = (0..COUNTERS)
            .map(|i| (format!("nic.ens0.stat.simulated_{i}"), random.below(1 << 30) as i64))
            .filter(|(key, _)| wanted(key))
            .collect();
        HostFacts { readings: readings.into(), counters, ..HostFacts::default() }
    }
}

/// A node until its operator leaves or it dies.
async fn node(world: Arc<SimulatedFleet>, number: usize, stream: DuplexStream) {
    let character = world.character(number);
    let begun = Instant::now();
    let (mut from_operator, mut to_operator) = tokio::io::split(stream);
    sleep(character.hello_after).await;
    if character.silent {
        // Its stream stays open and nothing ever comes.
        let _ = tokio::io::copy(&mut from_operator, &mut tokio::io::sink()).await;
        return;
    }
    let death = begun + character.dies_after.unwrap_or(Duration::from_secs(86_400));
    let mut session = NodeSession::new(hello(world.world.as_ref().map(|world| world.boot_id(number))));
    let mut cuts = world.world.as_ref().map(|world| world.cuts(number));
    let (answers, mut answered) = mpsc::unbounded_channel::<(RequestId, Event)>();
    let mut node = Node::new(world, number, answers);
    let mut buffer = vec![0; 2048];
    let now_ms = || begun.elapsed().as_millis() as u64;
    loop {
        session.tick(now_ms());
        if to_operator.write_all(&session.take_output()).await.is_err() {
            return;
        }
        let wake = begun + Duration::from_millis(session.next_wakeup_ms().unwrap_or_default());
        tokio::select! {
            read = from_operator.read(&mut buffer) => match read {
                Ok(0) | Err(_) => return,
                Ok(count) => session.received(now_ms(), &buffer[..count]),
            },
            Some((id, event)) = answered.recv() => session.respond(now_ms(), id, event),
            () = sleep_until(wake) => {}
            () = sleep_until(death) => return,
            () = world::cut(&mut cuts) => return,
        }
        while let Some(event) = session.poll_event() {
            let NodeEvent::Request { id, body } = event else { return };
            let is_end = matches!(body, Request::Session(SessionRequest::Bye));
            for event in node.answer(id, body, now_ms()) {
                session.respond(now_ms(), id, event);
            }
            if is_end {
                let _ = to_operator.write_all(&session.take_output()).await;
                return;
            }
        }
    }
}

/// What a node does for its operator.
struct Node {
    world: Arc<SimulatedFleet>,
    number: usize,
    /// What it answers later.
    answers: mpsc::UnboundedSender<(RequestId, Event)>,
    stops: HashMap<RequestId, oneshot::Sender<()>>,
    loads: usize,
    probing: Probing,
}

impl Node {
    fn new(
        world: Arc<SimulatedFleet>,
        number: usize,
        answers: mpsc::UnboundedSender<(RequestId, Event)>,
    ) -> Self {
        Self { world, number, answers, stops: HashMap::new(), loads: 0, probing: Probing::default() }
    }

    /// What it answers at once; nothing where that comes later.
    fn answer(&mut self, id: RequestId, body: Request, now_ms: u64) -> Vec<Event> {
        match body {
            Request::Observe(
                ObserveRequest::Facts { prefixes, .. } | ObserveRequest::Follow { prefixes, .. },
            ) => {
                vec![Event::Facts(Box::new(self.world.facts(self.number, &prefixes))), Event::Done]
            }
            Request::Observe(ObserveRequest::Notices) => self.notices(id),
            Request::Observe(ObserveRequest::Probe(request)) => self.probe(id, request, now_ms),
            Request::Observe(ObserveRequest::Load(spec)) => self.load(id, spec),
            Request::Session(SessionRequest::StopLoad { load }) => {
                drop(self.stops.remove(&load));
                vec![Event::Done]
            }
            _ => vec![Event::Done],
        }
    }

    /// What has changed, as soon as something has.
    fn notices(&self, id: RequestId) -> Vec<Event> {
        let (world, number) = (Arc::clone(&self.world), self.number);
        if world.world.is_none() {
            return self.later(id, Event::Noticed(Vec::new()), NOTICES_AFTER);
        }
        self.when(id, async move {
            let noticed = tokio::time::timeout(NOTICES_AFTER, world.world.as_ref()?.notices(number)).await;
            Some(Event::Noticed(noticed.unwrap_or_default()))
        })
    }

    fn probe(&mut self, id: RequestId, request: ProbeRequest, now_ms: u64) -> Vec<Event> {
        if self.world.world.is_none() {
            return match self.probing.report(&request, now_ms) {
                Some((report, after)) => self.later(id, Event::Probed(report), after),
                None => vec![Event::Done],
            };
        }
        let (world, number, counted) = (Arc::clone(&self.world), self.number, self.probing.counted());
        self.when(id, async move {
            let host = ProbingHost {
                number,
                world: world.world.as_ref()?,
                numbers: &world.numbers,
                random: world.random(4, number),
            };
            probing::answer(host, &counted, request).await.map(Event::Probed)
        })
    }

    fn load(&mut self, id: RequestId, spec: LoadSpec) -> Vec<Event> {
        self.loads += 1;
        let mut random = self.world.random(3 + self.loads, self.number);
        if self.world.fails && random.below(REFUSED_ONE_IN) == 0 {
            let error = "no memory for the streams".to_owned();
            return vec![Event::Failed { error, hint: String::new(), undo_failed: false }];
        }
        if let (Some(world), Some(plan)) = (&self.world.world, spec.kind.get::<HttpPlan>()) {
            let (report, after) = downloads::download(world, plan, &mut random);
            return self.ended_later(id, report, after);
        }
        let (stop, stopped) = oneshot::channel();
        self.stops.insert(id, stop);
        load(&self.world, (self.number, id, spec), random, &self.answers, stopped);
        Vec::new()
    }

    /// Answers in the background after some time.
    fn later(&self, id: RequestId, event: Event, after: Duration) -> Vec<Event> {
        self.when(id, async move {
            sleep(after).await;
            Some(event)
        })
    }

    /// A load with one end is over after some time.
    fn ended_later(&self, id: RequestId, report: LoadReport, after: Duration) -> Vec<Event> {
        let answers = self.answers.clone();
        tokio::spawn(self.world.meter.clone().over(async move {
            sleep(after).await;
            let _ =
                answers.send((id, Event::LoadDone { report: Box::new(report), counters: BTreeMap::new() }));
        }));
        Vec::new()
    }

    /// Answers in the background as soon as the answer is known; `None`: done without one.
    fn when(&self, id: RequestId, event: impl Future<Output = Option<Event>> + Send + 'static) -> Vec<Event> {
        let answers = self.answers.clone();
        tokio::spawn(self.world.meter.clone().over(async move {
            // The session of a node that is gone takes no answer.
            if let Some(event) = event.await
                && answers.send((id, event)).is_err()
            {
                return;
            }
            let _ = answers.send((id, Event::Done));
        }));
        Vec::new()
    }
}

fn hello(boot_id: Option<String>) -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: "simulated".into(),
        build: "simulated".into(),
        facts: vec![],
        loads: ["tcp", "udp", "rtt", "mtu", "http"].map(str::to_owned).into(),
        root: true,
        wall_ms: None,
        boot_id,
    }
}

/// One end of a load, in the background: the sender writes both reports when its time is over.
fn load(
    world: &Arc<SimulatedFleet>,
    (number, id, spec): (usize, RequestId, LoadSpec),
    mut random: Random,
    answers: &mpsc::UnboundedSender<(RequestId, Event)>,
    stopped: oneshot::Receiver<()>,
) {
    let (world, answers) = (Arc::clone(world), answers.clone());
    let done = |report: LoadReport| {
        let counters = (0..4).map(|i| (format!("nic.ens0.stat.simulated_{i}"), 1000)).collect();
        Event::LoadDone { report: Box::new(report), counters }
    };
    match spec.role {
        Role::Receiver => {
            let (report, reported) = oneshot::channel();
            world.flows.lock().unwrap_or_else(PoisonError::into_inner).insert(spec.token, report);
            let _ = answers.send((id, Event::Listening { port: 9 }));
            tokio::spawn(world.meter.clone().over(async move {
                let gone = || LoadReport { stopped: Some("no stream came".into()), ..LoadReport::default() };
                let report = tokio::select! {
                    report = reported => report.unwrap_or_else(|_| gone()),
                    _ = stopped => gone(),
                    () = sleep(Duration::from_millis(u64::from(spec.deadline_ms))) => gone(),
                };
                world.flows.lock().unwrap_or_else(PoisonError::into_inner).remove(&spec.token);
                let _ = answers.send((id, done(report)));
            }));
        }
        Role::Sender { peer } => {
            // Over its own loopback a host has no window to wait for.
            let sick = world.numbers.get(&peer.ip()) == Some(&world.sick);
            let mut path = Path::draw(&mut random, sick);
            if let (Some(of), Some(to)) = (&world.world, world.numbers.get(&peer.ip())) {
                path.rtt_us = of.rtt_us(number, *to).into();
                path.lost = draw_lost(&spec.kind, of.between(number, *to).loss, &mut random);
            }
            tokio::spawn(world.meter.clone().over(async move {
                sleep(path.time(&spec.kind)).await;
                let waiting = world.flows.lock().unwrap_or_else(PoisonError::into_inner).remove(&spec.token);
                let mut own = path.report(&spec.kind, true);
                match waiting {
                    Some(receiver) => drop(receiver.send(path.report(&spec.kind, false))),
                    None => {
                        own = LoadReport {
                            stopped: Some("the receiver has left".into()),
                            ..LoadReport::default()
                        }
                    }
                }
                let _ = answers.send((id, done(own)));
            }));
        }
    }
}

/// A path at one moment.
struct Path {
    rate_bps: f64,
    rtt_us: f64,
    /// The receiver's window is what binds.
    window: bool,
    /// Noise of the intervals of a transfer.
    wobble: f64,
    /// Datagrams of a flow that do not arrive.
    lost: u64,
}

/// Datagrams of a flow that are lost.
fn draw_lost(kind: &TestKind, loss: f64, random: &mut Random) -> u64 {
    let sent = kind.get::<UdpPlan>().map_or(0, datagrams);
    (0..sent).filter(|_| random.fraction() < loss).count() as u64
}

/// Datagrams of a flow.
fn datagrams(udp: &UdpPlan) -> u64 {
    (udp.rate_bps * f64::from(udp.duration_ms) / 8e3 / f64::from(udp.payload_bytes)) as u64
}

impl Path {
    fn draw(random: &mut Random, sick_receiver: bool) -> Self {
        let mut unit = || random.below(1 << 20) as f64 / f64::from(1 << 20);
        let rtt_us = 75.0 + 20.0 * unit();
        let free_bps = 0.98 * LINK_BPS * (0.985 + 0.01 * unit());
        let window_bps = SICK_RMEM_BYTES * 8.0 / (rtt_us * 1e-6);
        let window = sick_receiver && window_bps < free_bps;
        let rate_bps = if window { window_bps } else { free_bps };
        Self { rate_bps, rtt_us, window, wobble: 0.02 * unit(), lost: 0 }
    }

    fn time(&self, kind: &TestKind) -> Duration {
        if kind.is::<TcpPlan>() || kind.is::<UdpPlan>() {
            kind.plan().time_max() + Duration::from_millis(20)
        } else {
            Duration::from_micros(40_000 + self.rtt_us as u64)
        }
    }

    fn report(&self, kind: &TestKind, sender: bool) -> LoadReport {
        let mut report = LoadReport { elapsed_s: 0.04, cpu_s: 0.001, ..LoadReport::default() };
        if let Some(tcp) = kind.get::<TcpPlan>() {
            self.transfer(&mut report, tcp.duration_ms, sender);
        } else if let Some(udp) = kind.get::<UdpPlan>() {
            let payload = u64::from(udp.payload_bytes);
            let datagrams = datagrams(udp) - if sender { 0 } else { self.lost };
            report.elapsed_s = f64::from(udp.duration_ms) / 1e3;
            report.bytes = datagrams * payload;
            report.udp = Some(UdpEnd { datagrams, ..UdpEnd::default() });
        } else if let Some(rtt) = kind.get::<RttPlan>() {
            report.rtt_us = vec![self.rtt_us; usize::from(rtt.count)];
        } else if let Some(MtuPlan { sizes, tries }) = kind.get() {
            let probe =
                |bytes: &u32| MtuProbe { bytes: *bytes, sent: *tries, answered: *tries, refused_mtu: None };
            report.mtu = sizes.iter().map(probe).collect();
        } else {
            report.stopped = Some(format!("a simulated node makes no `{}`", kind.name()));
        }
        report
    }

    fn transfer(&self, report: &mut LoadReport, duration_ms: u32, sender: bool) {
        let seconds = f64::from(duration_ms) / 1e3;
        let loaded_us = if self.window { self.rtt_us } else { self.rtt_us + 180.0 };
        report.elapsed_s = seconds;
        report.cpu_s = 0.6 * seconds;
        report.core_busy_max = Some(0.6);
        report.bytes = (self.rate_bps * seconds / 8.0) as u64;
        report.drained = true;
        report.series = (1..=duration_ms / 50)
            .map(|i| Interval {
                at_ms: 50.0 * f64::from(i),
                throughput_bps: self.rate_bps * (1.0 + self.wobble * (f64::from(i % 5) - 2.0) / 2.0),
                rtt_us: if sender { loaded_us } else { 0.0 },
                cwnd: 300,
                ..Interval::default()
            })
            .collect();
        if sender {
            let busy_us = (seconds * 1e6) as u64;
            let in_flight =
                if self.window { SICK_RMEM_BYTES } else { self.rate_bps / 8.0 * loaded_us * 1e-6 };
            report.tcp = Some(TcpEnd {
                rtt_min_us: self.rtt_us,
                busy_us,
                rwnd_limited_us: if self.window { busy_us * 9 / 10 } else { 0 },
                mss: 8948,
                congestion: "cubic".into(),
                wscale: (10, 10),
                unacked_bytes_max: in_flight as u64,
                sndbuf_bytes: 4 << 20,
                ..TcpEnd::default()
            });
        }
    }
}
