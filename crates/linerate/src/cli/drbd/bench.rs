//! `linerate drbd bench`: the replica, its own disk and the transports under it in turns; which share is lost
//! where, and which settings to try.

use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_model::disk_load::DiskTarget;
use linerate_model::drbd::Replica;
use linerate_model::drbd_bench::{BenchRequest, LocalDisk};
use linerate_model::exit::ExitCode;
use linerate_model::fact::Gap;
use linerate_model::inventory::Inventory;
use linerate_model::snapshot::{Snapshot, StorageSubject};
use linerate_model::step::HostQuery;
use linerate_model::tuning::Tuning;
use linerate_storage::drbd::shares;

use super::super::hosts::{Hosts, Needs};
use super::super::{open, out, progress, quantity};
use crate::cli::documents::DrbdBench;
use linerate_fleet::Fleet;
use linerate_operator::build;
use linerate_operator::observe::context::Context;
use linerate_operator::observe::drbd as seen;
use linerate_operator::observe::drbd_bench::{self as bench, BenchError};
use linerate_operator::observe::run::read_facts;
use linerate_report::drbd_bench as shown;
use linerate_report::heat::Style;
use linerate_store::Store;

/// Benchmark a replica, its disk and transports; show where speed is lost, and settings to try
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate drbd bench r0 --apart store-1 store-2               local disk: r0 without its peer, for some seconds\n  linerate drbd bench r0 --beside /srv/scratch store-1 store-2  local disk: a file on another volume of the same drives\n  linerate try drbd-activity-log                                try a setting that the benchmark names, and revert it\n\nOn the replica, only an unnamed temporary file is written, which is removed afterwards: below the mount point of the replica, or in --in FOLDER. To write to a provably empty replica, use --empty with its name. The disk under a replica cannot be written directly: without --apart or --beside, no local figure and no share are reported."
)]
pub(in crate::cli) struct Args {
    /// Name of the resource
    resource: String,
    #[command(flatten)]
    hosts: Hosts,
    /// Folder on the mounted replica, on the primary [default: its mount point]
    #[arg(long = "in", value_name = "FOLDER", conflicts_with = "empty")]
    folder: Option<PathBuf>,
    /// Write to an empty, unused replica; confirm by repeating the device name, e.g. drbd0
    #[arg(long, value_name = "DEVICE")]
    empty: Option<String>,
    /// Disconnect the primary from its peer to measure the local disk; writes are resynchronised afterwards
    #[arg(long, conflicts_with = "beside")]
    apart: bool,
    /// Measure the local disk in this folder of the primary: on the same drives, outside the replica
    #[arg(long, value_name = "FOLDER")]
    beside: Option<PathBuf>,
    /// Number of rounds; the median of each test counts
    #[arg(long, default_value_t = 3, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Time limit of each test
    #[arg(short, long, default_value = "3s", value_parser = quantity::duration)]
    time: Duration,
    /// Size of the test file; with --apart, this much is resynchronised after each round
    #[arg(short, long, value_name = "BYTES", default_value = "128M", value_parser = quantity::file_size)]
    size: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Hide progress output
    #[arg(short, long)]
    quiet: bool,
}

pub(in crate::cli) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let progress = progress::start(args.quiet, args.json);
    let mut store = Store::open_default()?;
    let knowledge = open::knowledge()?;
    args.hosts.with(Needs::Addresses, async |fleet, inventory| {
        let request = args.request(fleet, inventory).await?;
        let tuning = Tuning::default();
        let mut context = Context { store: &mut store, progress: progress.as_ref(), tuning: &tuning };
        let done = bench::run(fleet, inventory, &request, &knowledge, &mut context).await;
        let (snapshot, diagnosis) = done.map_err(|error| match error {
            BenchError::Store(error) => anyhow::Error::from(error),
            BenchError::Host(words) => anyhow::anyhow!(words),
        })?;
        let all = shares(&snapshot.storage);
        let told = shown::DrbdBenchView {
            request: &request,
            snapshot: &snapshot,
            diagnosis: &diagnosis,
            shares: &all,
        };
        if args.json {
            let document = DrbdBench {
                run: &snapshot.id,
                resource: &request.resource,
                primary: &request.primary,
                peer: &request.peer,
                rounds: request.rounds,
                figures: &snapshot.storage,
                shares: &all,
                settings: shown::settings(&told),
                findings: &diagnosis.findings,
                gaps: shown::gaps(&told),
            };
            out::document(linerate_report::verdict::of(&snapshot, &diagnosis), document)?;
        } else {
            out::print(&shown::page(&told, Style::detect()))?;
        }
        Ok(code(&told, &snapshot))
    })
}

/// What was not measured at all, what is lost, what could not be seen: in this order.
fn code(told: &shown::DrbdBenchView<'_>, snapshot: &Snapshot) -> ExitCode {
    if snapshot.storage.iter().all(|f| f.what != StorageSubject::Replicated) {
        ExitCode::CouldNotRun
    } else if !told.diagnosis.findings.is_empty() {
        ExitCode::Findings
    } else if !shown::gaps(told).is_empty() {
        ExitCode::PartlyBlind
    } else {
        ExitCode::Ok
    }
}

