//! **Source tree**: finds the checkout, its build directory, and the files that belong to the tree.
//! These are the files that git tracks, and new files that git doesn't ignore. We include new files
//! so that they're checked before they are committed.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::invocation::Invocation;

/// A source tree on disk.
#[derive(Debug, Clone)]
pub(crate) struct Checkout {
    /// Directory that contains the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// Cargo's target directory, which also contains fixtures and scratch copies.
    pub(crate) target: PathBuf,
}

impl Checkout {
    /// The checkout this program was started for.
    pub(crate) fn find() -> Result<Self, Failure> {
        let root = match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(dir) => PathBuf::from(dir).join(".."),
            None => PathBuf::from("."),
        };
        let root = root.canonicalize().map_err(|error| Failure::io(root.display(), error))?;
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            // Like Cargo, we interpret a relative target directory relative to the current
            // directory of the caller.
            Some(dir) => std::path::absolute(&dir)
                .map_err(|error| Failure::io(Path::new(&dir).display(), error))?,
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// Paths of all files of the tree, relative to its root and sorted.
    pub(crate) fn files(&self) -> Result<Vec<String>, Failure> {
        // In CI, another user may own the checkout. Git would then refuse to list its files.
        let list = "-c safe.directory=* ls-files -z --cached --others --exclude-standard";
        let listed = Invocation::new(&self.root, "git", list).capture()?;
        if !listed.success() {
            return Err(Failure::new(format!("git ls-files: {}", listed.text.trim())));
        }
        let mut files: Vec<String> = listed
            .text
            .split_terminator('\0')
            .filter(|path| self.root.join(path).is_file())
            .map(str::to_owned)
            .collect();
        files.sort();
        files.dedup();
        Ok(files)
    }

    /// Builds a cargo command that runs in this checkout.
    pub(crate) fn cargo(&self, args: &str) -> Invocation {
        Invocation::new(&self.root, "cargo", args)
    }
}
