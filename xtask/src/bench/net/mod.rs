//! The load engine against its peers between two namespaces: TCP with one and two streams, bulk and small
//! UDP, requests and answers. Every contender has its turn in every round, in random order; ratios are those
//! of the same round.

mod cases;
mod contest;
mod iperf2;
mod iperf3;
mod netperf;
mod nuttcp;
mod ours;
mod qperf;
mod sockperf;

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use linerate_model::random::Random;

use contest::{Case, Contender, Demand, Figures, Job, Metric};

use super::arena::Arena;
use super::stats::{self, Spread};
use super::table;
use crate::shell::target_release;

/// Options of the benchmark.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Rounds; every contender has one turn in each.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Only cases whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Order of the turns.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Seconds of one turn.
    #[arg(long, default_value_t = 1)]
    seconds: u32,
}

/// All turns of a contender, round by round; `None` where it failed.
struct Turns {
    name: &'static str,
    figures: Vec<Option<Figures>>,
    error: Option<String>,
}

impl Turns {
    fn column(&self, metric: Metric) -> Vec<Option<f64>> {
        self.figures.iter().map(|f| metric.of(f.as_ref()?)).collect()
    }
}

/// Runs all cases and prints their tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!((1..=200).contains(&options.rounds), "{} rounds: 1 to 200 wanted", options.rounds);
    let node = target_release().join("linerate-node");
    ensure!(node.is_file(), "{} is missing: cargo build --release -p linerate-node", node.display());
    println!("{}", machine());
    let arena = Arena::new()?;
    let mut random = Random(options.seed);
    for case in cases::ALL.iter().filter(|c| options.only.as_ref().is_none_or(|o| c.name.contains(o))) {
        arena.set_wire(case.wire)?;
        let turns = one_case(case, options, &arena, &mut random);
        report(case, &turns);
    }
    Ok(())
}

fn one_case(case: &Case, options: &Options, arena: &Arena, random: &mut Random) -> Vec<Turns> {
    let mut turns = Vec::new();
    let mut there = Vec::new();
    for contender in case.contenders {
        match contender.needs {
            Some((program, hint)) if !installed(program) => {
                println!("{}: left out, {program} is missing ({hint})", contender.name);
            }
            _ => {
                there.push(contender);
                turns.push(Turns { name: contender.name, figures: Vec::new(), error: None });
            }
        }
    }
    let job = Job { seconds: options.seconds, ..case.job };
    let begun = Instant::now();
    for round in 0..options.rounds {
        let mut order: Vec<usize> = (0..there.len()).collect();
        random.shuffle(&mut order);
        for index in order {
            let figures = one_turn(there[index], arena, job).with_context(|| there[index].name.to_owned());
            let turns = &mut turns[index];
            if let Err(error) = &figures {
                turns.error = Some(format!("{error:#}"));
            }
            turns.figures.push(figures.ok());
        }
        eprintln!(
            "{}: round {} of {}, {:.0} s",
            case.name,
            round + 1,
            options.rounds,
            begun.elapsed().as_secs_f64()
        );
    }
    turns
}

fn one_turn(contender: &Contender, arena: &Arena, job: Job) -> Result<Figures> {
    let before = arena.packets()?;
    let figures = (contender.turn)(arena, job)?;
    let passed = arena.packets()?.saturating_sub(before);
    Ok(Figures { wire_per_s: Some(passed as f64 / f64::from(job.seconds)), ..figures })
}

fn report(case: &Case, turns: &[Turns]) {
    println!("\n### {}\n", case.name);
    let mut head = vec!["median (smallest-largest)"];
    head.extend(case.metrics.iter().map(|m| m.head()));
    head.extend(case.metrics.iter().map(|_| "ours / this"));
    let Some(ours) = turns.first() else { return };
    let rows: Vec<Vec<String>> = turns
        .iter()
        .map(|t| {
            let mut row = vec![t.name.to_owned()];
            row.extend(
                case.metrics.iter().map(|m| table::cell(stats::spread(t.column(*m).into_iter().flatten()))),
            );
            let ratio = |m: &Metric| stats::paired(&ours.column(*m), &t.column(*m));
            let same = std::ptr::eq(t, ours);
            row.extend(
                case.metrics.iter().map(|m| if same { "1".to_owned() } else { table::cell(ratio(m)) }),
            );
            row
        })
        .collect();
    print!("{}", table::markdown(&head, &rows));
    for (name, error) in turns.iter().filter_map(|t| Some((t.name, t.error.as_ref()?))) {
        let failed = turns
            .iter()
            .find(|t| t.name == name)
            .map_or(0, |t| t.figures.iter().filter(|f| f.is_none()).count());
        println!("\n{name}: {failed} turns failed, the last: {error}");
    }
    println!();
    for demand in case.demands {
        println!("{}", judged(demand, turns));
    }
    if let Some(noise) = noise(turns, case.metrics[0]) {
        println!("{noise}");
    }
}

/// A demand beside what was measured: the median of paired ratios to the hardest of the peers.
fn judged(demand: &Demand, turns: &[Turns]) -> String {
    let find = |name: &str| turns.iter().find(|t| t.name == name);
    let Some(ours) = find(demand.ours) else { return format!("- {}: not run", demand.ours) };
    let less = demand.metric == Metric::Cpu;
    let ratios = demand.theirs.iter().filter_map(|name| {
        let ratio = stats::paired(&ours.column(demand.metric), &find(name)?.column(demand.metric))?;
        Some((*name, ratio))
    });
    let hardest = ratios.max_by(|a, b| {
        let order = a.1.median.total_cmp(&b.1.median);
        if less { order } else { order.reverse() }
    });
    let Some((name, Spread { median, min, max })) = hardest else {
        return format!("- {} against {}: not measured", demand.ours, demand.theirs.join(", "));
    };
    let met = if less { median <= demand.limit } else { median >= demand.limit };
    format!(
        "- {}, {} / {name}: {} ({}-{}), demanded at {} {}: {}",
        demand.metric.head(),
        demand.ours,
        table::short(median),
        table::short(min),
        table::short(max),
        if less { "most" } else { "least" },
        demand.limit,
        if met { "met" } else { "NOT met" }
    )
}

/// How far the same tool is from itself, when that is a lot.
fn noise(turns: &[Turns], metric: Metric) -> Option<String> {
    // Ours come first; the tool as shipped is next.
    let peer = turns.iter().find(|t| !t.name.starts_with("linerate"))?;
    let spread = stats::spread(peer.column(metric).into_iter().flatten())?;
    (spread.max > 2.0 * spread.min).then(|| {
        format!(
            "- The machine was noisy: {} itself went from {} to {}. Trust the ratios, not the figures.",
            peer.name,
            table::short(spread.min),
            table::short(spread.max)
        )
    })
}

fn installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// What the figures depend on.
fn machine() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let model =
        cpuinfo.lines().find_map(|l| l.strip_prefix("model name")?.split_once(": ")).map_or("", |m| m.1);
    format!(
        "{} CPUs ({model}), Linux {}, load {} before the start; veth, MTU 1500, two namespaces",
        std::thread::available_parallelism().map_or(0, usize::from),
        read("/proc/sys/kernel/osrelease").trim(),
        read("/proc/loadavg").split(' ').next().unwrap_or_default()
    )
}
