//! The module tree of one crate: the file each module lies in, and the item that a path of names leads to.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use syn::punctuated::Punctuated;
use syn::{
    Attribute, Expr, ForeignItem, Ident, Item, ItemMod, ItemUse, Lit, Meta, Token, UseTree, Visibility,
};

/// All programs and the library of one package, without what is compiled for tests only.
#[derive(Default)]
pub(super) struct Tree {
    pub(super) sources: Vec<Source>,
    /// In the order of `sources`.
    pub(super) syntax: Vec<syn::File>,
    pub(super) modules: Vec<Module>,
    imports: Vec<Import>,
}

/// A file that is part of the crate.
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// The module that the file is.
    pub(super) module: usize,
    /// Where the files of its child modules lie.
    folder: PathBuf,
}

/// A module, also one in braces.
pub(super) struct Module {
    /// Its names from the root on; empty at the root.
    pub(super) path: Vec<String>,
    /// The source that it is written in.
    pub(super) file: usize,
    parent: Option<usize>,
    names: HashMap<String, Vec<Name>>,
    globs: Vec<usize>,
}

enum Name {
    Module(usize),
    Item,
    Import(usize),
}

struct Import {
    module: usize,
    path: Vec<String>,
}

/// Where a path ends.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Target {
    Module(usize),
    Item {
        module: usize,
        name: String,
    },
    /// In another crate.
    Outside,
}

/// One name that a `use` brings in.
pub(super) struct Leaf {
    /// As written, without the new name behind `as`.
    pub(super) path: Vec<String>,
    /// The name in this module: none behind `as _` and for a glob.
    pub(super) name: Option<String>,
    pub(super) glob: bool,
    pub(super) line: usize,
}

impl Tree {
    /// Reads the library and the programs of the package in this folder.
    pub(super) fn read(package: &Path) -> Result<Self> {
        let mut tree = Self::default();
        for root in roots(package)? {
            let folder = root.parent().unwrap_or(package).to_path_buf();
            tree.add_file(root, folder, Vec::new(), None);
        }
        ensure!(!tree.sources.is_empty(), "{} has neither src/lib.rs nor src/main.rs", package.display());
        while let Some(source) = tree.sources.get(tree.syntax.len()) {
            let (path, module, folder) = (source.path.clone(), source.module, source.folder.clone());
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let mut syntax =
                syn::parse_file(&text).with_context(|| format!("cannot parse {}", path.display()))?;
            if only_in_tests(&syntax.attrs) {
                syntax.items.clear();
            }
            tree.declare(&syntax.items, module, &folder, path.parent().unwrap_or(package));
            tree.syntax.push(syntax);
        }
        Ok(tree)
    }

    /// Where this path leads from this module.
    pub(super) fn resolve(&self, from: usize, path: &[String]) -> Vec<Target> {
        self.walk(from, path, &mut Vec::new())
    }

    /// The child module of this name.
    pub(super) fn child(&self, module: usize, name: &str) -> Option<usize> {
        self.modules[module].names.get(name)?.iter().find_map(|n| match n {
            Name::Module(child) => Some(*child),
            Name::Item | Name::Import(_) => None,
        })
    }

    fn add_file(&mut self, path: PathBuf, folder: PathBuf, names: Vec<String>, parent: Option<usize>) {
        let module = self.add_module(self.sources.len(), names, parent);
        self.sources.push(Source { path, module, folder });
    }

    fn add_module(&mut self, file: usize, path: Vec<String>, parent: Option<usize>) -> usize {
        let module = self.modules.len();
        if let (Some(parent), Some(name)) = (parent, path.last()) {
            self.bind(parent, name, Name::Module(module));
        }
        self.modules.push(Module { path, file, parent, names: HashMap::new(), globs: Vec::new() });
        module
    }

    fn bind(&mut self, module: usize, name: &str, to: Name) {
        self.modules[module].names.entry(name.to_string()).or_default().push(to);
    }

    /// Enters what these items define and import; `folder` is where files of child modules lie, `beside` what
    /// `#[path]` starts from.
    fn declare(&mut self, items: &[Item], module: usize, folder: &Path, beside: &Path) {
        for item in items.iter().filter(|i| !only_in_tests(attributes(i))) {
            match item {
                Item::Mod(child) => self.declare_module(child, module, folder, beside),
                Item::Use(import) => self.declare_use(import, module),
                Item::ForeignMod(foreign) => {
                    for name in foreign.items.iter().filter_map(foreign_name) {
                        self.bind(module, &plain(name), Name::Item);
                    }
                }
                other => {
                    if let Some(name) = defined(other) {
                        self.bind(module, &plain(name), Name::Item);
                    }
                }
            }
        }
    }

