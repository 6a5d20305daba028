//! Surveys of clusters as large as they come, on simulated nodes in virtual time: the sick host is found,
//! what fails is a gap, the report stays readable. `LINERATE_SCALE_NODES` sets the size
//! (`cargo xtask scale`); what each phase took is printed.

use std::path::Path;
use std::time::{Duration, Instant};

use linerate_knowledge::Knowledge;
use linerate_model::finding::{Diagnosis, Direction, Suspect};
use linerate_model::sample::Outcome;
use linerate_model::snapshot::Snapshot;

use super::run::{SurveyRequest, survey};
use linerate_fleet::progress::{Progress, ProgressPhase};
use linerate_fleet::simulated::{self, SimulatedFleet};
use linerate_report::{self as report, Format, Material};
use linerate_store::Store;
use linerate_testkit::cost::{cpu_s, memory_mb};

/// Hosts of the test; a scale run sets more.
const NODES: usize = 500;
/// Time that the survey may take, of the virtual clock.
const BUDGET: Duration = Duration::from_secs(120);

fn nodes() -> usize {
    std::env::var("LINERATE_SCALE_NODES").ok().and_then(|n| n.parse().ok()).unwrap_or(NODES)
}

/// One line per phase: seconds and seconds of CPU since the last one, and the most memory that this process
/// ever had.
struct Phases(Instant, f64);

/// Prints when the parts of a survey begin.
struct Parts(Instant);

impl Progress for Parts {
    fn begin(&self, phase: &ProgressPhase<'_>) {
        let (seconds, memory_mb) = (self.0.elapsed().as_secs_f64(), memory_mb("VmRSS:"));
        println!(
            "    after {seconds:6.2} s, {memory_mb} MB in use: {}, {} {}",
            phase.name, phase.total, phase.unit
        );
    }
    fn step(&self, _: usize, _: &str, _: Option<f64>) {}
    fn note(&self, text: &str) {
        println!("    {text}");
    }
    fn end(&self) {}
}

impl Phases {
    fn end(&mut self, phase: &str) {
        let (seconds, cpu_s) = (self.0.elapsed().as_secs_f64(), cpu_s() - self.1);
        println!("{phase:<34} {seconds:8.2} s {cpu_s:8.2} CPU s   peak {:>6} MB", memory_mb("VmHWM:"));
        *self = Self(Instant::now(), cpu_s + self.1);
    }
}

fn surveyed(hosts: usize, sick: usize, store: &Path, phases: &mut Phases) -> (Snapshot, Diagnosis) {
    let inventory = simulated::inventory(hosts);
    let knowledge = Knowledge::builtin().unwrap();
    let mut store = Store::open(store).unwrap();
    let order = SurveyRequest {
        inventory: &inventory,
        inventory_path: None,
        parent: None,
        budget: Some(BUDGET),
        seed: 7,
        share: None,
        drives: false,
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let begun = tokio::time::Instant::now();
        let world = SimulatedFleet::new(hosts, sick, 11);
        let mut before_s = 0.0;
        let mut of_nodes = || {
            let spent_s = world.spent().as_secs_f64();
            println!("    {:.2} s of it were spent as the simulated nodes", spent_s - before_s);
            before_s = spent_s;
        };
        let fleet = world.open().await;
        phases.end("sessions opened");
        of_nodes();
        let done = survey(&order, &fleet, &mut store, &knowledge, &Parts(Instant::now())).await.unwrap();
        phases.end("survey: facts, plan, tests, verdict");
        of_nodes();
        println!("{:<34} {:8.2} s", "of the virtual clock", begun.elapsed().as_secs_f64());
        fleet.bye().await;
        phases.end("sessions closed");
        of_nodes();
        done
    })
}

/// The part of a figure that the diagnosis takes, and the plan.
fn alone(snapshot: &Snapshot, phases: &mut Phases) {
    let knowledge = Knowledge::builtin().unwrap();
    let spec = super::plan::SurveySpec {
        inventory: &snapshot.inventory,
        facts: &snapshot.facts,
        absent: &std::collections::BTreeSet::new(),
        budget: Some(BUDGET),
        seed: 7,
    };
    let plan = super::plan::plan(&spec);
    phases.end("plan alone");
    let tests: usize = plan.rounds.iter().map(|r| r.tests.len()).sum();
    println!("    {} rounds, {tests} tests, {:.0} s expected", plan.rounds.len(), plan.expected_s);
    drop(plan);
    let _ = linerate_diagnose::diagnose(snapshot, &knowledge);
    phases.end("diagnosis alone");
}

#[test]
fn one_sick_host_of_many_is_found_and_what_fails_is_a_gap() {
    let hosts = nodes();
    let sick = hosts * 2 / 3;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scale.sqlite");
    let mut phases = Phases(Instant::now(), cpu_s());
    println!("{hosts} simulated nodes");
    let (snapshot, diagnosis) = surveyed(hosts, sick, &file, &mut phases);
    let gaps = snapshot.samples.iter().filter(|s| matches!(s.outcome, Outcome::Gap { .. })).count();
    println!(
        "    {} samples, {gaps} of them gaps; {} other gaps",
        snapshot.samples.len(),
        snapshot.gaps.len()
    );
    println!("    {}", diagnosis.headline);

    let name = snapshot.inventory.hosts[sick].name.clone();
    assert_eq!(
        diagnosis.findings.len(),
        1,
        "{:?}",
        diagnosis.findings.iter().map(|f| &f.sentence).collect::<Vec<_>>()
    );
    let finding = &diagnosis.findings[0];
    assert_eq!(
        (&finding.places[0].suspect, finding.places[0].direction),
        (&Suspect::Host(name), Direction::Rx)
    );
    assert_eq!(finding.causes[0].id, "tcp-rmem-small", "{}", finding.sentence);
    assert!(gaps > 0 && !snapshot.gaps.is_empty(), "the seed has failures in it");

    let text = report::text::page(&snapshot, &diagnosis, report::heat::Style::default());
    phases.end("report as text");
    let html = report::html::Html.render(&Material {
        snapshot: &snapshot,
        diagnosis: &diagnosis,
        trials: &[],
        reveal: None,
    });
    phases.end("report as HTML");
    println!("    text {} lines, HTML {} kB", text.lines().count(), html.len() / 1024);
    assert!(text.lines().count() < 200, "a person reads it:\n{text}");
    assert!(html.len() < 4 << 20, "a browser opens it: {} bytes", html.len());

    alone(&snapshot, &mut phases);
    let json = std::fs::metadata(&file).map_or(0, |m| m.len());
    println!("    store {} MB", json >> 20);
    drop(snapshot);
    let stored = Store::open(&file).unwrap().load_snapshot(&diagnosis.run).unwrap();
    phases.end("snapshot loaded from the store");
    let again = report::words::diagnose(&stored, &Knowledge::builtin().unwrap());
    assert_eq!(again.findings, diagnosis.findings, "what was kept in memory gives the verdict of the whole");
    phases.end("diagnosis of the stored run");
}
