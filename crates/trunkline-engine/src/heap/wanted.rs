//! Which rows of a block a scan wants. The block's source says so, with the data of the block.

use super::hot_chain::ChainRoot;

/// The most rows that a page can have (`MaxHeapTuplesPerPage`).
pub(crate) const HEAP_TUPLES_MAX: u16 = 291;

/// The rows of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// All rows that pass the filter. If `recheck` is true, some of them may not match the condition
    /// that has led to the block.
    All {
        /// Whether the caller must check the condition.
        recheck: bool,
    },
    /// The visible rows of these HOT chains, in this order.
    Chains {
        /// The chains.
        roots: &'a [ChainRoot],
        /// Whether the caller must check the condition.
        recheck: bool,
    },
}

/// Data of a block that says which rows are wanted.
pub trait WantedRows {
    /// The rows.
    fn wanted(&self) -> Wanted<'_>;

    /// How many rows there can be.
    fn rows_max(&self) -> u64 {
        match self.wanted() {
            Wanted::All { .. } => u64::from(HEAP_TUPLES_MAX),
            Wanted::Chains { roots, .. } => roots.len() as u64,
        }
    }
}

impl WantedRows for () {
    fn wanted(&self) -> Wanted<'_> {
        Wanted::All { recheck: false }
    }
}
