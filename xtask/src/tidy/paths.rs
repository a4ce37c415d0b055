//! **Paths in a Rust file**: every `use` tree, every inline path, and every path in a macro's
//! tokens.
//!
//! `syn` parses the file. The result has one [`Module`] for the file and one for each inline
//! module. A module records the names it defines, the names it imports, and the paths it
//! references. Test code is excluded. `graph.rs` resolves the paths.
//!
//! ```text
//! use super::state::{Word, self};     imports Word and state, refers to super::state::Word
//! assert!(x < crate::limits::MAX);    refers to crate::limits::MAX
//! ```

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Ident, Item, UseTree};

/// A module: a whole file, or an inline `mod x { … }`.
#[derive(Debug, Default)]
pub(super) struct Module {
    /// Path from the crate root; empty for `lib.rs`.
    pub(super) path: Vec<String>,
    /// Names of items defined here, excluding modules.
    pub(super) items: BTreeSet<String>,
    /// Names imported by `use`, each with its path.
    pub(super) imports: Vec<(String, Vec<String>)>,
    /// Paths imported by `use x::*`.
    pub(super) globs: Vec<Vec<String>>,
    /// Paths referenced here.
    pub(super) references: Vec<Reference>,
}

/// A path as written in the source, and its line.
#[derive(Debug, Clone)]
pub(super) struct Reference {
    pub(super) path: Vec<String>,
    /// 1-based.
    pub(super) line: usize,
}

/// A parsed file: its modules, and the paths of modules compiled only for tests.
#[derive(Debug, Default)]
pub(super) struct Parsed {
    pub(super) modules: Vec<Module>,
    pub(super) only_tests: Vec<Vec<String>>,
}

/// Parses a file; `path` is its module path. Syntax errors are ignored, because rustc reports
/// them.
pub(super) fn parse(path: Vec<String>, text: &str) -> Option<Parsed> {
    let file = syn::parse_file(text).ok()?;
    let module = Module { path, ..Module::default() };
    let mut reader = Reader {
        parsed: Parsed { modules: vec![module], only_tests: Vec::new() },
        inside: vec![0],
        in_function: 0,
    };
    file.items.iter().for_each(|item| reader.visit_item(item));
    Some(reader.parsed)
}

/// Visitor over one file's syntax tree.
struct Reader {
    parsed: Parsed,
    /// Indices of the enclosing modules, innermost last.
    inside: Vec<usize>,
    /// Number of enclosing function bodies. Items inside a function aren't items of the module.
    in_function: u32,
}

impl Reader {
    fn module(&mut self) -> &mut Module {
        let innermost = self.inside.last().copied().unwrap_or(0);
        &mut self.parsed.modules[innermost]
    }

    fn refer(&mut self, path: Vec<String>, line: usize) {
        self.module().references.push(Reference { path, line });
    }

