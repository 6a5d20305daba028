//! `linerate watch`: what is lost between hosts, and what changes on them, as it happens.

#[cfg(test)]
mod stories;
mod unit;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use linerate_fleet::agents::{self, Agents};
use linerate_fleet::{Fleet, clock};
use linerate_model::exit::ExitCode;
use linerate_model::fact_change::{FactChange, SeenBy};
use linerate_model::inventory::{Host, Inventory};
use linerate_model::shell;
use linerate_model::units::counted;
use linerate_model::watch::{WatchAlarm, WatchEvent};
use linerate_page::server::Listen;
use linerate_report::heat::Style;
use linerate_report::watch as words;
use linerate_store::{LoggedChange, Store};
use linerate_watch::metrics;
use linerate_watch::rules::CHANGED_MS;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval};

use super::changes::Log;
use super::documents::WatchLine;
use super::serve::Page;
use super::targets::{self, InventoryFile};
use super::{open, out, quantity};
use linerate_operator::observe::addresses;
use linerate_operator::watch::alarms::{AlarmBook, hosts_of};
use linerate_operator::watch::metrics::{MetricsListener, TextFile};
use linerate_operator::watch::notify::Notifier;
use linerate_operator::watch::{Output, Watch};

/// How often the file of metrics is written.
const MINUTE: Duration = Duration::from_secs(60);

/// Watch hosts: report loss between them and changes of settings as they happen
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate watch -i cluster.toml\n  linerate watch -i cluster.toml --for 7d\n  linerate watch arc-1 arc-2 arc-3 --json\n  linerate watch -i cluster.toml --metrics 127.0.0.1:9441\n  linerate watch --print rules > linerate.rules.yml\n\nEach host probes eight others once a second, 64 bytes in each direction: at most 50 kbit/s a host. A host whose\nsession is lost is taken up again. An alarm is measured and delivered to each [[notify]] of the inventory. Nothing listens on a\nhost once the watch has ended."
)]
pub(super) struct Args {
    /// Hosts; defaults to all of the inventory
    #[arg(value_name = "HOST")]
    hosts: Vec<String>,
    /// Exit after this time, e.g. 30m, 7d; without it at Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = quantity::duration)]
    time: Option<Duration>,
    #[command(flatten)]
    inventory: InventoryFile,
    /// Never use sudo on the hosts
    #[arg(long, hide_short_help = true)]
    no_sudo: bool,
    /// Serve the page of `linerate serve` meanwhile, e.g. on 127.0.0.1:7788
    #[arg(long, value_name = "ADDRESS")]
    page: Option<Listen>,
    /// TLS and users of the page, as `linerate serve` reads them
    #[arg(long, value_name = "FILE", requires = "page", hide_short_help = true)]
    web_config: Option<PathBuf>,
    /// Serve metrics for Prometheus on a loopback address, e.g. 127.0.0.1:9441
    #[arg(long, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,
    /// Write metrics once a minute into this folder of node_exporter's textfile collector
    #[arg(long, value_name = "DIR")]
    textfile: Option<PathBuf>,
    /// Print a file for Prometheus, Grafana or systemd instead
    #[arg(long, value_name = "WHAT")]
    print: Option<Printed>,
    /// Make the keys of [agents] that are missing, instead
    #[arg(long, conflicts_with_all = ["print", "page", "metrics", "textfile", "time"])]
    make_keys: bool,
    /// Print JSON, one event a line
    #[arg(long)]
    json: bool,
}

