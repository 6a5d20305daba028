//! `linerate-lab demo`: a stranger sees a broken cluster, the verdict, the remedy and its proof, and then the
//! truth.
//!
//! In: a seed, optionally a fault and a target. Out: the whole cycle in five short screens and an HTML
//! report. It knows what is broken and prints it only at the end; `linerate` gets only the inventory.

mod screen;

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use linerate_model::exit::ExitCode;
use linerate_model::finding::{Diagnosis, Finding, LayerScope, Metric, RankedCause};
use linerate_model::inventory::Layer;
use linerate_model::random::Random;
use linerate_sys::interrupt::Interrupt;
use serde::Deserialize;

use crate::access;
use crate::error::{LabError, Result};
use crate::faults;
use crate::faults::fault::{Fault, Truth};
use crate::lab::Lab;
use crate::operator::{Ended, Operator, OutputTo};
use crate::topology::Topology;

/// Timeout of a step, far above its usual duration.
const STEP_WITHIN: Duration = Duration::from_secs(180);
/// Time budgets of a survey when other load of this machine hid half of the pairs of a layer before.
const MORE_TIME: [&str; 2] = ["60s", "90s"];
/// Screens.
const SCREENS: usize = 5;

/// The fault that is shown when none is asked for, and its target in `casebook-a`: what one observatory
/// searched for five months, and what the hosts themselves can put right.
const STORY: (&str, &str) = ("gro-overlay", "vs-3");
/// The lab of the fault that is shown when none is asked for.
pub const STORY_LAB: &str = "casebook-a";

/// What to show.
#[derive(Debug, Clone)]
pub struct DemoOptions {
    /// Lab file or name.
    pub lab: String,
    /// Seed; repeats the choice.
    pub seed: u64,
    /// Transport to the hosts.
    pub via: String,
    /// A random fault.
    pub random: bool,
    /// Fault instead of the default one.
    pub fault: Option<String>,
    /// Target; at random when absent, but for the default fault.
    pub at: Option<String>,
    /// Output file of the HTML report.
    pub report: PathBuf,
    /// Time budget of each survey.
    pub time: String,
    /// Whether faults that need root can be used.
    pub root: bool,
}

#[derive(Deserialize)]
struct Page {
    run: String,
    diagnosis: Diagnosis,
}

#[derive(Deserialize)]
struct Runs {
    #[serde(default)]
    trials: Vec<TrialRow>,
}

#[derive(Deserialize)]
struct TrialRow {
    id: String,
}

/// A survey as it is shown.
struct Surveyed {
    page: Page,
    /// What it printed.
    text: String,
}

/// Shows everything.
pub fn demo(options: &DemoOptions, interrupt: &Interrupt) -> Result<ExitCode> {
    let start = Instant::now();
    let (fault, at) = choose(options)?;
    let mut lab = Lab::up_via(Topology::load(&options.lab)?, access::find(&options.via)?)?;
    lab.inject(fault, at, options.seed)?;
    let operator = Operator::find(&lab)?.coloured(std::io::stdout().is_terminal());
    let hosts = lab.cluster.hosts.iter().map(|(host, _)| host.name.clone()).collect();
    let stage = Stage { operator, interrupt, hosts, inventory: lab.reached.inventory.clone(), options };
    print(&format!(
        "[1/{SCREENS}] A virtual cluster: {} hosts on {} hypervisors, uplinks of {} Mbit/s, a vxlan overlay.",
        lab.cluster.hosts.len(),
        lab.cluster.hypervisors.len(),
        lab.cluster.topology.uplink.rate_mbit
    ));
    let random = if options.random { "--random " } else { "" };
    print(&format!("      One thing in it is broken. Repeat: linerate demo {random}--seed {}", options.seed));
    let before = stage.survey(2, None)?;
    stage.show_loss(&before);
    let treated = stage.treat(&before.page.diagnosis, &mut lab)?;
    let after = stage.survey(SCREENS, Some(&before.page.run))?;
    if !is_half_hidden(&after.page.diagnosis) {
        show(&screen::verdict(&after.text));
    }
    let right = reveal(&before.page.diagnosis, &after.page.diagnosis, fault, &treated);
    stage.report(&before.page.run, &treated.truth)?;
    // The lab goes first: what the last line promises must be true when it is printed.
    drop(lab);
    print(&format!("Done in {:.0} s; nothing of the cluster is left.", start.elapsed().as_secs_f64()));
    Ok(if right { ExitCode::Ok } else { ExitCode::Findings })
}

