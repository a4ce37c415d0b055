//! **Samples for tidy**: for every rule, bad samples that it must detect, and good samples that
//! only look bad. If a rule has no bad sample, one of the tests here fails, because we wouldn't
//! notice if that rule never reported anything.

use super::sources::{Source, Sources};
use super::*;

/// Runs `rule` on a tree of the given files.
fn found(rule: &str, files: &[(&str, &str)]) -> Vec<String> {
    let rule = RULES.iter().find(|known| known.name == rule).expect(rule);
    checked(rule.name, rule.check, files)
}

/// The same for a check that isn't in the list of rules.
fn checked(
    rule: &'static str,
    check: fn(&Sources, &mut Findings),
    files: &[(&str, &str)],
) -> Vec<String> {
    let files = files
        .iter()
        .map(|(path, text)| Source::new((*path).to_owned(), (*text).to_owned()))
        .collect();
    let mut findings = Findings { rule, found: Vec::new() };
    check(&Sources { files }, &mut findings);
    findings.found.sort();
    findings.found.iter().map(ToString::to_string).collect()
}

const AIO: &str = "crates/trunkline-aio/src/x.rs";
const ENGINE: &str = "crates/trunkline-engine/src/datadir.rs";
const SIM_MANIFEST: &str = "crates/trunkline-sim/Cargo.toml";

/// Rule, path, text and line. Each sample must cause exactly one finding, at the given line.
const BAD: &[(&str, &str, &str, usize)] = &[
    ("white-space", "a.rs", "fn a() {}\nlet b; \n", 2),
    ("white-space", "a.md", "\ta\n", 1),
    ("white-space", "a.toml", "a = 1", 1),
    ("leftovers", AIO, "fn a() {\n    todo!()\n}\n", 2),
    ("leftovers", AIO, "fn a() { unimplemented!(\"b\") }\n", 1),
    ("leftovers", AIO, "fn a() { dbg!(1); }\n", 1),
    ("leftovers", AIO, concat!("// TO", "DO: later\n"), 1),
    ("leftovers", "a.sh", concat!("# FIX", "ME\n"), 1),
    ("leftovers", AIO, concat!("//! X", "XX why?\n"), 1),
    ("machine-path", AIO, "const A: &str = \"/tmp/a\";\n", 1),
    ("machine-path", "README.md", "see /work/a\n", 1),
    ("machine-path", "a.sh", "cd '/home/me'\n", 1),
    ("expect-not-allow", AIO, "#[allow(dead_code)]\n", 1),
    ("expect-not-allow", AIO, "\n#![allow(dead_code)]\n", 2),
    ("expect-not-allow", AIO, "#[cfg_attr(loom, allow(dead_code))]\n", 1),
    ("header", AIO, "//! One line only.\nfn a() {}\n", 1),
    ("header", "xtask/src/a.rs", "// Not a header.\n// Not at all.\n", 1),
    ("no-mod-rs", "crates/trunkline-aio/src/method/mod.rs", "", 1),
    ("depth", "crates/trunkline-aio/src/a/b/c/d.rs", "", 1),
    ("unsafe", ENGINE, "fn a() {\n    unsafe { b() }\n}\n", 2),
    ("unsafe", "crates/trunkline-engine/tests/it/main.rs", "unsafe fn a() {}\n", 1),
    ("sleep", AIO, "fn a() {\n    std::thread::sleep(b);\n}\n", 2),
    (
        "sleep",
        "crates/trunkline-aio/tests/it/main.rs",
        "use std::thread::{\n    self, sleep,\n};\n",
        1,
    ),
    ("sleep", "xtask/src/a.rs", "fn a() { thread::sleep(b) }\n", 1),
    ("facade", ENGINE, "fn a() { libc::syscall(libc::SYS_futex) }\n", 1),
    ("facade", ENGINE, "use std::time::Instant as Now;\n", 1),
    ("facade", ENGINE, "\nuse std::{thread as strand, io};\n", 2),
    ("facade", AIO, "use parking_lot::Mutex;\n", 1),
    ("facade", AIO, "use std::sync::atomic::AtomicU64;\n", 1),
    ("facade", AIO, "use std::{sync::{Arc, atomic::AtomicU64}};\n", 1),
    ("facade", ENGINE, "static A: core::sync::atomic::AtomicBool = b;\n", 1),
    ("dependencies", "crates/trunkline-new/Cargo.toml", "[package]\n", 1),
    ("dependencies", SIM_MANIFEST, "[dependencies]\ntrunkline-bench.workspace = true\n", 2),
    ("dependencies", SIM_MANIFEST, "[dependencies]\nclap = { version = \"4\" }\n", 2),
    ("dependencies", SIM_MANIFEST, "[target.\"cfg(loom)\".dependencies]\nio-uring = \"1\"\n", 2),
    ("dependencies", SIM_MANIFEST, "[dependencies.datafusion]\nversion = \"1\"\n", 1),
    ("dependencies", SIM_MANIFEST, "[dependencies]\nx = { package = \"arrow-array\" }\n", 2),
    (
        "dependencies",
        "crates/trunkline-format/Cargo.toml",
        "[dev-dependencies]\ntrunkline-aio = {}\n",
        2,
    ),
    ("dependencies", "crates/trunkline/Cargo.toml", "[dependencies]\ntrunkline-bench = {}\n", 2),
    (
        "dependencies",
        "crates/trunkline-engine/Cargo.toml",
        "[dependencies]\n\ntrunkline-sim = {}\n",
        3,
    ),
    ("citations", AIO, concat!("\n// See docs/a.m", "d#gone.\n"), 2),
    ("citations", "docs/a.md", concat!("# Title\n[x](docs/a.m", "d#titles)\n"), 2),
    ("outside", AIO, concat!("// See desi", "gn.md.\n"), 1),
    ("outside", "docs/a.md", concat!("(fac", "ts: 3)\n"), 1),
    ("outside", "xtask/mutants/a.patch", concat!("# see desi", "gn §5\n"), 1),
    ("architecture", "README.md", "", 1),
    ("readme", "README.md", "cargo xtask ci\n", 1),
    ("readme", "ARCHITECTURE.md", "", 1),
];

