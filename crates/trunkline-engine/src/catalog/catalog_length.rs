//! The minimum length of a catalog, from its index, and pages that were overwritten with zeros.
//!
//! If `pg_class` has lost the pages at its end, the pages that remain are valid, and the tables that
//! the others describe are just not there. A server notices this when an index scan arrives at a
//! row on a missing page. We read catalogs sequentially, so we look for the last row in the index
//! ourselves. That makes us read the index, which is much smaller than its catalog.
//!
//! A page of zeros is valid too: it looks like a new page. There may be new pages in a catalog, but
//! no index has an entry for a row on one of them, because VACUUM removes the entries before it
//! frees the line pointers. We read the index a second time for this, but only if the catalog has
//! new pages.
//!
//! In the same way, `verify` proves the lengths of all tables while it reads all files anyway.

use trunkline_format::btree::BtreePage;
use trunkline_format::page::is_new;
use trunkline_format::segment::segment_of;
use trunkline_format::{BlockNo, Fork, Tid};

use super::cluster::CatalogLocator;
use super::error::CatalogError;
use super::reader::Reader;
use crate::heap::HeapError;
use crate::pool::ReadError;
use crate::read_stream::{BlockRange, ReadStream, StreamOptions};
use crate::seq_scan::scan_strategy;
use crate::storage::{Relation, RelationLocator};

impl Reader<'_> {
    /// Returns an error if a catalog has `found` blocks, but must have more. After an unclean
    /// shutdown, nothing proves that it must.
    pub(super) fn short(
        &mut self,
        relation: &Relation,
        found: BlockNo,
        locator: CatalogLocator,
    ) -> Result<Option<CatalogError>, CatalogError> {
        let Some(index) = locator.index.filter(|_| self.cluster.clean) else { return Ok(None) };
        let last = self.last_indexed_row(index)?.filter(|row| row.block >= found);
        Ok(last.map(|row| CatalogError::Short {
            path: relation.path(segment_of(found).0),
            table: locator.table,
            found,
            expected: row.block.saturating_add(1),
            row,
        }))
    }

    /// Returns an error if one of the pages in `new`, which is sorted, must have rows. After an
    /// unclean shutdown, nothing proves that it must.
    pub(super) fn new_page(
        &mut self,
        relation: &Relation,
        new: &[BlockNo],
        locator: CatalogLocator,
    ) -> Result<Option<CatalogError>, CatalogError> {
        let index = locator.index.filter(|_| self.cluster.clean && !new.is_empty());
        let Some(index) = index else { return Ok(None) };
        let mut first: Option<Tid> = None;
        self.read_index(index, |page| {
            // Entries of a deleted page are not entries of the index.
            if !page.is_ignored() {
                let rows = page.entries().flatten().flat_map(|entry| entry.rows());
                let lost = rows.filter(|row| new.binary_search(&row.block).is_ok());
                first = lost.chain(first).min();
            }
        })?;
        Ok(first.map(|row| CatalogError::NewPage {
            path: relation.path(segment_of(row.block).0),
            table: locator.table,
            row,
        }))
    }

    /// Returns the last row that an index refers to.
    fn last_indexed_row(&mut self, index: RelationLocator) -> Result<Option<Tid>, CatalogError> {
        let mut last = None;
        self.read_index(index, |page| last = last.max(page.last_row()))?;
        Ok(last)
    }

    /// Passes the pages of an index to `each`. We skip pages that can't be read, since we don't need
    /// the index for anything else. `verify` reports these pages.
    fn read_index(
        &mut self,
        index: RelationLocator,
        mut each: impl FnMut(&BtreePage<'_>),
    ) -> Result<(), CatalogError> {
        let index = self.cluster.storage.relation(index, Fork::Main);
        let Ok(blocks) = index.blocks() else { return Ok(()) };
        let strategy = scan_strategy(blocks, self.backend.pool_buffers());
        let options = StreamOptions { sequential: true, strategy, ..StreamOptions::default() };
        // Block 0 is the metapage.
        let source = BlockRange::new(1..blocks.max(1));
        let mut stream = ReadStream::new(self.backend, &index, source, options);
        loop {
            match stream.next(self.backend) {
                Ok(Some(found)) => {
                    let page = self.backend.read_lock(found.pin).map_err(HeapError::from)?;
                    if let Ok(parsed) = BtreePage::parse(&page)
                        && !is_new(&page)
                    {
                        each(&parsed);
                    }
                }
                Ok(None) => return Ok(()),
                Err(error @ ReadError::Cancelled) => return Err(HeapError::from(error).into()),
                Err(error) if error.block().is_none() => return Ok(()),
                Err(_) => {}
            }
        }
    }
}
