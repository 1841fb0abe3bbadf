//! Reads what a crate ships, by parsing: follows `mod` from the root, leaves out what stands under `#[cfg(test)]`, and
//! collects every path that leads out of a top-level module, in `use` trees, code, attributes and macros.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, Meta, UseTree};

/// The files of a crate by their path below `src/`.
pub(crate) type Files = BTreeMap<String, String>;

/// The source that a crate ships.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The top-level modules.
    pub(crate) modules: BTreeSet<String>,
    /// The paths that they name.
    pub(crate) references: Vec<Reference>,
    /// All files that a `mod` leads to, those of tests too.
    reached: BTreeSet<String>,
    /// Every module, by its path from the root.
    inner: BTreeSet<Vec<String>>,
    /// The names that modules bring in, by the module's path and the name, with what they stand for.
    names: BTreeMap<(Vec<String>, String), Vec<String>>,
}

/// A path that was found. It begins with `crate`, or with the name of another crate or of anything else in scope.
#[derive(Debug)]
pub(crate) struct Reference {
    /// The top-level module; empty for the root.
    pub(crate) from: String,
    /// The module, by its path from the root.
    pub(crate) module: Vec<String>,
    /// The file below `src/`.
    pub(crate) file: String,
    /// The segments.
    pub(crate) path: Vec<String>,
}

impl Source {
    /// Reads the crate `name` from its `roots` (`lib.rs`, `main.rs`) on.
    pub(crate) fn read(name: &str, roots: &[&str], files: &Files) -> Self {
        let mut source = Self::default();
        for root in roots {
            source.file(name, files, root, "", &[], true);
        }
        source
    }

    /// The files that no `mod` leads to.
    pub(crate) fn unreached<'a>(&self, files: &'a Files) -> Vec<&'a String> {
        files.keys().filter(|file| !self.reached.contains(*file)).collect()
    }

    /// The top-level module that a reference leads to, if it is one of this crate, also by a name that the root brings in.
    pub(crate) fn module<'a>(&'a self, reference: &'a Reference) -> Option<&'a str> {
        let mut path = &reference.path;
        // A name of the root may stand for another one.
        for _ in 0..4 {
            let at = usize::from(path.first().is_some_and(|first| first == "crate"));
            let first = path.get(at)?;
            let local = at == 1 || reference.from.is_empty() || path != &reference.path;
            if !local {
                return None;
            }
            if self.modules.contains(first) {
                return Some(first);
            }
            path = self.names.get(&(Vec::new(), first.clone()))?;
        }
        None
    }

    /// Which top-level modules use which others, with a file that does.
    pub(crate) fn edges(&self) -> BTreeMap<(&str, &str), &str> {
        let from_modules = self.references.iter().filter(|reference| !reference.from.is_empty());
        from_modules
            .filter_map(|reference| Some(((&*reference.from, self.module(reference)?), &*reference.file)))
            .filter(|((from, to), _)| from != to)
            .collect()
    }

    /// The module that holds what a path leads to, also by names that modules on the way bring in. `None`: it is of another crate, or of
    /// the file itself.
    fn holder(&self, path: &[String]) -> Option<Vec<String>> {
        let mut path = path.to_vec();
        // A name may stand for another one.
        for _ in 0..8 {
            let (_, rest) = path.split_first().filter(|(first, _)| *first == "crate")?;
            let depth =
                (0..=rest.len()).rev().find(|depth| self.inner.contains(&rest[..*depth])).unwrap_or(0);
            let (at, rest) = rest.split_at(depth);
            let at = at.to_vec();
            let Some((name, rest)) = rest.split_first() else { return Some(at) };
            let Some(named) = self.names.get(&(at.clone(), name.clone())) else { return Some(at) };
            let below = match named.first() {
                Some(first) if first == "crate" => Vec::new(),
                // By the name of a child alone.
                Some(first) if self.inner.contains(&child(&at, first)) => {
                    [vec!["crate".to_owned()], at].concat()
                }
                _ => return Some(at),
            };
            path = [&below, named, rest].concat();
        }
        None
    }

    /// For each module with files of its own, which of them use which others, with a file that does. What they use of the module
    /// itself does not count.
    pub(crate) fn inner_edges(&self) -> BTreeMap<String, BTreeMap<(String, String), String>> {
        let mut edges: BTreeMap<String, BTreeMap<(String, String), String>> = BTreeMap::new();
        for reference in &self.references {
            let Some(to) = self.holder(&reference.path) else { continue };
            let common = reference.module.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(from), Some(to)) = (reference.module.get(common), to.get(common)) {
                let of = edges.entry(reference.module[..common].join("::")).or_default();
                of.insert((from.clone(), to.clone()), reference.file.clone());
            }
        }
        edges
    }

    fn file(&mut self, name: &str, files: &Files, file: &str, folder: &str, module: &[String], ships: bool) {
        let Some(text) = files.get(file) else {
            panic!("{name}: a `mod` leads to {file}, which is not there")
        };
        self.reached.insert(file.to_owned());
        let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{name}: {file}: {error}"));
        let ships = ships && !only_tests(&parsed.attrs);
        if ships {
            let mut walk = Walk { source: self, krate: name, file, module: module.to_vec() };
            walk.visit_file(&parsed);
        }
        self.children(name, files, &parsed.items, folder, module, ships);
    }

    /// Goes on to the files of the modules among `items`, which lie in `folder`.
    fn children(
        &mut self,
        name: &str,
        files: &Files,
        items: &[Item],
        folder: &str,
        module: &[String],
        ships: bool,
    ) {
        for item in items {
            let Item::Mod(item) = item else { continue };
            let ident = item.ident.to_string();
            let ships = ships && !only_tests(&item.attrs);
            if ships && module.is_empty() {
                self.modules.insert(ident.clone());
            }
            let inside = format!("{folder}{ident}/");
            let module = child(module, &ident);
            if ships {
                self.inner.insert(module.clone());
            }
            if let Some((_, items)) = &item.content {
                self.children(name, files, items, &inside, &module, ships);
            } else {
                let plain = format!("{folder}{ident}.rs");
                let file = if files.contains_key(&plain) { plain } else { format!("{inside}mod.rs") };
                self.file(name, files, &file, &inside, &module, ships);
            }
        }
    }
}

