//! What a host has before a test, and what must be the same behind it: processes, listeners, settings, files.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::{Lab, wait_until};

/// Folders of a host that something of ours could be left in. `/etc`, `/usr` and `/var` are those of the
/// machine.
const FOLDERS: [&str; 8] = ["/root", "/home", "/tmp", "/var/lib", "/var/log", "/run", "/dev/shm", "/var/tmp"];
/// Settings that change by themselves.
const RESTLESS: [&str; 2] = ["nf_conntrack_count", "random_secret"];

/// What a host has.
#[derive(Debug, Default, Clone)]
pub(super) struct Traces {
    settings: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Traces {
    pub(super) fn of(lab: &Lab, number: usize) -> Self {
        Self { settings: settings(lab, number), files: files(lab, number) }
    }
}

/// Devices with their addresses and offloads, queueing disciplines, packet filters, every sysctl below `net`.
fn settings(lab: &Lab, number: usize) -> BTreeSet<String> {
    let script = "ip -d link; ip address; ip route show table all; tc qdisc; tc filter show dev eth0; \
                  nft list ruleset 2>/dev/null; ethtool -k eth0 2>/dev/null; \
                  grep -r . /proc/sys/net 2>/dev/null || true";
    let shown = lab.on(number, &["sh", "-c", script]);
    shown.lines().filter(|l| !RESTLESS.iter().any(|word| l.contains(word))).map(str::to_owned).collect()
}

/// Paths as the host sees them.
fn files(lab: &Lab, number: usize) -> BTreeSet<String> {
    let root = lab.inside_host(number, "");
    let mut found = BTreeSet::new();
    let mut todo: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    while let Some(folder) = todo.pop() {
        let here = root.join(folder.strip_prefix("/").unwrap());
        for entry in std::fs::read_dir(here).into_iter().flatten().flatten() {
            let path = folder.join(entry.file_name());
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && path != lab.path("") {
                todo.push(path.clone());
            }
            found.insert(path.display().to_string());
        }
    }
    found
}

/// What may be there afterwards: the node program, and what sudo, sshd and a shell note for themselves.
fn may_stay(lab: &Lab, number: usize, path: &str) -> bool {
    let cache = path.strip_prefix("/root/.cache").or_else(|| path.strip_prefix("/home/ops/.cache"));
    let of_the_cache = cache.is_some_and(|rest| {
        rest.is_empty() || rest == "/linerate" || rest.starts_with("/linerate/linerate-node-")
    });
    // Where the home will not do.
    let of_the_cache = of_the_cache
        || ["/dev/shm/linerate-", "/var/tmp/linerate-"].iter().any(|start| path.starts_with(start));
    // The shell fish makes folders for itself.
    let of_others = [
        "/root/.config",
        "/root/.local",
        "/run/sudo",
        "/var/lib/sudo",
        "/var/log/lastlog",
        "/var/log/wtmp",
        "/var/log/btmp",
    ];
    // A journal that is closed is the record of a trial; all others would be an open change.
    let journal = path.strip_prefix("/var/lib/linerate").is_some_and(|rest| {
        let text = || std::fs::read_to_string(lab.inside_host(number, path)).unwrap_or_default();
        let closed = |text: &str| text.contains("\"closed\"") || text.contains("\"measured\"");
        matches!(rest, "" | "/trials") || rest.ends_with("lock") || closed(&text())
    });
    // The library that turns the clock of a test keeps its own state there.
    let of_the_clock = path.starts_with("/dev/shm/") && path.contains("faketime_");
    of_the_cache || journal || of_the_clock || of_others.iter().any(|start| path.starts_with(start))
}

impl Lab {
    /// Fails unless everything of ours is gone from every host within the deadline, and from the operator's
    /// side as well.
    pub(crate) fn nothing_is_left(&self) {
        for number in 1..=self.hosts.len() {
            wait_until("no process of a session is left", || self.strangers(number).is_empty());
            wait_until("nothing but sshd listens", || {
                let listening = self.on(number, &["ss", "-Hltun"]);
                listening.lines().all(|line| line.contains(":22 "))
            });
            let (before, now) = (self.before.borrow()[number - 1].clone(), Traces::of(self, number));
            let changed: Vec<_> = now.settings.symmetric_difference(&before.settings).collect();
            assert!(changed.is_empty(), "settings of h{number} differ: {changed:#?}");
            let new = now.files.difference(&before.files);
            let new: Vec<_> = new.filter(|path| !may_stay(self, number, path)).collect();
            assert!(new.is_empty(), "left on h{number}: {new:?}");
        }
        let of_the_operator: Vec<_> = std::fs::read_dir(self.path("tmp")).unwrap().flatten().collect();
        assert!(of_the_operator.is_empty(), "left by the operator: {of_the_operator:?}");
    }

    /// Breaks or fixes something on a host on purpose: from now on its settings are meant to be so.
    pub(crate) fn arrange(&self, number: usize, command: &[&str]) {
        self.on(number, command);
        self.before.borrow_mut()[number - 1].settings = settings(self, number);
    }
}
