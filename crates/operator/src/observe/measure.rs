//! One test on two hosts: receiver, its port, sender, both reports.
//!
//! What comes in: the open sessions, the inventory and a test. What goes out: a sample, whatever happened; a
//! host that dies makes a gap. Bounded in time: each step has its deadline, and the nodes have theirs.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use linerate_model::fact::Gap;
use linerate_model::inventory::{Endpoint, Inventory};
use linerate_model::iperf3::{self, Iperf3Spec};
use linerate_model::kind::TestKind;
use linerate_model::load::{LoadReport, LoadSpec, Role};
use linerate_model::plan::Test;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::tuning::{CALIBRATION_MS_MAX, Tuning};
use linerate_wire::message::{Event, ObserveRequest, SessionRequest};
use tokio::time::Instant;

use super::gather;
use linerate_fleet::clock;
use linerate_fleet::{Fleet, LinkError, NodeLink, PendingRequest};

/// Time for a receiver to say on which port it listens.
const LISTEN_WAIT: Duration = Duration::from_secs(3);
/// Time that a load may take beyond its transfer: connecting, draining, reading counters.
const SLACK: Duration = Duration::from_millis(1500);
/// Longest time of a test that only confirms that nothing gets through.
const SHORT: Duration = Duration::from_millis(700);
/// An iperf3 server takes its time between tests, and its protocol more messages.
const IPERF3_SLACK: Duration = Duration::from_secs(2);
/// What the operator waits beyond the node's own deadline before it gives up on the answer.
const ANSWER_SLACK: Duration = Duration::from_secs(3);
/// What a receiver may take to end after its sender has.
const RECEIVER_SLACK: Duration = Duration::from_millis(700);

/// How long the ends of a test wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Patience {
    /// Long enough for a lost first packet.
    Usual,
    /// For a pair of which it is known that nothing gets through: this confirms it.
    Short,
}

impl Patience {
    fn deadline(self, kind: &TestKind) -> Duration {
        match self {
            Self::Usual => kind.plan().time_max() + SLACK,
            Self::Short => kind.plan().time_max().min(SHORT),
        }
    }
}

/// Runs a test that has one end only, on a host or in the namespace of its endpoint.
pub async fn alone(fleet: &Fleet, inventory: &Inventory, test: &Test) -> Sample {
    let start_ms = clock::now_ms();
    let run = async {
        let link = fleet.link(&test.from).map_err(words)?;
        offers(&link, &test.kind)?;
        let endpoint = inventory.endpoint(&test.from, test.layer);
        let any = IpAddr::from([0, 0, 0, 0]);
        let deadline = test.kind.plan().time_max() + SLACK;
        let spec = LoadSpec {
            kind: test.kind.clone(),
            role: Role::Sender { peer: SocketAddr::new(any, 0) },
            bind: any,
            netns: endpoint.and_then(|e| e.netns.clone()),
            token: clock::random::<16>().map_err(|e| format!("no random token: {e}"))?,
            deadline_ms: deadline.as_millis() as u32,
            same_host: false,
            tuning: Box::default(),
        };
        let mut exchange = link.start(ObserveRequest::Load(spec)).await.map_err(words)?;
        done(&mut exchange, Instant::now() + deadline + ANSWER_SLACK).await.map_err(words)
    };
    let (outcome, tx_counters) = match run.await {
        Ok((report, counters)) => {
            (gather::outcome(&test.kind, of_host(&test.from, report), LoadReport::default()), counters)
        }
        Err(reason) => (Outcome::Gap { reason }, BTreeMap::new()),
    };
    Sample { test: test.clone(), start_ms, outcome, tx_counters, rx_counters: BTreeMap::new() }
}

/// The session with a host that knows the load of a test.
fn offering(fleet: &Fleet, host: &str, test: &Test) -> Result<Arc<NodeLink>, String> {
    let link = fleet.link(host).map_err(words)?;
    offers(&link, &test.kind).map(|()| link)
}

