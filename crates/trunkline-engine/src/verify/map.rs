//! The visibility map of a table, page by page as its blocks are checked.
//!
//! A map that ends early says nothing of the rest, and a table that was never vacuumed has none.

use trunkline_format::visibility_map::{self, VisibilityBits};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use super::problem::ContentProblem;
use super::sink::Sink;
use super::target::Target;
use crate::pool::{Backend, ReadError};
use crate::storage::StorageError;

/// See the module.
pub(super) struct VisibilityMap<'t> {
    target: &'t Target,
    sink: &'t Sink<'t>,
    /// Blocks of the map.
    blocks: BlockNo,
    /// A copy of one of them, and which.
    page: Box<PageBytes>,
    at: Option<BlockNo>,
}

impl<'t> VisibilityMap<'t> {
    pub(super) fn of(target: &'t Target, sink: &'t Sink<'t>) -> Self {
        let blocks = match target.map.blocks() {
            Ok(blocks) => blocks,
            Err(StorageError::SegmentMissing { .. }) => 0,
            Err(error) => {
                sink.map(target, 0, ContentProblem::Unreadable(error.to_string()));
                0
            }
        };
        Self { target, sink, blocks, page: Box::new([0; BLOCK_SIZE]), at: None }
    }

    /// What it says of a block of the table.
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

    /// Copies a page of the map out; all zeros if it cannot be had, which says nothing.
    fn read(&mut self, backend: &mut Backend, at: BlockNo) -> Result<(), ReadError> {
        self.at = Some(at);
        match backend.read(&self.target.map, at) {
            Ok(pin) => *self.page = *backend.read_lock(pin.page())?,
            Err(ReadError::Cancelled) => return Err(ReadError::Cancelled),
            Err(error) => {
                *self.page = [0; BLOCK_SIZE];
                let problem = ContentProblem::Unreadable(error.to_string());
                self.sink.map(self.target, at, problem);
            }
        }
        Ok(())
    }

    /// Checks that it says nothing of blocks that a table of `blocks` does not have.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn beyond_end(
        &mut self,
        backend: &mut Backend,
        blocks: BlockNo,
    ) -> Result<(), ReadError> {
        for at in visibility_map::map_block(blocks)..self.blocks {
            self.read(backend, at)?;
            let beyond = visibility_map::covered(&self.page, at)
                .any(|(block, bits)| block >= blocks && bits != VisibilityBits::default());
            if beyond {
                self.sink.map(self.target, at, ContentProblem::MapBeyondEnd { blocks });
            }
        }
        Ok(())
    }
}
