//! Links between files.

use std::path::{Component, Path, PathBuf};

/// The path that `link` means when it stands in `page`, without `.` and `..`.
pub(super) fn resolve(page: &Path, link: &str) -> PathBuf {
    let mut path = page.parent().map(Path::to_path_buf).unwrap_or_default();
    for part in Path::new(link).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}
