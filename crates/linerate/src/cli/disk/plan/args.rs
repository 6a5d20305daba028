//! Options of `linerate disk plan`, and the plan that they ask for.

use std::time::Duration;

use linerate_model::fact::{FactValue, HostFacts};
use linerate_storage::plan::{
    self as planned, CLASSES, DriveClass, DriveKind, FILESYSTEMS, Filesystem, LEVELS, LayoutComparison,
    LayoutPlan, LayoutTool, Level, VolumeSpec,
};

use crate::cli::choice::one_of;
use crate::cli::documents::DiskPlanned;
use crate::cli::targets::InventoryFile;
use crate::cli::{out, quantity};
use linerate_report::heat::Style;
use linerate_report::{disk_plan, steps};

/// Compare volume layouts: capacity, throughput, failure impact; print the build commands
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  linerate disk plan --raid10 --drives 36 --size 3T\n  linerate disk plan --raid10 --shelf sda,sdb,sdc --shelf sdd,sde,sdf --size 4T --layout lvm\n  linerate disk plan --raid10 --raid5 --raid6 --drives 12 --size 4T\n  linerate disk plan --raid10 --drives 36 --size 3T --layout lvm --volume 2T --fs ext4\n  linerate disk plan --raid10 --drives 24 --size 1.92T --class nvme --chunk 128K --json\n  linerate disk plan --raid10 --shelf sdb,sdc --shelf sdd,sde --on store-1\n  linerate disk plan --raid10 --shelf sdb,sdc --shelf sdd,sde --on store-1 --apply --yes=data\n\nWithout --apply, nothing is written. With --apply, every drive must be empty. Each step is journalled on the host before it runs. A failed build is reverted; to revert it later, use `linerate undo`. To resume an interrupted build, run the same command again.\n\nRates are estimates for the drive class; override them with --iops and --rate."
)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(in crate::cli) struct Args {
    /// Compare layouts striped over mirrored pairs
    #[arg(long, required_unless_present_any = ["raid5", "raid6"])]
    pub(super) raid10: bool,
    /// Compare single-parity layouts: survive any one drive failure
    #[arg(long)]
    pub(super) raid5: bool,
    /// Compare double-parity layouts: survive any two drive failures
    #[arg(long)]
    pub(super) raid6: bool,
    /// Number of drives
    #[arg(long, value_name = "NUMBER", required_unless_present = "shelf", conflicts_with = "shelf")]
    pub(super) drives: Option<usize>,
    /// Drives of one shelf, comma-separated; repeat per shelf to put neighbours and mirror pairs on different
    /// shelves
    #[arg(long, value_name = "DEVICES", value_parser = shelf)]
    pub(super) shelf: Vec<Shelf>,
    /// Drive size as labelled, e.g. 3T, or 465GiB; defaults to the smallest drive with --on
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, required_unless_present = "host")]
    pub(super) size: Option<u64>,
    /// Volume size, e.g. 2T or 500GiB, leaving the rest free for another volume; defaults to all capacity
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, hide_short_help = true)]
    pub(super) volume: Option<u64>,
    /// Filesystem to create on the volume: xfs, ext4
    #[arg(long, value_name = "TYPE", default_value = "xfs", value_parser = filesystem)]
    pub(super) fs: Filesystem,
    /// Stripe chunk size
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = quantity::bytes, hide_short_help = true)]
    pub(super) chunk: u32,
    /// Drive class: hdd, sas, ssd, nvme; defaults to hdd, or with --on to the reported class
    #[arg(long, value_parser = class, hide_short_help = true)]
    pub(super) class: Option<DriveClass>,
    /// Random requests per second of a drive
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..), hide_short_help = true)]
    pub(super) iops: Option<u32>,
    /// Sequential throughput of a drive, e.g. 180MB/s
    #[arg(long, value_name = "RATE", value_parser = quantity::megabytes_per_s, hide_short_help = true)]
    pub(super) rate: Option<f64>,
    /// Layout to print commands for; with several RAID levels, that of the first
    #[arg(long, default_value = "md", value_parser = one_of(LayoutTool::ALL, LayoutTool::name), hide_short_help = true)]
    pub(super) layout: LayoutTool,
    /// LVM volume group
    #[arg(long, default_value = "vg0", hide_short_help = true)]
    pub(super) group: String,
    /// Name of the volume or array
    #[arg(long, default_value = "data")]
    pub(super) name: String,
    #[command(flatten)]
    pub(super) live: Live,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// Options of a plan on a host.
