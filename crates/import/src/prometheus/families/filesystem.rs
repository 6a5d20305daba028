//! `node_filesystem_readonly`: which file systems with data of people are mounted where, and whether they can
//! be written.

use super::super::answer::Series;
use super::super::family::Family;
use super::super::metric::{Row, Use};
use super::super::taken::Taken;

/// The family.
pub(super) struct Filesystem;

const KINDS: &str = "nfs4?|xfs|ext[34]|btrfs|zfs|ceph|lustre|gpfs|cifs|fuse.glusterfs|ocfs2|gfs2|beegfs";

impl Family for Filesystem {
    fn name(&self) -> &'static str {
        "filesystem"
    }

    fn rows(&self) -> &'static [Row] {
        &[("node_filesystem_readonly", "mount.{mountpoint}", Use::Own, 1.0)]
    }

    fn query(&self, name: &str) -> String {
        format!("{name}{{fstype=~\"{KINDS}\"}}")
    }

    fn take(&self, _: &str, series: &Series, taken: &mut Taken<'_>) {
        let folder = series.label("mountpoint").replace('.', "_");
        if folder.starts_with('/')
            && let Some(is_read_only) = series.last()
        {
            let options = if is_read_only > 0.0 { "ro" } else { "rw" };
            let (kind, source) = (series.label("fstype"), series.label("device"));
            taken.text(&format!("mount.{folder}"), &format!("{kind} {source} {options}"));
        }
    }
}
