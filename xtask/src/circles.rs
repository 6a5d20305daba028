//! Files of one crate that use each other in a circle, and modules that use one they must not use.
//!
//! A file uses another when its code names an item that the other defines, whatever `pub use` lies between.
//! That a `mod.rs` declares its children and hands on their items is no use. Not seen: methods called on a
//! value whose type the file never names, and what only tests use.

mod components;
mod modules;
mod paths;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};

use components::{Graph, components, shortest};
use modules::Tree;
use paths::{Reference, references};

/// Crate, module, and the module that it never uses; an empty name stands for every module.
const LAYERS: [(&str, &str, &str); 3] =
    [("diagnose", "locate", "attribute"), ("operator", "observe", "trial"), ("model", "", "knowledge")];

/// Lines for `tidy`: circles, breaches of layers, and rules about modules that are gone.
pub(crate) fn breaches() -> Result<Vec<String>> {
    let mut lines = Vec::new();
    let packages = packages()?;
    for package in &packages {
        lines.extend(Found::read(package)?.breaches(&LAYERS));
    }
    let is_gone = |name: &&str| !packages.iter().any(|p| p.ends_with(name));
    let gone = LAYERS.iter().map(|(name, ..)| *name).filter(is_gone);
    lines.extend(gone.map(|name| format!("xtask/src/circles.rs: there is no crate {name}")));
    Ok(lines)
}

/// Prints all circles and breaches of one crate or of all.
pub(crate) fn print(only: Option<&str>) -> Result<()> {
    let mut packages = packages()?;
    packages.retain(|p| only.is_none_or(|name| p.ends_with(name)));
    ensure!(!packages.is_empty(), "no crate {}", only.unwrap_or_default());
    let mut lines = Vec::new();
    let (mut circles, mut files, mut layers) = (0, 0, 0);
    for package in &packages {
        let found = Found::read(package)?;
        lines.push(found.summary());
        lines.extend(found.circles(true));
        lines.extend(found.layer_lines());
        circles += found.components.len();
        files += found.files();
        layers += found.layers.len();
    }
    lines.push(format!("all: {circles} circles, {files} files in them, {layers} breaches of layers\n"));
    Ok(io::stdout().write_all(lines.join("\n").as_bytes())?)
}