/// The fault, and its target where it is not left to chance.
fn choose(options: &DemoOptions) -> Result<(&'static dyn Fault, Option<&str>)> {
    let at = options.at.as_deref();
    if let Some(name) = &options.fault {
        return Ok((faults::find(name)?, at));
    }
    let can = |f: &&&'static dyn Fault| (options.root || !f.about().needs_root) && f.unavailable().is_none();
    if !options.random && options.lab == STORY_LAB {
        let story = faults::find(STORY.0)?;
        if can(&&story) {
            return Ok((story, Some(STORY.1)));
        }
    }
    let usable: Vec<&'static dyn Fault> = faults::ALL.iter().filter(can).copied().collect();
    let pick = Random(options.seed ^ 0xd3e0).pick(&usable).copied();
    let pick = pick.ok_or_else(|| LabError::Unknown("no fault can be shown on this machine".into()))?;
    Ok((pick, at))
}

/// The fault and its treatment.
struct Treated {
    truth: String,
    accepted: Truth,
    proven: bool,
}

/// State of the demo.
struct Stage<'a> {
    operator: Operator,
    interrupt: &'a Interrupt,
    hosts: Vec<String>,
    inventory: PathBuf,
    options: &'a DemoOptions,
}

impl Stage<'_> {
    fn linerate(&self, arguments: &[OsString]) -> Result<Ended> {
        let begun = Instant::now();
        let mut shown_s = 0;
        let is_live = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        let mut clock = || {
            let seconds = begun.elapsed().as_secs();
            if is_live && seconds > shown_s {
                shown_s = seconds;
                eprint_live(&format!("      {seconds} s"));
            }
            Ok(())
        };
        let ended =
            self.operator.run_while(arguments, OutputTo::Captured, STEP_WITHIN, self.interrupt, &mut clock);
        if shown_s > 0 {
            eprint_live("");
        }
        ended
    }

    /// A step with its command above; a program that could not run ends the demo.
    fn step(&self, number: usize, mut arguments: Vec<OsString>) -> Result<Ended> {
        arguments.push("-q".into());
        let shown: Vec<_> = arguments.iter().map(|a| a.to_string_lossy()).collect();
        print(&format!("\n[{number}/{SCREENS}] linerate {}", shown.join(" ")));
        let ended = self.linerate(&arguments)?;
        if ended.code.is_none() || ended.code == Some(ExitCode::CouldNotRun as i32) {
            let why = ended.stderr.trim();
            return Err(LabError::Unknown(format!("linerate {} failed: {why}", shown.join(" "))));
        }
        Ok(ended)
    }

    /// A survey; with more time where other load of this machine hid half of the pairs.
    fn survey(&self, number: usize, parent: Option<&str>) -> Result<Surveyed> {
        let mut more_time = MORE_TIME.into_iter();
        let mut time = self.options.time.as_str();
        loop {
            let mut arguments = words(&["survey", "--time", time, "-i"]);
            arguments.push(self.inventory.clone().into());
            if let Some(parent) = parent {
                arguments.extend(words(&["--parent", parent]));
            }
            let text = self.step(number, arguments)?.stdout;
            let surveyed = Surveyed { page: self.verdict()?, text };
            let Some(more) = more_time.next().filter(|_| is_half_hidden(&surveyed.page.diagnosis)) else {
                return Ok(surveyed);
            };
            let (unseen, all) = hidden(&surveyed.page.diagnosis);
            print(&format!(
                "      This machine is busy: other load hid {unseen} of {all} pairs. Once more, with {more}."
            ));
            time = more;
        }
    }

    /// The matrix of the layer that lost most, and the verdict.
    fn show_loss(&self, surveyed: &Surveyed) {
        let first = surveyed.page.diagnosis.findings.first();
        let layer = match first.map(|finding| finding.layer) {
            Some(LayerScope::Only(layer)) => layer,
            _ => Layer::Underlay,
        };
        let mut lines = screen::matrix(&surveyed.text, &layer.to_string(), &self.hosts);
        let unseen = if lines.iter().any(|line| line.contains('?')) { "; ? not seen" } else { "" };
        // Pairs without a known ceiling have a rate.
        let is_rate = |word: &str| word.ends_with('G') && word.starts_with(|c: char| c.is_ascii_digit());
        let has_rates = lines.iter().any(|line| line.split_whitespace().any(is_rate));
        let rates = if has_rates { "; G: Gbit/s" } else { "" };
        let names = lines.first().map(|line| format!("{line}   {layer}, % of the ceiling{rates}{unseen}"));
        lines.splice(..lines.len().min(1), names.as_deref());
        lines.extend(screen::verdict(&surveyed.text));
        show(&lines);
    }

    /// The verdict of the last run, for the demo itself.
    fn verdict(&self) -> Result<Page> {
        let ended = self.linerate(&words(&["show", "--json"]))?;
        serde_json::from_str(&ended.stdout)
            .map_err(|e| LabError::Unknown(format!("linerate show --json: {e}; {}", ended.stderr.trim())))
    }

    /// Tries and keeps the remedy, or lets the network team do its part.
    fn treat(&self, diagnosis: &Diagnosis, lab: &mut Lab) -> Result<Treated> {
        let injected = lab.injected().first().map(|i| {
            let truth = format!("{} at {}: {}", i.fault.about().name, i.target, i.fault.about().summary);
            (truth, i.truth.clone())
        });
        let (truth, accepted) = injected.ok_or_else(|| LabError::Unknown("the fault is gone".into()))?;
        let mut treated = Treated { truth, accepted, proven: false };
        let Some(cause) = first_cause(diagnosis) else {
            print("The verdict names no cause, so there is nothing to try.");
            return Ok(treated);
        };
        let remedy = cause.remedy.as_ref();
        let hosts: Vec<&str> = remedy.iter().flat_map(|r| &r.changes).map(|c| c.host.as_str()).collect();
        if hosts.is_empty() {
            let instruction = remedy.map_or("", |r| r.instruction.as_str());
            print(&format!("\n[3/{SCREENS}] The remedy lies outside the hosts: {instruction}"));
            print("The lab acts as the network team and heals its own fault.");
            lab.heal()?;
            treated.proven = true;
            return Ok(treated);
        }
        let mut arguments = words(&["try", &cause.id]);
        let mut named = Vec::new();
        for host in hosts {
            if !named.contains(&host) {
                named.push(host);
                arguments.extend(words(&["--on", host]));
            }
        }
        let tried = self.step(3, arguments)?;
        show(&screen::trial(&tried.stdout));
        if tried.code == Some(ExitCode::Ok as i32) {
            let kept = self.step(4, words(&["keep", &self.last_trial()?]))?;
            show(&screen::trial(&kept.stdout));
            treated.proven = true;
        } else {
            print("The effect was not shown, so the change is not kept.");
        }
        Ok(treated)
    }

    fn last_trial(&self) -> Result<String> {
        let ended = self.linerate(&words(&["runs", "--json"]))?;
        let runs: Runs = serde_json::from_str(&ended.stdout)
            .map_err(|e| LabError::Unknown(format!("linerate runs --json: {e}; {}", ended.stderr.trim())))?;
        let newest = runs.trials.into_iter().map(|t| t.id).max();
        newest.ok_or_else(|| LabError::Unknown("linerate keeps no record of the trial".into()))
    }

    fn report(&self, run: &str, truth: &str) -> Result<()> {
        let path = std::path::absolute(&self.options.report).unwrap_or_else(|_| self.options.report.clone());
        let mut arguments = words(&["show", run, "--html", "--reveal", truth, "-o"]);
        arguments.push(path.clone().into());
        let ended = self.linerate(&arguments)?;
        if !Path::new(&path).is_file() {
            return Err(LabError::Unknown(format!("no report was written: {}", ended.stderr.trim())));
        }
        print(&format!("report:   {}", path.display()));
        Ok(())
    }
}

