//! Watching the block devices of a host: what they are, once; what they did since the last look, again and
//! again.

use std::collections::BTreeMap;

use linerate_diagnose::disks::{self, Layout};
use linerate_model::disk::{DiskInterval, TIMES};
use linerate_model::disk_user::{DiskUser, DiskUserKind, PROCESS_IO};
use linerate_model::fact::{FactKey, FactValue, Gap, HostFacts};
use linerate_model::inventory::HostName;

use super::run::facts_over;
use linerate_fleet::NodeLink;
use linerate_fleet::clock;

/// A host whose devices are watched.
#[derive(Debug)]
pub struct WatchedDevices {
    /// Who.
    pub host: HostName,
    /// What stands on what.
    pub layout: Layout,
    /// What that was read from.
    pub facts: HostFacts,
    /// Why there are no percentiles, where it is so.
    pub times_missing: Option<String>,
    /// Whether other legs were being filled in the last interval than in the one before: what was seen until
    /// then is no measure of it.
    pub turned: bool,
    /// Facts of legs that are being filled: at the last look, and in the last interval.
    filled: BTreeMap<FactKey, FactValue>,
    during: BTreeMap<FactKey, FactValue>,
    asked: Vec<FactKey>,
    before: BTreeMap<FactKey, i64>,
    /// Who causes the load, where that is asked for.
    pub users: Option<WatchedUsers>,
}

/// Who causes the load of the disks of a host.
#[derive(Debug)]
pub struct WatchedUsers {
    /// In the last interval, those that moved most first.
    pub users: Vec<DiskUser>,
    /// Why some processes are missing.
    pub missing: Option<String>,
    /// By what they are added up.
    kind: DiskUserKind,
    /// Processes at the last reading.
    processes: HostFacts,
}

impl WatchedUsers {
    fn begin(kind: DiskUserKind, processes: HostFacts) -> Self {
        Self { users: Vec::new(), missing: None, kind, processes }
    }

    /// What the processes moved since the last reading, `seconds` ago; `None` where the clock stood still.
    fn follow(&mut self, processes: HostFacts, seconds: Option<f64>, gaps: &[Gap]) {
        let earlier = std::mem::replace(&mut self.processes, processes);
        if let Some(seconds) = seconds {
            self.users = disks::users(&earlier, &self.processes, seconds, self.kind);
        }
        self.missing = gaps.iter().find(|gap| gap.what.is_below(PROCESS_IO)).map(|gap| gap.reason.clone());
    }
}

/// End of the facts of legs that are being filled.
const FILLED: &str = ".rebuilding_legs";
/// What is said where nobody asked for percentiles.
const NOT_ASKED: &str = "not asked for (--no-percentiles)";

impl WatchedDevices {
    /// Reads what there is; `percentiles` also has the host count how long single requests take, until the
    /// session ends; with `by` also what its processes read and write.
    ///
    /// # Errors
    /// The host does not answer, or shows no block device.
    pub async fn begin(link: &NodeLink, percentiles: bool, by: Option<DiskUserKind>) -> Result<Self, String> {
        let mut asked = vec!["disk.".to_owned()];
        asked.extend(percentiles.then(|| TIMES.to_owned()));
        asked.extend(by.map(|_| PROCESS_IO.to_owned()));
        let wanted: Vec<FactKey> = asked.iter().cloned().chain(["mount.".to_owned()]).collect();
        let mut facts = facts_over(link, Vec::new(), &wanted).await?;
        let times_missing = if percentiles { missing(&facts) } else { Some(NOT_ASKED.to_owned()) };
        let processes = take_processes(&mut facts);
        let before = std::mem::take(&mut facts.counters);
        if before.is_empty() {
            let why = facts.gaps.iter().find(|g| g.what.is_below("disk.")).map(|g| g.reason.clone());
            return Err(why.unwrap_or_else(|| "it shows no counters of block devices".into()));
        }
        let filled = filled(&facts);
        Ok(Self {
            host: link.host().to_owned(),
            layout: disks::layout(&facts),
            facts,
            times_missing,
            turned: false,
            during: filled.clone(),
            filled,
            asked,
            before,
            users: by.map(|kind| WatchedUsers::begin(kind, processes)),
        })
    }

    /// What happened since the last look; `None` where the clock of the host did not go on.
    ///
    /// # Errors
    /// The host does not answer.
    pub async fn interval(&mut self, link: &NodeLink) -> Result<Option<DiskInterval>, String> {
        let mut facts = facts_over(link, Vec::new(), &self.asked).await?;
        let processes = take_processes(&mut facts);
        self.times_missing = missing(&facts).or_else(|| self.times_missing.take());
        let between = disks::between(&self.before, &facts.counters);
        self.follow(&facts);
        // Devices come and go.
        self.layout = disks::layout(&HostFacts { counters: BTreeMap::new(), ..self.in_between(&facts) });
        self.before = facts.counters;
        if let Some(users) = &mut self.users {
            users.follow(processes, between.as_ref().map(|(seconds, _)| *seconds), &facts.gaps);
        }
        let Some((seconds, mut disks)) = between else { return Ok(None) };
        disks::join_paths(&self.layout, &mut disks);
        let times_missing = self.times_missing.clone();
        let host = self.host.clone();
        Ok(Some(DiskInterval { host, at_ms: clock::now_ms(), seconds, disks, times_missing }))
    }

