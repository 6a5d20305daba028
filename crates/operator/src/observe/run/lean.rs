//! What a survey of a very large cluster keeps in memory of a sample: what the diagnosis reads. Pure.
//!
//! What comes in: a sample whose whole is in the store already. What goes out: the same without the inside of
//! its connections, the CPUs and whatever else only reports of single tests show. A run that is loaded from
//! the store has all of it, and the diagnosis of both is the same.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use linerate_knowledge::Knowledge;
use linerate_model::fact::HostFacts;
use linerate_model::inventory::Inventory;
use linerate_model::kind::TcpPlan;
use linerate_model::load::LoadReport;
use linerate_model::sample::{Outcome, Sample};

/// From so many hosts on samples are kept lean: 10,000 hosts make about 300,000 of them.
pub(super) const FROM_HOSTS: usize = 1000;

/// What ceilings and reports look at, beside what the knowledge speaks of; the last part of a key of a NIC,
/// or a whole key.
const OF_NICS: [&str; 9] =
    ["addresses", "mtu", "speed_mbit", "driver", "kind", "lower", "master", "speed_gts", "width"];
const OF_HOSTS: [&str; 2] = ["sysctl.net.ipv4.tcp_rmem", "sysctl.net.ipv4.tcp_wmem"];

/// Which facts are kept of each host of a very large cluster; all of them of a smaller one.
pub(super) struct Wanted<'a> {
    knowledge: &'a Knowledge,
    /// What a node is asked for: beginnings of keys; empty for all. A host has some thousand facts.
    pub(super) prefixes: Vec<String>,
    /// Keys that were judged: most hosts have the same.
    judged: RefCell<HashMap<String, bool>>,
}

impl<'a> Wanted<'a> {
    pub(super) fn new(inventory: &Inventory, knowledge: &'a Knowledge) -> Self {
        let mut prefixes = BTreeSet::new();
        if inventory.hosts.len() >= FROM_HOSTS {
            let patterns = knowledge.keys().map(|pattern| pattern.split('*').next().unwrap_or_default());
            prefixes.extend(patterns.chain(OF_HOSTS).chain(["nic."]).map(str::to_owned));
            prefixes.remove("");
        }
        Self { knowledge, prefixes: prefixes.into_iter().collect(), judged: RefCell::default() }
    }

    /// Whether anything is left out.
    pub(super) fn is_part(&self) -> bool {
        !self.prefixes.is_empty()
    }

    /// Drops the rest of what a host sent, and its counters, which only say something when they are read
    /// twice.
    pub(super) fn strip(&self, facts: &mut HostFacts) {
        if self.is_part() {
            facts.counters.clear();
            let mut judged = self.judged.borrow_mut();
            facts.readings.retain(|key, _| match judged.get(key.as_str()) {
                Some(kept) => *kept,
                None => *judged.entry(key.clone()).or_insert(self.keeps(key)),
            });
        }
    }

    fn keeps(&self, key: &str) -> bool {
        OF_HOSTS.contains(&key)
            || key.rsplit('.').next().is_some_and(|last| OF_NICS.contains(&last))
            || self.knowledge.looks_at(key)
    }
}

/// Drops what no reasoning looks at.
pub(super) fn strip(sample: &mut Sample, knowledge: &Knowledge) {
    for counters in [&mut sample.tx_counters, &mut sample.rx_counters] {
        // One is kept in any case: that counters were read is a fact too. Quotas are looked at by name.
        let mut first = true;
        counters.retain(|key, _| {
            let kept = first || key.starts_with("cgroup.") || knowledge.looks_at_counter(key);
            first = false;
            kept
        });
    }
    let transfer = sample.test.kind.is::<TcpPlan>();
    let Outcome::Measured(m) = &mut sample.outcome else { return };
    if !transfer {
        // Their values stand in the measurement itself.
        (m.tx, m.rx) = (None, None);
    }
    for report in m.tx.iter_mut().chain(&mut m.rx) {
        let kept = LoadReport {
            bytes: report.bytes,
            elapsed_s: report.elapsed_s,
            cpu_s: report.cpu_s,
            wait_s: report.wait_s,
            core_busy_max: report.core_busy_max,
            series: std::mem::take(&mut report.series),
            drained: report.drained,
            tcp: report.tcp.take(),
            stopped: report.stopped.take(),
            ..LoadReport::default()
        };
        **report = kept;
        report.series.shrink_to_fit();
    }
}
