//! Clusters over weeks, drawn by chance: how often is a change of a level seen that was made, and how often
//! one that was not?
//!
//! In: sizes and seeds. Out: counts. Tests have heavy tails, hosts drift and have a daily cycle, single tests
//! are far off, hosts and tests are missing. Each day all surveys so far are searched, as a person or a watch
//! would do; a change counts once.

use std::fmt::Write as _;

use linerate_diagnose::history::{RunCells, moved, series};
use linerate_diagnose::rules::Rules;
use linerate_diagnose::stats::{Rng, median};
use linerate_model::ceiling::Ceiling;
use linerate_model::finding::{Cell, Direction, Suspect};
use linerate_model::inventory::Layer;

/// Options of `history`.
#[derive(Debug, Clone, clap::Args)]
pub struct OverTimeArgs {
    /// Number of hosts.
    #[arg(long, default_value_t = 100)]
    hosts: usize,
    /// Number of days.
    #[arg(long, default_value_t = 30)]
    days: usize,
    /// Surveys a day.
    #[arg(long, default_value_t = 4)]
    a_day: usize,
    /// Hosts that each host sends to.
    #[arg(long, default_value_t = 8)]
    partners: usize,
    /// Number of hosts with a fault, a third each of receiving, of sending and of one pair.
    #[arg(long, default_value_t = 6)]
    faults: usize,
    /// Throughput lost by a fault, percent; one in three of a pair loses twice as much.
    #[arg(long, default_value_t = 20)]
    lost: u8,
    /// First seed.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of clusters, each with the next seed.
    #[arg(long, default_value_t = 1)]
    repeat: u64,
}

const DAY_MS: u64 = 86_400_000;
/// Noise of a test, doublings: scale of a Student t with three degrees of freedom.
const TEST_SIGMA: f64 = 0.05;
/// Drift of a host from survey to survey, doublings.
const DRIFT_SIGMA: f64 = 0.002;
/// Daily cycle of a host at most, doublings.
const CYCLE: f64 = 0.06;
/// Share of tests that lose 30 to 90 %, of tests that are missing, of hosts that miss a survey.
const RARE: [f64; 3] = [0.01, 0.05, 0.02];
/// A change is that of a fault when it is seen at most so many surveys beside it.
const BESIDE: usize = 2;

/// A lasting loss.
struct Fault {
    suspect: Suspect,
    direction: Direction,
    from: usize,
    /// Doublings.
    lost: f64,
}

/// What became of one cluster.
#[derive(Debug, Clone, Default)]
pub struct ClusterOutcome {
    /// Hosts times days.
    pub host_days: f64,
    /// Lasting faults.
    pub faults: usize,
    /// Surveys from the start of each fault that was found until it was.
    pub delays: Vec<usize>,
    /// Changes that no fault made.
    pub false_alarms: usize,
}

/// The whole command.
pub fn run(args: &OverTimeArgs, print: &mut dyn FnMut(&str)) {
    let mut all = ClusterOutcome::default();
    for seed in args.seed..args.seed + args.repeat {
        let one = cluster(args, seed);
        print(&one.line(&format!("seed {seed}")));
        all.host_days += one.host_days;
        all.faults += one.faults;
        all.delays.extend(one.delays);
        all.false_alarms += one.false_alarms;
    }
    print(&all.line("all"));
}

impl ClusterOutcome {
    fn line(&self, name: &str) -> String {
        let delays: Vec<f64> = self.delays.iter().map(|delay| *delay as f64).collect();
        let mut line = format!("{name}: {} of {} faults found", delays.len(), self.faults);
        if let Some(median) = median(&delays) {
            let _ = write!(line, " after {median} surveys (median)");
        }
        let rate = self.false_alarms as f64 * 1000.0 / self.host_days;
        let _ = write!(
            line,
            "; {} false in {} host-days: {rate:.2} per 1,000",
            self.false_alarms, self.host_days
        );
        line
    }
}

/// Draws a cluster, searches it every day.
#[must_use]
pub fn cluster(args: &OverTimeArgs, seed: u64) -> ClusterOutcome {
    let mut rng = Rng::new(seed);
    let surveys = args.days * args.a_day;
    let partners = args.partners.min(args.hosts.saturating_sub(1)).max(1);
    let faults = faults(args, partners, surveys, &mut rng);
    let drawn = draw(args, partners, &faults, &mut rng);
    let runs: Vec<RunCells<'_>> =
        drawn.iter().map(|(at_ms, cells)| RunCells { at_ms: *at_ms, cells }).collect();
    let rules = &Rules::DEFAULT.history;
    let mut seen = ClusterOutcome {
        host_days: (args.hosts * args.days) as f64,
        faults: faults.len(),
        ..ClusterOutcome::default()
    };
    let mut found = vec![false; faults.len()];
    let mut known: Vec<(Suspect, Direction, usize)> = Vec::new();
    for until in (args.a_day..=surveys).step_by(args.a_day.max(1)) {
        let runs = &runs[..until];
        let all = series(runs, rules);
        for change in moved(runs, &all, rules) {
            let one = &all[change.series];
            let is_near = |at: usize| at.abs_diff(change.first) <= BESIDE;
            let is_of = |fault: &Fault| {
                fault.suspect == one.suspect && fault.direction == one.direction && is_near(fault.from)
            };
            if let Some(number) = faults.iter().position(is_of) {
                if !found[number] {
                    found[number] = true;
                    seen.delays.push(until - faults[number].from);
                }
                continue;
            }
            let is_known = |(suspect, direction, at): &(Suspect, Direction, usize)| {
                *suspect == one.suspect && *direction == one.direction && is_near(*at)
            };
            if !known.iter().any(is_known) {
                known.push((one.suspect.clone(), one.direction, change.first));
                seen.false_alarms += 1;
            }
        }
    }
    seen
}

