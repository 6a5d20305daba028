//! `/proc/self/mountstats`: what the NFS client counts for each mounted folder. Lines come in, facts
//! `nfs.<folder>.…` of the names of our own readers go out.

use linerate_model::fact::FactValue;

use super::mounts::{folder_key, nfs_options};
use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Mountstats;

/// `device store:/home mounted on /data with fstype nfs4 statvers=1.1`: folder and kind.
fn device(line: &str) -> Option<(&str, &str)> {
    let (_, rest) = line.trim().strip_prefix("device ")?.split_once(" mounted on ")?;
    let (folder, kind) = rest.rsplit_once(" with fstype ")?;
    Some((folder, kind.split_whitespace().next()?))
}

/// Sums over the operations of one folder.
#[derive(Default)]
struct Mount {
    key: String,
    calls: i64,
    sent: i64,
    timeouts: i64,
    slots: i64,
}

impl Mount {
    fn line(&mut self, text: &str, out: &mut Sink) {
        if let Some(options) = text.strip_prefix("opts:") {
            nfs_options(&self.key, options.trim(), out);
        } else if let Some(transport) = text.strip_prefix("xprt:") {
            let mut words = transport.split_whitespace();
            // The eleventh number behind `tcp` is the most slots that were in use.
            let is_tcp = words.next() == Some("tcp");
            if let Some(slots) = words.nth(10).and_then(|n| n.parse::<i64>().ok()).filter(|_| is_tcp) {
                self.slots = self.slots.max(slots);
            }
        } else if let Some((name, numbers)) = text.split_once(':')
            && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_' || b.is_ascii_digit())
        {
            self.operation(name, numbers, out);
        }
    }

    /// `READ: ops transmissions major-timeouts bytes-sent bytes-received queue-ms rtt-ms total-ms`
    fn operation(&mut self, name: &str, numbers: &str, out: &mut Sink) {
        let numbers: Vec<i64> = numbers.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [calls, sent, timeouts, _, _, queue, rtt, total, ..] = numbers[..] else { return };
        self.calls = self.calls.saturating_add(calls);
        self.sent = self.sent.saturating_add(sent);
        self.timeouts = self.timeouts.saturating_add(timeouts);
        let word = match name {
            "READ" => "read",
            "WRITE" => "write",
            _ => return,
        };
        for (what, sum) in [("queue_ms", queue), ("rtt_ms", rtt), ("total_ms", total)] {
            if calls > 0 {
                out.fact(format!("{}.{word}_{what}", self.key), rounded(sum as f64 / calls as f64));
            }
        }
    }

    fn put(&self, out: &mut Sink) {
        let key = &self.key;
        if self.calls > 0 {
            let repeated = self.sent.saturating_sub(self.calls).max(0) as f64;
            out.fact(format!("{key}.calls"), FactValue::Int(self.calls));
            out.fact(format!("{key}.repeated_percent"), rounded(100.0 * repeated / self.calls as f64));
            out.fact(format!("{key}.major_timeouts"), FactValue::Int(self.timeouts));
        }
        if self.slots > 0 {
            out.fact(format!("{key}.slots_used"), FactValue::Int(self.slots));
        }
    }
}

/// Three digits behind the point are enough of a mean.
fn rounded(value: f64) -> FactValue {
    FactValue::Float((value * 1e3).round() / 1e3)
}

impl Reader for Mountstats {
    fn name(&self) -> &'static str {
        "mountstats"
    }

    fn describes(&self) -> &'static str {
        "/proc/self/mountstats: requests of the NFS client"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        device(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut current: Option<Mount> = None;
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let text = line.trim();
            if let Some((folder, kind)) = device(text) {
                current.take().inspect(|mount| mount.put(out));
                let key = format!("nfs.{}", folder_key(folder));
                current = kind.starts_with("nfs").then(|| Mount { key, ..Mount::default() });
            } else if !text.is_empty() && !line.starts_with([' ', '\t']) {
                break;
            } else if let Some(mount) = &mut current {
                mount.line(text, out);
            }
            if !text.is_empty() {
                taken = at + 1;
            }
        }
        current.inspect(|mount| mount.put(out));
        taken.max(1)
    }
}