#[derive(Debug, clap::Args)]
pub(super) struct Live {
    /// Host with the drives: of the inventory, or over ssh, or `local`
    #[arg(long = "on", alias = "host", value_name = "HOST")]
    pub(super) host: Option<String>,
    #[command(flatten)]
    pub(super) inventory: InventoryFile,
    /// Never use sudo on the host
    #[arg(long, requires = "host", hide_short_help = true)]
    pub(super) no_sudo: bool,
    /// Build on empty drives of the host: volume, initial synchronisation, measurement, filesystem
    #[arg(long, requires = "host", requires = "shelf")]
    pub(super) apply: bool,
    #[command(flatten)]
    pub(super) building: Building,
}

/// Options of a build.
#[derive(Debug, clap::Args)]
pub(super) struct Building {
    /// Confirm non-interactively by repeating the volume name
    #[arg(long = "yes", alias = "really", value_name = "NAME", requires = "apply")]
    pub(super) really: Option<String>,
    /// Skip waiting for the initial synchronisation, and skip the measurement
    #[arg(long, requires = "apply", hide_short_help = true)]
    pub(super) no_wait: bool,
    /// Skip measuring one drive before and the volume after the build
    #[arg(long, requires = "apply", hide_short_help = true)]
    pub(super) no_measure: bool,
    /// Duration of each of the four tests, of the drive and of the volume
    #[arg(short, long, value_name = "TIME", default_value = "5s", requires = "apply", value_parser = quantity::duration, hide_short_help = true)]
    pub(super) time: Duration,
}

/// Drives that fail together.
#[derive(Debug, Clone)]
pub(super) struct Shelf(Vec<String>);

fn shelf(text: &str) -> Result<Shelf, String> {
    let path = |name: &str| if name.starts_with('/') { name.to_owned() } else { format!("/dev/{name}") };
    let drives: Vec<String> = text.split(',').map(str::trim).map(path).collect();
    match drives.iter().find_map(|drive| linerate_model::step::check_device(drive).err()) {
        Some(error) => Err(error.to_string()),
        None => Ok(Shelf(drives)),
    }
}

fn class(text: &str) -> Result<DriveClass, String> {
    let found = CLASSES.iter().find(|class| class.name.to_string() == text).copied();
    found.ok_or_else(|| {
        let known: Vec<String> = CLASSES.iter().map(|class| class.name.to_string()).collect();
        format!("no such class\nhint: known are {}", known.join(", "))
    })
}

fn filesystem(text: &str) -> Result<Filesystem, String> {
    let found = FILESYSTEMS.iter().find(|known| known.name() == text).copied();
    found.ok_or_else(|| {
        let known: Vec<&str> = FILESYSTEMS.iter().map(|known| known.name()).collect();
        format!("no such filesystem\nhint: known are {}", known.join(", "))
    })
}

impl Args {
    /// Levels that were asked for.
    pub(super) fn levels(&self) -> Vec<Level> {
        let is_asked = |level: &Level| match level {
            Level::Raid10 => self.raid10,
            Level::Raid5 => self.raid5,
            Level::Raid6 => self.raid6,
        };
        LEVELS.into_iter().filter(is_asked).collect()
    }