/// Whether a node knows this kind of load.
fn offers(link: &NodeLink, kind: &TestKind) -> Result<(), String> {
    let (hello, name) = (link.hello(), kind.name());
    if hello.loads.iter().any(|l| l == name) {
        return Ok(());
    }
    Err(format!("host {} (linerate-node {}) does not offer the load `{name}`", link.host(), hello.version))
}

/// Whether two nodes run under one kernel, so that its CPUs must not be counted twice.
fn share_cpus(tx: &NodeLink, rx: &NodeLink) -> bool {
    let (near, far) = (&tx.hello().boot_id, &rx.hello().boot_id);
    tx.host() == rx.host() || (near.is_some() && near == far)
}

fn calibration_max(tuning: &Tuning) -> Duration {
    Duration::from_millis(if tuning.calibrate { u64::from(CALIBRATION_MS_MAX) } else { 0 })
}

/// Whether both nodes report their whole host after a turn of a calibration.
fn know_host_turns(tx: &NodeLink, rx: &NodeLink) -> bool {
    tx.hello().boot_id.is_some() && rx.hello().boot_id.is_some()
}

type End = (LoadReport, BTreeMap<String, i64>);

/// Runs a test by the plain methods: no calibration, nothing of the hosts' own configuration overruled. The
/// two hosts must not be in another test at the same time.
pub async fn measure(fleet: &Fleet, inventory: &Inventory, test: &Test, patience: Patience) -> Sample {
    with(fleet, inventory, test, patience, &Tuning::default()).await
}

/// The same with options of the transfer.
pub async fn measure_tuned(fleet: &Fleet, inventory: &Inventory, test: &Test, tuning: &Tuning) -> Sample {
    with(fleet, inventory, test, Patience::Usual, tuning).await
}

/// The same with options of the transfer and a patience.
pub async fn with(
    fleet: &Fleet,
    inventory: &Inventory,
    test: &Test,
    patience: Patience,
    tuning: &Tuning,
) -> Sample {
    attempt(fleet, inventory, test, patience, tuning).await.0
}

/// The same, by the `plain` options where an end cannot use these: it refuses before it begins.
pub async fn or_plain(
    fleet: &Fleet,
    inventory: &Inventory,
    test: &Test,
    patience: Patience,
    tuning: &Tuning,
    plain: &Tuning,
) -> Sample {
    match attempt(fleet, inventory, test, patience, tuning).await {
        (_, true) if tuning != plain => with(fleet, inventory, test, patience, plain).await,
        (sample, _) => sample,
    }
}

/// A sample, and whether an end refused to begin.
async fn attempt(
    fleet: &Fleet,
    inventory: &Inventory,
    test: &Test,
    patience: Patience,
    tuning: &Tuning,
) -> (Sample, bool) {
    if test.kind.plan().has_one_end() {
        return (alone(fleet, inventory, test).await, false);
    }
    let start_ms = clock::now_ms();
    let mut sample = Sample::new(test.clone(), start_ms, Outcome::Gap { reason: String::new() });
    let mut is_refused = false;
    sample.outcome = match both_ends(fleet, inventory, test, patience, tuning).await {
        Ok((tx, rx)) => {
            is_refused = tx.0.refused || rx.0.refused;
            sample.tx_counters = tx.1;
            sample.rx_counters = rx.1;
            let rx = gather::damaged_on_the_way(rx.0, &sample.rx_counters);
            gather::outcome(&test.kind, omitted(of_host(&test.from, tx.0), tuning), of_host(&test.to, rx))
        }
        Err(reason) => Outcome::Gap { reason },
    };
    (sample, is_refused)
}

/// A report whose start-up lasts at least as long as is to be left out.
fn omitted(mut report: LoadReport, tuning: &Tuning) -> LoadReport {
    if tuning.omit_ms > 0 {
        let omit_ms = f64::from(tuning.omit_ms);
        report.started_ms = Some(report.started_ms.unwrap_or(0.0).max(omit_ms));
    }
    report
}