/// What is printed instead of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Printed {
    /// Alert rules of Prometheus
    Rules,
    /// Their tests, for `promtool test rules`
    RuleTests,
    /// A dashboard for Grafana
    Dashboard,
    /// The hosts of the inventory as targets of node_exporter (file_sd)
    Targets,
    /// A systemd unit of this watch, with a user of its own
    Unit,
    /// That user, for sysusers.d, and the commands that start it
    Sysusers,
    /// A systemd unit of the agent of a host
    AgentUnit,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    match args.print {
        Some(Printed::Rules) => out::print(&metrics::rules())?,
        Some(Printed::RuleTests) => out::print(&metrics::rule_tests())?,
        Some(Printed::Dashboard) => out::json(&metrics::dashboard())?,
        Some(Printed::Targets) => {
            out::json(&metrics::targets(&args.inventory.choose(&args.hosts)?.inventory))?;
        }
        Some(Printed::Unit) => out::print(&unit_of(args)?)?,
        Some(Printed::Sysusers) => out::print(&unit::sysusers())?,
        Some(Printed::AgentUnit) => out::print(&unit::agent_unit())?,
        None if args.make_keys => make_keys(args)?,
        None => return begin(args),
    }
    Ok(ExitCode::Ok)
}

/// Makes the keys of the agents of an inventory.
fn make_keys(args: &Args) -> anyhow::Result<()> {
    let inventory = args.inventory.choose(&args.hosts)?.inventory;
    let spec = inventory.agents.as_ref().ok_or_else(|| {
        anyhow::anyhow!(
            "the inventory has no table [agents]\nhint: add it with `listen = [\"10.0.0.9:9442\"]` and `keys = \"/etc/linerate/agents\"`"
        )
    })?;
    let hosts: Vec<&str> = inventory
        .hosts
        .iter()
        .filter(|host| inventory.has_agent(host))
        .map(|host| host.name.as_str())
        .collect();
    let made = agents::make_keys(&spec.keys, &spec.listen, &hosts)?;
    if args.json {
        return out::listing(&made);
    }
    made.new.iter().try_for_each(|path| out::print(&format!("new: {}", path.display())))?;
    // Of some hosts only, the others' keys are in use.
    let unused = made.unused.iter().filter(|_| args.hosts.is_empty());
    unused.for_each(|path| out::note(&format!("of no agent of this inventory: {}", path.display())));
    out::note(&format!(
        "{} made, {} there before; each goes to /etc/linerate/agent.toml of its host, 0600, root's",
        counted(made.new.len(), "key"),
        made.old.len()
    ));
    Ok(())
}

/// The unit that runs a watch with these arguments.
fn unit_of(args: &Args) -> anyhow::Result<String> {
    anyhow::ensure!(
        args.page.is_none() && args.time.is_none(),
        "a unit has neither --page nor --for\nhint: leave them out; `linerate serve` shows the page"
    );
    let given = args.inventory.given().ok_or_else(|| {
        anyhow::anyhow!(
            "a unit needs an inventory\nhint: linerate watch --print unit -i /etc/linerate/cluster.toml"
        )
    })?;
    let inventory = args.inventory.choose(&args.hosts)?.inventory;
    let absolute = |path: &Path| std::path::absolute(path);
    let (file, textfile) = (absolute(given)?, args.textfile.as_deref().map(absolute).transpose()?);
    let word = |path: &Path| path.display().to_string();
    let mut words = vec!["watch".to_owned()];
    words.extend(args.hosts.iter().cloned());
    words.extend(["-i".to_owned(), word(&file)]);
    words.extend(args.no_sudo.then(|| "--no-sudo".to_owned()));
    if let Some(address) = args.metrics {
        words.extend(["--metrics".to_owned(), address.to_string()]);
    }
    if let Some(folder) = &textfile {
        words.extend(["--textfile".to_owned(), word(folder)]);
    }
    let program = std::env::current_exe()?;
    if unit::is_hidden(&program) {
        out::note(&format!("the unit cannot run {}: copy it to /usr/local/bin", program.display()));
    }
    unit::unit(&program, &words, (&file, &inventory), textfile.as_deref())
}

fn begin(args: &Args) -> anyhow::Result<ExitCode> {
    let mut inventory = targets::machines(args.inventory.choose(&args.hosts)?).inventory;
    if args.no_sudo {
        inventory.without_sudo();
    }
    open::runtime()?.block_on(watch(args, inventory))
}

