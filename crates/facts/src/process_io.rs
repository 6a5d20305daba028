//! Facts and counters `process_io.*`: what each process read from storage and wrote for it. Read only on
//! request: names of commands and users are in them.
//!
//! In: `/proc/<pid>`. Out: bytes by process, and who it is. The start of a process is in its key, so that a
//! number that is used again is another process.

use std::collections::BTreeMap;

use linerate_model::disk_user::PROCESS_IO;
use linerate_model::fact::{FactDecl, FactValue, Gap, HostFacts};
use linerate_sys::root::{ReadError, Root};

use super::readings::fact;

/// Most processes that are reported.
const PROCESSES_MAX: usize = 4096;
/// Where the start of a process and its parent stand behind its name in `/proc/<pid>/stat` (proc(5)).
const STARTED_AT: usize = 19;
const PARENT_AT: usize = 1;

pub(super) fn declarations() -> Vec<FactDecl> {
    vec![
        fact(
            "process_io.*.bytes_read",
            "bytes",
            "What storage gave a process, and its ended children. Only when asked for.",
        ),
        fact(
            "process_io.*.bytes_written",
            "bytes",
            "What a process wrote for storage, less what was deleted before it was stored. Only when asked for.",
        ),
        fact("process_io.*.command", "text", "Name of a process that did so. Only when asked for."),
        fact("process_io.*.user", "text", "User that it runs as. Only when asked for."),
        fact("process_io.*.cgroup", "text", "Its control group. Only when asked for."),
        fact("process_io.*.parent", "number", "Number of its parent. Only when asked for."),
    ]
}

/// Reads all of them.
pub(super) fn read(root: &Root, facts: &mut HostFacts) {
    let gap = |reason: String| Gap { what: "process_io.*".into(), reason };
    let names = match root.list("/proc") {
        Ok(names) => names,
        Err(error) => return facts.gaps.push(gap(error.to_string())),
    };
    let users = users(root);
    let (mut seen, mut denied) = (0, 0);
    for name in names.iter().filter(|name| name.bytes().all(|b| b.is_ascii_digit())) {
        let text = match root.read(&format!("/proc/{name}/io")) {
            Ok(text) => text,
            Err(ReadError::Denied) => {
                denied += 1;
                continue;
            }
            // It has ended.
            Err(_) => continue,
        };
        let Some((read, written)) = bytes(&text).filter(|(read, written)| *read > 0 || *written > 0) else {
            continue;
        };
        if seen == PROCESSES_MAX {
            facts.gaps.push(gap(format!("{PROCESSES_MAX} processes are read, and there are more")));
            break;
        }
        seen += usize::from(put(root, name, (read, written), &users, facts).is_some());
    }
    if denied > 0 {
        let processes = if denied == 1 { "process" } else { "processes" };
        facts.gaps.push(gap(format!("permission denied for {denied} {processes}")));
    }
}

fn put(
    root: &Root,
    pid: &str,
    (read, written): (i64, i64),
    users: &BTreeMap<String, String>,
    facts: &mut HostFacts,
) -> Option<()> {
    let stat = root.read(&format!("/proc/{pid}/stat")).ok()?;
    // A name may hold blanks and brackets.
    let (head, rest) = stat.rsplit_once(") ")?;
    let command = head.split_once(" (")?.1;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let key = |what: &str| Some(format!("{PROCESS_IO}{pid}-{}.{what}", words.get(STARTED_AT)?));
    facts.counters.insert(key("bytes_read")?, read);
    facts.counters.insert(key("bytes_written")?, written);
    let status = root.read(&format!("/proc/{pid}/status")).unwrap_or_default();
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:")?.split_whitespace().nth(1));
    let user = uid.map_or("?", |uid| users.get(uid).map_or(uid, String::as_str));
    let cgroup = root.read(&format!("/proc/{pid}/cgroup")).unwrap_or_default();
    for (what, text) in [("command", command), ("user", user), ("cgroup", group(&cgroup))] {
        facts.readings.insert(key(what)?, FactValue::Text(text.to_owned()));
    }
    facts.readings.insert(key("parent")?, FactValue::Int(words.get(PARENT_AT)?.parse().ok()?));
    Some(())
}

/// `read_bytes` and `write_bytes` less `cancelled_write_bytes` of `/proc/<pid>/io`.
fn bytes(text: &str) -> Option<(i64, i64)> {
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<i64>().ok());
    let cancelled = of("cancelled_write_bytes:").unwrap_or(0);
    Some((of("read_bytes:")?, of("write_bytes:")?.saturating_sub(cancelled).max(0)))
}

/// The path of the unified hierarchy, or of that which counts disks.
fn group(text: &str) -> &str {
    let paths = || text.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let of = |wanted: &str| paths().find(|(kinds, _)| kinds.split(',').any(|k| k == wanted));
    let unified = of("").filter(|(_, path)| *path != "/");
    unified.or_else(|| of("blkio")).or_else(|| of("")).map_or("/", |(_, path)| path)
}

/// Names of users by their number.
fn users(root: &Root) -> BTreeMap<String, String> {
    let text = root.read("/etc/passwd").unwrap_or_default();
    let one = |line: &str| {
        let mut words = line.split(':');
        Some((words.next()?.to_owned(), words.nth(1)?.to_owned()))
    };
    text.lines().filter_map(one).map(|(name, uid)| (uid, name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_deleted_before_it_was_stored_was_not_written() {
        let text = "rchar: 9\nread_bytes: 4096\nwrite_bytes: 12288\ncancelled_write_bytes: 8192\n";
        assert_eq!(bytes(text), Some((4096, 4096)));
        assert_eq!(bytes("rchar: 1"), None);
    }

    #[test]
    fn groups_of_both_hierarchies() {
        assert_eq!(group("0::/system.slice/db.service\n"), "/system.slice/db.service");
        assert_eq!(group("4:blkio:/docker/abc\n1:name=systemd:/x\n0::/\n"), "/docker/abc");
        assert_eq!(group(""), "/");
    }

    #[test]
    fn a_process_with_a_strange_name_is_read_whole() {
        let tree = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let file = tree.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        put("etc/passwd", "root:x:0:0:root:/root:/bin/bash\npostgres:x:26:26::/:/bin/sh\n");
        put("proc/77/io", "read_bytes: 8192\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n");
        put("proc/77/stat", &format!("77 (db (main) x) S 12 {}9000 0\n", "0 ".repeat(17)));
        put("proc/77/status", "Name:\tdb\nUid:\t26\t26\t26\t26\n");
        put("proc/77/cgroup", "0::/system.slice/db.service\n");
        put("proc/78/io", "read_bytes: 0\nwrite_bytes: 0\n");
        let mut facts = HostFacts::default();
        read(&Root::fixture(tree.path()), &mut facts);
        let counters: Vec<(&str, i64)> = facts.counters.iter().map(|(k, v)| (k.as_str(), *v)).collect();
        let key = "process_io.77-9000";
        assert_eq!(
            counters,
            [(format!("{key}.bytes_read").as_str(), 8192), (format!("{key}.bytes_written").as_str(), 4096)]
        );
        let of = |what: &str| facts.readings[&format!("{key}.{what}")].to_string();
        assert_eq!((of("command"), of("user")), ("db (main) x".to_owned(), "postgres".to_owned()));
        assert_eq!((of("cgroup"), of("parent")), ("/system.slice/db.service".to_owned(), "12".to_owned()));
    }
}