fn name(host: usize) -> String {
    format!("n{host}")
}

/// Faults on hosts that share none, in the second and third quarter of the time.
fn faults(args: &OverTimeArgs, partners: usize, surveys: usize, rng: &mut Rng) -> Vec<Fault> {
    let count = args.faults.min(args.hosts / 2);
    (0..count)
        .map(|number| {
            let host = number * args.hosts / count.max(1);
            let lost = -(1.0 - f64::from(args.lost.min(99)) / 100.0).log2();
            let from = surveys / 4 + rng.below(surveys / 2);
            let (suspect, direction, lost) = match number % 3 {
                0 => (Suspect::Host(name(host)), Direction::Rx, lost),
                1 => (Suspect::Host(name(host)), Direction::Tx, lost),
                _ => {
                    let to = (host + 1 + rng.below(partners)) % args.hosts;
                    (Suspect::Pair(name(host), name(to)), Direction::Tx, 2.0 * lost)
                }
            };
            Fault { suspect, direction, from, lost }
        })
        .collect()
}

/// A Student t with three degrees of freedom.
fn heavy(rng: &mut Rng) -> f64 {
    let squares: f64 = (0..3).map(|_| rng.normal().powi(2)).sum();
    rng.normal() / (squares / 3.0).max(1e-6).sqrt()
}

/// Surveys with their moments.
fn draw(args: &OverTimeArgs, partners: usize, faults: &[Fault], rng: &mut Rng) -> Vec<(u64, Vec<Cell>)> {
    let n = args.hosts;
    let cycle: Vec<f64> = (0..n).map(|_| CYCLE * rng.unit()).collect();
    let mut level = vec![[0.0; 2]; n];
    let mut surveys = Vec::new();
    for at in 0..args.days * args.a_day {
        let at_ms = at as u64 * DAY_MS / args.a_day as u64 + rng.below(1_800_000) as u64;
        let day = (at_ms % DAY_MS) as f64 / DAY_MS as f64 * std::f64::consts::TAU;
        let is_out: Vec<bool> = (0..n).map(|_| rng.unit() < RARE[2]).collect();
        for ends in level.iter_mut().flatten() {
            *ends += DRIFT_SIGMA * rng.normal();
        }
        let mut cells = Vec::new();
        for from in 0..n {
            for to in (1..=partners).map(|next| (from + next) % n) {
                if is_out[from] || is_out[to] || rng.unit() < RARE[1] {
                    continue;
                }
                let lost: f64 = faults
                    .iter()
                    .filter(|fault| at >= fault.from && harms(fault, from, to))
                    .map(|fault| fault.lost)
                    .sum();
                let daily = (cycle[from] + cycle[to]) * day.sin();
                let spike = if rng.unit() < RARE[0] { 0.5 + 2.8 * rng.unit() } else { 0.0 };
                let noise = TEST_SIGMA * heavy(rng);
                let rate = level[from][0] + level[to][1] + daily + noise - lost - spike;
                let rtt = 300.0 * (0.3 * heavy(rng).abs()).exp();
                cells.push(cell(from, to, 9.4e9 * rate.exp2(), rtt));
            }
        }
        surveys.push((at_ms, cells));
    }
    surveys
}

fn harms(fault: &Fault, from: usize, to: usize) -> bool {
    match (&fault.suspect, fault.direction) {
        (Suspect::Host(host), Direction::Rx) => *host == name(to),
        (Suspect::Host(host), _) => *host == name(from),
        (Suspect::Pair(a, b), _) => *a == name(from) && *b == name(to),
        _ => false,
    }
}

fn cell(from: usize, to: usize, bps: f64, rtt_us: f64) -> Cell {
    Cell {
        from: name(from),
        to: name(to),
        layer: Layer::Underlay,
        throughput_bps: Some(bps),
        two_state_bps: None,
        loss: None,
        rtt_idle_us: Some(rtt_us),
        rtt_loaded_us: None,
        retransmits_per_s: None,
        cpu_s_per_gb: None,
        ceiling: Ceiling::default(),
        share: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(faults: usize) -> OverTimeArgs {
        OverTimeArgs { hosts: 24, days: 20, a_day: 2, partners: 6, faults, lost: 40, seed: 1, repeat: 1 }
    }

    #[test]
    fn what_was_made_is_seen_and_little_else() {
        let seen = cluster(&args(3), 5);
        assert!(seen.delays.len() >= 2 && seen.faults == 3, "{seen:?}");
        assert!(seen.false_alarms <= 2, "{seen:?}");
        let quiet = cluster(&args(0), 6);
        assert!(quiet.false_alarms <= 1 && quiet.delays.is_empty(), "{quiet:?}");
    }
}