    /// Adds the imports and references of a `use` tree; `before` is the path prefix so far.
    fn import(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &Ident| [before, &[name.to_string()]].concat();
        let (name, path, ident) = match tree {
            UseTree::Path(path) => return self.import(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => {
                return group.items.iter().for_each(|tree| self.import(tree, before));
            }
            UseTree::Glob(glob) => {
                self.module().globs.push(before.to_vec());
                return self.refer(before.to_vec(), glob.star_token.spans[0].start().line);
            }
            // `use a::{self}` imports `a`
            UseTree::Name(name) if name.ident == "self" => {
                (before.last().cloned().unwrap_or_default(), before.to_vec(), &name.ident)
            }
            UseTree::Name(name) => (name.ident.to_string(), with(&name.ident), &name.ident),
            UseTree::Rename(new) if new.ident == "self" => {
                (new.rename.to_string(), before.to_vec(), &new.ident)
            }
            UseTree::Rename(new) => (new.rename.to_string(), with(&new.ident), &new.ident),
        };
        self.refer(path.clone(), ident.span().start().line);
        self.module().imports.push((name, path));
    }

    /// Finds `a::b::c` in tokens, at any depth.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let (mut line, mut colons) = (0, 0);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => {
                    if colons != 2 || path.is_empty() {
                        self.end(&mut path, line);
                        line = ident.span().start().line;
                    }
                    // A path with a leading `::` starts with an external crate.
                    if colons != 2 || !path.is_empty() {
                        path.push(ident.to_string());
                    }
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                other => {
                    self.end(&mut path, line);
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.tokens(group.stream());
                    }
                }
            }
        }
        self.end(&mut path, line);
    }

    /// Records a reference to the path collected so far, if any.
    fn end(&mut self, path: &mut Vec<String>, line: usize) {
        if !path.is_empty() {
            self.refer(std::mem::take(path), line);
        }
    }

    /// A child module's file path; a `path` attribute overrides the default.
    fn path_of(&mut self, module: &syn::ItemMod) -> Vec<String> {
        let own = &self.module().path;
        let named = module.attrs.iter().find_map(|attribute| match &attribute.meta {
            syn::Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
                syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(file), .. }) => Some(file.value()),
                _ => None,
            },
            _ => None,
        });
        let Some(file) = named else { return [&own[..], &[module.ident.to_string()]].concat() };
        // Relative to the directory of the file that contains the attribute.
        let folder = own.len().saturating_sub(1);
        let parts = file.trim_end_matches(".rs").split('/').map(str::to_owned);
        own[..folder].iter().cloned().chain(parts).collect()
    }

    fn enter(&mut self, module: &syn::ItemMod) {
        let path = [&self.module().path[..], &[module.ident.to_string()]].concat();
        let Some((_, items)) = &module.content else { return };
        self.parsed.modules.push(Module { path, ..Module::default() });
        self.inside.push(self.parsed.modules.len() - 1);
        items.iter().for_each(|item| self.visit_item(item));
        self.inside.pop();
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = described(item);
        if is_for_tests(attributes) {
            if let Item::Mod(module) = item {
                let path = self.path_of(module);
                self.parsed.only_tests.push(path);
            }
            return;
        }
        if let Item::Mod(module) = item {
            return self.enter(module);
        }
        if let Some(name) = name
            && self.in_function == 0
        {
            self.module().items.insert(name.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if item.leading_colon.is_none() {
            self.import(&item.tree, &[]);
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        self.in_function += 1;
        visit::visit_block(self, block);
        self.in_function -= 1;
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            let line = path.segments.first().map_or(0, |first| first.ident.span().start().line);
            self.refer(names, line);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.visit_path(&call.path);
        self.tokens(call.tokens.clone());
    }

    // `pub(in path)` restricts visibility; it isn't a dependency of the module.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        let attributes: &[Attribute] = match item {
            syn::ImplItem::Const(item) => &item.attrs,
            syn::ImplItem::Fn(item) => &item.attrs,
            syn::ImplItem::Type(item) => &item.attrs,
            syn::ImplItem::Macro(item) => &item.attrs,
            _ => &[],
        };
        if !is_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_trait_item_fn(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !is_for_tests(&field.attrs) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !is_for_tests(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }
}

/// An item's attributes, and its name if a path can refer to it.
fn described(item: &Item) -> (&[Attribute], Option<&Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::TraitAlias(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::Mod(item) => (&item.attrs, None),
        Item::Impl(item) => (&item.attrs, None),
        Item::Use(item) => (&item.attrs, None),
        Item::ForeignMod(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

/// `#[test]`, `#[cfg(test)]`, `#[cfg(all(test, …))]`, and the same for loom's models.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg")
                && attribute.parse_args::<syn::Meta>().is_ok_and(|meta| wants_tests(&meta)))
    })
}

fn wants_tests(condition: &syn::Meta) -> bool {
    match condition {
        syn::Meta::Path(path) => path.is_ident("test") || path.is_ident("loom"),
        syn::Meta::List(list) if list.path.is_ident("all") => {
            let parts = syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated;
            list.parse_args_with(parts).is_ok_and(|parts| parts.iter().any(wants_tests))
        }
        _ => false,
    }
}
