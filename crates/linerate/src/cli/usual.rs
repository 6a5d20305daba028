//! Where an inventory is found that no command names, and how one is named that is not found there.

use std::path::{Path, PathBuf};

/// The inventory where none is given.
pub(super) fn usual() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    // What was named has to be there; the usual files need not.
    variable("LINERATE_INVENTORY").or_else(|| {
        let config = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|h| h.join(".config")));
        let own = config.map(|folder| folder.join("linerate/cluster.toml"));
        [Some(PathBuf::from("./cluster.toml")), own].into_iter().flatten().find(|path| path.is_file())
    })
}

/// An inventory as a command in this folder has to name it; `None` where it is found unnamed, or is no file
/// any more.
pub(super) fn to_type(file: &Path) -> Option<PathBuf> {
    let usual = usual();
    let here = std::env::current_dir().ok();
    typed(file, usual.as_deref(), here.as_deref())
}

fn typed(file: &Path, usual: Option<&Path>, here: Option<&Path>) -> Option<PathBuf> {
    // A pipe cannot be read twice.
    if !file.is_file() || usual.is_some_and(|usual| is_same(usual, file)) {
        return None;
    }
    let whole = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let below = here.and_then(|here| whole.strip_prefix(here).ok()).map(Path::to_owned);
    Some(below.unwrap_or(whole))
}

/// Whether two names are of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_inventory_is_named_where_it_is_not_found_unnamed() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().canonicalize().unwrap();
        let file = |name: &str| {
            let path = here.join(name);
            std::fs::write(&path, "").unwrap();
            path
        };
        let (lab, usual) = (file("lab.toml"), file("cluster.toml"));
        let of = |file: &Path, here: &Path| typed(file, Some(&usual), Some(here));
        assert_eq!(of(&lab, &here), Some("lab.toml".into()));
        assert_eq!(of(&lab, Path::new("/usr")), Some(lab.clone()));
        assert_eq!(of(&usual, &here), None);
        assert_eq!(of(&here.join("./cluster.toml"), &here), None);
        assert_eq!(of(&here.join("gone.toml"), &here), None);
        assert_eq!(typed(&usual, None, Some(&here)), Some("cluster.toml".into()));
    }
}
