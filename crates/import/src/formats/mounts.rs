//! Lines of `mount`, `findmnt`, `nfsstat -m` and `/proc/self/mounts` with a file system of people on them:
//! source, folder, type, options. Lines come in, facts `mount.<folder>` go out, and options of NFS as
//! numbers.

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
            // A long line may be cut.
            (source, folder, kind, options.strip_prefix('(')?.trim_end_matches(')'))
        }
        [source, folder, kind, options, dump, pass]
            if [dump, pass].iter().all(|w| w.parse::<u8>().is_ok()) =>
        {
            (source, folder, kind, options)
        }
        // `├─/data store:/data nfs4 rw,vers=4.2`, below the heading of `findmnt`.
        [folder, source, kind, options] => {
            let is_tree = |c: char| "├└│─|`-".contains(c);
            (source, folder.trim_start_matches(is_tree), kind, options)
        }
        _ => return None,
    };
    (folder.starts_with('/') && KINDS.contains(&kind)).then_some(Mount { source, folder, kind, options })
}

/// Options of NFS that are numbers.
const NUMBERS: [&str; 5] = ["rsize", "wsize", "timeo", "retrans", "nconnect"];

/// A folder as a part of a key: a dot would end it.
pub(super) fn folder_key(folder: &str) -> String {
    folder.chars().map(|c| if c.is_ascii_graphic() && c != '.' { c } else { '_' }).collect()
}

/// Options of a mount of NFS, under a key `nfs.<folder>`.
pub(super) fn nfs_options(key: &str, options: &str, out: &mut Sink) {
    for option in options.split(',') {
        match option.trim().split_once('=') {
            Some(("proto", proto)) => out.text(format!("{key}.proto"), proto),
            Some((name, number)) if NUMBERS.contains(&name) => {
                if let Ok(number) = number.parse() {
                    out.fact(format!("{key}.{name}"), FactValue::Int(number));
                }
            }
            None if option.trim() == "sync" => out.fact(format!("{key}.sync"), FactValue::Flag(true)),
            _ => {}
        }
    }
}

/// `/data from store:/data`, and `Flags: rw,vers=4.2,…` below it: `nfsstat -m`.
fn flags<'l>(line: &'l str, next: &'l str) -> Option<Mount<'l>> {
    let (folder, source) = line.trim().split_once(" from ")?;
    let options = next.trim().strip_prefix("Flags:")?.trim();
    let is_whole = folder.starts_with('/') && source.contains(":/") && !source.contains(' ');
    is_whole.then_some(Mount { source, folder, kind: "nfs", options })
}

/// Whether a line heads the columns of `findmnt`.
fn is_heading(line: &str) -> bool {
    line.split_whitespace().eq(["TARGET", "SOURCE", "FSTYPE", "OPTIONS"])
}

/// Keeps what is known of a mount.
fn put(mount: &Mount<'_>, out: &mut Sink) {
    let folder = folder_key(mount.folder);
    out.text(format!("mount.{folder}"), &format!("{} {} {}", mount.kind, mount.source, mount.options));
    if mount.kind.starts_with("nfs") {
        nfs_options(&format!("nfs.{folder}"), mount.options, out);
    }
}

impl Reader for Mounts {
    fn name(&self) -> &'static str {
        "mount"
    }

    fn describes(&self) -> &'static str {
        "mount, findmnt, nfsstat -m, /proc/mounts: file systems"
    }

    fn begins(&self, block: &Block<'_>) -> bool {
        mount(block.first()).is_some()
            || flags(block.first(), block.line(1)).is_some()
            || is_heading(block.first())
    }

    fn read(&self, block: &Block<'_>, out: &mut Sink) -> usize {
        let is_findmnt = is_heading(block.first());
        let mut taken = 0;
        for (at, line) in block.lines.iter().enumerate() {
            if at < taken {
                continue;
            }
            if let Some(mount) = flags(line, block.line(at + 1)) {
                put(&mount, out);
                taken = at + 2;
            } else if let Some(mount) = mount(line) {
                put(&mount, out);
                taken = at + 1;
            } else if is_findmnt && line.split_whitespace().count() == 4 || is_heading(line) {
                // A file system of the kernel, or the columns.
                taken = at + 1;
            } else if !line.trim().is_empty() {
                break;
            }
        }
        taken.clamp(1, block.lines.len())
    }
}
