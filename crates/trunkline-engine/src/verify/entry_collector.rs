//! Collects the entries of one index for the table check, and passes on what the walk finds.
//!
//! We check the structure only on the first walk. If the table is checked in parts, we walk the
//! index again to collect the entries for each part, but must not report the same problems a second
//! time.

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
    /// For each index column, whether it is a column of the table rather than an expression. We
    /// can't evaluate expressions, so the hash doesn't include them.
    known: Vec<bool>,
    blocks: BlockNo,
    /// Whether this is the first walk.
    pub(super) first: bool,
    unique: Option<UniqueCheck<'u>>,
}

impl<'l, 's, 'u> EntryCollector<'l, 's, 'u> {
    /// Creates a collector that adds the entries of `index` to `entries`. The pair contains the
    /// table's number of blocks, and whether this is the first walk. `unique` is only passed on the
    /// first walk of a unique index.
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

    /// Adds a leaf's entries. Invalid entries are skipped, but we note that the set is incomplete,
    /// so that we don't report their rows as missing from the index.
    pub(super) fn leaf(&mut self, block: BlockNo, page: &BtreePage<'_>) {
        if let Some(unique) = &mut self.unique {
            unique.leaf(page);
        }
        for entry in page.entries() {
            // The page check already reports invalid entries, so here they only make the set
            // incomplete.
            let entry = match entry {
                Ok(entry) => entry,
                Err(_) => {
                    self.entries.set_incomplete();
                    continue;
                }
            };
            // A posting list entry adds one TID per row, all with the same hash.
            match hash_entry(self.index.index.layout(), &entry, &self.known) {
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

    /// Reports a problem, but only on the first walk: later walks find the same problems again.
    pub(super) fn problem(&self, block: BlockNo, problem: ContentProblem) {
        if self.first {
            self.sink.index(self.index, block, None, problem);
        }
    }

    /// Counts a page, but only on the first walk, so that progress counts each page once. Called
    /// after each page of any level. Returns false if the walk should stop.
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
    /// Completes the uniqueness check. `whole` is false if the walk ended early.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn finish(
        self,
        backend: &mut Backend,
        options: StreamOptions,
        whole: bool,
    ) -> Result<(), ReadError> {
        // The walk ended early, so a missing entry doesn't mean that the index is damaged.
        if !whole {
            self.entries.set_incomplete();
        }
        match self.unique {
            Some(unique) if !self.sink.is_stopping() => unique.finish(backend, options),
            _ => Ok(()),
        }
    }
}
