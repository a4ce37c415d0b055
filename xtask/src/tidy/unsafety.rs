//! **Unsafe rules**: `unsafe` is allowed only in the I/O core, in the pool's frames, and in some
//! benchmarks. This is a simple text search, so it might miss something. For this reason, all
//! crates except the I/O core also have a crate attribute that makes the compiler reject unsafe
//! code.

use super::code;
use super::finding::Findings;
use super::sources::Sources;

/// Paths of code that may use `unsafe`. The bare loops of the benchmarks are on this list, because
/// a baseline must not use the code of the I/O core it's compared with.
const ALLOWED: &[&str] = &[
    "crates/trunkline-aio/",
    "crates/trunkline-engine/src/pool/frame.rs",
    "crates/trunkline-bench/src/bare.rs",
    "crates/trunkline-bench/src/bare/",
];
/// Crates that may use `deny` instead of `forbid`, because one of their files is exempt.
const DENY_IS_ENOUGH: &[&str] = &["trunkline-engine", "trunkline-bench"];
const EXEMPT: &[&str] = &["trunkline-aio"];

/// `unsafe` may appear only in the allowed paths.
pub(super) fn confined(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust() {
        if ALLOWED.iter().any(|place| source.path.starts_with(place)) {
            continue;
        }
        for at in code::words(&source.code, "unsafe") {
            findings.add(&source.path, source.line_of(at), "unsafe outside trunkline-aio");
        }
    }
}

/// Every crate root must forbid unsafe code.
pub(super) fn crate_attribute(sources: &Sources, findings: &mut Findings) {
    for (package, manifest) in sources.packages() {
        if EXEMPT.contains(&package) {
            continue;
        }
        let folder = manifest.path.trim_end_matches("Cargo.toml");
        let deny_is_enough = DENY_IS_ENOUGH.contains(&package);
        for root in ["src/lib.rs", "src/main.rs"] {
            let Some(source) = sources.get(&format!("{folder}{root}")) else { continue };
            let has = |level: &str| source.code.contains(&format!("#![{level}(unsafe_code)]"));
            let settled = has("forbid") || (deny_is_enough && has("deny"));
            if !settled {
                findings.add(&source.path, 1, "lacks #![forbid(unsafe_code)]");
            }
        }
    }
}
