//! Facts `mount.<path>`: file systems with data on them.

use linerate_model::fact::FactDecl;
use linerate_sys::procfs;

use super::fact::Fact;
use super::readings::{Readings, fact};
use super::view::View;

/// The topic.
pub(super) struct Mounts;

/// File systems without data of people.
const PSEUDO: [&str; 24] = [
    "proc",
    "sysfs",
    "cgroup",
    "cgroup2",
    "devpts",
    "devtmpfs",
    "tmpfs",
    "mqueue",
    "debugfs",
    "tracefs",
    "securityfs",
    "pstore",
    "bpf",
    "configfs",
    "fusectl",
    "hugetlbfs",
    "autofs",
    "binfmt_misc",
    "efivarfs",
    "nsfs",
    "ramfs",
    "rpc_pipefs",
    "selinuxfs",
    "squashfs",
];
const MOUNTS_MAX: usize = 256;

/// Whether a file system of this kind has data of people.
pub fn holds_data(kind: &str) -> bool {
    !PSEUDO.contains(&kind) && !kind.starts_with("overlay")
}

impl Fact for Mounts {
    fn declarations(&self) -> Vec<FactDecl> {
        vec![fact("mount.*", "text", "File system by its folder: type, source, options.")]
    }

    fn of_namespace(&self) -> bool {
        false
    }

    fn read(&self, view: &View<'_>, out: &mut Readings) {
        let text = match view.root.read("/proc/self/mountinfo") {
            Ok(text) => text,
            Err(error) => return out.gap("mount.*", &error),
        };
        let all = procfs::mounts(&text);
        let real: Vec<_> = all.iter().filter(|m| holds_data(&m.kind)).collect();
        for mount in real.iter().take(MOUNTS_MAX) {
            let folder: String =
                mount.point.chars().map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect();
            let options = format!("{},{}", mount.options, mount.super_options);
            let options = options.trim_end_matches(',');
            out.text(format!("mount.{folder}"), format!("{} {} {options}", mount.kind, mount.source));
        }
        if real.len() > MOUNTS_MAX {
            out.gap("mount.*", &format!("{} of {} file systems are kept", MOUNTS_MAX, real.len()));
        }
    }
}
