//! The session with one watched host: begun, held, and opened again when it ends. With probes for a watch,
//! without them for `linerate changes --follow`.

use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::{Fleet, LinkError, NodeLink};
use linerate_model::fact::HostFacts;
use linerate_model::inventory::{Endpoint, Host};
use linerate_model::notice::FactNotice;
use linerate_model::probe::{PROBE_PORTS, ProbePartner, ProbeReport, ProbeRequest, ProbeSpec};
use linerate_model::retry::Retry;
use linerate_wire::message::{Event, ObserveRequest};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::{Instant, sleep};

/// A node answers a request that changes its probes within this time.
pub(super) const ORDER_WAIT: Duration = Duration::from_secs(10);
/// Reading all facts may take this long.
const READ_WAIT: Duration = Duration::from_secs(60);
/// Hosts whose facts are read at a time: all of 10,000 at once took 2 GB.
pub const READ_AT_ONCE: usize = 256;
/// A node answers after half a minute, also when it has nothing to report.
const ANSWER_WAIT: Duration = Duration::from_secs(60);

/// Counter of segments that TCP sent again, …
const RETRANSMITTED: &str = "snmp.Tcp.RetransSegs";
/// … and how often it is read.
const COUNTERS_EVERY: Duration = Duration::from_secs(60);

/// What a host has to report.
pub enum FromHost {
    /// It answers probes.
    Begun {
        /// On these ports.
        ports: Vec<u16>,
        /// Its session.
        link: Arc<NodeLink>,
    },
    /// All facts of it, from where on changes are reported.
    Read {
        /// Them.
        facts: Box<HostFacts>,
        /// It has booted since its session before this one.
        has_booted: bool,
    },
    /// What came from its partners.
    Counted(ProbeReport),
    /// Segments that its TCP has sent again since it started.
    Retransmitted(i64),
    /// A setting changed.
    Changed(FactNotice),
    /// Its session has ended.
    Ended(String),
}

/// A host, and where its from_hosts go.
pub struct Session {
    pub number: usize,
    pub host: Host,
    pub fleet: Arc<Fleet>,
    pub from_hosts: mpsc::Sender<(usize, FromHost)>,
    /// What it follows.
    pub follow: ObserveRequest,
    /// Taken while its facts are read, with [`READ_AT_ONCE`] for all.
    pub reading: Arc<Semaphore>,
    /// `None`: it probes no others.
    pub probing: Option<HostProbing>,
}

/// How a host probes others and answers them.
pub struct HostProbing {
    pub endpoint: Endpoint,
    pub token: [u8; 16],
    pub whom: watch::Receiver<Vec<ProbePartner>>,
}

impl Session {
    /// Until the watch ends.
    pub async fn hold(self) {
        let mut retry = Retry::new(self.number as u64);
        let mut link = self.fleet.first(&self.host).await;
        // The boot in which it was read last.
        let mut boot = None;
        loop {
            let begun = Instant::now();
            let ended = match link {
                Ok(link) => self.one(&link, &mut boot).await,
                Err(error) => Err(error),
            };
            let Err(error) = ended else { return };
            if self.from_hosts.send((self.number, FromHost::Ended(error.reason()))).await.is_err() {
                return;
            }
            retry.lasted(begun.elapsed().as_millis() as u64);
            sleep(Duration::from_millis(retry.wait_ms())).await;
            link = self.fleet.reopen(&self.host).await.map(Arc::new);
            if let Ok(link) = &link {
                self.fleet.attach(Arc::clone(link));
            }
        }
    }

    /// One session. `Ok`: the watch has ended.
    async fn one(&self, link: &Arc<NodeLink>, boot: &mut Option<String>) -> Result<(), LinkError> {
        let now = link.hello().boot_id.clone();
        let has_booted = boot.is_some() && now.is_some() && *boot != now;
        // First: from when a host is watched its changes are reported too.
        let reading = self.reading.acquire().await;
        for event in link.request(self.follow.clone(), READ_WAIT).await? {
            if let Event::Facts(facts) = event
                && self.from_hosts.send((self.number, FromHost::Read { facts, has_booted })).await.is_err()
            {
                return Ok(());
            }
        }
        drop(reading);
        *boot = now.or(boot.take());
        match &self.probing {
            Some(probing) => self.probe(link, probing).await,
            None => self.notices(link).await,
        }
    }

    /// Has a host answer and make probes, and follows it.
    async fn probe(&self, link: &Arc<NodeLink>, probing: &HostProbing) -> Result<(), LinkError> {
        let Endpoint { address: bind, netns, .. } = probing.endpoint.clone();
        let spec = ProbeSpec { bind, netns, token: probing.token, number: self.number as u32 };
        let begun = link.request(ObserveRequest::Probe(ProbeRequest::Begin(spec)), ORDER_WAIT).await?;
        let ports = begun.into_iter().find_map(|event| match event {
            Event::Probed(report) => Some(report.ports),
            _ => None,
        });
        // Its partners would be sent there, and end their sessions if they could not.
        let is_usable = |ports: &Vec<u16>| ports.len() == PROBE_PORTS && !ports.contains(&0);
        let Some(ports) = ports.filter(is_usable) else {
            let reason = format!("it does not answer probes on {PROBE_PORTS} ports");
            return Err(LinkError::Lost { host: self.host.name.clone(), reason });
        };
        if self
            .from_hosts
            .send((self.number, FromHost::Begun { ports, link: Arc::clone(link) }))
            .await
            .is_err()
        {
            return Ok(());
        }
        tokio::select! {
            ended = self.count(link) => ended,
            ended = pass_partners_on(link, probing.whom.clone()) => ended,
            ended = self.notices(link) => ended,
            ended = self.counters(link) => ended,
        }
    }

    async fn count(&self, link: &NodeLink) -> Result<(), LinkError> {
        loop {
            for event in link.request(ObserveRequest::Probe(ProbeRequest::Counts), ANSWER_WAIT).await? {
                if let Event::Probed(report) = event
                    && self.from_hosts.send((self.number, FromHost::Counted(report))).await.is_err()
                {
                    return Ok(());
                }
            }
        }
    }

    async fn counters(&self, link: &NodeLink) -> Result<(), LinkError> {
        loop {
            let prefixes = vec![RETRANSMITTED.to_owned()];
            let request = ObserveRequest::Facts { prefixes, netns: Vec::new() };
            for event in link.request(request, READ_WAIT).await? {
                let Event::Facts(facts) = event else { continue };
                let Some(count) = facts.counters.get(RETRANSMITTED) else { continue };
                if self.from_hosts.send((self.number, FromHost::Retransmitted(*count))).await.is_err() {
                    return Ok(());
                }
            }
            sleep(COUNTERS_EVERY).await;
        }
    }

    async fn notices(&self, link: &NodeLink) -> Result<(), LinkError> {
        loop {
            for event in link.request(ObserveRequest::Notices, ANSWER_WAIT).await? {
                let Event::Noticed(notices) = event else { continue };
                for notice in notices {
                    if self.from_hosts.send((self.number, FromHost::Changed(notice))).await.is_err() {
                        return Ok(());
                    }
                }
            }
        }
    }
}

/// One list after the other: an older one never overtakes a newer one.
async fn pass_partners_on(
    link: &NodeLink,
    mut whom: watch::Receiver<Vec<ProbePartner>>,
) -> Result<(), LinkError> {
    loop {
        let partners = whom.borrow_and_update().clone();
        link.request(ObserveRequest::Probe(ProbeRequest::Partners { partners }), ORDER_WAIT).await?;
        if whom.changed().await.is_err() {
            return Ok(());
        }
    }
}