async fn both_ends(
    fleet: &Fleet,
    inventory: &Inventory,
    test: &Test,
    patience: Patience,
    tuning: &Tuning,
) -> Result<(End, End), String> {
    // Before anything else: where a host is not reached, nothing is known of its addresses either.
    unreachable(fleet, inventory, test)?;
    let end = |host: &str| {
        inventory
            .endpoint(host, test.layer)
            .ok_or_else(|| format!("host {host} has no {} endpoint in the inventory", test.layer))
    };
    let (from, to) = (end(&test.from)?, end(&test.to)?);
    if inventory.iperf3_port(&test.from).or(inventory.iperf3_port(&test.to)).is_some() {
        return with_iperf3(fleet, inventory, test, from, to).await;
    }
    let (tx_link, rx_link) = (offering(fleet, &test.from, test)?, offering(fleet, &test.to, test)?);
    let token = clock::random::<16>().map_err(|e| format!("no random token: {e}"))?;
    let deadline = patience.deadline(&test.kind) + calibration_max(tuning);
    let same_host = share_cpus(&tx_link, &rx_link);
    let host_turns = tuning.calibrate && know_host_turns(&tx_link, &rx_link);
    let spec = |role: Role, endpoint: &Endpoint| {
        let tuning = Box::new(Tuning { host_turns, ..tuning.clone() });
        ObserveRequest::Load(LoadSpec {
            kind: test.kind.clone(),
            role,
            bind: endpoint.address,
            netns: endpoint.netns.clone(),
            token,
            deadline_ms: deadline.as_millis() as u32,
            same_host,
            tuning,
        })
    };
    let mut receiver = rx_link.start(spec(Role::Receiver, to)).await.map_err(words)?;
    let port = match receiver.next(Instant::now() + LISTEN_WAIT).await {
        Ok(Event::Listening { port }) => port,
        // A receiver that ends at once says why in its report.
        Ok(Event::LoadDone { report, .. }) => {
            let why = report.stopped.unwrap_or_else(|| "it ended before it listened".to_owned());
            return Err(format!("host {}: {why}", test.to));
        }
        Ok(other) => return Err(format!("host {} answered a load with {other:?}", test.to)),
        Err(error) => {
            stop(&rx_link, &receiver).await;
            return Err(words(error));
        }
    };
    let peer = SocketAddr::new(to.address, port);
    let until = Instant::now() + deadline + ANSWER_SLACK;
    let sender = tx_link.start(spec(Role::Sender { peer }, from)).await;
    let tx = match sender {
        Ok(mut sender) => done(&mut sender, until).await,
        Err(error) => Err(error),
    };
    match tx {
        Ok(tx) => {
            let slack = if never_began(&tx.0) { Duration::ZERO } else { RECEIVER_SLACK };
            let rx = drain(&rx_link, &mut receiver, slack, until).await.map_err(words)?;
            Ok((tx, rx))
        }
        Err(error) => {
            let _ = drain(&rx_link, &mut receiver, RECEIVER_SLACK, until).await;
            Err(words(error))
        }
    }
}

/// What an end refused to do is said with its host.
fn of_host(host: &str, mut report: LoadReport) -> LoadReport {
    if report.refused {
        report.stopped = report.stopped.map(|reason| format!("host {host}: {reason}"));
    }
    report
}

/// The ends of a test that could not be reached, with the reason of each, as an error.
fn unreachable(fleet: &Fleet, inventory: &Inventory, test: &Test) -> Result<(), String> {
    let mut ends = vec![&test.from, &test.to];
    ends.dedup();
    // Nothing is started on a device that only has iperf3.
    ends.retain(|host| inventory.iperf3_port(host).is_none());
    let why = |host: &&String| {
        let reason = fleet.unreachable(host)?.to_owned();
        Some(Gap { what: format!("host {host} cannot be reached").into(), reason })
    };
    let gaps: Vec<Gap> = ends.iter().filter_map(why).collect();
    if gaps.is_empty() { Ok(()) } else { Err(Gap::reasons(&gaps)) }
}

