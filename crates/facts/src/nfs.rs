//! Facts `nfs.*`: what the NFS client counts for each mounted folder, since it was mounted.
//!
//! In: `/proc/self/mountstats`. Out: sizes and means by folder, named as the reader of pasted mounts names
//! them. It never asks a server: a dead one would never answer.

use linerate_model::fact::{FactDecl, FactValue};

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::View;

/// The topic.
pub(super) struct Nfs;

/// Most mounts that are read.
const MOUNTS_MAX: usize = 256;
/// Operations whose times are facts: those that move data.
const OPERATIONS: [(&str, &str); 2] = [("READ", "read"), ("WRITE", "write")];
/// Options with a number, by their names in keys.
const OPTIONS: [&str; 5] = ["rsize", "wsize", "nconnect", "timeo", "retrans"];
/// Where the numbers of a transport by TCP stand behind its name: requests sent, sum of the requests that
/// waited for a slot, and most slots that were in use (`xs_tcp_print_stats` of the kernel).
const SENT_AT: usize = 5;
const BACKLOG_AT: usize = 9;
const SLOTS_AT: usize = 10;

impl Fact for Nfs {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![
            fact("nfs.*.rsize", "bytes", "Largest read request of the mounted folder."),
            fact("nfs.*.wsize", "bytes", "Largest write request of the mounted folder."),
            fact("nfs.*.proto", "text", "Transport: tcp, udp, rdma."),
            fact("nfs.*.sync", "flag", "Whether every write waits for the server's disk (option sync)."),
            fact("nfs.*.calls", "count", "Requests since it was mounted."),
            fact(
                "nfs.*.repeated_percent",
                "percent",
                "Requests that were sent more than once, of all requests since it was mounted.",
            ),
            fact("nfs.*.major_timeouts", "count", "Requests that were given up once, since it was mounted."),
            fact("nfs.*.slots_used", "count", "Most requests in flight at a time."),
            fact("nfs.*.backlog", "requests", "Requests that waited for a slot when one was sent, mean."),
            fact(
                "nfs.*.*",
                "by name",
                "nconnect, timeo, retrans; read_rtt_ms, read_queue_ms, read_total_ms and the same of write: means since it was mounted, on the wire and at the server, before being sent, in all.",
            ),
        ]
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        // A kernel without NFS, or a process without a mount namespace of its own, has no such file.
        let Ok(text) = view.root.read("/proc/self/mountstats") else { return };
        let mut mounts = 0;
        let mut current: Option<Mount> = None;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("device ") {
                current.take().inspect(|mount| mount.put(out));
                current = Mount::of(rest);
                mounts += usize::from(current.is_some());
                if mounts > MOUNTS_MAX {
                    out.gap("nfs.*", &format!("{MOUNTS_MAX} mounts are read, and there are more"));
                    return;
                }
            } else if let Some(mount) = &mut current {
                mount.line(line.trim());
            }
        }
        current.inspect(|mount| mount.put(out));
    }
}

/// One mounted folder.
#[derive(Default)]
struct Mount {
    folder: String,
    facts: Vec<(String, FactValue)>,
    calls: i64,
    sent: i64,
    timeouts: i64,
    slots: i64,
    backlog: Option<(f64, f64)>,
}

impl Mount {
    /// `server:/export mounted on /data with fstype nfs4 statvers=1.1`
    fn of(text: &str) -> Option<Self> {
        let (_, rest) = text.split_once(" mounted on ")?;
        let (folder, kind) = rest.rsplit_once(" with fstype ")?;
        let kind = kind.split_ascii_whitespace().next()?;
        // A dot would end the name in a key.
        let plain = |c: char| if c.is_ascii_graphic() && c != '.' { c } else { '_' };
        let folder: String = folder.chars().map(plain).collect();
        matches!(kind, "nfs" | "nfs4").then(|| Self { folder, ..Self::default() })
    }

