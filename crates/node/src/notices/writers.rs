//! Writes to sysctls with their process, the value before and what was written, from every namespace of the
//! machine: a program in the kernel, for who asks for it. Needs root of the machine.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use linerate_model::fact::FactKey;
use linerate_model::notice::{NoticeSource, ValueChange};
use linerate_sys::sysctl_writes::{SysctlWrite, SysctlWrites};

use super::source::{Notice, Opened, Source, Write};
use super::written::{keys_of, named_writer};
use linerate_facts::sysctl_value;

/// Where `ip netns` names network namespaces.
const NAMED: &str = "/run/netns";

struct Writers {
    writes: SysctlWrites,
    /// The network namespace that is followed.
    own: Option<u64>,
    /// That of the machine, where all others are reported too.
    is_first: bool,
}

pub(super) fn open() -> Opened {
    let writes = SysctlWrites::begin().map_err(|error| error.to_string())?;
    let (own, is_first) = own_namespace();
    Ok(Box::new(Writers { writes, own, is_first }))
}

/// The first network namespace of each machine since Linux 6.18 (`NET_NS_INIT_INO` of linux/nsfs.h).
const FIRST_NAMESPACE: u64 = 0xefff_fff9;

/// The network namespace of this thread, and whether it is that of the machine, where the first process may
/// be hidden.
pub(crate) fn own_namespace() -> (Option<u64>, bool) {
    let own = namespace(Path::new("/proc/thread-self/ns/net"));
    let first = namespace(Path::new("/proc/1/ns/net"));
    (own, own.is_some() && (own == first || own == Some(FIRST_NAMESPACE)))
}

fn namespace(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|found| found.ino())
}

impl AsFd for Writers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.writes.as_fd()
    }
}

impl Source for Writers {
    fn drain(&mut self, notices: &mut Vec<Notice>) -> bool {
        let (own, is_first) = (self.own, self.is_first);
        self.writes.drain(|write| notices.extend(notice(write, own, is_first)))
    }
}

fn notice(write: SysctlWrite, own: Option<u64>, is_first: bool) -> Option<Notice> {
    let file = format!("/proc/sys/{}", write.path);
    let key = keys_of(Path::new(&file)).pop()?;
    let writer = Some(named_writer(write.pid, write.name));
    let value = |text: Option<String>| text.map(sysctl_value);
    let change = |key: FactKey| ValueChange { key, from: value(write.before), to: value(write.written) };
    let is_ours = !write.path.starts_with("net/") || own == Some(u64::from(write.netns));
    if is_ours {
        let write = Some(Write { change: change(key.clone()), can_be_read: true, was_read: false });
        return Some(Notice { writer, write, keys: vec![key], ..Notice::of(NoticeSource::Written, &file) });
    }
    is_first.then(|| {
        let inside = named(write.netns);
        let about = format!("{file} in the network namespace {inside}");
        let write = Some(Write {
            change: change(format!("netns.{inside}|{key}")),
            can_be_read: false,
            was_read: false,
        });
        Notice { writer, write, ..Notice::of(NoticeSource::Written, &about) }
    })
}

/// The path of a network namespace that has a name, else what links to it are called.
fn named(number: u32) -> String {
    let entries = fs::read_dir(NAMED).into_iter().flatten().flatten();
    let found = entries.map(|entry| entry.path()).find(|path| namespace(path) == Some(number.into()));
    found.map_or_else(|| format!("net:[{number}]"), |path| path.display().to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use linerate_model::fact::FactValue;

    use super::*;

    fn write(path: &str, netns: u32) -> SysctlWrite {
        SysctlWrite {
            path: path.to_owned(),
            // No process has it.
            pid: 0,
            name: "tuned".to_owned(),
            netns,
            before: Some("1".to_owned()),
            written: Some("0".to_owned()),
        }
    }

    #[test]
    fn a_write_is_about_this_host_or_a_namespace_inside() {
        let rmem = "net/ipv4/conf/eth0.5/rp_filter";
        let own = notice(write(rmem, 7), Some(7), true).unwrap();
        assert_eq!(own.keys, ["sysctl.net.ipv4.conf.eth0/5.rp_filter"]);
        assert_eq!(own.write.unwrap().change.to, Some(FactValue::Int(0)));
        assert_eq!(own.writer.unwrap().name(), "tuned (0)");
        let other = notice(write(rmem, 8), Some(7), true).unwrap();
        assert_eq!(other.write.unwrap().change.key, "netns.net:[8]|sysctl.net.ipv4.conf.eth0/5.rp_filter");
        assert_eq!(other.keys, Vec::<String>::new());
        // A host that is a namespace has none inside, and memory is that of the whole machine.
        assert_eq!(notice(write(rmem, 8), Some(7), false), None);
        assert!(notice(write("vm/swappiness", 8), Some(7), false).unwrap().write.unwrap().can_be_read);
    }
}
