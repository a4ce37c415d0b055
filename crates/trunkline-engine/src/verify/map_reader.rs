//! Reads a table's visibility map, in step with the table's blocks.
//!
//! Like a server, we assume that any bits beyond the end of the map are clear. A table that has
//! never been vacuumed doesn't have a visibility map at all.

use trunkline_format::visibility_map::{self, VisibilityBits};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use super::checked_table::CheckedTable;
use super::content_problem::ContentProblem;
use super::sink::Sink;
use crate::pool::{Backend, ReadError};
use crate::storage::StorageError;

/// The visibility map of one table.
pub(super) struct MapReader<'t> {
    table: &'t CheckedTable,
    sink: &'t Sink<'t>,
    /// The number of blocks of the map.
    blocks: BlockNo,
    /// A copy of one block of the map, together with the block's number.
    page: Box<PageBytes>,
    /// The number of the block in `page`.
    at: Option<BlockNo>,
}

impl<'t> MapReader<'t> {
    /// Opens the map. If the map doesn't exist, we treat it as empty, because that's normal for a
    /// table that has never been vacuumed. We also treat it as empty after any other error, but
    /// then we report a finding.
    pub(super) fn new(table: &'t CheckedTable, sink: &'t Sink<'t>) -> Self {
        let blocks = match table.map.blocks() {
            Ok(blocks) => blocks,
            Err(StorageError::SegmentMissing { .. }) => 0,
            Err(error) => {
                sink.map(table, 0, ContentProblem::Unreadable(error.to_string()));
                0
            }
        };
        Self { table, sink, blocks, page: Box::new([0; BLOCK_SIZE]), at: None }
    }

    /// The bits for a block of the table.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn bits(
        &mut self,
        backend: &mut Backend,
        block: BlockNo,
    ) -> Result<VisibilityBits, ReadError> {
        let at = visibility_map::map_block(block);
        if at >= self.blocks {
            return Ok(VisibilityBits::default());
        }
        if self.at != Some(at) {
            self.read(backend, at)?;
        }
        Ok(visibility_map::bits(&self.page, block))
    }

    /// Copies a block of the map. If the block can't be read, we report that and assume that all of
    /// its bits are clear. That's always safe, because a clear bit only means that we can't assume
    /// anything about the page.
    fn read(&mut self, backend: &mut Backend, at: BlockNo) -> Result<(), ReadError> {
        self.at = Some(at);
        match backend.read(&self.table.map, at) {
            Ok(pin) => *self.page = *backend.read_lock(pin.page())?,
            Err(ReadError::Cancelled) => return Err(ReadError::Cancelled),
            Err(error) => {
                *self.page = [0; BLOCK_SIZE];
                let problem = ContentProblem::Unreadable(error.to_string());
                self.sink.map(self.table, at, problem);
            }
        }
        Ok(())
    }

    /// Checks that no bit is set for a block beyond the end of the table. `blocks` is the table's
    /// length. If such a bit were set, and the table then grew, a new page would wrongly be treated
    /// as all-visible.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn check_end(
        &mut self,
        backend: &mut Backend,
        blocks: BlockNo,
    ) -> Result<(), ReadError> {
        for at in visibility_map::map_block(blocks)..self.blocks {
            self.read(backend, at)?;
            let beyond = visibility_map::covered(&self.page, at)
                .any(|(block, bits)| block >= blocks && bits != VisibilityBits::default());
            if beyond {
                self.sink.map(self.table, at, ContentProblem::MapBeyondEnd { blocks });
            }
        }
        Ok(())
    }
}
