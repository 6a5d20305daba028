//! Watching the block devices of a host: what they are, once; what they did since the last look, again and again.

use std::collections::BTreeMap;

use linerate_diagnose::disks::{self, Layout};
use linerate_model::disk::DiskInterval;
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
    before: BTreeMap<FactKey, i64>,
}

impl Watched {
    /// Reads what there is.
    ///
    /// # Errors
    /// The host does not answer, or shows no block device.
    pub async fn begin(fleet: &Fleet, inventory: &Inventory, host: &str) -> Result<Self, String> {
        let wanted = ["disk.".to_owned(), "mount.".to_owned()];
        let mut facts = read_facts(fleet, inventory, host, &wanted).await?;
        let before = std::mem::take(&mut facts.counters);
        if before.is_empty() {
            let why = facts.gaps.iter().find(|g| g.what.starts_with("disk.")).map(|g| g.reason.clone());
            return Err(why.unwrap_or_else(|| "it shows no counters of block devices".into()));
        }
        Ok(Self { host: host.to_owned(), layout: disks::layout(&facts), facts, before })
    }

    /// What happened since the last look.
    ///
    /// # Errors
    /// The host does not answer.
    pub async fn interval(&mut self, fleet: &Fleet, inventory: &Inventory) -> Result<DiskInterval, String> {
        let facts = read_facts(fleet, inventory, &self.host, &["disk.".to_owned()]).await?;
        let between = disks::between(&self.before, &facts.counters);
        // Devices come and go.
        self.layout = disks::layout(&HostFacts { counters: BTreeMap::new(), ..self.with_mounts(&facts) });
        self.before = facts.counters;
        let (seconds, mut disks) = between.ok_or("its clock did not go on")?;
        disks::join_paths(&self.layout, &mut disks);
        Ok(DiskInterval { host: self.host.clone(), at_ms: clock::now_ms(), seconds, disks })
    }

    /// Facts of devices as they are now, mounts as they were at the beginning.
    fn with_mounts(&self, now: &HostFacts) -> HostFacts {
        let mut facts = now.clone();
        let mounts = self.facts.readings.iter().filter(|(key, _)| key.starts_with("mount."));
        facts.readings.extend(mounts.map(|(key, value)| (key.clone(), value.clone())));
        facts
    }
}
