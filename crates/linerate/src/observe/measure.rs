//! One test on two hosts: receiver, its port, sender, both reports.
//!
//! What comes in: the open sessions, the inventory and a test. What goes out: a sample, whatever happened; a host that
//! dies makes a gap. Bounded in time: each step has its deadline, and the nodes have theirs.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_model::inventory::{Endpoint, Inventory};
use linerate_model::load::{LoadReport, LoadSpec, Role, TestKind};
use linerate_model::plan::Test;
use linerate_model::sample::{Outcome, Sample};
use linerate_model::tuning::{CALIBRATION_MS_MAX, Tuning};
use linerate_wire::message::{Event, Request};
use tokio::time::Instant;

use super::{clock, gather};
use crate::fleet::{Exchange, Fleet, Link, LinkError};

/// Time for a receiver to say on which port it listens.
const LISTEN_WAIT: Duration = Duration::from_secs(3);
/// Time that a load may take beyond its transfer: connecting, draining, reading counters.
const SLACK: Duration = Duration::from_millis(1500);
/// What the operator waits beyond the node's own deadline before it gives up on the answer.
const ANSWER_SLACK: Duration = Duration::from_secs(3);
/// What a receiver may take to end after its sender has.
const RECEIVER_SLACK: Duration = Duration::from_millis(700);

/// Longest time of the transfer itself.
pub fn transfer_time(kind: &TestKind) -> Duration {
    match kind {
        TestKind::Tcp { duration_ms, .. } | TestKind::Udp { duration_ms, .. } => {
            Duration::from_millis(u64::from(*duration_ms))
        }
        TestKind::Rtt { count } => Duration::from_millis(500 + u64::from(*count) * 20),
        TestKind::Mtu { sizes, tries } => {
            Duration::from_millis(500 + sizes.len() as u64 * u64::from(*tries) * 250)
        }
    }
}

type End = (LoadReport, BTreeMap<String, i64>);

/// Runs a test as a survey does: no calibration, nothing of the hosts' own configuration overruled. A survey compares pairs, so
/// that all of them are measured in the same way, and its short tests do not get longer. The two hosts must not be in another
/// test at the same time.
pub async fn measure(fleet: &Fleet, inventory: &Inventory, test: &Test) -> Sample {
    measure_tuned(fleet, inventory, test, &Tuning::default()).await
}

/// The same with options of the transfer.
pub async fn measure_tuned(fleet: &Fleet, inventory: &Inventory, test: &Test, tuning: &Tuning) -> Sample {
    let start_ms = clock::now_ms();
    let mut sample = Sample {
        test: test.clone(),
        start_ms,
        outcome: Outcome::Gap { reason: String::new() },
        tx_counters: BTreeMap::new(),
        rx_counters: BTreeMap::new(),
    };
    sample.outcome = match both_ends(fleet, inventory, test, tuning).await {
        Ok((tx, rx)) => {
            sample.tx_counters = tx.1;
            sample.rx_counters = rx.1;
            gather::outcome(&test.kind, tx.0, rx.0)
        }
        Err(reason) => Outcome::Gap { reason },
    };
    sample
}

async fn both_ends(
    fleet: &Fleet,
    inventory: &Inventory,
    test: &Test,
    tuning: &Tuning,
) -> Result<(End, End), String> {
    let end = |host: &str| {
        inventory
            .endpoint(host, test.layer)
            .ok_or_else(|| format!("host {host} has no {} endpoint in the inventory", test.layer))
    };
    let (from, to) = (end(&test.from)?, end(&test.to)?);
    let tx_link = fleet.link(&test.from).map_err(words)?;
    let rx_link = fleet.link(&test.to).map_err(words)?;
    for link in [tx_link, rx_link] {
        let (hello, name) = (link.hello(), test.kind.name());
        if !hello.loads.iter().any(|l| l == name) {
            return Err(format!(
                "host {} (linerate-node {}) does not offer the load `{name}`",
                link.host(),
                hello.version
            ));
        }
    }
    let token = clock::random::<16>().map_err(|e| format!("no random token: {e}"))?;
    let calibration = if tuning.calibrate { CALIBRATION_MS_MAX } else { 0 };
    let deadline = transfer_time(&test.kind) + SLACK + Duration::from_millis(u64::from(calibration));
    let spec = |role: Role, endpoint: &Endpoint| {
        Request::Load(LoadSpec {
            kind: test.kind.clone(),
            role,
            bind: endpoint.address,
            netns: endpoint.netns.clone(),
            token,
            deadline_ms: deadline.as_millis() as u32,
            tuning: Box::new(tuning.clone()),
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
            stop(rx_link, &receiver).await;
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
            let rx = drain(rx_link, &mut receiver, until).await.map_err(words)?;
            Ok((tx, rx))
        }
        Err(error) => {
            let _ = drain(rx_link, &mut receiver, until).await;
            Err(words(error))
        }
    }
}

/// The receiver's report after the sender's end; a receiver that still waits for a stream is stopped.
async fn drain(link: &Link, receiver: &mut Exchange, until: Instant) -> Result<End, LinkError> {
    let soon = (Instant::now() + RECEIVER_SLACK).min(until);
    match done(receiver, soon).await {
        Err(LinkError::Deadline { .. }) => {
            stop(link, receiver).await;
            done(receiver, until.max(Instant::now() + ANSWER_SLACK)).await
        }
        other => other,
    }
}

async fn done(exchange: &mut Exchange, until: Instant) -> Result<End, LinkError> {
    loop {
        if let Event::LoadDone { report, counters } = exchange.next(until).await? {
            return Ok((*report, counters));
        }
    }
}

async fn stop(link: &Link, exchange: &Exchange) {
    // The answer is of no interest: the load's own end is what is waited for.
    let _ = link.start(Request::StopLoad { load: exchange.number }).await;
}

// By value for `map_err`.
#[allow(clippy::needless_pass_by_value)]
fn words(error: LinkError) -> String {
    error.to_string().replace('\n', "; ")
}
