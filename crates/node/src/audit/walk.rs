//! All folders below one, in an order that is the same every time, so that a walk goes on where another
//! ended.
//!
//! Keeps the names of the folders beside those on its way, never those of files. Links are not followed.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// Deeper ones are left out.
const DEPTH_MAX: usize = 100;

/// A walk under way.
pub(super) struct Walk<'a, F> {
    root: &'a Path,
    enters: F,
    /// Folder whose own folders come next.
    opened: Option<PathBuf>,
    /// Folders on the way, with those in them that are to come.
    stack: Vec<(PathBuf, std::vec::IntoIter<OsString>)>,
    begun: bool,
}

impl<'a, F: Fn(&Path) -> bool> Walk<'a, F> {
    /// Begins, or goes on behind a folder.
    pub(super) fn after(root: &'a Path, after: Option<PathBuf>, enters: F) -> Self {
        let mut walk = Self { root, enters, opened: None, stack: Vec::new(), begun: after.is_some() };
        let Some(after) = after else { return walk };
        // The folders that were on the way then, each from behind the one that was taken.
        let mut inner = PathBuf::new();
        for name in &after {
            let names = walk.folders(&inner, &mut |_, _| {});
            let later: Vec<OsString> = names.into_iter().filter(|n| n.as_os_str() > name).collect();
            walk.stack.push((inner.clone(), later.into_iter()));
            inner.push(name);
        }
        walk.opened = Some(after);
        walk
    }

    /// The next folder, below the root; the root itself comes first, without a name. `failed` hears of what
    /// cannot be read.
    pub(super) fn next(&mut self, mut failed: impl FnMut(String, String)) -> Option<PathBuf> {
        if !self.begun {
            self.begun = true;
            self.opened = Some(PathBuf::new());
            return Some(PathBuf::new());
        }
        if let Some(opened) = self.opened.take() {
            let names = self.folders(&opened, &mut failed);
            self.stack.push((opened, names.into_iter()));
        }
        while let Some((inner, names)) = self.stack.last_mut() {
            if let Some(name) = names.next() {
                let next = inner.join(name);
                self.opened = Some(next.clone());
                return Some(next);
            }
            self.stack.pop();
        }
        None
    }

    /// Names of the folders in a folder, in order.
    fn folders(&self, inner: &Path, failed: &mut impl FnMut(String, String)) -> Vec<OsString> {
        if inner.components().count() >= DEPTH_MAX {
            failed(inner.display().to_string(), format!("deeper than {DEPTH_MAX} folders"));
            return Vec::new();
        }
        let mut names = Vec::new();
        match fs::read_dir(self.root.join(inner)) {
            Ok(entries) => {
                let folders = entries.flatten().filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir()));
                names.extend(folders.map(|e| e.file_name()).filter(|n| (self.enters)(&inner.join(n))));
            }
            // What was looked at has told of it already, but for a folder that went in the meantime.
            Err(error) => failed(inner.display().to_string(), error.to_string()),
        }
        names.sort();
        names
    }
}

/// A path as text, whatever its bytes are.
pub(super) fn encode(path: &Path) -> String {
    let mut text = String::new();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            // Writing into a `String` cannot fail.
            b'%' | ..=b' ' | 0x7f.. => drop(write!(text, "%{byte:02x}")),
            byte => text.push(char::from(*byte)),
        }
    }
    text
}

/// The path of such a text; parts that lead out of the folder are left out.
pub(super) fn decode(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, more)) = rest.split_first() {
        let code = more.get(..2).filter(|_| *first == b'%').and_then(|d| std::str::from_utf8(d).ok());
        if let Some(byte) = code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = &more[2..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    let plain = |part: &std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    path.components().filter(plain).collect()
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    fn all(root: &Path, after: Option<PathBuf>) -> Vec<PathBuf> {
        let mut walk = Walk::after(root, after, |inner| inner != Path::new("left-out"));
        std::iter::from_fn(|| walk.next(|what, why| panic!("{what}: {why}"))).collect()
    }

    #[test]
    fn a_walk_goes_on_where_another_ended() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = OsStr::from_bytes(b"caf\xe9 %41");
        for inner in ["a/b/c", "a/d", "left-out/x", "z"].map(Path::new).into_iter().chain([Path::new(bytes)])
        {
            fs::create_dir_all(folder.path().join(inner)).unwrap();
        }
        std::os::unix::fs::symlink("/", folder.path().join("a/link")).unwrap();
        fs::write(folder.path().join("a/file"), "").unwrap();
        let whole = all(folder.path(), None);
        let expected: Vec<PathBuf> = ["", "a", "a/b", "a/b/c", "a/d"]
            .map(PathBuf::from)
            .into_iter()
            .chain([bytes.into(), "z".into()])
            .collect();
        assert_eq!(whole, expected);
        for (at, inner) in whole.iter().enumerate() {
            let text = encode(inner);
            assert!(text.is_ascii() && decode(&text) == *inner);
            assert_eq!(all(folder.path(), Some(decode(&text))), whole[at + 1..], "{text}");
        }
    }

    #[test]
    fn a_text_never_leads_out_of_the_folder() {
        for text in ["../../etc", "/etc", "a/../../etc", "%2e%2e/etc", "./etc"] {
            let path = decode(text);
            assert!(
                path.is_relative() && path.ends_with("etc") && !path.display().to_string().contains("..")
            );
        }
    }
}
