//! All text files of the tree, in memory, with what the rules ask about them.
//! Rules never touch the disk, so their tests are a path and a string.

use std::fs;

use super::code;
use crate::failure::Failure;
use crate::tree::Checkout;

/// The files, sorted by path.
pub(super) struct Sources {
    pub(super) files: Vec<Source>,
}

/// One text file.
pub(super) struct Source {
    /// Relative to the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
    /// Rust only: the text with comments and the inside of literals blanked; same lines. Otherwise empty.
    pub(super) code: String,
    /// Rust only: per line, does it belong to tests?
    in_test: Vec<bool>,
}

impl Sources {
    /// Reads every file of a checkout that is text.
    pub(super) fn load(checkout: &Checkout) -> Result<Self, Failure> {
        let mut files = Vec::new();
        for path in checkout.files()? {
            let bytes =
                fs::read(checkout.root.join(&path)).map_err(|error| Failure::io(&path, error))?;
            if let Ok(text) = String::from_utf8(bytes) {
                files.push(Source::new(path, text));
            }
        }
        Ok(Self { files })
    }

    /// The Rust files.
    pub(super) fn rust(&self) -> impl Iterator<Item = &Source> {
        self.files.iter().filter(|source| source.is_rust())
    }

    /// The file with exactly this path.
    pub(super) fn get(&self, path: &str) -> Option<&Source> {
        self.files.iter().find(|source| source.path == path)
    }

    /// Names and manifests of our packages, `crates/*` and `xtask`.
    pub(super) fn packages(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.files.iter().filter_map(|source| {
            let folder = source.path.strip_suffix("/Cargo.toml")?;
            let name = folder.strip_prefix("crates/").unwrap_or(folder);
            (!name.contains('/')).then_some((name, source))
        })
    }
}

impl Source {
    /// Takes a file apart.
    pub(super) fn new(path: String, text: String) -> Self {
        let mut source = Self { path, text, code: String::new(), in_test: Vec::new() };
        if source.is_rust() {
            source.code = code::blank(&source.text);
            let whole = source.is_test_file();
            source.in_test = code::test_lines(&source.code, whole);
        }
        source
    }

    /// Is this Rust?
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Is the file part of a package's `src`?
    pub(super) fn is_in_src(&self) -> bool {
        self.path.contains("/src/")
    }

    /// Path below the package's `src`, if it is there.
    pub(super) fn below_src(&self) -> Option<&str> {
        self.path.split_once("/src/").map(|(_, rest)| rest)
    }

    /// Lines of code, numbered from 1.
    pub(super) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Lines of text, numbered from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Does this line belong to tests? (numbered from 1)
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.in_test.get(line - 1).copied().unwrap_or(false)
    }

    /// The line of a byte of the code.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    fn is_test_file(&self) -> bool {
        let path = &self.path;
        path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs")
    }
}
