//! Error location: the file, block and line pointer that an error refers to.
//!
//! A message about a damaged page is useful only if it says which page is damaged. Every engine
//! error that concerns a file therefore includes a [`Location`]. This way all messages have the
//! same format, and a caller that wants to skip the block, for example, doesn't have to parse the
//! text. `trunkline-format` only sees bytes and doesn't know which file they came from, so it
//! leaves the location to the engine.
//!
//! ```
//! use trunkline_engine::Location;
//!
//! let location = Location::new("base/5/16384.1").at_block(131_079).at_item(3);
//! assert_eq!(location.to_string(), r#"block 131079, line pointer 3 of file "base/5/16384.1""#);
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use trunkline_format::BlockNo;

/// A file, or a block or line pointer in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    path: PathBuf,
    block: Option<BlockNo>,
    /// Set only if `block` is.
    item: Option<u16>,
}

impl Location {
    /// A whole file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), block: None, item: None }
    }

    /// A block in the file. As in PostgreSQL's messages and in a `ctid`, blocks are counted from
    /// the start of the relation, not from the start of the segment file.
    #[must_use]
    pub fn at_block(self, block: BlockNo) -> Self {
        Self { block: Some(block), ..self }
    }

    /// A line pointer in the block, or an entry of an index page. Numbering starts at 1.
    #[must_use]
    pub fn at_item(self, item: u16) -> Self {
        Self { item: Some(item), ..self }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The block, counted from the start of the relation.
    pub fn block(&self) -> Option<BlockNo> {
        self.block
    }

    /// The line pointer, counting from 1.
    pub fn item(&self) -> Option<u16> {
        self.item
    }
}

/// `block 7, line pointer 3 of file "base/5/16384"`, omitting unknown parts.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.block, self.item) {
            (Some(block), Some(item)) => write!(f, "block {block}, line pointer {item} of ")?,
            (Some(block), None) => write!(f, "block {block} of ")?,
            (None, _) => {}
        }
        write!(f, "file \"{}\"", self.path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_the_parts_that_are_known() {
        let file = Location::new("base/5/16384");
        assert_eq!(file.to_string(), r#"file "base/5/16384""#);
        let block = file.at_block(7);
        assert_eq!(block.to_string(), r#"block 7 of file "base/5/16384""#);
        let tuple = block.at_item(3);
        assert_eq!(tuple.to_string(), r#"block 7, line pointer 3 of file "base/5/16384""#);
    }
}