impl Args {
    async fn request(&self, fleet: &Fleet, inventory: &Inventory) -> anyhow::Result<BenchRequest> {
        let now = seen::look(fleet).await;
        let name = &self.resource;
        let sides: Vec<&Replica> = now.all.iter().filter(|r| r.resource == *name).collect();
        let gaps = Gap::reasons(&now.gaps);
        anyhow::ensure!(
            !sides.is_empty(),
            "no host shows {name} {gaps}\nhint: `linerate drbd status HOSTS` shows what there is"
        );
        let Some(primary) = sides.iter().find(|side| side.role == "Primary") else {
            anyhow::bail!(
                "no side of {name} is the primary, so that nobody may write to it\nhint: `drbdadm primary {name}` where it is used"
            );
        };
        let Some(peer) = sides.iter().find(|side| side.host != primary.host) else {
            anyhow::bail!("only {} shows {name}\nhint: name both hosts; {gaps}", primary.host);
        };
        for side in &sides {
            let well = side.is_connected()
                && side.is_up_to_date()
                && side.peer_volumes().all(|v| v.replication == "Established");
            anyhow::ensure!(
                well,
                "{}: {name} is not connected, up to date and at rest, so that a figure would be one of something else\nhint: `linerate drbd status --watch HOSTS`",
                side.host
            );
        }
        let Some(volume) = primary.volumes.first() else {
            anyhow::bail!("{}: {name} has no device\nhint: `linerate drbd status HOSTS`", primary.host);
        };
        let device = format!("/dev/drbd{}", volume.minor);
        let mounts = mounts(fleet, inventory, &primary.host).await?;
        let replica = self.replica(&primary.host, &device, &mounts)?;
        if self.apart {
            in_force(fleet, &primary.host, name).await?;
        }
        let local = match &self.beside {
            _ if self.apart => LocalDisk::SameFile,
            None => LocalDisk::Skipped,
            Some(folder) => {
                anyhow::ensure!(
                    !is_on(&mounts, folder, &device, name),
                    "{}: {} is on {device} itself\nhint: a folder on the same drives beside it, or --apart",
                    primary.host,
                    folder.display()
                );
                LocalDisk::Beside(DiskTarget::Folder { path: folder.clone(), bytes: self.size })
            }
        };
        Ok(BenchRequest {
            resource: name.clone(),
            primary: primary.host.clone(),
            peer: peer.host.clone(),
            replica,
            local,
            rounds: self.rounds,
            time: self.time,
        })
    }

    /// Where on the replica is written.
    fn replica(&self, host: &str, device: &str, mounts: &[(PathBuf, String)]) -> anyhow::Result<DiskTarget> {
        let name = &self.resource;
        if let Some(really) = &self.empty {
            return Ok(DiskTarget::Empty { path: device.into(), really: really.clone(), bytes: self.size });
        }
        let mounted =
            mounts.iter().find(|(_, source)| seen::is_device(source, device, name)).map(|(folder, _)| folder);
        let folder = match (&self.folder, mounted) {
            (Some(folder), _) => {
                anyhow::ensure!(
                    is_on(mounts, folder, device, name),
                    "{host}: {} is not on {device}\nhint: --in names a folder on the mounted replica{}",
                    folder.display(),
                    mounted.map_or_else(String::new, |at| format!(", which is mounted on {}", at.display()))
                );
                folder
            }
            (None, Some(folder)) => folder,
            (None, None) => anyhow::bail!(
                "{host}: {device} is not mounted, so that no file can be written on it\nhint: mount it, or if it holds nothing: --empty {}",
                device.trim_start_matches("/dev/")
            ),
        };
        Ok(DiskTarget::Folder { path: folder.clone(), bytes: self.size })
    }
}

/// A connection that is made again has what the file says: what was set without it would be lost.
async fn in_force(fleet: &Fleet, host: &str, resource: &str) -> anyhow::Result<()> {
    let look = HostQuery::DrbdAdjust { resource: resource.to_owned() };
    let seen = build::look(fleet, host, look).await?;
    let commands = seen.out.trim().replace('\n', "; ");
    anyhow::ensure!(
        seen.is_good() && commands.is_empty(),
        "{host}: the file of {resource} is not what is in force, and a connection that is left and made again has what the file says ({commands}{})\nhint: `drbdadm adjust {resource}` brings the file into force; or --beside FOLDER",
        seen.err.trim()
    );
    Ok(())
}

/// Folders of a host with what is mounted there.
async fn mounts(fleet: &Fleet, inventory: &Inventory, host: &str) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let facts = read_facts(fleet, inventory, host, &["mount.".to_owned()]).await;
    let facts = facts.map_err(|reason| anyhow::anyhow!("{host}: its mounts are not known: {reason}"))?;
    Ok(seen::mounts(&facts))
}

/// Whether a folder is on the device: the longest of the mounts above it counts.
fn is_on(mounts: &[(PathBuf, String)], folder: &Path, device: &str, resource: &str) -> bool {
    let above = mounts.iter().filter(|(at, _)| folder.starts_with(at));
    above
        .max_by_key(|(at, _)| at.components().count())
        .is_some_and(|(_, source)| seen::is_device(source, device, resource))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_belongs_to_the_nearest_mount_above_it() {
        let mounts = [
            ("/", "/dev/sda1"),
            ("/srv", "/dev/drbd0"),
            ("/srv/old", "/dev/sdb"),
            ("/mnt", "/dev/drbd/by-res/r1/0"),
        ]
        .map(|(at, source)| (PathBuf::from(at), source.to_owned()));
        let on = |folder: &str| is_on(&mounts, Path::new(folder), "/dev/drbd0", "r0");
        assert!(on("/srv") && on("/srv/a/b"));
        assert!(!on("/srv/old/x") && !on("/tmp") && !on("/srvx") && !on("/mnt"));
        assert!(is_on(&mounts, Path::new("/mnt/x"), "/dev/drbd1", "r1"));
    }
}
