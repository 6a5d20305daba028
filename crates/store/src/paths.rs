//! Where the store lies, and its paths as others write them: no file is read or made here.

use std::path::{Path, PathBuf};

use linerate_model::shell;

/// Name of the database in its folder.
pub(super) const FILE: &str = "linerate.sqlite";

/// Folder of the operator's data: `LINERATE_DATA`, `XDG_DATA_HOME/linerate`, `~/.local/share/linerate`.
pub(super) fn data_dir() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    variable("LINERATE_DATA")
        .or_else(|| absolute("XDG_DATA_HOME").map(|d| d.join("linerate")))
        .or_else(|| absolute("HOME").map(|d| d.join(".local/share/linerate")))
}

/// The operator's configuration: `XDG_CONFIG_HOME/linerate/config.toml`, `~/.config/linerate/config.toml`.
pub(super) fn config_file() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    folder.map(|folder| folder.join("linerate/config.toml"))
}

/// Whether this process may write there: asked of the kernel, because mounts and capabilities count too.
pub(super) fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// A command that shows the runs of a database in a copy of its folder, which can be written.
pub(super) fn copy(path: &Path) -> String {
    let folder = shell::path(path.parent().unwrap_or(path));
    format!("D=$(mktemp -d) && cp -r {folder}/. $D && LINERATE_DATA=$D linerate runs")
}

/// A path with something more at its end.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
