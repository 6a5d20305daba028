//! The changes of settings that are quoted with an alarm: those of the suspect's own hosts first.

use std::collections::{BTreeMap, VecDeque};

use linerate_model::inventory::{Group, GroupName, HostName, Inventory};
use linerate_model::notice::FactNotice;
use linerate_model::suspect::Suspect;
use linerate_model::watch::ChangeBefore;

/// Changes that are quoted: so many, and no older, milliseconds.
const QUOTED_MAX: usize = 3;
const QUOTED_MS: u64 = 30 * 60 * 1000;
/// Changes that are remembered: of 300 hosts some each.
const REMEMBERED_MAX: usize = 1024;

/// What changed of late, oldest first.
pub(super) struct RecentChanges {
    all: VecDeque<ChangeBefore>,
    groups: BTreeMap<HostName, Vec<GroupName>>,
    /// The hosts that are groups: hypervisors.
    machines: BTreeMap<GroupName, HostName>,
}

impl RecentChanges {
    pub(super) fn new(inventory: &Inventory) -> Self {
        let groups = inventory.hosts.iter().map(|host| (host.name.clone(), host.groups.clone()));
        let machine = |group: &Group| Some((group.name.clone(), group.machine.clone()?));
        Self {
            all: VecDeque::new(),
            groups: groups.collect(),
            machines: inventory.groups.iter().filter_map(machine).collect(),
        }
    }

    pub(super) fn remember(&mut self, host: &HostName, notice: &FactNotice) {
        if notice.changes.is_empty() {
            return;
        }
        self.all.push_back(ChangeBefore { host: host.clone(), notice: notice.clone() });
        if self.all.len() > REMEMBERED_MAX {
            self.all.pop_front();
        }
    }

    /// Those that are quoted with an alarm of this suspect: its own, then those of the machines that its
    /// hosts run on, then others; newest first.
    pub(super) fn before(&self, suspect: Option<&Suspect>, at_ms: u64) -> Vec<ChangeBefore> {
        let since = at_ms.saturating_sub(QUOTED_MS);
        let mut recent: Vec<&ChangeBefore> =
            self.all.iter().rev().filter(|one| one.notice.at_ms >= since).collect();
        recent.sort_by_key(|one| suspect.map(|suspect| self.distance(suspect, &one.host)));
        recent.into_iter().take(QUOTED_MAX).cloned().collect()
    }

    /// How far a host is from a suspect.
    fn distance(&self, suspect: &Suspect, host: &str) -> u8 {
        let is_in = |host: &str, group: &GroupName| {
            self.groups.get(host).is_some_and(|groups| groups.contains(group))
                || self.machines.get(group).is_some_and(|machine| machine == host)
        };
        let carries = |guest: &str| {
            let groups = self.groups.get(guest).into_iter().flatten();
            groups.filter_map(|group| self.machines.get(group)).any(|machine| machine == host)
        };
        let of_hosts = |hosts: &[&HostName]| match () {
            () if hosts.iter().any(|one| *one == host) => 0,
            () if hosts.iter().any(|one| carries(one)) => 1,
            () => 2,
        };
        match suspect {
            Suspect::Host(name) | Suspect::Drive(name, _) => of_hosts(&[name]),
            Suspect::Pair(from, to) => of_hosts(&[from, to]),
            Suspect::Mismatch(_, hosts) => of_hosts(&hosts.iter().collect::<Vec<_>>()),
            Suspect::Group(group) => 2 * u8::from(!is_in(host, group)),
            Suspect::GroupToGroup(from, to) => 2 * u8::from(!is_in(host, from) && !is_in(host, to)),
            Suspect::All => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::FactValue;
    use linerate_model::inventory::{Host, TransportSpec};
    use linerate_model::notice::{NoticeSource, ValueChange};

    use super::*;

    fn host(name: &str, group: Option<&str>) -> Host {
        Host {
            name: name.to_owned(),
            transport: TransportSpec::Local,
            groups: group.map(str::to_owned).into_iter().collect(),
            endpoints: Vec::new(),
            state_dir: None,
            etc_dir: None,
            cache_dir: None,
        }
    }

    /// Changes of hosts; the first runs two of the others.
    fn changes(of: &[(&str, u64)]) -> RecentChanges {
        let on_vs_4 = Some("on-vs-4");
        let machine = Some("vs-4".to_owned());
        let inventory = Inventory {
            groups: vec![Group { name: "on-vs-4".to_owned(), machine, ..Group::default() }],
            hosts: vec![
                host("vs-4", None),
                host("arc-1", on_vs_4),
                host("arc-2", on_vs_4),
                host("arc-9", None),
            ],
            ..Inventory::default()
        };
        let mut changes = RecentChanges::new(&inventory);
        for (host, at_ms) in of {
            let value = ValueChange { key: "nic.eth0.mtu".into(), from: None, to: Some(FactValue::Int(1)) };
            let notice = FactNotice {
                at_ms: *at_ms,
                read_after_ms: 0,
                source: NoticeSource::Link,
                about: String::new(),
                writer: None,
                changes: vec![value],
            };
            changes.remember(&(*host).to_owned(), &notice);
        }
        changes
    }

    fn quoted(changes: &RecentChanges, suspect: &Suspect) -> Vec<String> {
        changes.before(Some(suspect), QUOTED_MS).into_iter().map(|one| one.host).collect()
    }

    #[test]
    fn changes_of_the_suspect_stand_before_newer_ones_of_others() {
        let mut all = vec![("arc-1", 1), ("vs-4", 2), ("arc-1", 3)];
        all.extend((4..60).map(|at_ms| ("arc-9", at_ms)));
        let changes = changes(&all);
        let of = |name: &str| Suspect::Host(name.to_owned());
        assert_eq!(quoted(&changes, &of("arc-1")), ["arc-1", "arc-1", "vs-4"]);
        assert_eq!(quoted(&changes, &of("arc-2")), ["vs-4", "arc-9", "arc-9"]);
        assert_eq!(quoted(&changes, &Suspect::Group("on-vs-4".to_owned())), ["arc-1", "vs-4", "arc-1"]);
        assert_eq!(quoted(&changes, &Suspect::All), ["arc-9"; 3]);
    }

    #[test]
    fn what_changed_long_before_is_not_quoted() {
        let changes = changes(&[("arc-1", 1), ("arc-1", 2)]);
        assert_eq!(changes.before(None, QUOTED_MS + 2).len(), 1);
    }
}
