//! Rules that keep time, threads and locks behind the façade where clippy.toml cannot see or should not be alone.
//!
//! Clippy resolves paths, so it catches most of it. What is left: sleeping, which is banned even where the façade
//! may be bypassed (tests, benches, tools); raw futex calls; other crates that bring locks and randomness along; and
//! imports under another name, which clippy catches but a reader does not.

use super::code;
use super::finding::Findings;
use super::sources::{Source, Sources};

/// Files that may sleep, with the reason.
const SLEEPERS: &[(&str, &str)] = &[];
/// The façade itself.
const FACADE: &[&str] = &["crates/trunkline-aio/src/sync", "crates/trunkline-aio/src/clock"];
/// Packages that measure the real machine; they have a clippy.toml of their own for the same reason.
const REAL_MACHINE: &[&str] = &["crates/trunkline-bench/"];
/// Files that need atomics of std, with the reason.
const STD_ATOMICS: &[(&str, &str)] = &[(
    "crates/trunkline/src/interrupt.rs",
    "signal handlers set it, and none runs under the scheduler",
)];
/// Names that go round it whatever the path in front.
const BYPASSES: &[&str] = &[
    "SYS_futex",
    "FUTEX_WAIT",
    "SYS_getrandom",
    "parking_lot",
    "crossbeam_channel",
    "fastrand",
    "getrandom",
];
/// Names that clippy.toml bans.
const BANNED: &[&str] = &[
    "thread",
    "sleep",
    "spawn",
    "Builder",
    "Instant",
    "SystemTime",
    "Mutex",
    "RwLock",
    "Condvar",
    "Barrier",
    "Once",
    "OnceLock",
    "LazyLock",
    "mpsc",
    "HashMap",
    "HashSet",
    "RandomState",
    "env",
    "var",
    "var_os",
];

/// Nothing sleeps, tests included.
pub(super) fn sleep(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust() {
        if SLEEPERS.iter().any(|(path, _)| *path == source.path) {
            continue;
        }
        let called = code::words(&source.code, "thread::sleep");
        let imported = uses(source).filter(|(_, text)| {
            text.contains("thread::{") && code::words(text, "sleep").next().is_some()
        });
        for at in called.chain(imported.map(|(at, _)| at)) {
            findings.add(
                &source.path,
                source.line_of(at),
                "sleeps: wait on a state or a pause point",
            );
        }
    }
}

/// No way round the façade, and none of what it replaces under a name that hides it.
pub(super) fn bypass(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust().filter(|source| source.path.starts_with("crates/")) {
        if FACADE.iter().chain(REAL_MACHINE).any(|place| source.path.starts_with(place)) {
            continue;
        }
        for word in BYPASSES {
            for at in code::words(&source.code, word) {
                let text = format!("{word} goes round trunkline_aio::sync and ::clock");
                findings.add(&source.path, source.line_of(at), text);
            }
        }
        for (at, text) in uses(source) {
            for name in renamed(text) {
                let text = format!("{name} is imported under another name");
                findings.add(&source.path, source.line_of(at), text);
            }
        }
        foreign_atomics(source, findings);
    }
}

/// Atomics of std. In an ordinary build the façade re-exports them, so clippy cannot tell the two paths apart.
/// Tests may have their own: a counter in an allocator, say, is not part of what the scheduler explores.
fn foreign_atomics(source: &Source, findings: &mut Findings) {
    if STD_ATOMICS.iter().any(|(path, _)| *path == source.path) {
        return;
    }
    let direct = ["std::sync::atomic", "core::sync::atomic"]
        .into_iter()
        .flat_map(|path| code::words(&source.code, path));
    let grouped = uses(source).filter(|(_, text)| {
        let from_std = text.contains("std::{") || text.contains("std::sync::{");
        from_std && code::words(text, "atomic").next().is_some()
    });
    for at in direct.chain(grouped.map(|(at, _)| at)) {
        let line = source.line_of(at);
        if !source.is_test_line(line) {
            findings.add(&source.path, line, "atomics of std: use trunkline_aio::sync::atomic");
        }
    }
}

/// Every `use …;` with its place.
fn uses(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    code::words(&source.code, "use").filter_map(|at| {
        let rest = &source.code[at..];
        rest.find(';').map(|end| (at, &rest[..end]))
    })
}

/// Banned names that a `use` of std renames.
fn renamed(text: &str) -> impl Iterator<Item = &'static str> {
    let from_std = code::words(text, "std::").next().is_some();
    BANNED.iter().copied().filter(move |name| {
        from_std
            && code::words(text, name).any(|at| {
                let after = text[at + name.len()..].trim_start();
                after.starts_with("as ")
            })
    })
}
