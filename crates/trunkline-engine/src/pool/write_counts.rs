//! What somebody has written, counted for the relations that it was written of.
//!
//! Whoever writes for others (a checkpoint, the background writer, a session that makes room) does so for
//! many relations in turn, sorted, so the cell of the last one is kept at hand.

use super::backend::Backend;
use super::ring::Strategy;
use super::shared::Shared;
use super::stats::{BackendType, Cell, IoKey, IoObject, Tally};
use super::tag::Tag;
use trunkline_aio::sync::Arc;

/// See the module.
#[derive(Debug)]
pub(crate) struct WriteCounts {
    shared: Arc<Shared>,
    backend: BackendType,
    cell: Option<(IoKey, Arc<Cell>)>,
    tally: Tally,
}

impl WriteCounts {
    /// Of the writes of a session.
    pub(crate) fn new(backend: &Backend) -> Self {
        let shared = Arc::clone(&backend.shared);
        Self { shared, backend: backend.kind(), cell: None, tally: Tally::default() }
    }

    /// A write of so many blocks has ended well.
    pub(crate) fn note(&mut self, first: Tag, blocks: u32) {
        let object = if self.shared.local { IoObject::TempRelation } else { IoObject::Relation };
        let key = IoKey {
            backend: self.backend,
            object,
            context: Strategy::Normal,
            cluster: first.cluster(),
            relation: first.locator(),
        };
        if self.cell.as_ref().is_none_or(|(present, _)| *present != key) {
            self.show();
            self.cell = Some((key, self.shared.stats.cell(key)));
        }
        self.tally.writes += 1;
        self.tally.written_blocks += u64::from(blocks);
    }

    /// The system was told of so many ranges.
    pub(crate) fn told(&mut self, ranges: u64) {
        self.tally.writebacks += ranges;
    }

    /// Makes what was counted visible to others.
    pub(crate) fn show(&mut self) {
        if let Some((_, cell)) = &self.cell {
            cell.absorb(&mut self.tally);
        }
    }
}

impl Drop for WriteCounts {
    fn drop(&mut self) {
        self.show();
    }
}