/// The path of the module `name` in `module`.
fn child(module: &[String], name: &str) -> Vec<String> {
    module.iter().cloned().chain([name.to_owned()]).collect()
}

/// Whether what carries these attributes is built for tests only.
fn only_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg") && attribute.parse_args::<Meta>().is_ok_and(|meta| needs_test(&meta))
    })
}

fn needs_test(meta: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        let parts =
            list.parse_args_with(syn::punctuated::Punctuated::<Meta, syn::Token![,]>::parse_terminated);
        parts.map(|parts| parts.iter().map(needs_test).collect::<Vec<_>>()).unwrap_or_default()
    };
    match meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).contains(&true),
        Meta::List(list) if list.path.is_ident("any") => !parts(list).contains(&false),
        _ => false,
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Goes through one file.
struct Walk<'a> {
    source: &'a mut Source,
    krate: &'a str,
    file: &'a str,
    /// Where the code stands, by modules.
    module: Vec<String>,
}

impl Walk<'_> {
    /// Notes a path, with `crate`, `self`, `super` and the crate's own name made one.
    fn found(&mut self, path: &[String]) -> Vec<String> {
        let mut base = self.module.clone();
        let mut rest = path;
        let own = path.first().is_some_and(|first| first == "crate" || first == self.krate);
        if own {
            base.clear();
            rest = &path[1..];
        }
        let mut relative = own;
        while let Some(first) = rest.first().filter(|first| !own && (*first == "self" || *first == "super")) {
            if first == "super" {
                base.pop();
            }
            relative = true;
            rest = &rest[1..];
        }
        let path = if relative {
            ["crate".to_owned()].into_iter().chain(base).chain(rest.iter().cloned()).collect()
        } else {
            rest.to_vec()
        };
        let from = self.module.first().cloned().unwrap_or_default();
        let (module, file) = (self.module.clone(), self.file.to_owned());
        self.source.references.push(Reference { from, module, file, path: path.clone() });
        path
    }

    fn tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        let (last, name) = match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before);
                before.pop();
                return;
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.tree(tree, before);
                }
                return;
            }
            UseTree::Name(name) => (Some(name.ident.to_string()), Some(name.ident.to_string())),
            UseTree::Rename(rename) => (Some(rename.ident.to_string()), Some(rename.rename.to_string())),
            _ => (None, None),
        };
        let path: Vec<String> = before.iter().cloned().chain(last.filter(|last| last != "self")).collect();
        let path = self.found(&path);
        if let Some(name) = name {
            self.source.names.insert((self.module.clone(), name), path);
        }
    }

    /// The paths among the tokens of a macro or an attribute; those of a group after `before::` go on from there.
    fn tokens(&mut self, tokens: TokenStream, before: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let colon =
            |at: usize| matches!(tokens.get(at), Some(TokenTree::Punct(punct)) if punct.as_char() == ':');
        let mut at = 0;
        while at < tokens.len() {
            let mut path = before.to_vec();
            match &tokens[at] {
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Group(group) => self.tokens(group.stream(), &[]),
                // A path in an attribute: `#[serde(default = "crate::limits::most")]`.
                TokenTree::Literal(literal) => {
                    if let Ok(text) = syn::parse_str::<syn::LitStr>(&literal.to_string())
                        && let Ok(path) = syn::parse_str::<syn::Path>(&text.value())
                    {
                        self.visit_path(&path);
                    }
                }
                TokenTree::Punct(_) => {}
            }
            at += 1;
            let mut whole = path.len() > before.len();
            while whole && colon(at) && colon(at + 1) {
                match tokens.get(at + 2) {
                    Some(TokenTree::Ident(ident)) => path.push(ident.to_string()),
                    Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                        self.tokens(group.stream(), &path);
                        whole = false;
                    }
                    _ => break,
                }
                at += 3;
            }
            if whole && path.len() > 1 {
                self.found(&path);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !only_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let tests = match item {
            syn::ImplItem::Fn(item) => only_tests(&item.attrs),
            syn::ImplItem::Const(item) => only_tests(&item.attrs),
            _ => false,
        };
        if !tests {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !only_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !only_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&item.tree, &mut Vec::new());
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        if segments.len() > 1 {
            self.found(&segments);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.visit_path(&item.path);
        self.tokens(item.tokens.clone(), &[]);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.tokens(list.tokens.clone(), &[]);
        }
    }
}
