//! `linerate disk watch`: what the block devices of many hosts do now, as a live screen, a table per interval, or lines of JSON; and what
//! is wrong with them.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use linerate_diagnose::disks;
use linerate_model::SCHEMA;
use linerate_model::disk::{DiskFinding, DiskInterval};
use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::Inventory;
use linerate_model::snapshot::Snapshot;

use super::super::via::{Hosts, Via};
use super::super::{open, out};
use crate::fleet::Fleet;
use crate::observe::disks::Watched;
use crate::observe::{clock, join};
use crate::report::disks::{self as shown, Show};
use crate::report::heat::Style;
use crate::store::Store;

/// Intervals of one host that the findings look at: what was mended a while ago is no finding any more.
const LOOKED_AT: usize = 60;
/// Intervals of one host that are stored.
const STORED_MAX: usize = 3600;

/// Show what the block devices of hosts do, by the names that people know, and which of them is slow, full or uneven
// Each switch of the command line is one.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate disk watch\n  linerate disk watch -i 5 --count 12 store-1 store-2\n  linerate disk watch --inventory cluster.toml --json | jq .disks\n\nPercentages in brackets are of devices that work on many requests at a time: busy does not mean full there."
)]
pub(in crate::cli) struct Args {
    /// Hosts to reach over ssh; without one this machine
    #[arg(value_name = "HOST", conflicts_with = "inventory")]
    hosts: Vec<String>,
    /// Seconds between two looks
    #[arg(short, long, value_name = "SECONDS", default_value_t = 2.0, value_parser = seconds)]
    interval: f64,
    /// Looks, then end; without it until Ctrl-C
    #[arg(short, long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Inventory file
    #[arg(long, value_name = "FILE", conflicts_with = "via")]
    inventory: Option<PathBuf>,
    #[command(flatten)]
    via: Via,
    /// Idle devices too, and the parts of volumes that nobody uses by themselves
    #[arg(short, long)]
    all: bool,
    /// A line of JSON for each interval of each host; the last line has the findings
    #[arg(long)]
    json: bool,
    /// Never use sudo on hosts
    #[arg(long)]
    no_sudo: bool,
    /// Only the counters that the kernel keeps anyway: no program at its tracepoints, and only means of how long requests take
    #[arg(long)]
    no_percentiles: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.2..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("a number of seconds from 0.2 to 3600 is needed".into()),
    }
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    open::runtime()?.block_on(watch(args))
}

async fn watch(args: &Args) -> anyhow::Result<ExitCode> {
    let Some(Hosts { inventory, path, job }) =
        super::hosts(&args.via, args.inventory.as_deref(), &args.hosts, args.no_sudo).await?
    else {
        return Ok(open::after_interrupt());
    };
    let done = watch_in(args, &inventory, path).await;
    Hosts::end(job).await;
    done
}

async fn watch_in(args: &Args, inventory: &Inventory, path: Option<PathBuf>) -> anyhow::Result<ExitCode> {
    let Some(fleet) = open::unless_interrupted(Fleet::open(inventory, |_| true)).await else {
        return Ok(open::after_interrupt());
    };
    fleet.notes.iter().for_each(|note| out::note(note));
    let mut screen = Screen { args, watched: Vec::new(), gaps: fleet.gaps.clone(), stored: Vec::new() };
    // An end by Ctrl-C is the usual one: what was seen until then is told and stored.
    let ended = tokio::select! {
        ended = screen.look(&fleet, inventory) => ended,
        () = open::interrupted() => Ok(()),
    };
    fleet.bye().await;
    ended?;
    let findings = screen.findings();
    screen.tell_end(&findings)?;
    let store = Store::open_default()?;
    let snapshot = screen.snapshot(inventory);
    let code = match (findings.is_empty(), snapshot.gaps.is_empty()) {
        (false, _) => ExitCode::Findings,
        (true, true) => ExitCode::Ok,
        (true, false) => ExitCode::PartlyBlind,
    };
    if !snapshot.disks.is_empty() {
        keep(store, &snapshot, &findings, path.as_deref())?;
    }
    Ok(code)
}

/// The run as it is listed later.
fn keep(
    mut store: Store,
    snapshot: &Snapshot,
    findings: &[DiskFinding],
    path: Option<&Path>,
) -> anyhow::Result<()> {
    let diagnosis = Diagnosis {
        schema: SCHEMA,
        run: snapshot.id.clone(),
        headline: shown::headline(snapshot, findings),
        notes: findings.iter().map(|f| format!("{}: {}", f.host, f.sentence)).collect(),
        blind: snapshot.gaps.clone(),
        ..Diagnosis::default()
    };
    store.begin_run(snapshot, path)?;
    store.add_facts(&snapshot.id, snapshot.facts.iter())?;
    store.finish(snapshot, &diagnosis)?;
    out::note(&format!("run {}: kept", snapshot.id));
    Ok(())
}

/// A look at a host under way.
type Asked<'a> = Pin<Box<dyn Future<Output = Result<DiskInterval, String>> + 'a>>;

/// What is watched, and where it is shown.
struct Screen<'a> {
    args: &'a Args,
    watched: Vec<(Watched, VecDeque<DiskInterval>)>,
    gaps: Vec<Gap>,
    stored: Vec<DiskInterval>,
}

