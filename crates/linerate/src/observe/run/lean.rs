//! What a survey of a very large cluster keeps in memory of a sample: what the diagnosis reads. Pure.
//!
//! What comes in: a sample whose whole is in the store already. What goes out: the same without the inside of its connections,
//! the CPUs and whatever else only reports of single tests show. A run that is loaded from the store has all of it, and the
//! diagnosis of both is the same.

use std::collections::BTreeSet;

use linerate_diagnose::Knowledge;
use linerate_model::fact::HostFacts;
use linerate_model::inventory::Inventory;
use linerate_model::load::{LoadReport, TestKind};
use linerate_model::sample::{Outcome, Sample};

/// From so many hosts on samples are kept lean: 10,000 hosts make about 300,000 of them.
pub(super) const FROM_HOSTS: usize = 1000;

/// What the ceilings look at, beside what the knowledge speaks of.
const CEILING_KEYS: [&str; 3] = ["nic.", "sysctl.net.ipv4.tcp_rmem", "sysctl.net.ipv4.tcp_wmem"];

/// The beginnings of the keys that are read; empty for all. A host has some thousand facts.
pub(super) fn facts(inventory: &Inventory, knowledge: &Knowledge) -> Vec<String> {
    if inventory.hosts.len() < FROM_HOSTS {
        return Vec::new();
    }
    let keys = knowledge.keys().map(|pattern| pattern.split('*').next().unwrap_or_default().to_owned());
    let wanted: BTreeSet<String> =
        keys.chain(CEILING_KEYS.map(str::to_owned)).filter(|prefix| !prefix.is_empty()).collect();
    wanted.into_iter().collect()
}

/// Drops what of facts only says something when it is read twice.
pub(super) fn strip_facts(facts: &mut HostFacts) {
    facts.counters.clear();
}

/// Drops what no reasoning looks at.
pub(super) fn strip(sample: &mut Sample) {
    let transfer = matches!(sample.test.kind, TestKind::Tcp { .. });
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
        *report = kept;
        report.series.shrink_to_fit();
    }
}
