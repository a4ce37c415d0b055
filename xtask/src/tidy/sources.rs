//! **Source files**: all text files of the tree, held in memory. The rules never read the disk, so
//! a test of a rule consists of just a path and a string.

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
    /// Path relative to the root, with `/` as the separator.
    pub(super) path: String,
    pub(super) text: String,
    /// The text with comments and the contents of literals blanked out. Line numbers don't change.
    /// Empty unless the file is Rust code.
    pub(super) code: String,
    /// For each line: is it test code? Empty for files other than Rust.
    in_test: Vec<bool>,
}

impl Sources {
    /// Reads all text files of a checkout.
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

    /// Names and manifests of our packages: `crates/*` and `xtask`.
    pub(super) fn packages(&self) -> impl Iterator<Item = (&str, &Source)> {
        self.files.iter().filter_map(|source| {
            let folder = source.path.strip_suffix("/Cargo.toml")?;
            let name = folder.strip_prefix("crates/").unwrap_or(folder);
            (!name.contains('/')).then_some((name, source))
        })
    }
}

impl Source {
    /// Builds the blanked text and the test-line map of a file.
    pub(super) fn new(path: String, text: String) -> Self {
        let mut source = Self { path, text, code: String::new(), in_test: Vec::new() };
        if source.is_rust() {
            source.code = code::blank(&source.text);
            let whole = source.is_test_file();
            source.in_test = code::test_lines(&source.code, whole);
        }
        source
    }

    /// Is this a Rust file?
    pub(super) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Is the file part of a package's `src`?
    pub(super) fn is_in_src(&self) -> bool {
        self.path.contains("/src/")
    }

    /// Path relative to the package's `src`, if the file is in it.
    pub(super) fn below_src(&self) -> Option<&str> {
        self.path.split_once("/src/").map(|(_, rest)| rest)
    }

    /// Lines of the blanked code, numbered from 1.
    pub(super) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Lines of text, numbered from 1.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Is this line (1-based) test code?
    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.in_test.get(line - 1).copied().unwrap_or(false)
    }

    /// Converts a byte offset in the code to a line number.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    fn is_test_file(&self) -> bool {
        let path = &self.path;
        path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs")
    }
}
