//! Who causes the load of the disks of a host: what its processes read and wrote between two readings, by
//! process, control group or user.
//!
//! In: facts of `process_io.*` before and after. Out: the users, those that moved most first. Pure.

use std::collections::BTreeMap;

use linerate_model::disk_user::{DiskUser, DiskUserKind, PROCESS_IO};
use linerate_model::fact::HostFacts;

/// Bytes read and written.
type Moved = (i64, i64);

/// What a process moved in all until now, by the head of its keys.
fn processes(facts: &HostFacts) -> BTreeMap<&str, Moved> {
    let mut all: BTreeMap<&str, Moved> = BTreeMap::new();
    for (key, bytes) in &facts.counters {
        let Some((head, what)) = key.rsplit_once('.').filter(|(head, _)| head.starts_with(PROCESS_IO)) else {
            continue;
        };
        let moved = all.entry(head).or_default();
        match what {
            "bytes_read" => moved.0 = *bytes,
            "bytes_written" => moved.1 = *bytes,
            _ => {}
        }
    }
    all
}

/// The number of a process, of the head of its keys.
fn pid(head: &str) -> Option<&str> {
    Some(head.strip_prefix(PROCESS_IO)?.split_once('-')?.0)
}

fn text(facts: &HostFacts, head: &str, what: &str) -> String {
    facts.readings.get(&format!("{head}.{what}")).map(ToString::to_string).unwrap_or_default()
}

/// Who moved how much between two readings that are so many seconds apart.
#[must_use]
pub fn users(before: &HostFacts, after: &HostFacts, seconds: f64, kind: DiskUserKind) -> Vec<DiskUser> {
    let (earlier, now) = (processes(before), processes(after));
    // What an ended process moved is added to its parent, also what it had moved before.
    let mut inherited: BTreeMap<String, Moved> = BTreeMap::new();
    for (head, moved) in earlier.iter().filter(|(head, _)| !now.contains_key(*head)) {
        let of_parent = inherited.entry(text(before, head, "parent")).or_default();
        *of_parent = (of_parent.0 + moved.0, of_parent.1 + moved.1);
    }
    let mut sums: BTreeMap<String, (usize, i64, i64)> = BTreeMap::new();
    for (head, (read, written)) in &now {
        let pid = pid(head).unwrap_or_default();
        let had = earlier.get(head).copied().unwrap_or_default();
        let children = inherited.get(pid).copied().unwrap_or_default();
        let grown = |now: i64, had: i64, children: i64| (now - had - children).max(0);
        let (read, written) = (grown(*read, had.0, children.0), grown(*written, had.1, children.1));
        if read == 0 && written == 0 {
            continue;
        }
        let name = match kind {
            DiskUserKind::Process => {
                format!("{} ({pid}, {})", text(after, head, "command"), text(after, head, "user"))
            }
            DiskUserKind::Cgroup => text(after, head, "cgroup"),
            DiskUserKind::User => text(after, head, "user"),
        };
        let sum = sums.entry(name).or_default();
        *sum = (sum.0 + 1, sum.1 + read, sum.2 + written);
    }
    let user = |(name, (processes, read, written)): (String, (usize, i64, i64))| DiskUser {
        name,
        processes,
        read_bytes_per_s: read as f64 / seconds,
        write_bytes_per_s: written as f64 / seconds,
    };
    let mut users: Vec<DiskUser> = sums.into_iter().map(user).collect();
    let moved = |user: &DiskUser| user.read_bytes_per_s + user.write_bytes_per_s;
    users.sort_by(|a, b| moved(b).total_cmp(&moved(a)).then_with(|| a.name.cmp(&b.name)));
    users
}

#[cfg(test)]
mod tests {
    use linerate_model::fact::FactValue;

    use super::*;

    fn put(facts: &mut HostFacts, process: &str, parent: i64, user: &str, read: i64, written: i64) {
        let key = |what: &str| format!("{PROCESS_IO}{process}.{what}");
        facts.counters.insert(key("bytes_read"), read);
        facts.counters.insert(key("bytes_written"), written);
        for (what, text) in [("command", "dd"), ("user", user), ("cgroup", "/user.slice")] {
            facts.readings.insert(key(what), FactValue::Text(text.into()));
        }
        facts.readings.insert(key("parent"), FactValue::Int(parent));
    }

    fn rates(users: &[DiskUser]) -> Vec<(&str, usize, f64, f64)> {
        users
            .iter()
            .map(|u| (u.name.as_str(), u.processes, u.read_bytes_per_s, u.write_bytes_per_s))
            .collect()
    }

    #[test]
    fn what_grew_is_added_up_and_the_most_comes_first() {
        let (mut before, mut after) = (HostFacts::default(), HostFacts::default());
        put(&mut before, "7-100", 1, "anna", 1000, 0);
        put(&mut after, "7-100", 1, "anna", 3000, 0);
        put(&mut after, "8-200", 1, "ben", 0, 8000);
        put(&mut after, "9-210", 1, "anna", 0, 1000);
        // A number that is used again is another process.
        put(&mut before, "10-50", 1, "ben", 9_000_000, 0);
        put(&mut after, "10-300", 1, "ben", 2000, 0);
        let by_user = users(&before, &after, 2.0, DiskUserKind::User);
        assert_eq!(rates(&by_user), [("ben", 2, 1000.0, 4000.0), ("anna", 2, 1000.0, 500.0)]);
        let by_process = users(&before, &after, 2.0, DiskUserKind::Process);
        assert_eq!(rates(&by_process)[0], ("dd (8, ben)", 1, 0.0, 4000.0));
        assert_eq!(users(&before, &after, 2.0, DiskUserKind::Cgroup).len(), 1);
    }

    #[test]
    fn what_an_ended_child_had_moved_before_is_no_load_of_its_parent() {
        let (mut before, mut after) = (HostFacts::default(), HostFacts::default());
        put(&mut before, "5-10", 1, "anna", 100, 0);
        put(&mut before, "6-20", 5, "anna", 50_000, 0);
        // The child moved 4000 more before it ended.
        put(&mut after, "5-10", 1, "anna", 54_100, 0);
        assert_eq!(rates(&users(&before, &after, 1.0, DiskUserKind::User)), [("anna", 1, 4000.0, 0.0)]);
    }
}
