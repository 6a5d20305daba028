//! Alarms to the targets of the inventory. Each target has a task and a deadline of its own: one that hangs
//! holds up neither the others nor the watch.
//!
//! In: alerts as they begin, change and end. Out: deliveries; when is decided in `crates/watch`.

mod program;
mod webhook;

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_fleet::clock;
use linerate_model::fact_change::FactChange;
use linerate_model::inventory::Inventory;
use linerate_model::notify::{Alert, NotifyTarget, NotifyVia};
use linerate_model::slow::SlowOf;
use linerate_model::watch::{DecidedLoss, WatchEvent};
use linerate_report::watch as words;
use linerate_watch::rules::{ALERTS_MAX, DELIVERY_MS};
use linerate_watch::{Deliveries, DeliveryOutcome};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

/// How often it is seen whether something is due: quiet hours end, a failed delivery is tried again.
const TICK: Duration = Duration::from_secs(5);

/// How long the end of a watch waits for deliveries.
const END_WAIT: Duration = Duration::from_secs(5);

/// What became of deliveries.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryCounts {
    pub delivered: u64,
    pub failed: u64,
}

/// What became of a delivery; a target that goes on failing has nothing new to report.
type DeliveryReport = Result<(), Option<String>>;

/// An alarm whose alert is known to the targets.
struct Known {
    alert: Alert,
    decided: DecidedLoss,
    changed: Vec<FactChange>,
}

/// All targets.
pub struct Notifier {
    cluster: String,
    /// What a person types next.
    command: String,
    targets: Vec<mpsc::Sender<Alert>>,
    tasks: JoinSet<()>,
    known: BTreeMap<u64, Known>,
    /// Those of what is slow, by the same numbers.
    slow: BTreeMap<u64, Alert>,
    reports: mpsc::UnboundedReceiver<DeliveryReport>,
    pub counts: DeliveryCounts,
}

impl Notifier {
    /// Of an inventory; `command`: what a person types next.
    pub fn begin(inventory: &Inventory, command: String) -> Self {
        let (to_us, reports) = mpsc::unbounded_channel();
        let mut tasks = JoinSet::new();
        let mut targets = Vec::new();
        for target in inventory.notify.clone() {
            let (alerts, received) = mpsc::channel(ALERTS_MAX);
            tasks.spawn(serve(target, received, to_us.clone()));
            targets.push(alerts);
        }
        let cluster = inventory.name.clone();
        Self {
            cluster,
            command,
            targets,
            tasks,
            known: BTreeMap::new(),
            slow: BTreeMap::new(),
            reports,
            counts: DeliveryCounts::default(),
        }
    }

    /// Learns of an event; `changed` are the settings that changed before an alarm.
    pub fn event(&mut self, event: &WatchEvent, changed: &[FactChange]) {
        match event {
            WatchEvent::Measured { alarm, decided, .. } => {
                let alert = self.with_command(words::alert(&self.cluster, alarm, decided, changed));
                self.send(&alert);
                let (decided, changed) = (decided.clone(), changed.to_owned());
                self.known.insert(alarm.id, Known { alert, decided, changed });
            }
            WatchEvent::Widened { alarm } => {
                let Some(known) = self.known.get(&alarm.id) else { return };
                let alert = words::alert(&self.cluster, alarm, &known.decided, &known.changed);
                let alert = self.with_command(alert);
                let before = self
                    .known
                    .get_mut(&alarm.id)
                    .map(|known| std::mem::replace(&mut known.alert, alert.clone()));
                self.replace(before, &alert);
            }
            // Like a loss, one of RTTs is measured first.
            WatchEvent::Slowed { alarm, .. }
                if matches!(alarm.of, SlowOf::Rtt(_)) && !self.slow.contains_key(&alarm.id) => {}
            WatchEvent::Slowed { alarm, .. } | WatchEvent::Remeasured { alarm, .. } => {
                let mut alert = self.with_command(words::slow_alert(&self.cluster, alarm, changed));
                if let Some(command) = words::slow_command(alarm) {
                    alert.annotations.insert("command".to_owned(), command);
                }
                let before = self.slow.insert(alarm.id, alert.clone());
                self.replace(before, &alert);
            }
            WatchEvent::Recovered { alarm } => {
                if let Some(alert) = self.slow.remove(&alarm.id) {
                    self.send(&words::until(&alert, clock::now_ms()));
                }
            }
            WatchEvent::Closed { alarm } => {
                if let Some(known) = self.known.remove(&alarm.id) {
                    self.send(&words::until(&known.alert, clock::now_ms()));
                }
            }
            _ => {}
        }
    }

