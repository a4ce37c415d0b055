//! **Dependency graph** of a crate's files. We resolve each path in the source to the file that
//! defines the last component of the path.
//!
//! If a parent module re-exports a name, the name resolves to the file that defines it. For
//! example, if the parent contains `pub use state::Word`, then `use super::Word` adds an edge to
//! `state.rs`. The re-export itself adds an edge from the parent. If a module is imported by name,
//! the import alone doesn't add an edge; only paths that start with the imported name do.

use std::collections::{BTreeMap, BTreeSet};

use super::paths::{self, Module};
use super::sources::Sources;

/// The files of one crate and the edges between them.
pub(super) struct Graph {
    /// Paths relative to the root of the tree.
    pub(super) files: Vec<String>,
    pub(super) arrows: Vec<Arrow>,
}

/// An edge, represented by the first reference from one file to another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Arrow {
    /// Indices into the list of files.
    pub(super) from: usize,
    pub(super) to: usize,
    /// 1-based.
    pub(super) line: usize,
    /// The path as written in the source.
    pub(super) path: String,
}

/// The crate's modules by path, and each module's file.
struct Crate {
    modules: Vec<(Module, usize)>,
    by_path: BTreeMap<Vec<String>, usize>,
}

/// What a name or path resolves to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Target {
    Module(usize),
    /// An item defined in that module.
    Item(usize),
}

/// Maximum depth for following imports of imports; stops at cyclic re-exports.
const IMPORTS_MAX: u32 = 16;

impl Graph {
    /// Parses all files below `src`, except files that are compiled only for tests. `src` must end
    /// in a slash.
    pub(super) fn read(sources: &Sources, src: &str) -> Self {
        let mut parsed = Vec::new();
        for source in sources.rust() {
            let Some(rest) = source.path.strip_prefix(src) else { continue };
            let path = module_path(rest);
            if let Some(file) = paths::parse(path.clone(), &source.text) {
                parsed.push((source.path.clone(), path, file));
            }
        }
        let only_tests: BTreeSet<Vec<String>> =
            parsed.iter().flat_map(|(.., file)| file.only_tests.iter().cloned()).collect();
        let for_tests = |path: &[String]| only_tests.iter().any(|tests| path.starts_with(tests));
        let (mut files, mut modules) = (Vec::new(), Vec::new());
        for (name, path, file) in parsed {
            if for_tests(&path) {
                continue;
            }
            let inner = file.modules.into_iter().filter(|module| !for_tests(&module.path));
            modules.extend(inner.map(|module| (module, files.len())));
            files.push(name);
        }
        let by_path = modules
            .iter()
            .enumerate()
            .map(|(index, (module, _))| (module.path.clone(), index))
            .collect();
        let arrows = Crate { modules, by_path }.arrows();
        Self { files, arrows }
    }

    /// Cycles: the strongly connected components with at least two files.
    pub(super) fn circles(&self) -> Vec<Vec<usize>> {
        let reached: Vec<BTreeSet<usize>> =
            (0..self.files.len()).map(|file| self.reached(file)).collect();
        let mut circles: Vec<Vec<usize>> = Vec::new();
        for file in 0..self.files.len() {
            if circles.iter().any(|circle| circle.contains(&file)) {
                continue;
            }
            let both =
                |&other: &usize| reached[file].contains(&other) && reached[other].contains(&file);
            let circle: Vec<usize> = (file..self.files.len()).filter(both).collect();
            if circle.len() > 1 {
                circles.push(circle);
            }
        }
        circles
    }

    /// All files reachable from `start` by one or more edges.
    fn reached(&self, start: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut next = vec![start];
        while let Some(file) = next.pop() {
            for arrow in self.arrows.iter().filter(|arrow| arrow.from == file) {
                if reached.insert(arrow.to) {
                    next.push(arrow.to);
                }
            }
        }
        reached
    }
}

/// Returns the module path of a file. For example, `pool/state.rs` is `[pool, state]`. The path of
/// `lib.rs`, the root, is empty.
fn module_path(below_src: &str) -> Vec<String> {
    let path = below_src.trim_end_matches(".rs");
    if path == "lib" || path == "main" {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

impl Crate {
    /// One edge per pair of files, with the first line that causes it.
    fn arrows(&self) -> Vec<Arrow> {
        let mut first: BTreeMap<(usize, usize), Arrow> = BTreeMap::new();
        for (index, (module, from)) in self.modules.iter().enumerate() {
            for reference in &module.references {
                for target in self.resolve(index, &reference.path, 0) {
                    let Target::Item(home) = target else { continue };
                    let (from, to, line) = (*from, self.modules[home].1, reference.line);
                    if from != to {
                        let arrow = Arrow { from, to, line, path: reference.path.join("::") };
                        let known = first.entry((from, to)).or_insert_with(|| arrow.clone());
                        *known = known.clone().min(arrow);
                    }
                }
            }
        }
        first.into_values().collect()
    }

    /// Resolves a path that was written in `module`. Returns `None` if the path points to another
    /// crate or to a local name.
    fn resolve(&self, module: usize, path: &[String], depth: u32) -> Vec<Target> {
        let Some((first, mut rest)) = path.split_first() else { return Vec::new() };
        let own = &self.modules[module].0.path;
        let mut targets = match first.as_str() {
            "crate" => self.module(&[]),
            "self" => vec![Target::Module(module)],
            "super" => {
                let ups = path.iter().take_while(|name| *name == "super").count();
                rest = &path[ups..];
                match own.len().checked_sub(ups) {
                    Some(length) => self.module(&own[..length]),
                    None => Vec::new(),
                }
            }
            name => self.look_up(module, name, depth),
        };
        for name in rest {
            // A function and a module may have the same name. If there are more components after
            // the name, it must refer to the module.
            if targets.iter().any(|target| matches!(target, Target::Module(_))) {
                targets.retain(|target| matches!(target, Target::Module(_)));
            }
            targets = targets
                .into_iter()
                .flat_map(|target| match target {
                    Target::Module(inner) => {
                        let found = self.look_up(inner, name, depth);
                        // A macro may have generated it.
                        if found.is_empty() { vec![Target::Item(inner)] } else { found }
                    }
                    item @ Target::Item(_) => vec![item],
                })
                .collect();
        }
        targets
    }

    /// Resolves a name in a module. The name may be a child module, an item, an import, or part of
    /// a glob import.
    fn look_up(&self, module: usize, name: &str, depth: u32) -> Vec<Target> {
        if depth > IMPORTS_MAX {
            return Vec::new();
        }
        let (known, _) = &self.modules[module];
        let mut targets = self.module(&[&known.path[..], &[name.to_owned()]].concat());
        if known.items.contains(name) {
            targets.push(Target::Item(module));
        }
        if targets.is_empty() {
            let imports = known.imports.iter().filter(|(imported, _)| imported == name);
            for (_, path) in imports {
                // `use x;` for an external crate must not resolve to itself.
                if path.len() > 1 || path[0] != name {
                    targets.extend(self.resolve(module, path, depth + 1));
                }
            }
        }
        if targets.is_empty() {
            for path in &known.globs {
                for target in self.resolve(module, path, depth + 1) {
                    if let Target::Module(inner) = target
                        && inner != module
                    {
                        targets.extend(self.look_up(inner, name, depth + 1));
                    }
                }
            }
        }
        targets
    }

    fn module(&self, path: &[String]) -> Vec<Target> {
        self.by_path.get(path).map(|&index| Target::Module(index)).into_iter().collect()
    }
}
