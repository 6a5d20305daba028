//! `linerate inventory`: what is understood of a list of hosts, and the same in our own format.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::time::Duration;

use linerate_model::exit::ExitCode;
use linerate_model::fact::{GapSubject, HostFacts};
use linerate_model::inventory::{Group, TransportSpec};
use linerate_model::units::counted;

use linerate_wire::message::{Event, ObserveRequest};

use super::{open, out, progress};
use linerate_fleet::Fleet;
use linerate_fleet::progress::ProgressPhase;
use linerate_inventory::draft::{ConnectMethod, HostRead, ListRemark, SshAccess, Understood};
use linerate_inventory::seen::{self, InventoryEntry};
use linerate_inventory::{readers, understand, write};
use linerate_operator::observe::join;

/// Longest wait for what a host can see: 31 s of listening and the rest.
const PROBE_WAIT: Duration = Duration::from_secs(45);
/// Members of a group that are named.
const MEMBERS_SHOWN: usize = 8;
/// Levels of groups that are indented; deeper ones stand below each other.
const DEPTH_SHOWN: usize = 16;

/// Validate a host list in any supported format, or convert it to a TOML inventory.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Host list; `-` for standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Read the list as this format instead of detecting it
    #[arg(long, value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(readers::names()))]
    format: Option<String>,
    /// Probe the hosts and add detected groups: hypervisors, switches (listens for at most 31 s), subnets
    #[arg(long)]
    probe: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Print an inventory in linerate's TOML format
    #[arg(long, conflicts_with = "json")]
    toml: bool,
}

const AFTER_HELP: &str = "\
Examples:
  linerate inventory ~/.ssh/config
  scontrol show node --oneliner | linerate inventory - --toml > cluster.toml
  kubectl get nodes -o json | linerate inventory -
  linerate inventory cluster.toml --probe --toml > with-groups.toml
  echo 'n[001-128]' | linerate inventory - --format hosts";

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    if args.file == Path::new("-") && std::io::stdin().is_terminal() {
        anyhow::bail!(
            "no file is named and nothing comes in on standard input\nhint: linerate inventory FILE"
        );
    }
    let mut understood = understand(&args.file, args.format.as_deref())?;
    if args.probe {
        let Some(seen) = probe(&understood, args.json)? else { return Ok(open::after_interrupt()) };
        understood.add(seen);
    }
    if args.json {
        out::json(&understood)?;
    } else if args.toml {
        out::print(&write::toml(&understood))?;
        let (left_out, format) = (understood.ignored.len(), understood.format);
        out::note(&format!(
            "read as {format}: {}, {left_out} things left out",
            counted(understood.hosts.len(), "host")
        ));
    } else {
        out::print(&told(&understood))?;
    }
    Ok(ExitCode::Ok)
}

/// Reads the facts that tell groups, on all hosts at the same time. `None` when it was interrupted.
fn probe(understood: &Understood, json: bool) -> anyhow::Result<Option<InventoryEntry>> {
    let inventory = understood
        .clone()
        .into_inventory()
        .map_err(|flaw| anyhow::anyhow!("{}\nhint: {}", flaw.what, flaw.hint))?;
    out::note("where LLDP may be heard it is listened for, at most 31 s");
    let progress = progress::start(false, json);
    open::runtime()?.block_on(async {
        let opened =
            open::unless_interrupted(Fleet::open_with_progress(&inventory, |_| true, progress.as_ref()))
                .await;
        let Some(fleet) = opened else { return Ok(None) };
        fleet.notes.iter().for_each(|note| out::note(note));
        for gap in &fleet.gaps {
            out::note(&format!("not seen: {}: {}", gap.what, gap.reason));
        }
        open::with_fleet(fleet, async |fleet| {
            let hosts = fleet.hosts();
            let phase = ProgressPhase {
                name: "asking the hosts",
                unit: "hosts",
                total: hosts.len(),
                expected_s: None,
            };
            progress.begin(&phase);
            let done = Cell::new(0);
            let asked = hosts.iter().map(|host| {
                let read: Pin<Box<dyn Future<Output = _>>> = Box::pin(async {
                    let read = facts_of(fleet, host).await;
                    done.set(done.get() + 1);
                    progress.step(done.get(), host, None);
                    read
                });
                read
            });
            let mut facts = BTreeMap::new();
            let all = join::all(asked.collect()).await;
            progress.end();
            for (host, read) in hosts.iter().zip(all) {
                match read {
                    Ok(read) => {
                        for gap in read.gaps.iter().filter(|gap| is_wanted(&gap.what)) {
                            out::note(&format!("not seen: {host}: {}: {}", gap.what, gap.reason));
                        }
                        facts.insert(host.clone(), read);
                    }
                    Err(reason) => out::note(&format!("not seen: {reason}")),
                }
            }
            Ok(seen::groups(&facts))
        })
        .await
    })
}

/// Whether what could not be seen would have told a group.
fn is_wanted(what: &GapSubject) -> bool {
    what.is_below("machine.") || what.is_below("lldp.")
}

