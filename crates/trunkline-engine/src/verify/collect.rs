//! One index: its structure, and its entries for the table's check.
//!
//! The first time an index is walked it is checked too; if its table is done in parts, it is walked
//! again for the entries of the next.

use trunkline_format::BlockNo;
use trunkline_format::btree::{BtreePage, Fault};

use super::contents::Sink;
use super::entries::{Entries, hash_entry};
use super::problem::ContentProblem;
use super::structure::{self, Visitor};
use super::target::IndexTarget;
use crate::pool::{Backend, ReadError};
use crate::read_stream::StreamOptions;

/// Walks the leaves of `index` and adds what they have to `entries`. `part`: blocks of the table,
/// and whether this is the first walk.
///
/// # Errors
/// The session was cancelled.
pub(super) fn collect(
    index: &IndexTarget,
    backend: &mut Backend,
    options: StreamOptions,
    part: (BlockNo, bool),
    entries: &mut Entries,
    sink: &Sink<'_>,
) -> Result<(), ReadError> {
    let (blocks, first) = part;
    let known: Vec<bool> = index.sources.iter().map(Option::is_some).collect();
    let mut leaves = Leaves { index, entries, sink, known, blocks, first };
    let whole = structure::check(&index.index, backend, options, !first, &mut leaves)?;
    if !whole {
        entries.set_incomplete();
    }
    Ok(())
}

struct Leaves<'l, 's> {
    index: &'l IndexTarget,
    entries: &'l mut Entries,
    sink: &'l Sink<'s>,
    /// Of each column, whether the table has it.
    known: Vec<bool>,
    blocks: BlockNo,
    first: bool,
}

impl Visitor for Leaves<'_, '_> {
    fn leaf(&mut self, block: BlockNo, page: &BtreePage<'_>) -> Result<(), Fault> {
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

    fn go_on(&mut self) -> bool {
        if self.first {
            self.sink.count_page();
        }
        !self.sink.is_stopping()
    }
}
