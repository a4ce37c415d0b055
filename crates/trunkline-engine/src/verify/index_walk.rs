//! Walks one index: checks its structure, and collects its entries for the table check.
//!
//! We check the structure only on the first walk. If the table is checked in parts, we walk the
//! index again to collect each part's entries, but don't report its problems a second time.

use trunkline_format::BlockNo;
use trunkline_format::btree::{BtreePage, Fault};

use super::btree_check::{self, LeafVisitor};
use super::checked_table::CheckedIndex;
use super::content_problem::ContentProblem;
use super::entry_table::EntryTable;
use super::key_hash::hash_entry;
use super::sink::Sink;
use super::unique_check::UniqueCheck;
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;

/// Walks the leaves of `index` and adds their entries to `entries`. `part` contains the table's
/// number of blocks and whether this is the first walk. `unique` is only passed on the first walk
/// of a unique index.
///
/// # Errors
/// The session was cancelled.
pub(super) fn collect_entries(
    index: &CheckedIndex,
    backend: &mut Backend,
    options: StreamOptions,
    part: (BlockNo, bool),
    entries: &mut EntryTable,
    unique: Option<UniqueCheck<'_>>,
    sink: &Sink<'_>,
) -> Result<(), ReadError> {
    let (blocks, first) = part;
    let known: Vec<bool> = index.sources.iter().map(Option::is_some).collect();
    let mut collector = EntryCollector { index, entries, sink, known, blocks, first, unique };
    let whole = btree_check::check(&index.index, backend, options, !first, &mut collector)?;
    let EntryCollector { unique, .. } = collector;
    // The walk ended early, so a row without an entry proves nothing.
    if !whole {
        entries.set_incomplete();
    }
    match unique {
        Some(unique) if !sink.is_stopping() => unique.finish(backend, options),
        _ => Ok(()),
    }
}

/// The walk's visitor: passes entries on to the entry table and to the uniqueness check.
struct EntryCollector<'l, 's, 'u> {
    index: &'l CheckedIndex,
    entries: &'l mut EntryTable,
    sink: &'l Sink<'s>,
    /// For each index column, whether it is a column of the table rather than an expression. We
    /// cannot evaluate expressions, so they are left out of the hash.
    known: Vec<bool>,
    blocks: BlockNo,
    /// Whether this is the first walk.
    first: bool,
    unique: Option<UniqueCheck<'u>>,
}

impl LeafVisitor for EntryCollector<'_, '_, '_> {
    /// Adds a leaf's entries. Invalid entries are skipped, but make the set incomplete, so that we
    /// don't report their rows as missing from the index.
    fn leaf(&mut self, block: BlockNo, page: &BtreePage<'_>) -> Result<(), Fault> {
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
                    self.problem(block, Some(entry.item()), problem);
                }
                self.sink.count_entries(entry.rows().count() as u64);
            }
        }
        Ok(())
    }

    /// Reports a problem, but only on the first walk: later walks find the same problems again.
    fn problem(&mut self, block: BlockNo, item: Option<u16>, problem: ContentProblem) {
        if self.first {
            self.sink.index(self.index, block, item, problem);
        }
    }

    /// Counts a page on the first walk, so that progress counts each page once.
    fn page_done(&mut self, backend: &mut Backend) -> Result<bool, ReadError> {
        if self.first {
            self.sink.count_page();
        }
        if let Some(unique) = &mut self.unique {
            unique.page_done(backend)?;
        }
        Ok(!self.sink.is_stopping())
    }
}