/// Rule, path, text: each sample looks bad but must not cause a finding.
const GOOD: &[(&str, &str, &str)] = &[
    ("white-space", "xtask/mutants/a.patch", " a\n \n-\tb\n"),
    ("leftovers", AIO, "const A: &str = \"todo!\"; // not dbg! here\n"),
    ("leftovers", "a.sh", concat!("mktemp a.X", "XX", "X\n")),
    ("leftovers", "STYLE.md", concat!("no TO", "DO\n")),
    ("machine-path", AIO, "#[cfg(test)]\nmod tests {\n    const A: &str = \"/tmp/a\";\n}\n"),
    ("machine-path", "a.md", "target/tmp/a and pg/work/b and $CACHE/tmp/\n"),
    ("expect-not-allow", AIO, "#[expect(dead_code, reason = \"#[allow(\")]\nfn allow() {}\n"),
    ("header", AIO, "//! One sentence that says what the file is for,\n//! and why.\n"),
    ("no-mod-rs", "crates/trunkline-aio/examples/part/mod.rs", ""),
    ("header", "crates/trunkline-aio/tests/it/main.rs", ""),
    ("depth", "crates/trunkline-aio/src/a/b/c.rs", ""),
    ("depth", "crates/trunkline-aio/src/a/b/c/tests.rs", ""),
    ("unsafe", AIO, "unsafe fn a() {}\n"),
    ("unsafe", "crates/trunkline-engine/src/pool/frame.rs", "unsafe fn a() {}\n"),
    ("unsafe", ENGINE, "#![deny(unsafe_code)] // unsafe\nconst A: &str = \"unsafe\";\n"),
    ("sleep", AIO, "/// No thread::sleep here.\nfn a() {}\n"),
    ("facade", "crates/trunkline-aio/src/facade/futex.rs", "fn a() { SYS_futex }\n"),
    ("facade", ENGINE, "use std::sync::Arc;\nuse trunkline_aio::facade::{atomic::AtomicU64};\n"),
    ("facade", "crates/trunkline-aio/tests/it/main.rs", "use std::sync::atomic::AtomicU64;\n"),
    ("facade", "crates/trunkline-bench/src/main.rs", "use std::sync::atomic::AtomicU64;\n"),
    ("facade", "crates/trunkline/src/interrupt.rs", "use std::sync::atomic::AtomicBool;\n"),
    ("facade", ENGINE, "use std::time::Duration as Span;\nuse crate::facade::Mutex as M;\n"),
    (
        "dependencies",
        "crates/trunkline-aio/Cargo.toml",
        "[dependencies]\nio-uring.workspace = true\n",
    ),
    (
        "dependencies",
        SIM_MANIFEST,
        "[dev-dependencies]\ntrunkline-format = {}\n[lints]\nclap = 1\n",
    ),
    (
        "citations",
        "docs/a.md",
        concat!("## Lesson 1\nsee `docs/a.m", "d#lesson-1`.\n# A-b, c: d\n(a.m", "d#a-b-c-d)\n"),
    ),
    ("outside", "docs/a.md", "The design of a.md, and other facts.\n"),
    ("readme", "README.md", "cargo run --release -- demo\ncargo xtask ci\n"),
];

