//! `linerate profile diff`: a profile beside the values in force, read now, in a stored run, or in what
//! `linerate facts --json` printed. Writes nothing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use linerate_kept::profile::{HostProfile, ProfileHost, ReadingState, compare};
use linerate_knowledge::profile::Profile;
use linerate_model::exit::ExitCode;
use linerate_model::fact::{Gap, GapSubject, HostFacts};
use linerate_model::finding::Diagnosis;
use linerate_model::inventory::{HostName, Inventory};

use super::super::documents::ProfileDifferences;
use super::super::targets::Targets;
use super::super::{open, out};
use super::named;
use linerate_fleet::Fleet;
use linerate_input as input;
use linerate_operator::observe::run::read_facts;
use linerate_operator::trial::profile::{nic_of, rtt_of};
use linerate_report as report;
use linerate_store::Store;

/// Compare a profile with the settings of hosts; writes nothing
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate profile diff tuned-network-latency arc-1 arc-2\n  linerate profile diff esnet-transfer-100g --run 20261121-083015-4f2a\n  linerate facts local --json > here.json; linerate profile diff esnet-transfer-10g --facts here.json"
)]
pub(super) struct Args {
    /// Name of the profile, or a file of your own that ends in .toml
    name: String,
    #[command(flatten)]
    targets: Targets,
    /// Compare with the facts of a stored run instead of reading hosts
    #[arg(long, conflicts_with = "inventory")]
    run: Option<String>,
    /// Compare with a file of `linerate facts HOST --json`
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "inventory", "hosts"])]
    facts: Option<PathBuf>,
    /// Device with the measured address, e.g. eth0; needed with --facts
    #[arg(long, value_name = "NIC", requires = "facts")]
    nic: Option<String>,
    /// Print all settings, also those that are as in the profile
    #[arg(short, long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Hosts beside a profile, and those that were not seen.
struct Compared {
    hosts: Vec<HostProfile>,
    gaps: Vec<Gap>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let profile = named::find(&args.name)?;
    let compared = if let Some(file) = &args.facts {
        let facts: HostFacts = serde_json::from_str(&input::text(file, input::SNAPSHOT_BYTES_MAX)?)?;
        let name = file.display().to_string();
        let nic = args.nic.as_ref().map(|nic| format!("nic.{}.", nic.replace('.', "/")));
        let host = ProfileHost { name: &name, facts: &facts, nic: nic.as_deref(), rtt_us: None };
        Some(Compared { hosts: vec![compare(&profile, &host)], gaps: Vec::new() })
    } else if args.run.is_some() {
        Some(of_run(args, &profile)?)
    } else {
        of_hosts(args, &profile)?
    };
    let Some(compared) = compared else { return Ok(open::after_interrupt()) };
    if args.json {
        let (hosts, gaps) = (&compared.hosts, &compared.gaps);
        let document = ProfileDifferences { profile: &profile.id, hosts, gaps };
        out::document(report::profile::verdict(&profile, hosts, gaps), document)?;
    } else {
        let style = report::heat::Style::detect();
        out::print(&report::profile::differences(&profile, &compared.hosts, args.all, style))?;
        compared.gaps.iter().for_each(|gap| out::note(&format!("{}: {}", gap.what, gap.reason)));
    }
    let differs = |host: &HostProfile| host.readings.iter().any(|r| r.state == ReadingState::Differs);
    Ok(if compared.hosts.iter().any(differs) {
        ExitCode::Findings
    } else if compared.gaps.is_empty() {
        ExitCode::Ok
    } else {
        ExitCode::PartlyBlind
    })
}

/// From a stored run.
fn of_run(args: &Args, profile: &Profile) -> anyhow::Result<Compared> {
    let store = Store::open_to_read()?;
    let row = store.find_diagnosable(args.run.as_deref())?;
    let snapshot = store.load_snapshot(&row.id)?;
    let diagnosis = store.load_diagnosis(&row.id)?.unwrap_or_default();
    let wanted = args.targets.named();
    let unknown = wanted.iter().find(|name| !snapshot.facts.contains_key(name.as_str()));
    if let Some(name) = unknown {
        anyhow::bail!("run {} has no facts of {name}\nhint: `linerate survey` reads them", row.id);
    }
    let facts = snapshot.facts.iter().filter(|(name, _)| wanted.is_empty() || wanted.contains(name));
    let hosts =
        facts.map(|(name, facts)| beside(profile, &snapshot.inventory, &diagnosis, name, facts)).collect();
    Ok(Compared { hosts, gaps: Vec::new() })
}

/// Read now; `None` after an interrupt.
fn of_hosts(args: &Args, profile: &Profile) -> anyhow::Result<Option<Compared>> {
    let chosen = args.targets.machines()?;
    let inventory = chosen.inventory;
    open::runtime()?.block_on(async {
        let opened = open::unless_interrupted(Fleet::open(&inventory, |_| true)).await;
        let Some(mut fleet) = opened else { return Ok(None) };
        let mut inventory = inventory.clone();
        if linerate_operator::observe::addresses::is_needed(&inventory) {
            let how = linerate_operator::observe::addresses::fill(&mut fleet, &mut inventory, None).await;
            fleet.notes.extend(how);
        }
        fleet.notes.iter().for_each(|note| out::note(note));
        let mut gaps = fleet.gaps.clone();
        open::with_fleet(fleet, async |fleet| {
            let (read, failed) = read(fleet, &inventory, |name| fleet.hosts().contains(name)).await;
            gaps.extend(failed);
            let none = Diagnosis::default();
            let hosts =
                read.iter().map(|(name, facts)| beside(profile, &inventory, &none, name, facts)).collect();
            Ok(Compared { hosts, gaps: std::mem::take(&mut gaps) })
        })
        .await
    })
}

/// Facts of hosts, and those that could not be read.
pub(in crate::cli) async fn read(
    fleet: &Fleet,
    inventory: &Inventory,
    is_wanted: impl Fn(&HostName) -> bool,
) -> (BTreeMap<HostName, HostFacts>, Vec<Gap>) {
    let (mut facts, mut gaps) = (BTreeMap::new(), Vec::new());
    for host in inventory.hosts.iter().filter(|host| is_wanted(&host.name)) {
        match read_facts(fleet, inventory, &host.name, &[]).await {
            Ok(read) => {
                facts.insert(host.name.clone(), read);
            }
            Err(reason) => gaps.push(Gap { what: GapSubject::Host(host.name.clone()), reason }),
        }
    }
    (facts, gaps)
}

/// A profile beside a host: the device is the one with its address, the RTT the longest that was measured.
pub(super) fn beside(
    profile: &Profile,
    inventory: &Inventory,
    diagnosis: &Diagnosis,
    name: &str,
    facts: &HostFacts,
) -> HostProfile {
    let nic = nic_of(inventory, name, facts);
    let rtt_us = rtt_of(diagnosis, name);
    compare(profile, &ProfileHost { name, facts, nic: nic.as_deref(), rtt_us })
}
