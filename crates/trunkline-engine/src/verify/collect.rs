//! One index: its structure, and its entries for the table's check.
//!
//! The first time an index is walked it is checked too; if its table is done in parts, it is walked
//! again for the entries of the next.

use trunkline_format::BlockNo;
use trunkline_format::btree::{BtreePage, Fault};

use super::entries::{Entries, hash_entry};
use super::problem::ContentProblem;
use super::sink::Sink;
use super::structure::{self, Visitor};
use super::target::IndexTarget;
use super::unique::Unique;
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;

/// Walks the leaves of `index`, an index of `target`, and adds what they have to `entries`. `part`:
/// blocks of the table, and whether this is the first walk, on which `unique` is given if the index
/// is.
///
/// # Errors
/// The session was cancelled.
pub(super) fn collect(
    index: &IndexTarget,
    backend: &mut Backend,
    options: StreamOptions,
    part: (BlockNo, bool),
    entries: &mut Entries,
    unique: Option<Unique<'_>>,
    sink: &Sink<'_>,
) -> Result<(), ReadError> {
    let (blocks, first) = part;
    let known: Vec<bool> = index.sources.iter().map(Option::is_some).collect();
    let mut leaves = Leaves { index, entries, sink, known, blocks, first, unique };
    let whole = structure::check(&index.index, backend, options, !first, &mut leaves)?;
    let Leaves { unique, .. } = leaves;
    if !whole {
        entries.set_incomplete();
    }
    match unique {
        Some(unique) if !sink.is_stopping() => unique.finish(backend, options),
        _ => Ok(()),
    }
}

struct Leaves<'l, 's, 'u> {
    index: &'l IndexTarget,
    entries: &'l mut Entries,
    sink: &'l Sink<'s>,
    /// Of each column, whether the table has it.
    known: Vec<bool>,
    blocks: BlockNo,
    first: bool,
    unique: Option<Unique<'u>>,
}

impl Visitor for Leaves<'_, '_, '_> {
    fn leaf(&mut self, block: BlockNo, page: &BtreePage<'_>) -> Result<(), Fault> {
        if let Some(unique) = &mut self.unique {
            unique.leaf(page);
        }
        for entry in page.entries() {
            // One that cannot be taken apart is told by the check of the page.
            let entry = match entry {
                Ok(entry) => entry,
                Err(_) => {
                    self.entries.set_incomplete();
                    continue;
                }
            };
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

    fn problem(&mut self, block: BlockNo, item: Option<u16>, problem: ContentProblem) {
        if self.first {
            self.sink.index(self.index, block, item, problem);
        }
    }

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
