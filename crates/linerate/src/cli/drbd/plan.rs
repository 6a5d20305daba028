//! `linerate drbd plan`: the resource file of two hosts, the room for metadata, and the steps; nothing is
//! written.

use std::net::IpAddr;

use linerate_model::exit::ExitCode;
use linerate_model::inventory::Inventory;
use linerate_model::step::{Contents, HostQuery, check_device};
use linerate_storage::drbd::{self, MetadataLocation, Release, ReplicaSide, ResourcePlan, ResourceSpec};

use super::super::hosts::{Hosts, Needs};
use super::super::{out, quantity};
use crate::cli::documents::{DrbdPlanned, HostStep};
use linerate_fleet::Fleet;
use linerate_operator::build;
use linerate_report::drbd as shown;
use linerate_report::heat::Style;
use linerate_report::steps;

/// Plan a resource of two hosts: its file, metadata space and steps. Writes nothing
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drbd plan r0 --disk /dev/vg0/home -i cluster.toml\n  linerate drbd plan r0 --disk /dev/sdb --from store-1 --meta-disk /dev/sdc1 store-1 store-2"
)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    pub(super) what: What,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Specification of the resource.
#[derive(Debug, clap::Args)]
pub(super) struct What {
    /// Name of the resource
    pub(super) resource: String,
    #[command(flatten)]
    pub(super) hosts: Hosts,
    /// Data device: one path for both hosts, or HOST=PATH for each
    #[arg(long, value_name = "DEVICE", required = true)]
    disk: Vec<String>,
    /// Metadata device: one path for both hosts, or HOST=PATH for each; defaults to the end of the data
    /// device
    #[arg(long, value_name = "DEVICE")]
    meta_disk: Vec<String>,
    /// Host with the good data, which is copied to the other host
    #[arg(long, value_name = "HOST")]
    pub(super) from: Option<String>,
    /// Device minor number: 0 is /dev/drbd0
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=MINOR_MAX))]
    minor: u32,
    /// Replication port
    #[arg(long, default_value_t = 7789, value_parser = clap::value_parser!(u16).range(1..))]
    port: u16,
    /// Replication protocol: C waits for the peer's disk, B for its memory, A for the local disk only
    #[arg(long, default_value_t = 'C')]
    protocol: char,
    /// Maximum synchronisation rate, e.g. 100MiB/s
    #[arg(long, value_name = "RATE", value_parser = quantity::resync_kib_per_s)]
    resync_max: Option<u64>,
    /// DRBD release, 8.4 or 9; defaults to the release on the hosts
    #[arg(long, value_parser = release)]
    release: Option<Release>,
}

fn release(text: &str) -> Result<Release, String> {
    match text {
        "8.4" => Ok(Release::V84),
        "9" => Ok(Release::V9),
        _ => Err("8.4 or 9 is needed".to_owned()),
    }
}

/// Largest minor number of a device: the kernel has 20 bits for it.
const MINOR_MAX: i64 = (1 << 20) - 1;

/// Refuses devices that nobody would use: two for one host, or for a host that is not in the resource.
fn check_devices(option: &str, given: &[String], hosts: &[String]) -> anyhow::Result<()> {
    let whose = |text: &String| text.split_once('=').map(|(host, _)| host.to_owned());
    for (at, text) in given.iter().enumerate() {
        let host = whose(text);
        anyhow::ensure!(
            !given[..at].iter().any(|other| whose(other) == host),
            "{option} {text}: a second device for {}\nhint: one for both hosts, or HOST=PATH for each",
            host.as_deref().unwrap_or("both hosts")
        );
        anyhow::ensure!(
            host.as_ref().is_none_or(|host| hosts.contains(host)),
            "{option} {text}: {} is none of the hosts of the resource\nhint: {}",
            host.as_deref().unwrap_or_default(),
            hosts.join(" or ")
        );
    }
    Ok(())
}

/// The path for a host among `PATH` and `HOST=PATH`.
fn path_for(given: &[String], host: &str) -> anyhow::Result<Option<String>> {
    let own =
        given.iter().find_map(|text| text.split_once('=').filter(|(h, _)| *h == host).map(|(_, path)| path));
    let all = given.iter().find(|text| !text.contains('=')).map(String::as_str);
    let path = own.or(all).map(str::to_owned);
    path.iter().try_for_each(|path| check_device(path))?;
    Ok(path)
}

