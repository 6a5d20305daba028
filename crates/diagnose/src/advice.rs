//! Tuning advice from arithmetic: buffers only where window over loaded RTT binds, and a word for what had
//! better be left alone. Cells, facts and findings come in, advice with its figures goes out.

use std::collections::{BTreeMap, BTreeSet};

use linerate_model::advice::{Advice, Advised, BufferWindow, Reason};
use linerate_model::finding::{Cell, Finding, Metric, TermName};

use crate::evidence::{CellEvidence, Facts};
use crate::rules::Rules;

/// All advice for a snapshot.
pub(crate) fn of(
    facts: &Facts<'_>,
    cells: &[CellEvidence<'_>],
    report: &[Cell],
    findings: &[Finding],
) -> Vec<Advice> {
    let mut advice = Vec::new();
    advice.extend(buffers(facts, cells, report));
    advice.extend(retransmits(facts, report));
    advice.extend(drops(facts, report, findings));
    advice
}

/// One direction of a pair beside its buffers.
struct Window<'a> {
    rules: &'a Rules,
    from: &'a str,
    to: &'a str,
    rtt_us: f64,
    ceiling_bps: f64,
    link_bps: f64,
    measured_bps: f64,
    /// What the receiver's and the sender's limit allow, bytes of window.
    allowed: [(&'a str, &'static str, f64); 2],
}

impl Window<'_> {
    fn needed_bytes(&self) -> f64 {
        self.ceiling_bps * self.rtt_us / 8e6
    }

    /// The tighter of the two limits.
    fn tighter(&self) -> (&str, &'static str, f64) {
        let [receiver, sender] = self.allowed;
        if receiver.2 <= sender.2 { receiver } else { sender }
    }

    fn allowed_bps(&self) -> f64 {
        self.tighter().2 * 8e6 / self.rtt_us
    }

    /// As the reason for advice about buffers.
    fn reason(&self, hosts: Vec<String>) -> Reason {
        let (host, limit, allowed_bytes) = self.tighter();
        let window = BufferWindow {
            from: self.from.to_owned(),
            to: self.to.to_owned(),
            rtt_us: self.rtt_us,
            ceiling_bps: self.ceiling_bps,
            measured_bps: self.measured_bps,
            needed_bytes: self.needed_bytes(),
            limit: limit.to_owned(),
            host: host.to_owned(),
            allowed_bytes,
            allowed_bps: self.allowed_bps(),
            link_bps: self.link_bps,
        };
        Reason::Buffers(Box::new(window), hosts)
    }

    /// The window is below what the path needs, and what was measured is what the window gives: all of the
    /// buffer or half of it.
    fn binds(&self) -> bool {
        let part = self.measured_bps / self.allowed_bps();
        let notes = &self.rules.notes;
        let gives = |part: f64| (notes.window_binds_min..=notes.window_binds_max).contains(&part);
        let half = part * self.rules.ceilings.receive_window_share;
        self.tighter().2 < notes.window_enough * self.needed_bytes() && (gives(part) || gives(half))
    }
}

fn windows<'c>(facts: &'c Facts<'_>, cells: &'c [CellEvidence<'_>], report: &[Cell]) -> Vec<Window<'c>> {
    let limit = |host: &str, key: &str, share: f64| Some(facts.get(host, key)?.number(2)? * share);
    cells
        .iter()
        .zip(report)
        .filter_map(|(cell, shown)| {
            let receive =
                limit(cell.to, "sysctl.net.ipv4.tcp_rmem", facts.rules.ceilings.receive_window_share)?;
            let send = limit(cell.from, "sysctl.net.ipv4.tcp_wmem", 1.0)?;
            let link = shown.ceiling.terms.iter().find(|t| t.name == TermName::Link)?;
            Some(Window {
                rules: facts.rules,
                from: cell.from,
                to: cell.to,
                rtt_us: cell.rtt_loaded_us.filter(|r| *r > 0.0)?,
                ceiling_bps: shown.ceiling.known_bps()?,
                link_bps: link.bps,
                measured_bps: cell.throughput_bps?,
                allowed: [(cell.to, "tcp_rmem", receive), (cell.from, "tcp_wmem", send)],
            })
        })
        .collect()
}

/// Larger buffers where the window is the limit; else the pair that comes nearest to it, as the reason to
/// leave them alone.
fn buffers(facts: &Facts<'_>, cells: &[CellEvidence<'_>], report: &[Cell]) -> Vec<Advice> {
    let rules = facts.rules;
    let windows = windows(facts, cells, report);
    let tight = |w: &Window<'_>| w.tighter().2 / w.needed_bytes();
    let Some(nearest) = windows.iter().min_by(|a, b| tight(a).total_cmp(&tight(b))) else {
        return Vec::new();
    };
    let binding: Vec<&Window<'_>> = windows.iter().filter(|w| w.binds()).collect();
    if binding.is_empty() {
        let is_tight = tight(nearest) < rules.notes.window_enough;
        let advised = if is_tight { Advised::Measure } else { Advised::Leave };
        return vec![advice(advised, "tcp buffers", nearest.reason(Vec::new()))];
    }
    vec![raise(&binding, rules)]
}