    fn declare_module(&mut self, child: &ItemMod, parent: usize, folder: &Path, beside: &Path) {
        let name = plain(&child.ident);
        let mut path = self.modules[parent].path.clone();
        path.push(name.clone());
        if let Some((_, items)) = &child.content {
            let module = self.add_module(self.modules[parent].file, path, Some(parent));
            let inside = folder.join(name);
            self.declare(items, module, &inside, &inside);
        } else if let Some(given) = path_attribute(&child.attrs) {
            let file = beside.join(given);
            let inside = file.parent().unwrap_or(beside).to_path_buf();
            self.add_file(file, inside, path, Some(parent));
        } else {
            let inside = folder.join(&name);
            let flat = folder.join(format!("{name}.rs"));
            let file = if flat.exists() { flat } else { inside.join("mod.rs") };
            self.add_file(file, inside, path, Some(parent));
        }
    }

    fn declare_use(&mut self, import: &ItemUse, module: usize) {
        for leaf in leaves(import) {
            let number = self.imports.len();
            self.imports.push(Import { module, path: leaf.path });
            if leaf.glob {
                self.modules[module].globs.push(number);
            } else if let Some(name) = leaf.name {
                self.bind(module, &name, Name::Import(number));
            }
        }
    }

    /// `open` are the imports that are being followed: one that leads back to itself says nothing.
    fn walk(&self, from: usize, path: &[String], open: &mut Vec<usize>) -> Vec<Target> {
        let (start, rest) = self.start(from, path);
        let rooted = rest.len() < path.len();
        let mut at = vec![Target::Module(start)];
        for (i, name) in rest.iter().enumerate() {
            let inside = at.iter().find_map(|t| match t {
                Target::Module(m) => Some(*m),
                Target::Item { .. } | Target::Outside => None,
            });
            // What follows an item is its variant, its constant or its function.
            let Some(module) = inside else { return at };
            at = self.lookup(module, name, open);
            if at.is_empty() {
                // Not written there, so a macro made it.
                let made = Target::Item { module, name: name.clone() };
                return vec![if rooted || i > 0 { made } else { Target::Outside }];
            }
        }
        at
    }

    fn start<'p>(&self, from: usize, path: &'p [String]) -> (usize, &'p [String]) {
        let mut module = from;
        let mut rest = path;
        while let Some((first, behind)) = rest.split_first() {
            module = match first.as_str() {
                "self" => module,
                "super" => self.modules[module].parent.unwrap_or(module),
                "crate" => self.root(module),
                _ => break,
            };
            rest = behind;
        }
        (module, rest)
    }

    fn root(&self, mut module: usize) -> usize {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }

    fn lookup(&self, module: usize, name: &str, open: &mut Vec<usize>) -> Vec<Target> {
        let mut found = Vec::new();
        for bound in self.modules[module].names.get(name).into_iter().flatten() {
            match bound {
                Name::Module(child) => found.push(Target::Module(*child)),
                Name::Item => found.push(Target::Item { module, name: name.to_string() }),
                Name::Import(import) => found.extend(self.follow(*import, open)),
            }
        }
        if found.is_empty() {
            for glob in &self.modules[module].globs {
                for target in self.follow(*glob, open) {
                    if let Target::Module(other) = target {
                        open.push(*glob);
                        found.extend(self.lookup(other, name, open));
                        open.pop();
                    }
                }
            }
        }
        found.sort();
        found.dedup();
        found
    }

    fn follow(&self, import: usize, open: &mut Vec<usize>) -> Vec<Target> {
        if open.contains(&import) {
            return Vec::new();
        }
        open.push(import);
        let found = self.walk(self.imports[import].module, &self.imports[import].path, open);
        open.pop();
        found
    }
}

/// The file of the library and those of the programs.
fn roots(package: &Path) -> Result<Vec<PathBuf>> {
    let source = package.join("src");
    let mut roots = vec![source.join("lib.rs"), source.join("main.rs")];
    let programs = source.join("bin");
    if programs.is_dir() {
        for entry in fs::read_dir(&programs)? {
            let path = entry?.path();
            roots.push(if path.is_dir() { path.join("main.rs") } else { path });
        }
    }
    roots.retain(|r| r.extension().is_some_and(|e| e == "rs") && r.exists());
    roots.sort();
    Ok(roots)
}