impl What {
    /// Asks both hosts and works it out.
    pub(super) async fn plan(&self, fleet: &Fleet, inventory: &Inventory) -> anyhow::Result<ResourcePlan> {
        let hosts = fleet.hosts();
        anyhow::ensure!(
            hosts.len() == 2 && inventory.hosts.len() == 2,
            "a resource needs two hosts that answer, {} of {} do\nhint: name both, or an inventory with both",
            hosts.len(),
            inventory.hosts.len()
        );
        // In the order in which they were named.
        let names: Vec<String> = inventory.hosts.iter().map(|host| host.name.clone()).collect();
        check_devices("--disk", &self.disk, &names)?;
        check_devices("--meta-disk", &self.meta_disk, &names)?;
        let release = match self.release {
            Some(release) => release,
            None => self.release_of(fleet, &names).await?,
        };
        let sides =
            [self.side(fleet, inventory, &names[0]).await?, self.side(fleet, inventory, &names[1]).await?];
        Ok(drbd::plan(&ResourceSpec {
            resource: self.resource.clone(),
            release,
            sides,
            from: self.from.clone(),
            minor: self.minor,
            port: self.port,
            protocol: self.protocol,
            resync_max_kib_per_s: self.resync_max,
        })?)
    }

    async fn release_of(&self, fleet: &Fleet, names: &[String]) -> anyhow::Result<Release> {
        let mut releases = Vec::new();
        for host in names {
            let output = build::look(fleet, host, HostQuery::DrbdVersion).await?;
            let release = Release::parse(&output.out).ok_or_else(|| {
                anyhow::anyhow!(
                    "{host} does not say which release of DRBD its kernel has\nhint: `modprobe drbd` there; --release 8.4 or 9 plans without it"
                )
            })?;
            releases.push(release);
        }
        anyhow::ensure!(
            releases.windows(2).all(|two| two[0] == two[1]),
            "the hosts have different releases of DRBD, {releases:?}\nhint: --release says for which one the file is"
        );
        releases.first().copied().ok_or_else(|| anyhow::anyhow!("no host"))
    }

    async fn side(&self, fleet: &Fleet, inventory: &Inventory, host: &str) -> anyhow::Result<ReplicaSide> {
        let disk = path_for(&self.disk, host)?
            .ok_or_else(|| anyhow::anyhow!("no device for {host}\nhint: --disk {host}=/dev/…"))?;
        let contents = build::contents(fleet, host, &disk).await?;
        let meta = match path_for(&self.meta_disk, host)? {
            None if self.meta_disk.is_empty() => MetadataLocation::Internal,
            None => anyhow::bail!("no device for the metadata of {host}\nhint: --meta-disk {host}=/dev/…"),
            Some(device) => {
                let Contents { size_bytes, number, filesystem, .. } =
                    build::contents(fleet, host, &device).await?;
                MetadataLocation::External { device, size_bytes, number, filesystem }
            }
        };
        let node_name = build::look(fleet, host, HostQuery::NodeName).await?.out.trim().to_owned();
        Ok(ReplicaSide {
            host: host.to_owned(),
            node_name,
            address: address(inventory, host)?,
            disk,
            contents,
            meta,
        })
    }
}

fn address(inventory: &Inventory, host: &str) -> anyhow::Result<IpAddr> {
    let endpoint = inventory.host(host).and_then(|host| host.endpoints.first());
    endpoint.map(|endpoint| endpoint.address).ok_or_else(|| {
        anyhow::anyhow!(
            "no address of {host} for the replication\nhint: name one in the inventory (endpoints)"
        )
    })
}

/// A plan for programs.
pub(super) fn document(plan: &ResourcePlan) -> DrbdPlanned<'_> {
    let step = |on: &drbd::On| HostStep { host: on.host.clone(), step: steps::shown(&on.step) };
    DrbdPlanned { plan, commands: plan.steps.iter().chain(&plan.first).map(step).collect() }
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.what.hosts.with(Needs::Addresses, async |fleet, inventory| {
        let plan = args.what.plan(fleet, inventory).await?;
        if args.json {
            out::listing(document(&plan))?;
        } else {
            out::print(&shown::plan(&plan, Style::detect()))?;
        }
        Ok(ExitCode::Ok)
    })
}