/// The values that the pairs need whose window binds.
fn raise(binding: &[&Window<'_>], rules: &Rules) -> Advice {
    let mut wanted: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for window in binding {
        for (host, limit, bytes) in window.allowed {
            let share = if limit == "tcp_rmem" { rules.ceilings.receive_window_share } else { 1.0 };
            if bytes < rules.notes.window_enough * window.needed_bytes() {
                // A half more than the path needs: the RTT grows with the queue.
                let value = (rules.notes.window_margin * window.needed_bytes() / share).log2().ceil().exp2();
                let kept = wanted.entry((host, limit)).or_insert(0.0);
                *kept = kept.max(value);
            }
        }
    }
    let worst = binding
        .iter()
        .min_by(|a, b| a.allowed_bps().total_cmp(&b.allowed_bps()))
        .expect("somebody binds, else this is not asked");
    let hosts: BTreeSet<&str> = wanted.keys().map(|(host, _)| *host).collect();
    let reason = worst.reason(hosts.into_iter().map(str::to_owned).collect());
    let settings = wanted.iter().map(|((host, limit), value)| {
        let middle = if *limit == "tcp_rmem" { "131072" } else { "16384" };
        format!("{host} net.ipv4.{limit} = 4096 {middle} {value:.0}")
    });
    Advice { settings: settings.collect(), ..advice(Advised::Change, "tcp buffers", reason) }
}

/// Retransmits of pairs that are at their ceiling.
fn retransmits(facts: &Facts<'_>, report: &[Cell]) -> Option<Advice> {
    let fine = |c: &&Cell| {
        !c.ceiling.is_guess()
            && c.share.is_some_and(|s| s >= facts.rules.notes.at_ceiling)
            && c.retransmits_per_s.is_some_and(|r| r >= facts.rules.notes.retransmits_min)
    };
    let cells: Vec<&Cell> = report.iter().filter(fine).collect();
    let most = cells
        .iter()
        .max_by(|a, b| a.retransmits_per_s.unwrap_or(0.0).total_cmp(&b.retransmits_per_s.unwrap_or(0.0)))?;
    let reason = Reason::Retransmits {
        from: most.from.clone(),
        to: most.to.clone(),
        per_s: most.retransmits_per_s.unwrap_or(0.0),
        share: most.share.unwrap_or(0.0),
        others: cells.len() - 1,
    };
    Some(advice(Advised::Leave, "retransmits", reason))
}

/// Counters of dropped packets that grow at hosts to which nothing is lost.
fn drops(facts: &Facts<'_>, report: &[Cell], findings: &[Finding]) -> Option<Advice> {
    let rules = &facts.rules.notes;
    let lossy = |f: &Finding| {
        f.responses.iter().any(|r| matches!(r, Metric::Loss | Metric::Retransmits | Metric::Throughput))
    };
    let suspected: BTreeSet<&str> =
        findings.iter().filter(|f| lossy(f)).flat_map(|f| &f.affected).map(|(_, to)| to.as_str()).collect();
    // Growth per test at the receiver, by host.
    let mut grown: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for sample in &facts.snapshot.samples {
        let drop = |key: &str| {
            key.starts_with("nic.") && key.ends_with(".stat.rx_dropped") && !key.starts_with("nic.lo.")
        };
        let counted = sample.rx_counters.iter().filter(|(key, _)| drop(key));
        let sum: f64 = counted.map(|(_, delta)| *delta as f64).sum();
        let entry = grown.entry(sample.test.to.as_str()).or_insert((0.0, 0.0));
        *entry = (entry.0 + sum, entry.1 + 1.0);
    }
    let at_ease = |host: &str| {
        report.iter().filter(|c| c.to == host).all(|c| {
            c.retransmits_per_s.unwrap_or(0.0) < rules.retransmits_min
                && c.loss.unwrap_or(0.0) < rules.drops_loss_max
        })
    };
    let hosts: BTreeMap<&str, f64> = grown
        .into_iter()
        .map(|(host, (sum, tests))| (host, sum / tests))
        .filter(|(host, each)| *each >= rules.drops_min && !suspected.contains(host) && at_ease(host))
        .collect();
    let (host, each) = hosts.iter().max_by(|a, b| a.1.total_cmp(b.1))?;
    let reason = Reason::Drops { host: (*host).to_owned(), per_test: *each, others: hosts.len() - 1 };
    Some(advice(Advised::Leave, "drop counters", reason))
}

fn advice(advised: Advised, about: &str, reason: Reason) -> Advice {
    let (about, sentence) = (about.to_owned(), String::new());
    Advice { advised, about, sentence, reason: Some(reason), settings: Vec::new(), references: Vec::new() }
}