    /// What is wished for; `facts` are those of the host that has the drives.
    fn spec(&self, facts: Option<&HostFacts>) -> anyhow::Result<VolumeSpec> {
        let shelves: Vec<Vec<String>> = match self.drives {
            // Names that stand for nothing yet.
            Some(drives) => vec![(1..=drives.min(DRIVES_MOST)).map(|n| format!("/dev/DRIVE{n}")).collect()],
            None => self.shelf.iter().map(|shelf| shelf.0.clone()).collect(),
        };
        let seen = facts.map(|facts| Seen::of(facts, &shelves)).transpose()?;
        let drive_bytes = self.size.or(seen.as_ref().map(|seen| seen.drive_bytes)).unwrap_or_default();
        let mut class = self.class.or(seen.map(|seen| seen.class)).unwrap_or(CLASSES[0]);
        class.requests_per_s = self.iops.map_or(class.requests_per_s, f64::from);
        class.bytes_per_s = self.rate.unwrap_or(class.bytes_per_s);
        Ok(VolumeSpec {
            levels: self.levels(),
            shelves,
            drive_bytes,
            chunk_bytes: u64::from(self.chunk),
            class,
            volume_bytes: self.volume,
            filesystem: self.fs,
            group: self.group.clone(),
            name: self.name.clone(),
        })
    }

    /// The plan and the layout that is shown or built.
    pub(super) fn plan(&self, facts: Option<&HostFacts>) -> anyhow::Result<(LayoutComparison, LayoutPlan)> {
        let plan = planned::plan(&self.spec(facts)?)?;
        // The first one of several levels.
        let level = plan.levels.first().copied();
        let is_it = |tool: LayoutTool, of: Level| tool == self.layout && Some(of) == level;
        let chosen = plan.layouts.iter().find(|layout| is_it(layout.tool, layout.level)).cloned();
        if let Some(chosen) = chosen {
            return Ok((plan, chosen));
        }
        match plan.not_offered.iter().find(|layout| is_it(layout.tool, layout.level)) {
            Some(layout) => anyhow::bail!("{}", layout.why),
            None => anyhow::bail!(
                "--layout {} has no {}\nhint: --layout md or --layout lvm",
                self.layout.name(),
                level.map_or("level", Level::title)
            ),
        }
    }

    /// Prints it.
    pub(super) fn show(&self, plan: &LayoutComparison, chosen: &LayoutPlan) -> anyhow::Result<()> {
        if self.json {
            out::listing(document(plan, chosen))
        } else {
            out::print(&disk_plan::text(plan, chosen, Style::detect()))
        }
    }
}

/// What a host says about the drives.
struct Seen {
    drive_bytes: u64,
    class: DriveClass,
}

impl Seen {
    fn of(facts: &HostFacts, shelves: &[Vec<String>]) -> anyhow::Result<Self> {
        let mut smallest: Option<u64> = None;
        let mut kind = DriveKind::Hdd;
        for path in shelves.iter().flatten() {
            let name = path.strip_prefix("/dev/").unwrap_or(path).replace('.', "/");
            let fact = |fact: &str| facts.readings.get(&format!("disk.{name}.{fact}"));
            let size = match fact("size_bytes") {
                Some(FactValue::Int(bytes)) => u64::try_from(*bytes).ok(),
                _ => None,
            };
            let Some(size) = size else {
                anyhow::bail!(
                    "the host has no drive {path}\nhint: `linerate facts HOST disk.` lists what it has; names are those of the kernel, such as sda"
                );
            };
            smallest = Some(smallest.map_or(size, |smallest| smallest.min(size)));
            if fact("rotational") == Some(&FactValue::Flag(false)) {
                kind = if name.starts_with("nvme") { DriveKind::Nvme } else { DriveKind::Ssd };
            }
        }
        let class = CLASSES.iter().find(|known| known.name == kind).copied().unwrap_or(CLASSES[0]);
        Ok(Self { drive_bytes: smallest.unwrap_or_default(), class })
    }
}

/// More names are not made up: the plan refuses fewer.
const DRIVES_MOST: usize = 10_000;

/// A plan for programs: with the commands of every step.
pub(super) fn document<'a>(plan: &'a LayoutComparison, chosen: &'a LayoutPlan) -> DiskPlanned<'a> {
    let steps = |layout: &LayoutPlan| layout.steps.iter().map(steps::shown).collect();
    let commands = plan.layouts.iter().map(|layout| (layout.name.to_owned(), steps(layout))).collect();
    DiskPlanned { plan, chosen: chosen.name, commands }
}
