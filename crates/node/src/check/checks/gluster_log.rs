//! `gluster-log`: lines of gluster's logs that point to a known cause, or a client or brick that lost the
//! other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use linerate_sys::root::Root;

use super::super::kind::{About, Check, Evidence, Lane, Observation, Reading, Row};
use super::super::past::Past;
use super::super::rule::{Moment, ONCE, Rule, Severity};
use super::super::settings::Settings;
use super::log_lines::{self, LINES, Sign};

/// The check.
pub(in super::super) struct GlusterLog;

const FOLDERS: [&str; 2] = ["/var/log/glusterfs", "/var/log/glusterfs/bricks"];
const FILES_MAX: usize = 64;
/// Of each file and call: a log that floods is judged by its end.
const BYTES_MAX: u64 = 256 << 10;

const SIGNS: &[Sign] = &[
    Sign { name: "own-lock", words: &["unable to get lock for uuid"], cause: Some("gluster-own-lock") },
    Sign { name: "split-brain", words: &["split-brain", "split brain"], cause: None },
    Sign {
        name: "subvolume-down",
        words: &[
            "all subvolumes are down",
            "client-quorum is not met",
            "transport endpoint is not connected",
        ],
        cause: None,
    },
    Sign { name: "ping-timer", words: &["has not responded in the last"], cause: None },
    Sign { name: "health-check", words: &["health-check failed"], cause: Some("drive-failing") },
];

static ABOUT: About = About {
    id: "gluster-log",
    title: "lines of gluster's logs point to a known cause",
    reads: "the new end of /var/log/glusterfs/*.log and bricks/*.log, at most 256 KiB each",
    severity: Severity::Warn,
    rule: Rule { passes: 12, ..ONCE },
    lane: Lane::Drives,
    is_on: true,
    thresholds: &[LINES],
    takes_expected: false,
};

/// How far a file was read.
type Read = BTreeMap<String, (u64, u64)>;

/// What is new in a file, and how far it is read now. One that is seen for the first time begins at its end.
fn fresh(path: &Path, before: Option<(u64, u64)>) -> std::io::Result<(String, (u64, u64))> {
    let mut file = File::open(path)?;
    let meta = file.metadata()?;
    let (inode, size) = (meta.ino(), meta.len());
    let from = match before {
        Some((old, offset)) if old == inode && offset <= size => offset,
        // Rotated or emptied since.
        Some(_) => 0,
        None => size,
    };
    let from = from.max(size.saturating_sub(BYTES_MAX));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    // A line that is being written is read when it is whole.
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    bytes.truncate(whole);
    Ok((String::from_utf8_lossy(&bytes).into_owned(), (inode, from + whole as u64)))
}

fn files(root: &Root) -> Vec<String> {
    let of = |folder: &str| {
        let names = root.list(folder).unwrap_or_default();
        let logs =
            names.into_iter().filter(|name| Path::new(name).extension().is_some_and(|end| end == "log"));
        logs.map(|name| format!("{folder}/{name}")).collect::<Vec<_>>()
    };
    FOLDERS.into_iter().flat_map(of).take(FILES_MAX).collect()
}

impl Check for GlusterLog {
    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn items(&self, root: &Root, _settings: &Settings) -> Vec<String> {
        if root.is_live() && !files(root).is_empty() { vec![String::new()] } else { Vec::new() }
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Evidence, String> {
        let before: Read =
            reading.cursor.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let mut after = Read::new();
        let mut text = String::new();
        for path in files(reading.root) {
            // One that cannot be read now may be next time.
            let Ok((new, read)) = fresh(Path::new(&path), before.get(&path).copied()) else { continue };
            text += &new;
            after.insert(path, read);
        }
        let cursor = serde_json::to_string(&after).map_err(|error| error.to_string())?;
        Ok(Evidence { rows: log_lines::rows(SIGNS, text.lines()), cursor: Some(cursor) })
    }

    fn judge(&self, row: &Row, past: &mut Past, now: Moment, settings: &Settings) -> Observation {
        let window_s = settings.rule(ABOUT.rule).window_s;
        log_lines::judge(SIGNS, row, past, now, window_s, settings)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_log_is_read_from_where_it_was_left_also_when_it_was_rotated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("brick.log");
        std::fs::write(&path, "old\n").unwrap();
        let (text, read) = fresh(&path, None).unwrap();
        assert_eq!(text, "", "the first call begins at the end");
        let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"split-brain\nhalf").unwrap();
        let (text, read) = fresh(&path, Some(read)).unwrap();
        assert_eq!(text, "split-brain\n");
        file.write_all(b" line\n").unwrap();
        assert_eq!(fresh(&path, Some(read)).unwrap().0, "half line\n");
        // copytruncate
        std::fs::write(&path, "new\n").unwrap();
        assert_eq!(fresh(&path, Some(read)).unwrap().0, "new\n");
        let counted = log_lines::rows(SIGNS, ["[E] x split-brain y"].into_iter());
        assert_eq!(counted[1].get("new"), Some(1.0));
    }
}
