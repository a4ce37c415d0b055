//! **Façade rules**: make sure that code uses time, threads and locks only through the façade.
//! They cover the cases that clippy.toml misses, or for which it shouldn't be the only check.
//!
//! Clippy resolves paths, so it catches most violations. This module takes care of the rest.
//! Sleeping is banned even in code that may bypass the façade (tests, benches, tools). We also
//! look for raw futex calls and for external crates that provide locks or randomness. Finally, we
//! check for renamed imports, because clippy catches them but a reader may overlook them.

use super::code;
use super::finding::Findings;
use super::sources::{Source, Sources};

/// Files that may sleep, each with the reason.
const SLEEPERS: &[(&str, &str)] = &[(
    "crates/trunkline-bench/examples/commit_latency.rs",
    "a checkpoint that is spread over time pauses between its writes",
)];
/// The façade itself.
const FACADE: &[&str] = &["crates/trunkline-aio/src/facade", "crates/trunkline-aio/src/clock"];
/// Packages that measure the real machine. They have their own clippy.toml for the same reason.
const REAL_MACHINE: &[&str] = &["crates/trunkline-bench/"];
/// Files that need std's atomics, each with the reason.
const STD_ATOMICS: &[(&str, &str)] = &[(
    "crates/trunkline/src/interrupt.rs",
    "signal handlers set it, and none runs under the scheduler",
)];
/// Names that bypass the façade, whatever path precedes them.
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

/// No code sleeps, including tests.
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

/// No code bypasses the façade, or imports what it replaces under another name.
pub(super) fn bypass(sources: &Sources, findings: &mut Findings) {
    for source in sources.rust().filter(|source| source.path.starts_with("crates/")) {
        if FACADE.iter().chain(REAL_MACHINE).any(|place| source.path.starts_with(place)) {
            continue;
        }
        for word in BYPASSES {
            for at in code::words(&source.code, word) {
                let text = format!("{word} goes round trunkline_aio::facade and ::clock");
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

/// Finds direct uses of std's atomics. In an ordinary build, the façade just re-exports std's
/// atomics, so clippy can't tell which of the two paths the code used. Tests may use std's atomics
/// directly. For example, there is no point in having the scheduler interleave threads at the
/// counter of a test's allocator.
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
            findings.add(&source.path, line, "atomics of std: use trunkline_aio::facade::atomic");
        }
    }
}

/// All `use …;` items with their positions.
fn uses(source: &Source) -> impl Iterator<Item = (usize, &str)> {
    code::words(&source.code, "use").filter_map(|at| {
        let rest = &source.code[at..];
        rest.find(';').map(|end| (at, &rest[..end]))
    })
}

/// Banned names that a `use` renames.
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
