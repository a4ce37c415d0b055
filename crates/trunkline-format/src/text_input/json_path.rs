//! `jsonpath` input, and paths as trees for their execution.
//!
//! ```text
//!   $.a[*] ? (@.b > 1)      Root, Key a, AnyArray, Filter(Binary(>, [Current, Key b], [Number 1]))
//! ```
//! A path is a chain of items, each of which is applied to the results of the one before.
//!
//! Mirrors PostgreSQL's `utils/adt/jsonpath_gram.y`, `jsonpath_scan.l` and `jsonpath.c`.

mod lexer;
mod parser;
mod tree;
mod writer;

use super::error::InputError;

pub use tree::{JsonPath, PathChain, PathItem, PathOperator};

/// The methods of strings that version 19 has added.
const STRING_METHODS: [&str; 8] =
    ["lower", "upper", "initcap", "replace", "split_part", "ltrim", "rtrim", "btrim"];

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// 42601 or 22P02 if the text isn't one; 0A000 if it may use a method of version 19, which we don't
    /// read. Regular expressions are not looked into.
    pub fn parse(text: &str, major: u32) -> Result<Self, InputError> {
        let is_new = || major >= 19 && STRING_METHODS.iter().any(|method| text.contains(method));
        parser::parse(text, major).map_err(|error| match is_new() {
            true => InputError::unsupported(
                "methods of strings in JSON paths are not supported by trunkline",
            ),
            false => error,
        })
    }

    /// Appends the stored form.
    pub fn store(&self, out: &mut Vec<u8>) {
        writer::store(self, out);
    }
}

/// Appends the stored form of a text.
pub(super) fn jsonpath(text: &str, major: u32, out: &mut Vec<u8>) -> Result<(), InputError> {
    JsonPath::parse(text, major)?.store(out);
    Ok(())
}
