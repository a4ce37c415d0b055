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
mod reader;
mod tree;
mod writer;

use super::error::InputError;
use crate::text_output::ValueError;

pub use tree::{JsonPath, PathChain, PathItem, PathOperator};

impl JsonPath {
    /// Reads a path.
    ///
    /// # Errors
    /// 42601 or 22P02 if the text isn't one; 0A000 for methods that version 19 has added. Regular expressions are not looked into.
    pub fn parse(text: &str, major: u32) -> Result<Self, InputError> {
        parser::parse(text, major)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// The value is damaged, or it has a method that version 19 has added.
    pub fn read(value: &[u8]) -> Result<Self, ValueError> {
        reader::read(value)
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
