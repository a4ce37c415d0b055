//! The checkout we work on: where it is, where builds go, and which files belong to it.
//! "Belong" means tracked, or new and not ignored: a file is checked before it is committed, not after.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::invocation::Invocation;

/// A source tree on disk.
#[derive(Debug, Clone)]
pub(crate) struct Checkout {
    /// The folder with the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// Where cargo builds, and where we keep fixtures and scratch copies.
    pub(crate) target: PathBuf,
}

impl Checkout {
    /// The checkout that this program was started for.
    pub(crate) fn find() -> Result<Self, Failure> {
        let root = match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(dir) => PathBuf::from(dir).join(".."),
            None => PathBuf::from("."),
        };
        let root = root.canonicalize().map_err(|error| Failure::io(root.display(), error))?;
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            // cargo takes a relative one from where it was called; so do we
            Some(dir) => std::path::absolute(&dir)
                .map_err(|error| Failure::io(Path::new(&dir).display(), error))?,
            None => root.join("target"),
        };
        Ok(Self { root, target })
    }

    /// Paths of all files that belong to the tree, relative to its root, sorted.
    pub(crate) fn files(&self) -> Result<Vec<String>, Failure> {
        // A CI checkout may belong to another user; git would refuse to list it.
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

    /// A cargo command in this checkout.
    pub(crate) fn cargo(&self, args: &str) -> Invocation {
        Invocation::new(&self.root, "cargo", args)
    }
}