async fn facts_of(fleet: &Fleet, host: &str) -> Result<HostFacts, String> {
    let request = ObserveRequest::Facts { prefixes: seen::NEEDED.map(str::to_owned).to_vec(), netns: vec![] };
    let link = fleet.link(host).map_err(|e| e.to_string())?;
    let events = link.request(request, PROBE_WAIT).await.map_err(|e| e.to_string())?;
    let facts = events
        .into_iter()
        .find_map(|event| if let Event::Facts(facts) = event { Some(*facts) } else { None });
    facts.ok_or_else(|| format!("host {host} sent no facts"))
}

/// The whole for people. Writing into a `String` cannot fail, so that the results are dropped.
fn told(understood: &Understood) -> String {
    let (hosts, groups) = (understood.hosts.len(), understood.groups.len());
    let describes = readers::READERS.iter().find(|r| r.name() == understood.format).map(|r| r.describes());
    let mut text = format!(
        "{}, {}; read as {} ({})\n",
        counted(hosts, "host"),
        counted(groups, "group"),
        understood.format,
        describes.unwrap_or_default()
    );
    if !understood.groups.is_empty() {
        text.push_str("\nGroups\n");
        write_groups(&mut text, understood);
    }
    text.push_str("\nHosts\n");
    let width = understood.hosts.iter().map(|host| host.name.chars().count()).max().unwrap_or(0).min(32);
    for host in &understood.hosts {
        let _ = writeln!(text, "  {:width$}  {:<28}  {}", host.name, transport(host), addresses(host));
    }
    let bare = understood.hosts.iter().filter(|host| host.endpoints.is_empty()).count();
    if bare > 0 {
        let _ = writeln!(
            text,
            "\n{bare} of them without an address to measure between: only their facts are read."
        );
    }
    remarks(&mut text, "Left out", &understood.ignored);
    remarks(&mut text, "Notes", &understood.notes);
    text
}

/// The groups, each below its parent. They are a forest (the readers see to it), so that this ends.
fn write_groups(text: &mut String, understood: &Understood) {
    let mut members: HashMap<&str, Members<'_>> = HashMap::new();
    for host in &understood.hosts {
        for group in &host.groups {
            members.entry(group).or_default().add(&host.name);
        }
    }
    let mut children: HashMap<Option<&str>, Vec<&Group>> = HashMap::new();
    // The last one is taken first.
    for group in understood.groups.iter().rev() {
        children.entry(group.parent.as_deref()).or_default().push(group);
    }
    let mut todo: Vec<(&Group, usize)> =
        children.get(&None).into_iter().flatten().map(|group| (*group, 1)).collect();
    while let Some((group, depth)) = todo.pop() {
        let indent = "  ".repeat(depth.min(DEPTH_SHOWN));
        let members = members.get(group.name.as_str()).map_or_else(String::new, Members::shown);
        let _ = writeln!(text, "{indent}{} ({})  {members}", group.name, group.kind);
        let below = children.get(&Some(group.name.as_str())).into_iter().flatten();
        todo.extend(below.map(|child| (*child, depth + 1)));
    }
}

/// Direct members of a group: the first ones, and how many there are.
#[derive(Default)]
struct Members<'a> {
    first: Vec<&'a str>,
    number: usize,
}

impl<'a> Members<'a> {
    fn add(&mut self, host: &'a str) {
        self.number += 1;
        if self.first.len() < MEMBERS_SHOWN {
            self.first.push(host);
        }
    }

    fn shown(&self) -> String {
        let mut shown = self.first.join(", ");
        if self.number > self.first.len() {
            let _ = write!(shown, " and {} more", self.number - self.first.len());
        }
        shown
    }
}

fn transport(host: &HostRead) -> String {
    match &host.way {
        ConnectMethod::Known(TransportSpec::Local) => "local".to_owned(),
        ConnectMethod::Known(TransportSpec::Netns { path }) => format!("netns {}", path.display()),
        ConnectMethod::Known(TransportSpec::Slurm(spec)) => format!("slurm node {}", spec.node),
        ConnectMethod::Known(TransportSpec::Iperf3 { port }) => format!("iperf3 at port {port}"),
        ConnectMethod::Known(TransportSpec::Ssh(spec)) => over_ssh(
            &spec.host,
            spec.user.as_deref(),
            spec.port,
            if spec.sudo { "" } else { " without sudo" },
        ),
        ConnectMethod::Ssh(SshAccess { address, user, port }) => {
            over_ssh(address.as_deref().unwrap_or(&host.name), user.as_deref(), *port, "")
        }
    }
}

fn over_ssh(host: &str, user: Option<&str>, port: Option<u16>, more: &str) -> String {
    let user = user.map_or(String::new(), |user| format!("{user}@"));
    let port = port.map_or(String::new(), |port| format!(" port {port}"));
    format!("ssh {user}{host}{port}{more}")
}

fn addresses(host: &HostRead) -> String {
    let one = |endpoint: &linerate_model::inventory::Endpoint| {
        let inside = endpoint.netns.as_ref().map_or(String::new(), |path| format!(" in {}", path.display()));
        format!("{} {}{inside}", endpoint.layer, endpoint.address)
    };
    host.endpoints.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn remarks(text: &mut String, heading: &str, remarks: &[ListRemark]) {
    if remarks.is_empty() {
        return;
    }
    let _ = writeln!(text, "\n{heading}");
    for remark in remarks {
        let line = if remark.line > 0 { format!("line {}", remark.line) } else { String::new() };
        let _ = writeln!(text, "  {line:<9} {}: {}", remark.what, remark.why);
    }
}
