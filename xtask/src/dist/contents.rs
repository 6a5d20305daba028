//! What is installed: the program, its pages, completions, the licence, an example inventory.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::release::{Release, Tree};
use crate::node::Machine;
use crate::shell::{output, workspace};

/// Files of the checkout that go to `/usr/share/doc/linerate`.
const DOCUMENTS: [&str; 5] =
    ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "docs/examples/cluster.toml"];

/// Shells, and where each looks for completions of programs that are installed.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/linerate"),
    ("zsh", "usr/share/zsh/vendor-completions/_linerate"),
    ("fish", "usr/share/fish/vendor_completions.d/linerate.fish"),
];

/// What the program prints about itself, by path in the tree.
pub(super) struct Pages(Vec<(String, String)>);

impl Pages {
    /// Asks the program, which must run here.
    pub(super) fn of(program: &Path) -> Result<Self> {
        let program = program.to_str().context("the path of the program is no text")?;
        let mut pages = vec![("usr/share/man/man1/linerate.1".to_owned(), output(program, &["man"])?)];
        for (shell, path) in SHELLS {
            pages.push((path.to_owned(), output(program, &["completions", shell])?));
        }
        Ok(Self(pages))
    }
}

/// Makes the tree of one machine.
pub(super) fn lay_out(
    release: &Release,
    machine: &'static Machine,
    program: &Path,
    pages: &Pages,
) -> Result<Tree> {
    let root = release.file(&format!("tree-{}", machine.name));
    put(&root, "usr/bin/linerate", &fs::read(program)?, 0o755)?;
    for (path, text) in &pages.0 {
        put(&root, path, text.as_bytes(), 0o644)?;
    }
    for document in DOCUMENTS {
        let name = document.rsplit('/').next().unwrap_or(document);
        let bytes = fs::read(workspace().join(document)).with_context(|| document.to_owned())?;
        put(&root, &format!("usr/share/doc/linerate/{name}"), &bytes, 0o644)?;
    }
    Ok(Tree { machine, root })
}

/// Writes one file with its mode, whatever the umask is.
fn put(root: &Path, path: &str, bytes: &[u8], mode: u32) -> Result<()> {
    let to = root.join(path);
    let mut folder = root.to_owned();
    fs::create_dir_all(&folder)?;
    for part in Path::new(path).parent().into_iter().flatten() {
        folder.push(part);
        if !folder.is_dir() {
            fs::create_dir(&folder)?;
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o755))?;
        }
    }
    fs::write(&to, bytes)?;
    fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
    Ok(())
}