#[test]
fn every_bad_sample_is_found_once() {
    for (rule, path, text, line) in BAD {
        let found = found(rule, &[(path, text)]);
        assert_eq!(found.len(), 1, "{rule}: {path}: {text:?}: {found:?}");
        assert!(found[0].contains(&format!(":{line}: {rule}: ")), "{rule}: {text:?}: {found:?}");
    }
}

#[test]
fn every_good_sample_passes() {
    for (rule, path, text) in GOOD {
        assert_eq!(found(rule, &[(path, text)]), [""; 0], "{rule}: {path}: {text:?}");
    }
}

#[test]
fn every_rule_has_a_bad_sample() {
    // A bad sample for one of these rules would need a long file or many files, so each of them has
    // its own test below.
    let elsewhere = [
        "file-length",
        "function-length",
        "crate-attribute",
        "decision-length",
        "module-order",
        "circles",
        "words",
    ];
    for rule in RULES {
        let sampled = BAD.iter().any(|(name, ..)| *name == rule.name);
        assert!(sampled || elsewhere.contains(&rule.name), "{} has no bad sample", rule.name);
        assert!(!rule.because.is_empty());
    }
}

#[test]
fn long_files_are_found() {
    assert_eq!(found("file-length", &[("a.rs", &"//\n".repeat(1000))]).len(), 0);
    assert_eq!(found("file-length", &[("a.rs", &"//\n".repeat(1001))]).len(), 1);
    assert_eq!(found("file-length", &[("Cargo.lock", &"#\n".repeat(5000))]).len(), 0);
    let files = vec![Source::new("a.rs".to_owned(), "//\n".repeat(401))];
    assert_eq!(shape::notes(&Sources { files }).len(), 1);
}