async fn watch(args: &Args, mut inventory: Inventory) -> anyhow::Result<ExitCode> {
    // First: whether the port is free is known at once.
    let agents = Agents::open(&inventory).await?;
    let dialled = |host: &Host| !inventory.has_agent(host);
    let Some(mut fleet) = open::unless_interrupted(Fleet::open(&inventory, dialled)).await else {
        return Ok(open::after_interrupt());
    };
    if let Some(agents) = agents {
        let listen = agents.addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        out::note(&format!("waiting for {} at {listen}", counted(agents.count(), "agent")));
        fleet.await_agents(agents);
    }
    fleet.notes.iter().for_each(|note| out::note(note));
    if addresses::is_needed(&inventory) {
        addresses::fill(&mut fleet, &mut inventory, None).await.iter().for_each(|how| out::note(how));
    }
    fleet.named_by(args.inventory.given(), &inventory);
    // All hosts of a file need no names.
    let named = if args.hosts.is_empty() { fleet.arguments(&[]) } else { fleet.all_arguments() };
    let fleet = Arc::new(fleet);
    let ended = match Watch::begin(&fleet, &inventory) {
        Ok(watch) => follow(args, &inventory, &named, watch).await,
        Err(error) => Err(error),
    };
    // Sessions that are just being opened end with the runtime.
    for host in fleet.hosts() {
        fleet.leave(&host).await;
    }
    ended
}

/// Prints, logs and notifies until it is time to end.
async fn follow(
    args: &Args,
    inventory: &Inventory,
    named: &str,
    mut watch: Watch,
) -> anyhow::Result<ExitCode> {
    let until = args.time.map(|time| Instant::now() + time);
    let next = format!("linerate survey {named}");
    let mut to = Receivers {
        args,
        inventory,
        named,
        log: Log::new(&inventory.name, Vec::new(), SeenBy::Watch),
        alarms: AlarmBook::begin(inventory, &next, &found_by(args), clock::now_ms()),
        notifier: Notifier::begin(inventory, next),
    };
    let mut listener = match args.metrics {
        Some(address) => Some(MetricsListener::open(address).await?),
        None => None,
    };
    let mut file = args.textfile.as_deref().map(TextFile::new);
    let mut minutes = interval(MINUTE);
    // Ends with the watch.
    let _page = serve(args)?;
    out::note(&format!("watching {}; Ctrl-C ends it", counted(watch.totals().hosts, "host")));
    if let Some(listener) = &listener {
        out::note(&format!("metrics at http://{}/metrics", listener.address));
    }
    loop {
        let reported = tokio::select! {
            reported = watch.next() => reported,
            ask = asked(&mut listener) => {
                // A client that has left needs none.
                drop(ask.send(exposition(&watch, &to.notifier)));
                continue;
            }
            _ = minutes.tick() => {
                to.refresh(&watch);
                to.log.retry(Duration::ZERO);
                let Some(file) = &mut file else { continue };
                let failed = file.write(exposition(&watch, &to.notifier)).await;
                failed.into_iter().map(Output::Note).collect()
            }
            failed = to.notifier.next() => vec![Output::Note(failed)],
            () = open::interrupted() => break,
            () = open::passed(until) => break,
        };
        for one in reported {
            to.receive(&mut watch, one)?;
        }
    }
    if let Some(file) = file {
        file.end().await;
    }
    let totals = watch.totals().clone();
    to.refresh(&watch);
    watch.end();
    to.notifier.end().await;
    to.log.end();
    out::note(&words::totals(&totals));
    Ok(match totals {
        totals if totals.alarms > 0 => ExitCode::Findings,
        totals if totals.gaps > 0 => ExitCode::PartlyBlind,
        _ => ExitCode::Ok,
    })
}

/// Where what a watch reports goes: the terminal, the log of changes, the history, the targets of alarms.
struct Receivers<'a> {
    args: &'a Args,
    inventory: &'a Inventory,
    named: &'a str,
    log: Log,
    alarms: AlarmBook,
    notifier: Notifier,
}

