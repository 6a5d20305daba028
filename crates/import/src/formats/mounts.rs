//! Lines of `mount`, `nfsstat -m` and `/proc/self/mounts` with a file system of people on them: source,
//! folder, type, options. Lines come in, facts `mount.<folder>` go out, and sizes of requests of NFS.

use linerate_model::fact::FactValue;

use crate::reader::{Block, Reader};
use crate::sink::Sink;

/// The format.
pub(crate) struct Mounts;

/// File systems with data of people.
const KINDS: [&str; 17] = [
    "nfs",
    "nfs4",
    "xfs",
    "ext3",
    "ext4",
    "btrfs",
    "zfs",
    "ceph",
    "lustre",
    "gpfs",
    "cifs",
    "fuse.glusterfs",
    "fuse.sshfs",
    "fuse.mfs",
    "ocfs2",
    "gfs2",
    "beegfs",
];

struct Mount<'l> {
    source: &'l str,
    folder: &'l str,
    kind: &'l str,
    options: &'l str,
}

/// `mounthost:/ on /mnt type nfs4 (rw,rsize=1024,…)`, `mounthost:/ /mnt nfs4 rw,rsize=1024 0 0`
fn mount(line: &str) -> Option<Mount<'_>> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (source, folder, kind, options) = match words[..] {
        [source, "on", folder, "type", kind, options] => {
            (source, folder, kind, options.strip_prefix('(')?.strip_suffix(')')?)
        }
        [source, folder, kind, options, dump, pass]
            if [dump, pass].iter().all(|w| w.parse::<u8>().is_ok()) =>
        {
            (source, folder, kind, options)
        }
        _ => return None,
    };
    (folder.starts_with('/') && KINDS.contains(&kind)).then_some(Mount { source, folder, kind, options })
}

impl Reader for Mounts {
    fn name(&self) -> &'static str {
        "mount"
    }

    fn describes(&self) -> &'static str {
        "mount, /proc/mounts: file systems"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        mount(block.first()).is_some()
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            let Some(mount) = mount(line) else { break };
            // A dot would end the name in a key.
            let folder = mount.folder.replace('.', "_");
            out.text(
                format!("mount.{folder}"),
                &format!("{} {} {}", mount.kind, mount.source, mount.options),
            );
            if mount.kind.starts_with("nfs") {
                for option in mount.options.split(',') {
                    let Some((name @ ("rsize" | "wsize"), bytes)) = option.split_once('=') else { continue };
                    if let Ok(bytes) = bytes.parse() {
                        out.fact(format!("nfs.{folder}.{name}"), FactValue::Int(bytes));
                    }
                }
            }
            taken = at + 1;
        }
        taken.max(1)
    }
}
