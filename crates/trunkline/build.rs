//! Adds the git commit to the version that `trunkline --version` prints: `0.1.0 (19acc7a5f2d1)`.
//!
//! The same commit always gives the same text. A source tree without git has only the version.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = commit().map(|commit| format!(" ({commit})")).unwrap_or_default();
    println!("cargo::rustc-env=TRUNKLINE_VERSION={}{commit}", env!("CARGO_PKG_VERSION"));
}

/// The commit of the working tree, if this crate belongs to it.
fn commit() -> Option<String> {
    // A source archive may be unpacked inside some other repository, whose commit means nothing.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let head = git(&["rev-parse", "--git-path", "HEAD"])?;
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    // HEAD names a branch, so it only changes when another branch is checked out. Its log also
    // changes with each commit. Cargo would run this script every time if we named a missing file.
    for file in [head, log].iter().filter(|file| Path::new(file).exists()) {
        println!("cargo::rerun-if-changed={file}");
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|it| it.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