    /// Of other labels it is another alert: the one before it is over.
    fn replace(&mut self, before: Option<Alert>, alert: &Alert) {
        if let Some(before) = before.filter(|before| before.labels != alert.labels) {
            self.send(&words::until(&before, clock::now_ms()));
        }
        self.send(alert);
    }

    fn with_command(&self, mut alert: Alert) -> Alert {
        alert.annotations.insert("command".to_owned(), self.command.clone());
        alert
    }

    fn send(&mut self, alert: &Alert) {
        for target in &self.targets {
            // A target that is so far behind gets no more for now.
            if target.try_send(alert.clone()).is_err() {
                self.counts.failed += 1;
            }
        }
    }

    /// What a delivery that failed reports; waits for it.
    pub async fn next(&mut self) -> String {
        loop {
            match self.reports.recv().await {
                Some(Ok(())) => self.counts.delivered += 1,
                Some(Err(text)) => {
                    self.counts.failed += 1;
                    if let Some(text) = text {
                        return text;
                    }
                }
                None => return std::future::pending().await,
            }
        }
    }

    /// Waits a little for deliveries in progress.
    pub async fn end(mut self) {
        self.targets.clear();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        drop(timeout(END_WAIT, all).await);
    }
}

/// One target, until the watch ends.
async fn serve(
    target: NotifyTarget,
    mut alerts: mpsc::Receiver<Alert>,
    reports: mpsc::UnboundedSender<DeliveryReport>,
) {
    let is_webhook = matches!(target.via, NotifyVia::Webhook(_));
    let mut deliveries = Deliveries::new(target.quiet, is_webhook);
    let mut ticks = interval(TICK);
    let (mut is_open, mut is_failing) = (true, false);
    while is_open {
        tokio::select! {
            alert = alerts.recv() => match alert {
                Some(alert) => deliveries.learn(alert, clock::now_ms()),
                None => is_open = false,
            },
            _ = ticks.tick() => {}
        }
        // What came meanwhile is newer than what is sent.
        while let Ok(alert) = alerts.try_recv() {
            deliveries.learn(alert, clock::now_ms());
        }
        let due = deliveries.due(clock::now_ms());
        // A webhook takes all at once.
        let parts: Vec<&[Alert]> =
            if is_webhook { due.chunks(ALERTS_MAX).collect() } else { due.chunks(1).collect() };
        for part in parts {
            let attempt = timeout(Duration::from_millis(DELIVERY_MS), deliver(&target.via, part)).await;
            let result =
                attempt.unwrap_or_else(|_| Err(format!("no answer within {} s", DELIVERY_MS / 1000)));
            let mut is_dropped = false;
            for alert in part {
                let outcome = deliveries.delivered(alert, result.is_ok(), clock::now_ms());
                is_dropped |= outcome == DeliveryOutcome::Dropped;
            }
            let is_new = !is_failing || is_dropped;
            is_failing = result.is_err();
            let more = if is_dropped { "; not tried again" } else { "" };
            let text =
                |why: String| is_new.then(|| format!("alarm not delivered by {}: {why}{more}", target.via));
            drop(reports.send(result.map_err(text)));
        }
    }
}

async fn deliver(via: &NotifyVia, alerts: &[Alert]) -> Result<(), String> {
    match via {
        NotifyVia::Webhook(url) => webhook::post(url, alerts, clock::now_ms()).await,
        NotifyVia::Mail { to, sendmail } => {
            let text: String = alerts.iter().map(|alert| words::mail(alert, to)).collect();
            let flags = ["-i", "--"].map(str::to_owned);
            let arguments: Vec<String> = flags.into_iter().chain(to.iter().cloned()).collect();
            program::run(sendmail.as_os_str(), &arguments, text.as_bytes()).await
        }
        NotifyVia::Command(command) => {
            let Some((program, arguments)) = command.split_first() else { return Ok(()) };
            let json = serde_json::to_vec(alerts).map_err(|error| error.to_string())?;
            program::run(program.as_ref(), arguments, &json).await
        }
    }
}
