//! What happens to simulated hosts while they are watched: paths lose and become longer, settings change,
//! sessions end, hosts boot.
//!
//! In: hosts with their settings, then one happening after the other. Out: what each path is like at this
//! moment, facts and notices. Time is the runtime's.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_model::fact::{FactKey, FactValue, HostFacts};
use linerate_model::inventory::HostName;
use linerate_model::notice::{FactNotice, NoticeSource, ValueChange, Writer};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::clock;

/// RTT of a path without conditions, microseconds: the shortest, and by how much paths differ.
const RTT_US: (u32, u32) = (90, 60);
/// Rate of a front end without conditions, bit/s.
const SERVED_BPS: f64 = 800e6;

/// A host as it is before anything happens.
#[derive(Debug, Clone, Default)]
pub struct SimulatedHost {
    /// Its name.
    pub name: HostName,
    /// All facts of it.
    pub settings: BTreeMap<FactKey, FactValue>,
}

/// What paths are like beside the usual.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathCondition {
    /// Senders.
    pub from: Vec<HostName>,
    /// Receivers.
    pub to: Vec<HostName>,
    /// Share of what is sent that does not arrive, 0 to 1.
    pub loss: f64,
    /// How much later the rest arrives, microseconds.
    pub delay_us: u32,
}

/// A direction of a path at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Conditions {
    pub(super) loss: f64,
    pub(super) delay_us: u32,
}

struct HostState {
    name: HostName,
    settings: BTreeMap<FactKey, FactValue>,
    boot: u32,
    away_until: Option<Instant>,
    noticed: Vec<FactNotice>,
    /// Probes a second while it was asked for more, and until when.
    faster: Option<(f64, Instant)>,
}

/// What reaches the tasks of a node.
struct Signals {
    notice: Notify,
    /// How often its session was cut.
    cuts: watch::Sender<u32>,
}

#[derive(Default)]
struct State {
    hosts: Vec<HostState>,
    conditions: BTreeMap<usize, PathCondition>,
    next: usize,
    front_ends: BTreeMap<String, f64>,
}

/// All of it.
pub struct World {
    state: Mutex<State>,
    signals: Vec<Signals>,
}

