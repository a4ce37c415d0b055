//! **Crate dependencies**: which crate may depend on which, and which crates may use heavy
//! external dependencies.
//!
//! ```text
//! trunkline ──▶ trunkline-server ──▶ trunkline-query ──▶ trunkline-sql ──▶ trunkline-engine
//! trunkline ──▶ trunkline-slow-disk ──▶ trunkline-aio
//! trunkline ──▶ trunkline-measure ──▶ trunkline-sample ──▶ trunkline-engine ──▶ trunkline-aio, trunkline-format
//!                     ▲                     ▲
//!               trunkline-bench       trunkline-sim
//! ```
//! We parse manifests line by line, and only look at section headings and at the name before `=` or
//! `.`. This is sufficient, because our manifests have a simple format.

use super::finding::Findings;
use super::sources::{Source, Sources};

/// The packages that each of our packages may depend on. `tests` lists additional packages that
/// only its tests may use.
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
        package: "trunkline-measure",
        normal: &["trunkline-aio", "trunkline-format", "trunkline-engine", "trunkline-sample"],
        tests: &["trunkline-slow-disk"],
    },
    Arrows {
        package: "trunkline-sim",
        normal: &["trunkline-aio", "trunkline-format", "trunkline-engine", "trunkline-sample"],
        tests: &[],
    },
    Arrows {
        package: "trunkline-bench",
        normal: &[
            "trunkline-aio",
            "trunkline-format",
            "trunkline-engine",
            "trunkline-sample",
            "trunkline-measure",
        ],
        tests: &["trunkline-sim"],
    },
    Arrows {
        package: "trunkline-sql",
        normal: &["trunkline-aio", "trunkline-format", "trunkline-engine"],
        tests: &["trunkline-sample"],
    },
    Arrows {
        package: "trunkline-query",
        normal: &["trunkline-aio", "trunkline-format", "trunkline-engine", "trunkline-sql"],
        tests: &["trunkline-sample"],
    },
    Arrows {
        package: "trunkline-server",
        normal: &[
            "trunkline-aio",
            "trunkline-format",
            "trunkline-engine",
            "trunkline-sql",
            "trunkline-query",
        ],
        tests: &["trunkline-sample"],
    },
    Arrows { package: "trunkline-slow-disk", normal: &["trunkline-aio"], tests: &[] },
    Arrows {
        package: "trunkline",
        normal: &[
            "trunkline-aio",
            "trunkline-format",
            "trunkline-engine",
            "trunkline-sample",
            "trunkline-slow-disk",
            "trunkline-measure",
            "trunkline-sql",
            "trunkline-query",
            "trunkline-server",
        ],
        tests: &["trunkline-sim"],
    },
    Arrows { package: "xtask", normal: &[], tests: &[] },
];

/// External crates that only some of our packages may use. A trailing `*` matches anything.
const QUARANTINE: &[(&str, &[&str])] = &[
    // The benchmarks' bare loops must not share code with what they're compared with.
    ("io-uring", &["trunkline-aio", "trunkline-bench"]),
    ("clap", &["trunkline", "trunkline-bench", "xtask"]),
    // The command line's tests serve a mount of their own.
    ("fuser", &["trunkline-slow-disk", "trunkline"]),
    ("indicatif", &["trunkline", "trunkline-bench"]),
    ("plotters*", &["trunkline-measure"]),
    ("datafusion*", &["trunkline-query"]),
    ("arrow*", &["trunkline-sql", "trunkline-query"]),
    ("parquet*", &[]),
    ("tokio*", &["trunkline-query", "trunkline-server", "trunkline"]),
    // A client of the servers that we compare with; it brings tokio.
    ("postgres", &["trunkline-measure"]),
    ("pgwire", &["trunkline-server"]),
];

/// One dependency declared in a manifest.
struct Dependency {
    name: String,
    line: usize,
    for_tests: bool,
}

/// Dependencies must point downwards, and heavy crates must stay where they're allowed.
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
    // `Some(for_tests)` while we are in a section that lists dependencies. If a section is about a
    // single dependency, its heading alone is enough.
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
