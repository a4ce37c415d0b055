//! Adds the git commit to the version that `trunkline --version` prints: `0.1.0 (19acc7a5f2d1)`.
//!
//! The same commit always gives the same text. A source tree without git has only the version.

use std::path::PathBuf;
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
    let path = |name: &str| git(&["rev-parse", "--git-path", name]).map(PathBuf::from);
    // HEAD names a branch, so it only changes when another branch is checked out. A commit changes
    // the branch's own file and the log of HEAD. There may be no log, and another worktree that moves
    // the branch doesn't write it.
    let mut files = vec![path("HEAD")?, path("logs/HEAD")?];
    if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"]) {
        let file = path(&branch)?;
        // A branch may be in a list of all refs instead. Its next commit makes the file, so we look
        // at the directory where that will be.
        files.extend(file.ancestors().find(|at| at.exists()).map(PathBuf::from));
        files.push(path("packed-refs")?);
    }
    // Cargo would run this script every time if we named a missing file.
    for file in files.iter().filter(|file| file.exists()) {
        println!("cargo::rerun-if-changed={}", file.display());
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|it| it.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