    fn line(&mut self, line: &str) {
        if let Some(options) = line.strip_prefix("opts:") {
            self.options(options.trim());
        } else if let Some(transport) = line.strip_prefix("xprt:") {
            self.transport(transport.trim());
        } else if let Some((name, numbers)) = line.split_once(": ")
            && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit())
        {
            self.operation(name, numbers);
        }
    }

    fn options(&mut self, options: &str) {
        for option in options.split(',') {
            match option.split_once('=') {
                Some(("proto", proto)) => self.fact("proto", FactValue::Text(proto.to_owned())),
                Some((name, value)) if OPTIONS.contains(&name) => {
                    if let Ok(number) = value.parse() {
                        self.fact(name, FactValue::Int(number));
                    }
                }
                None if option == "sync" => self.fact("sync", FactValue::Flag(true)),
                _ => {}
            }
        }
    }

    fn transport(&mut self, text: &str) {
        let mut words = text.split_ascii_whitespace();
        if words.next() != Some("tcp") {
            return;
        }
        let numbers: Vec<f64> = words.filter_map(|word| word.parse().ok()).collect();
        let at = |at: usize| numbers.get(at).copied();
        self.slots = self.slots.max(at(SLOTS_AT).map_or(0, |slots| slots as i64));
        // Several connections (nconnect) are one queue each.
        if let (Some(sent), Some(backlog)) = (at(SENT_AT), at(BACKLOG_AT)) {
            let (all, waited) = self.backlog.unwrap_or_default();
            self.backlog = Some((all + sent, waited + backlog));
        }
    }

    /// `READ: ops transmissions major-timeouts bytes-sent bytes-received queue-ms rtt-ms total-ms errors`
    fn operation(&mut self, name: &str, numbers: &str) {
        let numbers: Vec<i64> =
            numbers.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
        let [ops, sent, timeouts, _, _, queue, rtt, total, ..] = numbers[..] else { return };
        self.calls = self.calls.saturating_add(ops);
        self.sent = self.sent.saturating_add(sent);
        self.timeouts = self.timeouts.saturating_add(timeouts);
        let Some((_, word)) = OPERATIONS.iter().find(|(n, _)| *n == name).filter(|_| ops > 0) else { return };
        for (what, sum) in [("queue_ms", queue), ("rtt_ms", rtt), ("total_ms", total)] {
            self.fact(&format!("{word}_{what}"), rounded(sum as f64 / ops as f64));
        }
    }

    fn fact(&mut self, name: &str, value: FactValue) {
        self.facts.push((name.to_owned(), value));
    }

    fn put(&self, out: &mut Readings) {
        let key = format!("nfs.{}", self.folder);
        for (name, value) in &self.facts {
            out.put(format!("{key}.{name}"), value.clone());
        }
        if self.calls > 0 {
            let repeated = self.sent.saturating_sub(self.calls).max(0) as f64;
            out.int(format!("{key}.calls"), self.calls);
            out.put(format!("{key}.repeated_percent"), rounded(100.0 * repeated / self.calls as f64));
            out.int(format!("{key}.major_timeouts"), self.timeouts);
        }
        if self.slots > 0 {
            out.int(format!("{key}.slots_used"), self.slots);
        }
        if let Some((sent, waited)) = self.backlog.filter(|(sent, _)| *sent > 0.0) {
            out.put(format!("{key}.backlog"), rounded(waited / sent));
        }
    }
}

/// Three digits behind the point are enough of a mean.
fn rounded(value: f64) -> FactValue {
    FactValue::Float((value * 1e3).round() / 1e3)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use linerate_sys::root::Root;

    use super::*;

    /// After the format of `nfs_show_stats` and `rpc_clnt_show_stats` of Linux 6.1.
    const STATS: &str = "\
device proc mounted on /proc with fstype proc
device store:/home mounted on /data/v1.2 with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2,rsize=1048576,wsize=262144,namlen=255,hard,proto=tcp,nconnect=2,timeo=600,retrans=2,sec=sys
\tage:\t3600
\tevents:\t1 2 3 4 5
\tRPC iostats version: 1.1  p/v: 100003/4 (nfs)
\txprt:\ttcp 0 0 2 0 6 1000 1000 0 2000 500 64 0 0
\txprt:\ttcp 0 0 2 0 6 1000 1000 0 2000 1500 40 0 0
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 1000 1030 2 168000 1000000 4000 9000 13500 0
\t       WRITE: 0 0 0 0 0 0 0 0 0
device tmpfs mounted on /tmp with fstype tmpfs
";

    #[test]
    fn what_the_client_counted_is_read_by_folder() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc/self")).unwrap();
        std::fs::write(folder.path().join("proc/self/mountstats"), STATS).unwrap();
        let root = Root::recorded(folder.path());
        let mut out = Readings::default();
        Nfs.read(&View::new(&root, None, &[]), &mut out);
        let seen: BTreeMap<String, String> =
            out.finish().readings.iter().map(|(k, v)| (k.clone(), v.to_string())).collect();
        let wanted = [
            ("rsize", "1048576"),
            ("wsize", "262144"),
            ("proto", "tcp"),
            ("nconnect", "2"),
            ("timeo", "600"),
            ("retrans", "2"),
            ("read_queue_ms", "4"),
            ("read_rtt_ms", "9"),
            ("read_total_ms", "13.5"),
            ("calls", "1001"),
            ("repeated_percent", "2.997"),
            ("major_timeouts", "2"),
            ("slots_used", "64"),
            ("backlog", "1"),
        ];
        let wanted: BTreeMap<String, String> =
            wanted.map(|(k, v)| (format!("nfs./data/v1_2.{k}"), v.to_owned())).into();
        assert_eq!(seen, wanted);
    }
}