/// Whether what carries these attributes is compiled for tests only.
pub(super) fn only_in_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|a| match &a.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => a.parse_args::<Meta>().is_ok_and(|m| needs_test(&m)),
        Meta::List(_) | Meta::NameValue(_) => false,
    })
}

fn needs_test(condition: &Meta) -> bool {
    let Meta::List(list) = condition else { return condition.path().is_ident("test") };
    let Ok(parts) = list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated) else {
        return false;
    };
    if list.path.is_ident("all") {
        parts.iter().any(needs_test)
    } else {
        list.path.is_ident("any") && !parts.is_empty() && parts.iter().all(needs_test)
    }
}

fn path_attribute(attributes: &[Attribute]) -> Option<String> {
    attributes.iter().find_map(|a| match &a.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(value) => match &value.lit {
                Lit::Str(text) => Some(text.value()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

/// The attributes of any item.
pub(super) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(i) => &i.attrs,
        Item::Enum(i) => &i.attrs,
        Item::ExternCrate(i) => &i.attrs,
        Item::Fn(i) => &i.attrs,
        Item::ForeignMod(i) => &i.attrs,
        Item::Impl(i) => &i.attrs,
        Item::Macro(i) => &i.attrs,
        Item::Mod(i) => &i.attrs,
        Item::Static(i) => &i.attrs,
        Item::Struct(i) => &i.attrs,
        Item::Trait(i) => &i.attrs,
        Item::TraitAlias(i) => &i.attrs,
        Item::Type(i) => &i.attrs,
        Item::Union(i) => &i.attrs,
        Item::Use(i) => &i.attrs,
        _ => &[],
    }
}

/// The name that an item defines; none for modules, imports and `impl`.
pub(super) fn defined(item: &Item) -> Option<&Ident> {
    Some(match item {
        Item::Const(i) => &i.ident,
        Item::Enum(i) => &i.ident,
        Item::Fn(i) => &i.sig.ident,
        Item::Macro(i) => i.ident.as_ref()?,
        Item::Static(i) => &i.ident,
        Item::Struct(i) => &i.ident,
        Item::Trait(i) => &i.ident,
        Item::TraitAlias(i) => &i.ident,
        Item::Type(i) => &i.ident,
        Item::Union(i) => &i.ident,
        _ => return None,
    })
}

fn foreign_name(item: &ForeignItem) -> Option<&Ident> {
    match item {
        ForeignItem::Fn(i) => Some(&i.sig.ident),
        ForeignItem::Static(i) => Some(&i.ident),
        ForeignItem::Type(i) => Some(&i.ident),
        _ => None,
    }
}

/// The names that a `use` brings in; none when it starts with `::`, which is always another crate.
pub(super) fn leaves(import: &ItemUse) -> Vec<Leaf> {
    let mut found = Vec::new();
    if import.leading_colon.is_none() {
        collect(&import.tree, &mut Vec::new(), &mut found);
    }
    found
}

fn collect(tree: &UseTree, path: &mut Vec<String>, found: &mut Vec<Leaf>) {
    match tree {
        UseTree::Path(step) => {
            path.push(plain(&step.ident));
            collect(&step.tree, path, found);
            path.pop();
        }
        UseTree::Name(end) => found.push(leaf(path, &end.ident, None)),
        UseTree::Rename(end) => found.push(leaf(path, &end.ident, Some(&end.rename))),
        UseTree::Glob(star) => {
            let line = star.star_token.spans[0].start().line;
            found.push(Leaf { path: path.clone(), name: None, glob: true, line });
        }
        UseTree::Group(group) => group.items.iter().for_each(|t| collect(t, path, found)),
    }
}

/// `self` behind a path is the path itself.
fn leaf(before: &[String], end: &Ident, rename: Option<&Ident>) -> Leaf {
    let mut path = before.to_vec();
    if before.is_empty() || end != "self" {
        path.push(plain(end));
    }
    let name = rename.map_or_else(|| path.last().cloned(), |r| Some(plain(r)));
    Leaf { path, name: name.filter(|n| n != "_"), glob: false, line: end.span().start().line }
}

/// Whether an import is only there to be found from elsewhere: `pub use`, in any width.
pub(super) fn passes_on(import: &ItemUse) -> bool {
    match &import.vis {
        Visibility::Public(_) => true,
        Visibility::Restricted(to) => !to.path.is_ident("self"),
        Visibility::Inherited => false,
    }
}

/// A name without the `r#` of raw ones.
pub(super) fn plain(name: &Ident) -> String {
    let text = name.to_string();
    text.strip_prefix("r#").map_or(text.clone(), String::from)
}
