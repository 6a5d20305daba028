//! What is installed: the program, its man pages, completions, the licence, an example inventory and a
//! recorded case.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::package::{PACKAGES, Package};
use super::release::{Release, Tree};
use crate::node::Machine;
use crate::shell::{output, workspace};

/// Shells, and where each looks for completions of programs that are installed.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/linerate"),
    ("zsh", "usr/share/zsh/vendor-completions/_linerate"),
    ("fish", "usr/share/fish/vendor_completions.d/linerate.fish"),
];

/// What a program prints about itself, by path in the tree.
#[derive(Default)]
pub(super) struct Pages(Vec<(String, String)>);

impl Pages {
    /// Asks the program, which must run here; the lab has its help alone.
    pub(super) fn of(release: &Release, package: &Package, program: &Path) -> Result<Self> {
        if package.name != PACKAGES[0].name {
            return Ok(Self::default());
        }
        let program = program.to_str().context("the path of the program is no text")?;
        let folder = release.file("man1");
        fs::create_dir_all(&folder)?;
        output(program, &["man", "--all", &folder.display().to_string()])?;
        let mut pages = Vec::new();
        for page in fs::read_dir(&folder)? {
            let page = page?;
            let name = page.file_name().to_string_lossy().into_owned();
            pages.push((format!("usr/share/man/man1/{name}"), fs::read_to_string(page.path())?));
        }
        for (shell, path) in SHELLS {
            pages.push((path.to_owned(), output(program, &["completions", shell])?));
        }
        Ok(Self(pages))
    }
}

/// Makes the tree of a package for one machine.
pub(super) fn lay_out(
    release: &Release,
    package: &'static Package,
    machine: &'static Machine,
    program: &Path,
    pages: &Pages,
) -> Result<Tree> {
    let root = release.file(&format!("tree-{}-{}", package.name, machine.name));
    put(&root, &format!("usr/bin/{}", package.name), &fs::read(program)?, 0o755)?;
    for (path, text) in &pages.0 {
        put(&root, path, text.as_bytes(), 0o644)?;
    }
    for document in package.documents {
        let name = document.strip_prefix("docs/examples/").unwrap_or(document);
        let bytes = fs::read(workspace().join(document)).with_context(|| (*document).to_owned())?;
        put(&root, &format!("usr/share/doc/{}/{name}", package.name), &bytes, 0o644)?;
    }
    Ok(Tree { package, machine, root })
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