    /// Notes which legs were being filled since the last look: also those that are whole now, for the
    /// interval has their filling in it.
    fn follow(&mut self, now: &HostFacts) {
        let filled = filled(now);
        let mut during = std::mem::replace(&mut self.filled, filled.clone());
        for (key, legs) in filled {
            let both = match during.remove(&key) {
                Some(before) => united(before, legs),
                None => legs,
            };
            during.insert(key, both);
        }
        self.turned = during != self.during;
        self.during = during;
    }

    /// Facts of devices as they are now, legs that are being filled as they were in the interval, mounts as
    /// they were at the beginning.
    fn in_between(&self, now: &HostFacts) -> HostFacts {
        let mut facts = now.clone();
        facts.readings.extend(self.during.clone());
        let mounts = self.facts.readings.iter().filter(|(key, _)| key.starts_with("mount."));
        facts.readings.extend(mounts.map(|(key, value)| (key.clone(), value.clone())));
        facts
    }
}

/// Moves what is known of processes out of the facts: their names are not stored with the run.
fn take_processes(facts: &mut HostFacts) -> HostFacts {
    let mut processes = HostFacts::default();
    (processes.readings, facts.readings) =
        std::mem::take(&mut facts.readings).into_iter().partition(|(key, _)| key.starts_with(PROCESS_IO));
    (processes.counters, facts.counters) =
        std::mem::take(&mut facts.counters).into_iter().partition(|(key, _)| key.starts_with(PROCESS_IO));
    processes
}

fn filled(facts: &HostFacts) -> BTreeMap<FactKey, FactValue> {
    let filled = facts.readings.iter().filter(|(key, _)| key.ends_with(FILLED));
    filled.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Legs that were being filled before or are now, each once.
fn united(before: FactValue, now: FactValue) -> FactValue {
    match (before, now) {
        (FactValue::List(mut legs), FactValue::List(more)) => {
            for leg in more {
                if !legs.contains(&leg) {
                    legs.push(leg);
                }
            }
            FactValue::List(legs)
        }
        (_, now) => now,
    }
}

/// Why a host does not tell how long single requests take.
fn missing(facts: &HostFacts) -> Option<String> {
    facts.gaps.iter().find(|gap| gap.what.is_below(TIMES)).map(|gap| gap.reason.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(legs: &[&str]) -> HostFacts {
        let list = |names: &[&str]| FactValue::List(names.iter().map(|name| (*name).to_owned()).collect());
        let mut facts = HostFacts::default();
        facts.readings.insert("disk.md0.on".to_owned(), list(&["sda", "sdb"]));
        if !legs.is_empty() {
            facts.readings.insert("disk.md0.rebuilding_legs".to_owned(), list(legs));
        }
        facts
    }

    fn watched(whole: &HostFacts) -> WatchedDevices {
        WatchedDevices {
            host: "store".into(),
            layout: disks::layout(whole),
            facts: whole.clone(),
            times_missing: None,
            turned: false,
            filled: BTreeMap::new(),
            during: BTreeMap::new(),
            asked: Vec::new(),
            users: None,
            before: BTreeMap::new(),
        }
    }

    #[test]
    fn legs_that_were_being_filled_before_or_are_now_are_those_of_the_interval() {
        let whole = facts(&[]);
        let mut watched = watched(&whole);
        let mut seen = Vec::new();
        for now in [&facts(&["sda", "sdb"]), &facts(&["sdb"]), &whole, &whole] {
            watched.follow(now);
            let layout = disks::layout(&watched.in_between(now));
            seen.push((watched.turned, layout.get("md0").unwrap().rebuilding.join(" ")));
        }
        let wanted = [(true, "sda sdb"), (false, "sda sdb"), (true, "sdb"), (true, "")];
        assert_eq!(seen, wanted.map(|(turned, legs)| (turned, legs.to_owned())));
        let list = |names: &[&str]| FactValue::List(names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(united(list(&["sdb", "sda"]), list(&["sda", "sdc"])), list(&["sdb", "sda", "sdc"]));
    }

    #[test]
    fn an_interval_at_whose_end_a_leg_is_whole_still_has_its_filling_in_it() {
        let whole = facts(&[]);
        let mut watched = watched(&whole);
        let mut seen = Vec::new();
        for now in [&whole, &facts(&["sdb"]), &facts(&["sdb"]), &whole, &whole] {
            watched.follow(now);
            let layout = disks::layout(&watched.in_between(now));
            seen.push((watched.turned, layout.get("md0").unwrap().rebuilding.len()));
        }
        assert_eq!(seen, [(false, 0), (true, 1), (false, 1), (false, 1), (true, 0)]);
    }
}
