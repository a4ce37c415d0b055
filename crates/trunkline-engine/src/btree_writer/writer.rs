//! **The writer** of one index, and how it looks at pages.

use std::path::PathBuf;

use trunkline_format::btree::{BtreePage, Fault, Meta, Order};
use trunkline_format::{BlockNo, PageBytes};

use super::error::BtreeWriteError;
use crate::btree::{BtreeError, BtreeProblem, Index};
use crate::heap_writer::HeapSession;
use crate::pool::Backend;
use crate::settings::ExtendMethod;

/// Inserts into one index. Each session has its own.
#[derive(Debug)]
pub struct BtreeWriter {
    pub(super) index: Index,
    /// A new page for the next split, by which the index was already extended.
    pub(super) spare: Option<BlockNo>,
}

impl BtreeWriter {
    /// A writer for an index that exists.
    ///
    /// # Errors
    /// [`BtreeWriteError::UnknownOrder`].
    pub fn new(index: Index) -> Result<Self, BtreeWriteError> {
        let orders = index.layout().keys().iter().map(|column| column.order);
        match (1..).zip(orders).find(|(_, order)| *order == Order::Unknown) {
            Some((column, _)) => Err(BtreeWriteError::UnknownOrder { column }),
            None => Ok(Self { index, spare: None }),
        }
    }

    /// Reads the metapage, and refuses an index that can't be written.
    pub(super) fn meta(&self, backend: &mut Backend) -> Result<Meta, BtreeWriteError> {
        let meta = self.index.meta(backend)?;
        let location = || self.index.relation().location(0);
        let Meta { version: found, root, fast_root, .. } = meta;
        if !meta.orders_rows() {
            return Err(BtreeWriteError::Version { location: location(), found });
        }
        if root != fast_root {
            return Err(BtreeWriteError::FastRoot { location: location(), fast_root, root });
        }
        Ok(meta)
    }

    /// A page of a level, which is locked.
    pub(super) fn open<'p>(
        &self,
        block: BlockNo,
        page: &'p PageBytes,
        level: u32,
    ) -> Result<BtreePage<'p>, BtreeError> {
        let page = BtreePage::parse(page).map_err(|fault| self.fault(block, fault))?;
        let found = page.level();
        match page.is_deleted() || found == level {
            true => Ok(page),
            false => Err(self.index.corrupt(block, BtreeProblem::Level { found, expected: level })),
        }
    }

    pub(super) fn fault(&self, block: BlockNo, fault: Fault) -> BtreeError {
        self.index.corrupt(block, BtreeProblem::Fault(fault))
    }

    /// Returns the spare page, or extends the index by one. The caller clears [`BtreeWriter::spare`] once the page is used.
    pub(super) fn new_page(
        &mut self,
        session: &mut HeapSession<'_>,
    ) -> Result<BlockNo, BtreeWriteError> {
        if let Some(block) = self.spare {
            return Ok(block);
        }
        let relation = self.index.relation();
        let pins = session.backend.extend(relation, 1, ExtendMethod::default())?;
        let Some(block) = pins.first().map(|pin| pin.page().block()) else {
            unreachable!("an extension adds at least one block");
        };
        self.spare = Some(block);
        Ok(block)
    }

    /// The first file of the index.
    pub(super) fn path(&self) -> PathBuf {
        self.index.relation().path(0)
    }
}