impl World {
    pub(super) fn of(hosts: Vec<SimulatedHost>) -> Self {
        let signals = hosts.iter().map(|_| Signals { notice: Notify::new(), cuts: watch::Sender::new(0) });
        let signals = signals.collect();
        let host = |host: SimulatedHost| HostState {
            name: host.name,
            settings: host.settings,
            boot: 1,
            away_until: None,
            noticed: Vec::new(),
            faster: None,
        };
        let hosts = hosts.into_iter().map(host).collect();
        Self { state: Mutex::new(State { hosts, ..State::default() }), signals }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn facts(&self, number: usize, prefixes: &[String]) -> HostFacts {
        let wanted = |key: &str| prefixes.is_empty() || prefixes.iter().any(|p| key.starts_with(p.as_str()));
        let mut facts = HostFacts::default();
        let state = self.state();
        let own = state.hosts[number].settings.iter().filter(|(key, _)| wanted(key));
        facts.readings.extend(own.map(|(key, value)| (key.clone(), value.clone())));
        facts
    }

    pub(super) fn boot_id(&self, number: usize) -> String {
        let state = self.state();
        format!("{}-boot-{}", state.hosts[number].name, state.hosts[number].boot)
    }

    /// Follows the cuts of the session of a host.
    pub(super) fn cuts(&self, number: usize) -> watch::Receiver<u32> {
        self.signals[number].cuts.subscribe()
    }

    /// Why a host is not reached; `None` where it is.
    pub(super) fn away(&self, number: usize) -> Option<String> {
        let state = self.state();
        let host = &state.hosts[number];
        host.away_until
            .filter(|until| *until > Instant::now())
            .map(|_| format!("ssh exited with 255: connect to host {} port 22: No route to host", host.name))
    }

    /// What changed on a host; waits for it.
    pub(super) async fn notices(&self, number: usize) -> Vec<FactNotice> {
        loop {
            let noticed = std::mem::take(&mut self.state().hosts[number].noticed);
            if !noticed.is_empty() {
                return noticed;
            }
            self.signals[number].notice.notified().await;
        }
    }

    /// From one host to another, now.
    pub(super) fn between(&self, from: usize, to: usize) -> Conditions {
        let state = self.state();
        let (from, to) = (&state.hosts[from], &state.hosts[to]);
        let is_down =
            [from, to].iter().any(|host| host.away_until.is_some_and(|until| until > Instant::now()));
        let mut all = Conditions { loss: if is_down { 1.0 } else { 0.0 }, delay_us: 0 };
        for one in state.conditions.values() {
            if one.from.contains(&from.name) && one.to.contains(&to.name) {
                all.loss = 1.0 - (1.0 - all.loss) * (1.0 - one.loss);
                all.delay_us += one.delay_us;
            }
        }
        all
    }

    /// RTT of a pair without noise, microseconds.
    pub(super) fn rtt_us(&self, a: usize, b: usize) -> u32 {
        let (least, differ) = RTT_US;
        let of_path = (a.min(b) as u32 * 31 + a.max(b) as u32 * 17) % differ;
        least + of_path + self.between(a, b).delay_us + self.between(b, a).delay_us
    }

    /// Probes that a host sends to each partner, each second.
    pub(super) fn probes_per_s(&self, number: usize) -> f64 {
        let faster = self.state().hosts[number].faster;
        faster.filter(|(_, until)| *until > Instant::now()).map_or(1.0, |(per_s, _)| per_s)
    }

    pub(super) fn faster(&self, number: usize, per_s: f64, for_ms: u32) {
        let until = Instant::now() + Duration::from_millis(for_ms.into());
        self.state().hosts[number].faster = Some((per_s, until));
    }

    /// What a front end sends, bit/s.
    pub(super) fn served_bps(&self, via: &str) -> f64 {
        self.state().front_ends.get(via).copied().unwrap_or(SERVED_BPS)
    }
}

/// Ends when the session is cut; never for hosts to which nothing happens.
pub(super) async fn cut(cuts: &mut Option<watch::Receiver<u32>>) {
    if let Some(cuts) = cuts
        && cuts.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

#[allow(clippy::missing_panics_doc, reason = "part of tests alone")]
impl World {
    fn numbered(&self, host: &str) -> usize {
        let at = self.state().hosts.iter().position(|one| one.name == host);
        at.unwrap_or_else(|| panic!("no host {host}"))
    }

    /// Paths are so from now on; gives a number to end it.
    pub fn begin(&self, condition: PathCondition) -> usize {
        let mut state = self.state();
        state.next += 1;
        let number = state.next;
        state.conditions.insert(number, condition);
        number
    }

    /// They are as before.
    pub fn end(&self, condition: usize) {
        self.state().conditions.remove(&condition);
    }

    /// A setting changes, and the host reports it; `None`: it is gone.
    pub fn set(&self, host: &str, key: &str, to: Option<FactValue>, writer: Option<Writer>) {
        let number = self.numbered(host);
        let mut state = self.state();
        let settings = &mut state.hosts[number].settings;
        let from = match &to {
            Some(value) => settings.insert(key.to_owned(), value.clone()),
            None => settings.remove(key),
        };
        let source = match key.split('.').next() {
            Some("firewall") => NoticeSource::Firewall,
            Some("nic") => NoticeSource::Driver,
            _ => NoticeSource::Written,
        };
        let about = if source == NoticeSource::Firewall { "" } else { key };
        state.hosts[number].noticed.push(FactNotice {
            at_ms: clock::now_ms(),
            read_after_ms: 0,
            source,
            about: about.to_owned(),
            writer,
            changes: vec![ValueChange { key: key.to_owned(), from, to }],
        });
        self.signals[number].notice.notify_one();
    }

    /// The session of a host ends; for this time it cannot be opened again, and no packet arrives.
    pub fn cut(&self, host: &str, time: Duration) {
        let number = self.numbered(host);
        self.state().hosts[number].away_until = Some(Instant::now() + time);
        self.signals[number].cuts.send_modify(|cuts| *cuts += 1);
    }

    /// The same, and the host comes back from a boot, with these settings different.
    pub fn reboot(&self, host: &str, time: Duration, settings: BTreeMap<FactKey, FactValue>) {
        let number = self.numbered(host);
        {
            let mut state = self.state();
            let host = &mut state.hosts[number];
            host.boot += 1;
            // What was not reported by then is found by reading.
            host.noticed.clear();
            host.settings.extend(settings);
        }
        self.cut(host, time);
    }

    /// What a front end sends from now on, bit/s.
    pub fn serve(&self, via: &str, bps: f64) {
        self.state().front_ends.insert(via.to_owned(), bps);
    }
}