/// Whether the sender gave up before anything was answered: its receiver has nothing to wait for.
fn never_began(tx: &LoadReport) -> bool {
    tx.stopped.is_some() && tx.bytes == 0 && tx.rtt_us.is_empty() && tx.mtu.iter().all(|p| p.answered == 0)
}

/// Whether two hosts can make a test of this kind: an iperf3 server cannot make all of them, and of two such
/// servers neither asks.
pub fn is_possible(inventory: &Inventory, from: &str, to: &str, kind: &TestKind) -> bool {
    match [from, to].iter().filter(|host| inventory.iperf3_port(host).is_some()).count() {
        0 => true,
        1 => kind.plan().runs_with_iperf3(),
        _ => false,
    }
}

/// A test of which at least one end has only iperf3.
async fn with_iperf3(
    fleet: &Fleet,
    inventory: &Inventory,
    test: &Test,
    from: &Endpoint,
    to: &Endpoint,
) -> Result<(End, End), String> {
    match (inventory.iperf3_port(&test.from), inventory.iperf3_port(&test.to)) {
        (None, Some(port)) => {
            let peer = SocketAddr::new(to.address, port);
            against_iperf3(fleet, test, &test.from, from, peer, true).await
        }
        (Some(port), None) => {
            let peer = SocketAddr::new(from.address, port);
            against_iperf3(fleet, test, &test.to, to, peer, false).await
        }
        _ => Err("both hosts have only iperf3, and one end must ask".to_owned()),
    }
}

/// The end with a node program makes the whole test; its report has the server's in `far`.
async fn against_iperf3(
    fleet: &Fleet,
    test: &Test,
    host: &str,
    own: &Endpoint,
    peer: SocketAddr,
    sends: bool,
) -> Result<(End, End), String> {
    let link = fleet.link(host).map_err(words)?;
    if !link.hello().loads.iter().any(|load| load == iperf3::NAME) {
        let version = &link.hello().version;
        return Err(format!("host {host} (linerate-node {version}) does not speak iperf3's protocol"));
    }
    let deadline = test.kind.plan().time_max() + SLACK + IPERF3_SLACK;
    let spec = Iperf3Spec {
        kind: test.kind.clone(),
        peer,
        sends,
        bind: own.address,
        netns: own.netns.clone(),
        deadline_ms: deadline.as_millis() as u32,
    };
    let mut exchange = link.start(ObserveRequest::Iperf3(spec)).await.map_err(words)?;
    let until = Instant::now() + deadline + ANSWER_SLACK;
    let (mut near, counters) = done(&mut exchange, until).await.map_err(words)?;
    let far = near.far.take().map_or_else(LoadReport::default, |far| *far);
    let (near, far) = ((near, counters), (far, BTreeMap::new()));
    Ok(if sends { (near, far) } else { (far, near) })
}

/// The receiver's report after the sender's end; a receiver that still waits for a stream after `slack` is
/// stopped.
async fn drain(
    link: &NodeLink,
    receiver: &mut PendingRequest,
    slack: Duration,
    until: Instant,
) -> Result<End, LinkError> {
    let soon = (Instant::now() + slack).min(until);
    match done(receiver, soon).await {
        Err(LinkError::Deadline { .. }) => {
            stop(link, receiver).await;
            done(receiver, until.max(Instant::now() + ANSWER_SLACK)).await
        }
        other => other,
    }
}

async fn done(exchange: &mut PendingRequest, until: Instant) -> Result<End, LinkError> {
    loop {
        if let Event::LoadDone { report, counters } = exchange.next(until).await? {
            return Ok((*report, counters));
        }
    }
}

async fn stop(link: &NodeLink, exchange: &PendingRequest) {
    // The answer is of no interest: the load's own end is what is waited for.
    let _ = link.start(SessionRequest::StopLoad { load: exchange.number }).await;
}

// By value for `map_err`.
#[allow(clippy::needless_pass_by_value)]
fn words(error: LinkError) -> String {
    error.to_string()
}