impl Screen<'_> {
    async fn look(&mut self, fleet: &Fleet, inventory: &Inventory) -> anyhow::Result<()> {
        for host in fleet.hosts() {
            match Watched::begin(fleet, inventory, &host, !self.args.no_percentiles).await {
                Ok(watched) => {
                    self.begun(&watched)?;
                    self.watched.push((watched, VecDeque::new()));
                }
                Err(reason) => self.gaps.push(Gap { what: format!("host {host}"), reason }),
            }
        }
        let nobody =
            || self.gaps.iter().map(|g| format!("{}: {}", g.what, g.reason)).collect::<Vec<_>>().join("; ");
        anyhow::ensure!(!self.watched.is_empty(), "no host can be watched: {}", nobody());
        let mut tick = tokio::time::interval(Duration::from_secs_f64(self.args.interval));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tick.tick().await;
        let mut looks = 0;
        while self.args.count.is_none_or(|count| looks < count) {
            tick.tick().await;
            self.interval(fleet, inventory).await?;
            looks += 1;
        }
        Ok(())
    }

    /// Says what a host is, and what it does not tell.
    fn begun(&self, watched: &Watched) -> anyhow::Result<()> {
        let missing = watched.times_missing.as_deref();
        if self.args.json {
            out::json_line(&serde_json::json!({
                "schema": SCHEMA, "host": watched.host, "layout": watched.layout.disks().collect::<Vec<_>>(),
                "times_missing": missing
            }))?;
        }
        if let Some(reason) = missing.filter(|_| !self.args.no_percentiles) {
            out::note(&format!("host {}: no percentiles: {reason}", watched.host));
        }
        Ok(())
    }

    /// One look at every host. A host that does not answer any more is a gap, and is not asked again.
    async fn interval(&mut self, fleet: &Fleet, inventory: &Inventory) -> anyhow::Result<()> {
        let asked = self
            .watched
            .iter_mut()
            .map(|(watched, _)| Box::pin(watched.interval(fleet, inventory)) as Asked<'_>);
        let answers = join::all(asked.collect()).await;
        let mut lost = Vec::new();
        for (index, answer) in answers.into_iter().enumerate() {
            match answer {
                Ok(interval) => {
                    let (watched, kept) = &mut self.watched[index];
                    if watched.turned {
                        kept.clear();
                    }
                    if kept.len() == LOOKED_AT {
                        kept.pop_front();
                    }
                    kept.push_back(interval.clone());
                    if self.args.json {
                        let mut line = serde_json::to_value(&interval)?;
                        line["schema"] = SCHEMA.into();
                        out::json_line(&line)?;
                    }
                    if self.stored.iter().filter(|i| i.host == interval.host).count() < STORED_MAX {
                        self.stored.push(interval);
                    }
                }
                Err(reason) => lost.push((index, reason)),
            }
        }
        for (index, reason) in lost.into_iter().rev() {
            let (watched, _) = self.watched.remove(index);
            out::note(&format!("host {} is lost: {reason}", watched.host));
            self.gaps.push(Gap { what: format!("host {}", watched.host), reason });
        }
        anyhow::ensure!(!self.watched.is_empty(), "no host answers any more");
        if self.args.json { Ok(()) } else { self.draw() }
    }

    fn draw(&self) -> anyhow::Result<()> {
        let live = std::io::stdout().is_terminal();
        // On a screen what is wrong is seen while one looks; in a log it comes once, at the end.
        let findings = if live { self.findings() } else { Vec::new() };
        let many = self.watched.len() > 1;
        let show = Show { all: self.args.all, many, wrong: &findings, style: Style::detect() };
        let mut text = String::new();
        for (watched, intervals) in &self.watched {
            if let Some(last) = intervals.back() {
                text.push_str(&shown::table(&watched.layout, last, show));
                // What was said before the first table is off the screen by now.
                let missing = last.times_missing.as_deref().filter(|_| live && !self.args.no_percentiles);
                text.extend(missing.map(shown::no_percentiles));
                text.push('\n');
            }
        }
        if live {
            text.push_str(&shown::findings(&findings));
            out::screen(&text)
        } else {
            out::print(&text)
        }
    }

    fn findings(&self) -> Vec<DiskFinding> {
        let of = |(watched, intervals): &(Watched, VecDeque<DiskInterval>)| {
            disks::findings(&watched.layout, &intervals.iter().cloned().collect::<Vec<_>>())
        };
        self.watched.iter().flat_map(of).collect()
    }

    fn tell_end(&self, findings: &[DiskFinding]) -> anyhow::Result<()> {
        if self.args.json {
            return out::json_line(&serde_json::json!({
                "schema": SCHEMA, "findings": findings, "gaps": self.gaps
            }));
        }
        out::print(&shown::findings(findings))
    }

    fn snapshot(&self, inventory: &Inventory) -> Snapshot {
        Snapshot {
            schema: SCHEMA,
            id: clock::new_id(),
            start_ms: self.stored.first().map_or_else(clock::now_ms, |i| i.at_ms),
            inventory: inventory.clone(),
            facts: self.watched.iter().map(|(w, _)| (w.host.clone(), w.facts.clone())).collect(),
            disks: self.stored.clone(),
            gaps: self.gaps.clone(),
            ..Snapshot::default()
        }
    }
}
