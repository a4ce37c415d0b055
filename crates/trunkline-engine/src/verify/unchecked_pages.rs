//! Pages of a crashed directory that are not checked, since we have no redo rules for their index method.
//!
//! A server has the rules, so these pages are not known to be damaged.

use std::fmt;
use std::path::PathBuf;

use trunkline_aio::facade::Arc;
use trunkline_format::BlockNo;

use crate::replay::PageRedoError;

/// Pages of one relation that are not checked.
#[derive(Debug)]
pub struct UncheckedPages {
    /// The file with the first of them. The path includes the data directory.
    pub path: PathBuf,
    /// Database, schema and relation, quoted. `None` if the catalog was not read.
    pub relation: Option<Arc<str>>,
    /// How many pages, from 1 on.
    pub pages: u64,
    /// The first of them, counted over all segments.
    pub block: BlockNo,
    /// The record of that page for which we have no rule.
    pub reason: PageRedoError,
}

/// Prints how many pages, and the first one, without the relation and the file.
impl fmt::Display for UncheckedPages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pages, block, reason, .. } = self;
        match pages {
            1 => write!(f, "block {block} is not checked: {reason}"),
            _ => write!(f, "{pages} pages are not checked, the first is block {block}: {reason}"),
        }
    }
}