/// The folders of all crates, from the root of the checkout.
fn packages() -> Result<Vec<PathBuf>> {
    let mut found = vec![PathBuf::from("xtask")];
    for entry in fs::read_dir("crates")? {
        let path = entry?.path();
        if path.join("Cargo.toml").exists() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// What was found in one crate.
struct Found {
    name: String,
    tree: Tree,
    /// The places where a file uses another, by both files; the first place of each item.
    uses: BTreeMap<(usize, usize), Vec<Reference>>,
    components: Vec<BTreeSet<usize>>,
    graph: Graph,
    layers: Vec<Breach>,
}

/// One item that a layer must not know, named in one file.
struct Breach {
    rule: (&'static str, &'static str, &'static str),
    reference: Reference,
}

impl Found {
    /// What `tidy` refuses.
    fn breaches(&self, layers: &[(&'static str, &'static str, &'static str)]) -> Vec<String> {
        let mut lines = Vec::new();
        let mut refuse = |what: &str, found: Vec<String>| {
            if !found.is_empty() {
                lines.push(format!("{}: {what}\n{}", self.name, found.join("\n")));
            }
        };
        refuse("files use each other in a circle", self.circles(false));
        refuse("a module uses one above it", self.layer_lines());
        lines.extend(self.stale(layers));
        lines
    }

    fn read(package: &Path) -> Result<Self> {
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let tree = Tree::read(package)?;
        let all = references(&tree);
        let mut uses: BTreeMap<(usize, usize), Vec<Reference>> = BTreeMap::new();
        for reference in all.iter().filter(|r| !r.passed_on) {
            let files = (tree.modules[reference.from].file, tree.modules[reference.to].file);
            let places = uses.entry(files).or_default();
            if !places.iter().any(|p| p.to == reference.to && p.item == reference.item) {
                places.push(reference.clone());
            }
        }
        let mut graph = Graph::new();
        for (from, to) in uses.keys() {
            graph.entry(*from).or_default().insert(*to);
        }
        let components = components(&graph);
        let layers = breached(&name, &tree, &all, &LAYERS);
        Ok(Self { name, tree, uses, components, graph, layers })
    }

    fn files(&self) -> usize {
        self.components.iter().map(BTreeSet::len).sum()
    }

    fn summary(&self) -> String {
        format!(
            "{}: {} circles, {} of {} files in them, {} in the largest, {} breaches of layers",
            self.name,
            self.components.len(),
            self.files(),
            self.tree.sources.len(),
            self.components.first().map_or(0, BTreeSet::len),
            self.layers.len()
        )
    }

    /// Each circle with its files and a shortest way round; with `all`, also every use inside it.
    fn circles(&self, all: bool) -> Vec<String> {
        let mut lines = Vec::new();
        for component in &self.components {
            lines.push(format!("  {} files in a circle", component.len()));
            for file in component {
                lines.push(format!("    {}", self.file(*file)));
            }
            let circle = shortest(&self.graph, component);
            lines.push("    a shortest way round".to_string());
            for (i, from) in circle.iter().enumerate() {
                let place = self.uses.get(&(*from, circle[(i + 1) % circle.len()])).and_then(|p| p.first());
                lines.extend(place.map(|p| format!("      {}", self.use_line(p))));
            }
            if all {
                lines.push("    every use".to_string());
                for ((from, to), places) in &self.uses {
                    if component.contains(from) && component.contains(to) {
                        lines.extend(places.iter().map(|p| format!("      {}", self.use_line(p))));
                    }
                }
            }
        }
        lines
    }

    fn layer_lines(&self) -> Vec<String> {
        let line = |b: &Breach| {
            let (_, from, to) = b.rule;
            let module = self.tree.modules[b.reference.to].path.join("::");
            let (at, item) = (self.at(&b.reference), &b.reference.item);
            format!("  {from} never uses {to}: {at} takes crate::{module}::{item}")
        };
        self.layers.iter().map(line).collect()
    }

    /// Rules about modules that this crate no longer has: they would hold for nothing.
    fn stale(&self, rules: &[(&str, &str, &str)]) -> Vec<String> {
        let there = |name: &str| self.tree.modules.iter().any(|m| m.path.as_slice() == [name]);
        let mine = rules.iter().filter(|(name, from, _)| *name == self.name && !from.is_empty());
        mine.flat_map(|(_, from, to)| [*from, *to])
            .filter(|module| !there(module))
            .map(|module| {
                format!("{}: a rule in LAYERS of xtask/src/circles.rs names {module}, no module", self.name)
            })
            .collect()
    }

    fn use_line(&self, reference: &Reference) -> String {
        let to = self.file(self.tree.modules[reference.to].file);
        format!("{} -> {to} ({})", self.at(reference), reference.item)
    }

    fn at(&self, reference: &Reference) -> String {
        format!("{}:{}", self.file(self.tree.modules[reference.from].file), reference.line)
    }

    fn file(&self, file: usize) -> String {
        self.tree.sources[file].path.display().to_string()
    }
}

/// The first place of every item that a module takes from one that it must not know; a `pub use` counts too.
fn breached(
    name: &str,
    tree: &Tree,
    all: &[Reference],
    rules: &[(&'static str, &'static str, &'static str)],
) -> Vec<Breach> {
    let lies_in = |module: usize, top: &str| {
        top.is_empty() || tree.modules[module].path.first().is_some_and(|m| m == top)
    };
    let mut found = Vec::new();
    for rule in rules.iter().filter(|(of, ..)| *of == name) {
        let mut known = BTreeSet::new();
        for reference in all.iter().filter(|r| lies_in(r.from, rule.1) && lies_in(r.to, rule.2)) {
            if known.insert((tree.modules[reference.from].file, reference.to, &reference.item)) {
                found.push(Breach { rule: *rule, reference: reference.clone() });
            }
        }
    }
    found
}
