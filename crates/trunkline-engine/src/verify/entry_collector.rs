//! Collects one index's entries for the table check, and passes on any problems found during the
//! walk.
//!
//! We check the structure of the index only on the first walk. If the table is checked in parts, we
//! have to walk the index again for each part to collect its entries, but we must not report the
//! same problems again.

use trunkline_format::BlockNo;
use trunkline_format::btree::BtreePage;

use super::checked_table::CheckedIndex;
use super::content_problem::ContentProblem;
use super::entry_table::EntryTable;
use super::key_hash::hash_entry;
use super::sink::Sink;
use super::unique_check::UniqueCheck;
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;

/// Receives the leaves and problems of a walk. Passes entries on to the entry table and to the
/// uniqueness check.
pub(super) struct EntryCollector<'l, 's, 'u> {
    pub(super) index: &'l CheckedIndex,
    entries: &'l mut EntryTable,
    sink: &'l Sink<'s>,
    /// For each column of the index, whether it is a column of the table. If not, it's an
    /// expression, and since we can't evaluate expressions, we leave it out of the hash.
    known: Vec<bool>,
    blocks: BlockNo,
    /// Whether this is the first walk.
    pub(super) first: bool,
    unique: Option<UniqueCheck<'u>>,
}

impl<'l, 's, 'u> EntryCollector<'l, 's, 'u> {
    /// Creates a collector that adds the entries of `index` to `entries`. The pair contains the
    /// number of blocks in the table and a flag that is true on the first walk. The caller must
    /// pass `unique` only on the first walk of a unique index.
    pub(super) fn new(
        index: &'l CheckedIndex,
        (blocks, first): (BlockNo, bool),
        entries: &'l mut EntryTable,
        unique: Option<UniqueCheck<'u>>,
        sink: &'l Sink<'s>,
    ) -> Self {
        let known = index.sources.iter().map(Option::is_some).collect();
        Self { index, entries, sink, known, blocks, first, unique }
    }

    /// Adds the entries of a leaf. We skip invalid entries, but remember that the set of entries is
    /// incomplete. Otherwise, we would report that the rows of those entries are missing from the
    /// index.
    pub(super) fn leaf(&mut self, block: BlockNo, page: &BtreePage<'_>) {
        if let Some(unique) = &mut self.unique {
            unique.leaf(page);
        }
        for entry in page.entries() {
            // The page check has already reported the invalid entries, so we just remember that the
            // set is incomplete.
            let entry = match entry {
                Ok(entry) => entry,
                Err(_) => {
                    self.entries.set_incomplete();
                    continue;
                }
            };
            // An entry with a posting list adds one TID for each row, and all of them have the same
            // hash.
            match hash_entry(self.index, &entry, &self.known) {
                Ok(hash) => self.entries.add(&entry, hash),
                Err(_) => self.entries.set_incomplete(),
            }
            if self.first {
                let beyond = entry.rows().find(|row| row.block >= self.blocks);
                if let Some(row) = beyond {
                    let problem = ContentProblem::EntryBeyondEnd { row, blocks: self.blocks };
                    self.sink.index(self.index, block, Some(entry.item()), problem);
                }
                self.sink.count_entries(entry.rows().count() as u64);
            }
        }
    }

    /// Reports a problem, but only on the first walk, because later walks find the same problems
    /// again.
    pub(super) fn problem(&self, block: BlockNo, problem: ContentProblem) {
        if self.first {
            self.sink.index(self.index, block, None, problem);
        }
    }

    /// Must be called after each page, on any level. On the first walk, counts the page for the
    /// progress report; later walks must not count it again. Returns false if the walk should stop.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn page_done(&mut self, backend: &mut Backend) -> Result<bool, ReadError> {
        if self.first {
            self.sink.count_page();
        }
        if let Some(unique) = &mut self.unique {
            unique.page_done(backend)?;
        }
        Ok(!self.sink.is_stopping())
    }
    /// Completes the uniqueness check. `whole` must be false if the walk ended early.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn finish(
        self,
        backend: &mut Backend,
        options: StreamOptions,
        whole: bool,
    ) -> Result<(), ReadError> {
        // Since the walk ended early, we can't conclude from a missing entry that the index is
        // damaged.
        if !whole {
            self.entries.set_incomplete();
        }
        match self.unique {
            Some(unique) if !self.sink.is_stopping() => unique.finish(backend, options),
            _ => Ok(()),
        }
    }
}
