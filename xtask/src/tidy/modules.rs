//! The order of modules inside trunkline-engine: a module knows those before it, never those after it.
//! Crates are cut for what the compiler can enforce; this is the order it cannot.

use super::Findings;
use super::code;
use super::sources::{Source, Sources};

const HOME: &str = "crates/trunkline-engine/src/";

/// From the bottom up. A new module takes its place here first.
const ORDER: &[&str] = &[
    "location",
    "settings",
    "datadir",
    "storage",
    "log",
    "pool",
    "read_stream",
    "write_stream",
    "checkpoint",
    "scan",
    "transactions",
    "btree",
    "heap",
    "catalog",
    "seq_scan",
    "copy",
    "verify",
    "prewarm",
    "sample",
    "engine",
];

/// No module names a higher one, and each has a place.
pub(super) fn order(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust() {
        let Some(rest) = source.path.strip_prefix(HOME) else { continue };
        let module = code::name_at(rest);
        if module == "lib" {
            continue;
        }
        let Some(rank) = ORDER.iter().position(|name| *name == module) else {
            findings.add(&source.path, 1, format!("module {module} has no place in the order"));
            continue;
        };
        for (at, name) in crate_paths(source) {
            let line = source.line_of(at);
            if ORDER[rank + 1..].contains(&name) && !source.is_test_line(line) {
                findings.add(&source.path, line, format!("{module} is below {name}, yet names it"));
            }
        }
    }
}

/// First names of all paths that begin with `crate::`, also in `crate::{a::x, b}`.
fn crate_paths(source: &Source) -> Vec<(usize, &str)> {
    let mut paths = Vec::new();
    for at in code::words(&source.code, "crate::") {
        let rest = &source.code[at + "crate::".len()..];
        if !rest.starts_with('{') {
            paths.push((at, code::name_at(rest)));
            continue;
        }
        let group = &rest[1..code::item_end(rest, 0).saturating_sub(1).max(1)];
        let mut depth = 0;
        for part in group.split_inclusive(['{', '}', ',']) {
            if depth == 0 {
                paths.push((at, code::name_at(part.trim_start())));
            }
            depth += part.matches('{').count() as i32 - part.matches('}').count() as i32;
        }
    }
    paths
}