fn print(text: &str) {
    let mut out = std::io::stdout();
    // The reader may have closed the pipe; the demo still cleans up.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Lines of a screen.
fn show(lines: &[&str]) {
    for line in screen::fitting(lines) {
        print(&line);
    }
}

/// Writes over the line of the terminal that shows how long a step takes.
fn eprint_live(text: &str) {
    let mut err = std::io::stderr();
    // A terminal that is gone shows nothing anyway.
    let _ = write!(err, "\r\u{1b}[K{text}").and_then(|()| err.flush());
}

fn first_cause(diagnosis: &Diagnosis) -> Option<&RankedCause> {
    diagnosis.findings.first().and_then(|f: &Finding| f.causes.first())
}

/// Prints fault and verdict. Returns whether they agree and the cluster is healthy again.
fn reveal(before: &Diagnosis, after: &Diagnosis, fault: &dyn Fault, treated: &Treated) -> bool {
    let first = before.findings.first();
    let suspect = first
        .and_then(|f| f.places.first())
        .is_some_and(|p| treated.accepted.accepts(&p.suspect, p.direction));
    let named = first_cause(before).map(|c| c.id.as_str());
    let cause = named == Some(fault.about().cause);
    let mark = |right: bool| if right { "right" } else { "wrong" };
    print(&format!("broken:   {}", treated.truth.replacen(": ", "\n          ", 1)));
    let named = named.unwrap_or("none named");
    print(&format!("verdict:  location {}, cause {} ({named})", mark(suspect), mark(cause)));
    let still = after.findings.first().map_or("", |f| f.sentence.as_str());
    // An MTU black hole lies outside the hosts; the remedy on the hosts avoids it.
    let round = after.findings.iter().all(|f| f.responses.iter().all(|r| *r == Metric::PathMtu));
    print(&match (still, round) {
        ("", _) if is_half_hidden(after) => {
            let (unseen, all) = hidden(after);
            format!("after:    not enough was seen: other load of this machine hid {unseen} of {all} pairs")
        }
        ("", _) => format!("after:    the cluster is at its ceiling{}", seen(after)),
        (_, true) => {
            format!("after:    throughput is at its ceiling; to be fixed outside the hosts: {still}")
        }
        (_, false) => format!("after:    {still}"),
    });
    suspect && cause && treated.proven && round && !is_half_hidden(after)
}

/// Pairs that other load of this machine hid, of how many.
fn hidden(diagnosis: &Diagnosis) -> (usize, usize) {
    let of_layers = &diagnosis.summary.unmeasured;
    of_layers.iter().fold((0, 0), |(unseen, all), (_, pairs, of)| (unseen + pairs, all + of))
}

/// Whether half of the pairs of a layer were not seen.
fn is_half_hidden(diagnosis: &Diagnosis) -> bool {
    diagnosis.summary.unmeasured.iter().any(|(_, pairs, of)| pairs * 2 >= *of)
}

/// How much of that was seen, where it was not all.
fn seen(diagnosis: &Diagnosis) -> String {
    let (unseen, all) = hidden(diagnosis);
    if unseen == 0 {
        return String::new();
    }
    format!(", as far as it was seen: other load of this machine hid {unseen} of {all} pairs")
}

fn words(arguments: &[&str]) -> Vec<OsString> {
    arguments.iter().map(OsString::from).collect()
}
