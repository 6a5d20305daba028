//! A Gluster brick: every file has a second name `.glusterfs/ab/cd/abcd…` by its identifier (gfid), a hard
//! link; every folder has a symbolic link there. The identifier is in the attribute `trusted.gfid`, which
//! only root may read.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use linerate_model::audit::{AuditPart, Harm};
use linerate_sys::xattr;

use super::auditor::{Auditor, Inside, gap};

pub(super) struct Gluster;

const LINKS: &str = ".glusterfs";
const GFID: &str = "trusted.gfid";
const GFID_BYTES: usize = 16;
/// Permissions of a file that only says where another brick has the data (DHT): the sticky bit alone.
const POINTER_MODE: u32 = 0o1000;

/// Two hexadecimal digits, as the folders of links are called.
fn is_pair(name: &std::ffi::OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.len() == 2 && name.iter().all(u8::is_ascii_hexdigit)
}

/// Whether a folder is one of links: `.glusterfs/ab/cd`.
fn is_of_links(inner: &Path) -> bool {
    let mut parts = inner.iter();
    parts.next() == Some(LINKS.as_ref()) && parts.clone().count() == 2 && parts.all(is_pair)
}

/// `abcdef01-2345-…`
fn is_gfid(name: &str, inner: &Path) -> bool {
    let digits = name.bytes().filter(|b| *b != b'-');
    let begin: String = inner.iter().skip(1).filter_map(|p| p.to_str()).collect();
    name.len() == 36
        && digits.clone().count() == 32
        && digits.clone().all(|b| b.is_ascii_hexdigit())
        && name.starts_with(&begin)
}

/// Where the other name of an identifier is.
fn link_of(gfid: &[u8]) -> PathBuf {
    let hex = gfid.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"));
    let name = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    Path::new(LINKS).join(&hex[..2]).join(&hex[2..4]).join(name)
}

impl Auditor for Gluster {
    fn recognises(&self, folder: &Path) -> bool {
        folder.join(LINKS).is_dir()
    }

    fn enters(&self, inner: &Path) -> bool {
        // Beside the links there are indices, logs of changes and a bin, which are Gluster's own matter.
        let mut parts = inner.iter();
        parts.next() != Some(LINKS.as_ref()) || parts.all(is_pair)
    }

    fn look(&self, place: &Inside<'_>, part: &mut AuditPart) -> io::Result<()> {
        let links = is_of_links(place.inner);
        if !links && place.inner.starts_with(LINKS) {
            return Ok(());
        }
        // The kernel says to all but root that there is no such attribute. The brick itself always has it.
        let sees_gfids = matches!(xattr::get(place.root, GFID, GFID_BYTES), Ok(Some(_)));
        if !sees_gfids && part.gaps.is_empty() {
            let reason = "the brick itself shows none: reading it needs root".to_owned();
            gap(part, GFID.to_owned(), reason);
        }
        for entry in fs::read_dir(place.path())?.flatten() {
            if place.is_stopped() {
                return Ok(());
            }
            let (path, name) = (entry.path(), place.name(&entry.file_name()));
            let metadata = match fs::symlink_metadata(&path) {
                Ok(metadata) => metadata,
                // It went in the meantime: the brick works on.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if links {
                link(place, &path, &name, &metadata, part);
            } else if metadata.is_file() {
                file(place, sees_gfids, &path, &name, &metadata, part);
            }
        }
        Ok(())
    }
}

/// A name below `.glusterfs`.
fn link(place: &Inside<'_>, path: &Path, name: &str, metadata: &Metadata, part: &mut AuditPart) {
    let (bytes, single) = (metadata.len(), metadata.nlink() < 2);
    let last = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    if !is_gfid(last, place.inner) {
        let words = "files among the links that are no identifiers";
        part.add("strange", Harm::Remark, words, bytes, || name.to_owned());
    } else if metadata.is_symlink() && !single {
        part.add("linked", Harm::Fine, "identifiers with a name", 0, String::new);
    } else if metadata.is_symlink() {
        match fs::metadata(path) {
            Ok(_) => part.add("folder", Harm::Fine, "links of folders", 0, String::new),
            Err(error) => {
                let words = "links of folders that lead nowhere";
                part.add("dangling", Harm::Loss, words, 0, || {
                    let target = fs::read_link(path).unwrap_or_default();
                    format!("{name} -> {}: {error}", target.display())
                });
            }
        }
    } else if single && bytes == 0 {
        let words = "identifiers of zero bytes without a name";
        part.add("empty-orphan", Harm::Loss, words, 0, || name.to_owned());
    } else if single {
        let words = "data without a name in the brick";
        part.add("orphan", Harm::Loss, words, bytes, || format!("{name}: {bytes} bytes"));
    } else if bytes == 0 && metadata.mode() & 0o7777 == POINTER_MODE {
        part.add("pointer", Harm::Fine, "files that say which brick has the data", 0, String::new);
    } else if bytes == 0 {
        let words = "files of zero bytes: by intent, or left by a power cut; the other replica tells";
        part.add("empty", Harm::Remark, words, 0, || name.to_owned());
    } else {
        part.add("linked", Harm::Fine, "identifiers with a name", bytes, String::new);
    }
}

/// A file of people.
fn file(
    place: &Inside<'_>,
    sees_gfids: bool,
    path: &Path,
    name: &str,
    metadata: &Metadata,
    part: &mut AuditPart,
) {
    let bytes = metadata.len();
    let mut missing = |what: String| {
        let words = "files without their link by identifier";
        part.add("link-missing", Harm::Loss, words, bytes, || format!("{name}: {what}"));
    };
    let single = metadata.nlink() < 2;
    if !sees_gfids && single {
        return missing("it has one name only".into());
    }
    if !sees_gfids {
        let words = "files with two names, of which the identifier could not be read";
        return part.add("unread-gfid", Harm::Fine, words, bytes, String::new);
    }
    match xattr::get(path, GFID, GFID_BYTES) {
        Ok(Some(gfid)) if gfid.len() == GFID_BYTES => {
            let link = link_of(&gfid);
            match fs::symlink_metadata(place.root.join(&link)) {
                Ok(other) if (other.ino(), other.dev()) == (metadata.ino(), metadata.dev()) => {
                    part.add("named", Harm::Fine, "files with their link", bytes, String::new);
                }
                Ok(_) => {
                    let words = "files whose link by identifier is another file";
                    part.add("link-other", Harm::Loss, words, bytes, || {
                        format!("{name}: {}", link.display())
                    });
                }
                Err(_) if single => missing(format!("it has one name only, not {}", link.display())),
                Err(error) => missing(format!("{}: {error}", link.display())),
            }
        }
        Ok(_) => {
            let words = "files without an identifier: put there past Gluster, or the attribute is lost";
            part.add("no-gfid", Harm::Loss, words, bytes, || name.to_owned());
        }
        Err(error) => gap(part, format!("{GFID} of {name}"), error.to_string()),
    }
}