#[test]
fn long_functions_are_found() {
    let function = |lines: usize| format!("\nfn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2));
    assert_eq!(found("function-length", &[("a.rs", &function(100))]).len(), 0);
    let long = found("function-length", &[("a.rs", &function(101))]);
    assert_eq!(long, ["a.rs:2: function-length: a has 101 lines, at most 100"]);
}

#[test]
fn the_ratchet_only_tightens() {
    let ratcheted = |lines: usize| {
        let text = format!("fn a() {{\n{}}}\n", "    b();\n".repeat(lines - 2));
        let files = vec![Source::new("a.rs".to_owned(), text)];
        let mut findings = Findings { rule: "function-length", found: Vec::new() };
        shape::ratcheted(&Sources { files }, &[("a.rs", "a", 150)], &mut findings);
        findings.found.len()
    };
    assert_eq!(ratcheted(150), 0, "as long as recorded");
    assert_eq!(ratcheted(151), 1, "longer than recorded");
    assert_eq!(ratcheted(90), 1, "short again: the entry must go");
}

#[test]
fn long_decisions_are_found() {
    let path = "docs/decisions/0009-a.md";
    assert_eq!(found("decision-length", &[(path, &"a\n".repeat(120))]).len(), 0);
    assert_eq!(found("decision-length", &[(path, &"a\n".repeat(121))]).len(), 1);
    assert_eq!(found("decision-length", &[("docs/format.md", &"a\n".repeat(121))]).len(), 0);
}

#[test]
fn crate_roots_must_forbid_unsafe() {
    let root = |package: &str, file: &str, text: &str| {
        let folder = format!("crates/{package}");
        let (manifest, path) = (format!("{folder}/Cargo.toml"), format!("{folder}/src/{file}"));
        found("crate-attribute", &[(&manifest, ""), (&path, text)]).len()
    };
    assert_eq!(root("trunkline-sim", "lib.rs", "//! forbid(unsafe_code)\n"), 1);
    assert_eq!(root("trunkline-sim", "lib.rs", "// #![forbid(unsafe_code)]\n"), 1);
    assert_eq!(root("trunkline-sim", "lib.rs", "#![deny(unsafe_code)]\n"), 1);
    assert_eq!(root("trunkline-sim", "lib.rs", "#![forbid(unsafe_code)]\n"), 0);
    assert_eq!(root("trunkline", "main.rs", ""), 1);
    assert_eq!(root("trunkline-engine", "lib.rs", "#![deny(unsafe_code)]\n"), 0);
    assert_eq!(root("trunkline-engine", "lib.rs", ""), 1);
    assert_eq!(root("trunkline-aio", "lib.rs", ""), 0);
}

#[test]
fn the_map_is_held_against_the_tree() {
    let tree = |map: &str| {
        let files = [
            ("ARCHITECTURE.md", map),
            ("crates/trunkline/Cargo.toml", ""),
            ("crates/trunkline-aio/Cargo.toml", ""),
            ("crates/trunkline-aio/src/method/uring.rs", ""),
        ];
        found("architecture", &files)
    };
    let good = "The crates `trunkline` and crates/trunkline-aio/ (`method/uring.rs`, uring.rs).\n";
    assert_eq!(tree(good), [""; 0]);
    for (gone, instead) in [
        ("`trunkline` and", "and"),
        ("crates/trunkline-aio/", "crates"),
        ("uring.rs)", "worker.rs)"),
        ("method/uring.rs", "methods/uring.rs"),
        ("crates/trunkline-aio/", "crates/trunkline-aio/ crates/trunkline-flycheck/"),
    ] {
        let found = tree(&good.replacen(gone, instead, 1));
        assert_eq!(found.len(), 1, "{gone} → {instead}: {found:?}");
    }
}

/// Two layers, and below `high` a directory with its own order.
const ORDER: (&str, &str) =
    ("xtask/order/x.txt", "# comment\nlow level\nmid/state\nmid/word mid\nhigh\n");

/// Runs `module-order` on `low.rs`, `mid.rs`, `mid/state.rs`, `high.rs` and one additional file.
fn order_broken_by(path: &str, text: &str) -> Vec<String> {
    let path = format!("crates/x/src/{path}");
    let mut files = vec![
        ORDER,
        (&path, text),
        ("crates/x/src/lib.rs", "pub use high::High;\nmod high;\nmod low;\nmod mid;\n"),
        ("crates/x/src/low.rs", "pub struct Low;\n"),
        ("crates/x/src/mid.rs", "pub use state::State;\nmod state;\n"),
        ("crates/x/src/mid/state.rs", "pub enum State { Idle }\n"),
        ("crates/x/src/high.rs", "pub fn high() {}\npub struct High;\n"),
    ];
    // The given file replaces the file with the same name.
    let mut known = std::collections::BTreeSet::new();
    files.retain(|(path, _)| known.insert(*path));
    found("module-order", &files)
}

#[test]
fn upward_arrows_are_found() {
    for bad in [
        "use crate::high::High;\n",
        "use crate::{low, high::{self, High}};\n",
        "use super::high::High as Other;\n",
        "use super::high;\nfn a() { high::high() }\n",
        "fn a() { crate::high::high() }\n",
        "fn a() -> Vec<crate::high::High> { b!(c) }\n",
        "fn a() { assert!(b(|| c == crate::high::high())) }\n",
        "macro_rules! a { () => { $crate::high::high() } }\n",
        "pub(super) use crate::high::high;\n",
        "use crate::high::*;\nfn a() { high() }\n",
        "use crate::mid::State;\n",
        "use crate::High;\n",
        "fn a() { use crate::high::High; }\n",
        "mod inner { use super::super::high::High; }\n",
        "impl crate::high::High {}\n",
        "#[cfg(not(test))]\nuse crate::high::High;\n",
    ] {
        let found = order_broken_by("level.rs", bad);
        assert_eq!(found.len(), 1, "{bad:?}: {found:?}");
        assert!(found[0].contains("module-order: level is below "), "{found:?}");
    }
    // The name must resolve to the file that defines it, and not to the parent that re-exports it.
    let text = "use super::Low;\nuse crate::mid::State;\nuse crate::low::Low;\n";
    assert_eq!(order_broken_by("mid/word.rs", text), [""; 0]);
    let found = order_broken_by("mid/other.rs", "");
    assert_eq!(found, ["crates/x/src/mid/other.rs:1: module-order: no place in xtask/order/x.txt"]);
}

#[test]
fn downward_arrows_and_tests_are_allowed() {
    for good in [
        "use crate::low::Low;\nuse std::fmt;\nfn a() { let high = 1; b(high) }\n",
        "#[cfg(test)]\nmod tests { use crate::high::High; }\n",
        "#[cfg(all(test, loom))]\nfn a() { crate::high::high() }\n",
        "struct A { #[cfg(test)] a: crate::high::High }\n",
        "impl A { #[cfg(test)] fn a() -> crate::high::High { b() } }\n",
        "pub(in crate::high) fn a() {}\n",
        "/// See [`crate::high::High`].\nfn a() { b(\"crate::high::High\") }\n",
        "use super::high;\n",
        "fn a() { ::high::b() }\n",
    ] {
        assert_eq!(order_broken_by("level.rs", good), [""; 0], "{good:?}");
    }
    let text = "use crate::mid::State;\nuse crate::low::Low;\n";
    assert_eq!(order_broken_by("high.rs", text), [""; 0]);
}

#[test]
fn circles_are_found() {
    let circle = |a: &str, b: &str| {
        let files = [
            ("crates/trunkline-aio/Cargo.toml", ""),
            ("crates/trunkline-aio/src/lib.rs", "pub use a::A;\nmod a;\n"),
            ("crates/trunkline-aio/src/a.rs", a),
            ("crates/trunkline-aio/src/a/b.rs", b),
        ];
        found("circles", &files)
    };
    let bad = circle("mod b;\npub use b::B;\npub struct A;\n", "use super::A;\npub struct B;\n");
    assert_eq!(bad, ["crates/trunkline-aio/src/a.rs:2: circles: circle of 2 files: a → a/b → a"]);
    assert_eq!(circle("mod b;\npub struct A;\n", "use super::A;\npub struct B;\n"), [""; 0]);
    assert_eq!(circle("mod b;\npub use b::B;\n", "use super::c::C;\npub struct B;\n").len(), 1);
    assert_eq!(circle("mod b;\npub use b::B;\n", "use std::fmt;\npub struct B;\n"), [""; 0]);
}

#[test]
fn banned_words_are_found_in_prose_and_names() {
    let glossary = "\
## Phrases we do not use\n
| `zyx` | abc |
| `be xyz`, `so pqr` | abc |
## Phrases to avoid\n
| `avoided` | abc |
## Names we do not use\n
| `Lmn` | abc |
## Exceptions\n
| `quoted.md` | `\"a zyx\"` | a quotation |
";
    let hits = |path: &str, text: &str| {
        let quotation = ("quoted.md", "He said \"a zyx\".\n");
        let files = [("docs/glossary.md", glossary), quotation, (path, text)];
        checked("words", words::banned, &files)
    };
    for bad in [
        "// A Zyx's.\n",
        "/// may be\n/// xyz.\n",
        "fn is_zyx() {}\n",
        "fn isZyx() {}\n",
        "const A: &str = \"so pqr\";\n",
        "fn a() { so_pqr() }\n",
        "struct Lmn;\n",
    ] {
        assert_eq!(hits("a.rs", bad).len(), 1, "{bad:?}");
    }
    for good in ["// zyxa be, xyz; avoided\n", "struct LmnOp; // Lmn \"Lmn\"\n", ""] {
        assert_eq!(hits("a.rs", good), [""; 0], "{good:?}");
    }
    assert_eq!(hits("a.md", "a zyx, be xyz\n").len(), 2);
    assert_eq!(hits("a.toml", "zyx\n"), [""; 0]);
    let unquoted = [("docs/glossary.md", glossary), ("quoted.md", "Nothing.\n")];
    let stale = checked("words", words::banned, &unquoted);
    let expected = "docs/glossary.md:13: words: quoted.md needs this exception no longer";
    assert_eq!(stale, [expected]);
}

#[test]
fn findings_look_like_compiler_messages() {
    let line = found("no-mod-rs", &[("crates/trunkline-aio/src/method/mod.rs", "")]);
    let expected = "crates/trunkline-aio/src/method/mod.rs:1: no-mod-rs: call it crates/trunkline-aio/src/method.rs";
    assert_eq!(line, [expected]);
}