impl Receivers<'_> {
    fn receive(&mut self, watch: &mut Watch, one: Output) -> anyhow::Result<()> {
        match one {
            Output::Read { host, facts, has_booted } => {
                if let Some(notice) = self.log.begin(&host, &facts, has_booted) {
                    let event = watch.changed(host, notice);
                    self.event(watch, &event)?;
                }
            }
            Output::Note(text) => out::note(&text),
            Output::Event(event) => {
                self.event(watch, &event)?;
                if let WatchEvent::Changed { host, notice } = *event {
                    self.log.notice(&host, notice);
                }
            }
        }
        Ok(())
    }

    fn event(&mut self, watch: &Watch, event: &WatchEvent) -> anyhow::Result<()> {
        report(self.args, self.named, event)?;
        let changed = changed(self.inventory, event);
        self.notifier.event(event, &changed);
        self.alarms.event(event, clock::now_ms(), &changed);
        watch.keep(&mut self.alarms);
        Ok(())
    }

    /// What is open by now goes into the history.
    fn refresh(&mut self, watch: &Watch) {
        self.alarms.refresh(watch.open(), clock::now_ms());
        watch.keep(&mut self.alarms);
    }
}

/// Serves the page, where it is asked for, until this is dropped.
fn serve(args: &Args) -> anyhow::Result<JoinSet<()>> {
    let mut serving = JoinSet::new();
    if let Some(listen) = &args.page {
        let page = Page::open(listen, args.web_config.as_deref(), None)?;
        out::note(&format!("page at {}", page.server.address()));
        serving.spawn(page.run());
    }
    Ok(serving)
}

/// The next one that wants the metrics, where they are served.
async fn asked(listener: &mut Option<MetricsListener>) -> oneshot::Sender<String> {
    match listener {
        Some(listener) => listener.next().await,
        None => std::future::pending().await,
    }
}

fn exposition(watch: &Watch, notifier: &Notifier) -> String {
    let began = Instant::now();
    metrics::text(&watch.figures(notifier.counts), || began.elapsed())
}

/// Settings of the hosts of an alarm that changed within a day before it, newest first.
fn changed(inventory: &Inventory, event: &WatchEvent) -> Vec<FactChange> {
    let alarm = match event {
        WatchEvent::Opened { alarm, .. }
        | WatchEvent::Measured { alarm, .. }
        | WatchEvent::Widened { alarm } => WatchAlarm::Loss(alarm.clone()),
        WatchEvent::Slowed { alarm, .. } | WatchEvent::Remeasured { alarm, .. } => {
            WatchAlarm::Slow(alarm.clone())
        }
        _ => return Vec::new(),
    };
    let (hosts, reported_ms) = (hosts_of(inventory, &alarm), alarm.reported_ms());
    let since_ms = alarm.since_ms().saturating_sub(CHANGED_MS);
    let log = Store::open_to_read().and_then(|store| store.list_changes(&hosts, since_ms, ""));
    let all = match log {
        Ok(log) => log.changes,
        Err(error) => {
            out::note(&format!("an alarm without the settings that changed: {error}"));
            Vec::new()
        }
    };
    let is_before = |one: &LoggedChange| one.cluster == inventory.name && one.change.after_ms <= reported_ms;
    all.into_iter().filter(is_before).map(|one| one.change).collect()
}

/// Arguments by which other commands find the same inventory; none where hosts were named.
fn found_by(args: &Args) -> String {
    let file = args.inventory.given();
    file.map_or_else(String::new, |file| format!("-i {}", shell::path(file)))
}

fn report(args: &Args, named: &str, event: &WatchEvent) -> anyhow::Result<()> {
    let at_ms = clock::now_ms();
    if args.json {
        return out::document_line(words::event_verdict(event), WatchLine { at_ms, event });
    }
    let text = words::event(event, at_ms, Style::detect().width);
    if !text.is_empty() {
        out::print(text.trim_end())?;
    }
    match event {
        WatchEvent::Opened { .. } => out::note(&format!("hint: linerate survey {named}")),
        WatchEvent::Slowed { alarm, .. } => {
            let command = words::slow_command(alarm).unwrap_or_else(|| format!("linerate survey {named}"));
            out::note(&format!("hint: {command}"));
        }
        _ => {}
    }
    Ok(())
}
