//! Every place in the code of a crate that names an item of another file of it.

use std::collections::{HashMap, HashSet};

use proc_macro2::{Spacing, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItem, Item, Meta, Pat, Signature, Stmt, TraitItem};

use super::modules::{Target, Tree, attributes, defined, leaves, only_in_tests, passes_on, plain};

/// One place where one file names an item of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Reference {
    /// The module that names it.
    pub(super) from: usize,
    pub(super) line: usize,
    /// The module that defines it.
    pub(super) to: usize,
    pub(super) item: String,
    /// Only a `pub use`: the file hands the item on and does nothing with it.
    pub(super) passed_on: bool,
}

/// All references of the crate, in the order of its files.
pub(super) fn references(tree: &Tree) -> Vec<Reference> {
    let mut found = Vec::new();
    for (source, syntax) in tree.sources.iter().zip(&tree.syntax) {
        let mut reader = Reader { tree, module: source.module, scopes: Vec::new(), found: Vec::new() };
        reader.visit_file(syntax);
        found.append(&mut reader.found);
    }
    found
}

struct Reader<'t> {
    tree: &'t Tree,
    module: usize,
    scopes: Vec<Scope>,
    found: Vec<Reference>,
}

/// Names that hide those of the module.
#[derive(Default)]
struct Scope {
    /// Variables and items of a function.
    own: HashSet<String>,
    /// What a `use` inside of a function brings in.
    imported: HashMap<String, Vec<String>>,
}

impl Reader<'_> {
    fn path(&mut self, path: &[String], line: usize) {
        let Some(first) = path.first().filter(|f| *f != "Self") else { return };
        for scope in self.scopes.iter().rev() {
            if let Some(import) = scope.imported.get(first) {
                let whole: Vec<String> = import.iter().chain(&path[1..]).cloned().collect();
                self.note(&whole, line, false);
                return;
            }
            if scope.own.contains(first) && (path.len() == 1 || is_type(first)) {
                return;
            }
        }
        self.note(path, line, false);
    }

    fn note(&mut self, path: &[String], line: usize, passed_on: bool) {
        let here = self.tree.modules[self.module].file;
        for target in self.tree.resolve(self.module, path) {
            if let Target::Item { module: to, name: item } = target
                && self.tree.modules[to].file != here
            {
                self.found.push(Reference { from: self.module, line, to, item, passed_on });
            }
        }
    }

    /// What a macro gets is no syntax yet: every row of names that could be a path is taken for one.
    fn tokens(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(first) => {
                    let mut path = vec![plain(first)];
                    let begin = at;
                    while let [TokenTree::Punct(one), TokenTree::Punct(two), TokenTree::Ident(next), ..] =
                        &tokens[at + 1..]
                        && one.as_char() == ':'
                        && two.as_char() == ':'
                    {
                        path.push(plain(next));
                        at += 3;
                    }
                    if begins_path(&tokens[..begin]) && (path.len() > 1 || !is_label(tokens.get(at + 1))) {
                        self.path(&path, first.span().start().line);
                    }
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    /// Functions that serde's attributes name in quotes.
    fn quoted(&mut self, stream: TokenStream) {
        for token in stream {
            match token {
                TokenTree::Literal(literal) => {
                    let text = literal.to_string();
                    let path: Vec<String> = text.trim_matches('"').split("::").map(String::from).collect();
                    let is_path = path.iter().all(|p| syn::parse_str::<syn::Ident>(p).is_ok() || is_root(p));
                    if path.len() > 1 && is_path {
                        self.path(&path, literal.span().start().line);
                    }
                }
                TokenTree::Group(group) => self.quoted(group.stream()),
                TokenTree::Ident(_) | TokenTree::Punct(_) => {}
            }
        }
    }

    fn function(&mut self, signature: &Signature, block: Option<&Block>) {
        let mut variables = Variables::default();
        variables.visit_signature(signature);
        if let Some(block) = block {
            variables.visit_block(block);
        }
        self.scopes.push(Scope { own: variables.0, ..Scope::default() });
        self.visit_signature(signature);
        if let Some(block) = block {
            self.visit_block(block);
        }
        self.scopes.pop();
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !only_in_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        let Some(child) = self.tree.child(self.module, &plain(&item.ident)) else { return };
        if item.content.is_some() {
            let outside = std::mem::replace(&mut self.module, child);
            visit::visit_item_mod(self, item);
            self.module = outside;
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for leaf in leaves(item) {
            self.note(&leaf.path, leaf.line, passes_on(item));
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        item.attrs.iter().for_each(|a| self.visit_attribute(a));
        self.function(&item.sig, Some(&item.block));
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Const(i) => &i.attrs,
            ImplItem::Fn(i) => &i.attrs,
            ImplItem::Type(i) => &i.attrs,
            _ => &[],
        };
        if !only_in_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        item.attrs.iter().for_each(|a| self.visit_attribute(a));
        self.function(&item.sig, Some(&item.block));
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        match item {
            TraitItem::Fn(f) if only_in_tests(&f.attrs) => {}
            TraitItem::Fn(f) => self.function(&f.sig, f.default.as_ref()),
            other => visit::visit_trait_item(self, other),
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !only_in_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !only_in_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_block(&mut self, block: &'ast Block) {
        let mut scope = Scope::default();
        for statement in &block.stmts {
            match statement {
                Stmt::Item(Item::Use(import)) => {
                    let named = leaves(import).into_iter().filter_map(|l| l.name.map(|n| (n, l.path)));
                    scope.imported.extend(named);
                }
                Stmt::Item(item) => scope.own.extend(defined(item).map(plain)),
                _ => {}
            }
        }
        self.scopes.push(scope);
        visit::visit_block(self, block);
        self.scopes.pop();
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none()
            && let Some(first) = path.segments.first()
        {
            let names: Vec<String> = path.segments.iter().map(|s| plain(&s.ident)).collect();
            self.path(&names, first.ident.span().start().line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            if list.path.is_ident("serde") {
                self.quoted(list.tokens.clone());
            } else if !list.path.is_ident("doc") {
                self.tokens(list.tokens.clone());
            }
        }
    }
}

/// The variables of a function: patterns with small letters.
#[derive(Default)]
struct Variables(HashSet<String>);

impl<'ast> Visit<'ast> for Variables {
    fn visit_pat(&mut self, pattern: &'ast Pat) {
        if let Pat::Ident(variable) = pattern
            && variable.ident.to_string().starts_with(|c: char| c.is_lowercase() || c == '_')
        {
            self.0.insert(plain(&variable.ident));
        }
        visit::visit_pat(self, pattern);
    }
}

fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}

fn is_root(name: &str) -> bool {
    ["crate", "super", "self"].contains(&name)
}

/// Whether a name behind these tokens begins a path: it is no field, method or lifetime and no end of
/// `<T>::name`.
fn begins_path(before: &[TokenTree]) -> bool {
    let sign = |back: usize| match before.len().checked_sub(back).map(|i| &before[i]) {
        Some(TokenTree::Punct(p)) => p.as_char(),
        _ => ' ',
    };
    match (sign(2), sign(1)) {
        ('.', '.') => true,
        (_, '.' | '\'') | (':', ':') => false,
        _ => true,
    }
}

/// Whether the name before this token only labels a value: `name: value`, `name = value`.
fn is_label(behind: Option<&TokenTree>) -> bool {
    match behind {
        Some(TokenTree::Punct(p)) => [':', '='].contains(&p.as_char()) && p.spacing() == Spacing::Alone,
        _ => false,
    }
}
