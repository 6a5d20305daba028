//! Watching the block devices of a host: what they are, once; what they did since the last look, again and again.

use std::collections::BTreeMap;

use linerate_diagnose::disks::{self, Layout};
use linerate_model::disk::{DiskInterval, TIMES};
use linerate_model::fact::{FactKey, HostFacts};
use linerate_model::inventory::{HostName, Inventory};

use super::clock;
use super::run::read_facts;
use crate::fleet::Fleet;

/// A host whose devices are watched.
#[derive(Debug)]
pub struct Watched {
    /// Who.
    pub host: HostName,
    /// What stands on what.
    pub layout: Layout,
    /// What that was read from.
    pub facts: HostFacts,
    /// Why there are no percentiles, where it is so.
    pub times_missing: Option<String>,
    asked: Vec<FactKey>,
    before: BTreeMap<FactKey, i64>,
}

/// What is said where nobody asked for percentiles.
const NOT_ASKED: &str = "not asked for (--no-percentiles)";

impl Watched {
    /// Reads what there is; `percentiles` also has the host count how long single requests take, until the session ends.
    ///
    /// # Errors
    /// The host does not answer, or shows no block device.
    pub async fn begin(
        fleet: &Fleet,
        inventory: &Inventory,
        host: &str,
        percentiles: bool,
    ) -> Result<Self, String> {
        let mut asked = vec!["disk.".to_owned()];
        asked.extend(percentiles.then(|| TIMES.to_owned()));
        let wanted: Vec<FactKey> = asked.iter().cloned().chain(["mount.".to_owned()]).collect();
        let mut facts = read_facts(fleet, inventory, host, &wanted).await?;
        let times_missing = if percentiles { missing(&facts) } else { Some(NOT_ASKED.to_owned()) };
        let before = std::mem::take(&mut facts.counters);
        if before.is_empty() {
            let why = facts.gaps.iter().find(|g| g.what.starts_with("disk.")).map(|g| g.reason.clone());
            return Err(why.unwrap_or_else(|| "it shows no counters of block devices".into()));
        }
        Ok(Self { host: host.to_owned(), layout: disks::layout(&facts), facts, times_missing, asked, before })
    }

    /// What happened since the last look.
    ///
    /// # Errors
    /// The host does not answer.
    pub async fn interval(&mut self, fleet: &Fleet, inventory: &Inventory) -> Result<DiskInterval, String> {
        let facts = read_facts(fleet, inventory, &self.host, &self.asked).await?;
        self.times_missing = missing(&facts).or_else(|| self.times_missing.take());
        let between = disks::between(&self.before, &facts.counters);
        // Devices come and go.
        self.layout = disks::layout(&HostFacts { counters: BTreeMap::new(), ..self.with_mounts(&facts) });
        self.before = facts.counters;
        let (seconds, mut disks) = between.ok_or("its clock did not go on")?;
        disks::join_paths(&self.layout, &mut disks);
        let times_missing = self.times_missing.clone();
        Ok(DiskInterval { host: self.host.clone(), at_ms: clock::now_ms(), seconds, disks, times_missing })
    }

    /// Facts of devices as they are now, mounts as they were at the beginning.
    fn with_mounts(&self, now: &HostFacts) -> HostFacts {
        let mut facts = now.clone();
        let mounts = self.facts.readings.iter().filter(|(key, _)| key.starts_with("mount."));
        facts.readings.extend(mounts.map(|(key, value)| (key.clone(), value.clone())));
        facts
    }
}

/// Why a host does not tell how long single requests take.
fn missing(facts: &HostFacts) -> Option<String> {
    facts.gaps.iter().find(|gap| gap.what.starts_with(TIMES)).map(|gap| gap.reason.clone())
}
