//! Which crate may depend on which: the arrows of the design, and the heavy crates that are kept in one place.
//!
//! ```text
//! trunkline ──▶ trunkline-sample ──▶ trunkline-engine ──▶ trunkline-aio, trunkline-format
//!                     ▲
//!               trunkline-sim, trunkline-bench
//! ```
//! Manifests are read line by line: sections, and the name before `=` or `.`. That is how they are written here.

use super::finding::Findings;
use super::sources::{Source, Sources};

/// What a package of ours may depend on, of ours: to build, and for tests besides.
struct Arrows {
    package: &'static str,
    normal: &'static [&'static str],
    tests: &'static [&'static str],
}

const ARROWS: &[Arrows] = &[
    Arrows { package: "trunkline-format", normal: &[], tests: &["trunkline-sample"] },
    Arrows { package: "trunkline-aio", normal: &[], tests: &["trunkline-sim"] },
    Arrows {
        package: "trunkline-engine",
        normal: &["trunkline-aio", "trunkline-format"],
        tests: &["trunkline-sim", "trunkline-sample"],
    },
    Arrows {
        package: "trunkline-sample",
        normal: &["trunkline-aio", "trunkline-format", "trunkline-engine"],
        tests: &[],
    },
    Arrows {
        package: "trunkline-sim",
        normal: &["trunkline-aio", "trunkline-format", "trunkline-engine", "trunkline-sample"],
        tests: &[],
    },
    Arrows {
        package: "trunkline-bench",
        normal: &["trunkline-aio", "trunkline-format", "trunkline-engine", "trunkline-sample"],
        tests: &["trunkline-sim"],
    },
    Arrows {
        package: "trunkline",
        normal: &["trunkline-aio", "trunkline-format", "trunkline-engine", "trunkline-sample"],
        tests: &["trunkline-sim"],
    },
    Arrows { package: "xtask", normal: &[], tests: &[] },
];

/// Crates of others that only some of ours may name. A trailing `*` matches any end.
const QUARANTINE: &[(&str, &[&str])] = &[
    // The reference loops of the benchmarks must not share code with what they judge.
    ("io-uring", &["trunkline-aio", "trunkline-bench"]),
    ("clap", &["trunkline", "trunkline-bench", "xtask"]),
    ("indicatif", &["trunkline", "trunkline-bench"]),
    ("datafusion*", &[]),
    ("arrow*", &[]),
    ("parquet*", &[]),
    ("tokio*", &[]),
    ("pgwire", &[]),
];

/// One dependency as a manifest states it.
struct Dependency {
    name: String,
    line: usize,
    for_tests: bool,
}

/// Arrows point down, heavy crates stay where they are.
pub(super) fn direction(sources: &Sources, findings: &mut Findings) {
    for (package, manifest) in sources.packages() {
        let path = &manifest.path;
        let Some(arrows) = ARROWS.iter().find(|arrows| arrows.package == package) else {
            findings.add(path, 1, format!("{package} has no place in the order of crates yet"));
            continue;
        };
        for dependency in dependencies(manifest) {
            let name = dependency.name.as_str();
            let ours = ARROWS.iter().any(|arrows| arrows.package == name);
            let for_tests = dependency.for_tests && arrows.tests.contains(&name);
            if ours && !arrows.normal.contains(&name) && !for_tests {
                let kind = if dependency.for_tests { "tests of " } else { "" };
                findings.add(
                    path,
                    dependency.line,
                    format!("{kind}{package} must not know {name}"),
                );
            }
            if let Some(homes) = quarantine(name)
                && !homes.contains(&package)
            {
                findings.add(path, dependency.line, format!("{name} is not for {package}"));
            }
        }
    }
}

fn quarantine(name: &str) -> Option<&'static [&'static str]> {
    let covers = |pattern: &str| match pattern.strip_suffix('*') {
        Some(begin) => name.starts_with(begin),
        None => name == pattern,
    };
    QUARANTINE.iter().find(|(pattern, _)| covers(pattern)).map(|(_, homes)| *homes)
}

fn dependencies(manifest: &Source) -> Vec<Dependency> {
    let mut found: Vec<Dependency> = Vec::new();
    // Some(for_tests) inside a section of dependencies; the name when the section is about one of them.
    let mut section: Option<bool> = None;
    for (line, text) in manifest.lines() {
        let text = text.split('#').next().unwrap_or_default().trim();
        if let Some(header) = text.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let (kind, name) = parse_header(header);
            section = kind.filter(|_| name.is_none());
            if let (Some(for_tests), Some(name)) = (kind, name) {
                found.push(Dependency { name: name.to_owned(), line, for_tests });
            }
        } else if let Some(for_tests) = section
            && let Some((key, value)) = text.split_once('=')
        {
            let key = key.split('.').next().unwrap_or_default();
            let name = renamed_package(value).unwrap_or(key).trim().trim_matches('"').to_owned();
            found.push(Dependency { name, line, for_tests });
        }
    }
    found
}

/// `dependencies`, `target.'cfg(x)'.dev-dependencies`, `dependencies.name`: kind and name.
fn parse_header(header: &str) -> (Option<bool>, Option<&str>) {
    for (word, for_tests) in
        [("dev-dependencies", true), ("build-dependencies", false), ("dependencies", false)]
    {
        if header == word || header.ends_with(&format!(".{word}")) {
            return (Some(for_tests), None);
        }
        if let Some(name) = header.strip_prefix(&format!("{word}.")) {
            return (Some(for_tests), Some(name));
        }
    }
    (None, None)
}

/// The real name in `x = { package = "y", … }`.
fn renamed_package(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once("package")?;
    rest.trim_start().strip_prefix('=')?.trim_start().strip_prefix('"')?.split('"').next()
}
