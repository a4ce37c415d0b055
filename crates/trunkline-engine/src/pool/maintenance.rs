//! Maintenance: lists and evicts buffers (`pg_buffercache`), and invalidates the pages of dropped
//! and truncated relations (`DropRelationBuffers`).
//!
//! All of these functions visit every buffer descriptor, as PostgreSQL's `DropRelationBuffers` does
//! for large relations. That's slow if the pool is large, but none of these functions are called on
//! the read path.

use super::backend::Backend;
use super::descriptor::{BufferState, flag};
use super::error::WriteError;
use super::manager::BufferManager;
use super::tag::BufferTag;
use crate::storage::{Relation, RelationLocator};
use trunkline_aio::facade::Arc;
use trunkline_aio::{Cancelled, WaitRef};
use trunkline_format::{BlockNo, Fork};

/// A row of `pg_buffercache`: a buffer that holds a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferRow {
    /// Number of the buffer, from 1.
    pub bufferid: u32,
    /// Number of the cluster ([`crate::storage::Storage::number`]).
    pub cluster: u16,
    /// The relation, or the SLRU ([`RelationLocator::slru`]).
    pub relation: RelationLocator,
    /// The fork. An SLRU has only the main fork.
    pub fork: Fork,
    /// The block.
    pub block: BlockNo,
    /// Whether the page must be written before it is evicted.
    pub dirty: bool,
    /// Whether the page is usable. If not, it is still being read, or the read failed.
    pub valid: bool,
    /// Usage count of the clock sweep.
    pub usage: u32,
    /// Pins, pins of I/O included.
    pub pins: u32,
    /// The I/O in progress on the page.
    pub io: Option<WaitRef>,
}

/// Result of evicting many buffers (as `pg_buffercache_evict_relation`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evicted {
    /// Buffers that were evicted.
    pub evicted: u32,
    /// Buffers that were not evicted because they were pinned or dirty, or because I/O was in
    /// progress.
    pub skipped: u32,
}

impl BufferManager {
    /// See [`super::Pool::rows`].
    pub(crate) fn rows(&self) -> Vec<BufferRow> {
        let rows = self.buffers().iter().filter_map(|(buffer, descriptor)| {
            let tag = descriptor.tag();
            let state = descriptor.state();
            // If the tag changed in between, it may be torn.
            if !state.has(flag::TAG_VALID) || descriptor.tag() != tag {
                return None;
            }
            let in_progress = state.has(flag::IO_IN_PROGRESS);
            Some(BufferRow {
                bufferid: buffer + 1,
                cluster: tag.cluster(),
                relation: tag.locator(),
                fork: tag.fork(),
                block: tag.block(),
                dirty: state.has(flag::DIRTY),
                valid: state.has(flag::VALID),
                usage: state.usage(),
                pins: state.pins(),
                io: if in_progress { descriptor.noted_io() } else { None },
            })
        });
        rows.collect()
    }

    /// The state of a block's buffer, if it has one: a hint.
    pub(crate) fn peek_block(&self, relation: &Relation, block: BlockNo) -> Option<BufferState> {
        self.peek(BufferTag::of(relation, block))
    }

    /// See [`super::Pool::evict`].
    pub(crate) fn evict_buffer(&self, bufferid: u32) -> bool {
        let Some(buffer) = bufferid.checked_sub(1).filter(|&at| at < self.buffers().count()) else {
            return false;
        };
        if self.buffers().word(buffer).pin(0).is_none() {
            return false;
        }
        let evicted = self.evict(buffer);
        self.unpin(buffer);
        evicted
    }

    /// Evicts every buffer that can be evicted now and that `wanted` selects.
    pub(crate) fn evict_where(&self, wanted: impl Fn(BufferTag) -> bool) -> Evicted {
        let mut counts = Evicted::default();
        for (buffer, descriptor) in self.buffers().iter() {
            if !wanted(descriptor.tag()) || descriptor.word().pin(0).is_none() {
                continue;
            }
            // Test again: our pin keeps the tag stable now.
            if wanted(descriptor.tag()) {
                let evicted = self.evict(buffer);
                counts.evicted += u32::from(evicted);
                counts.skipped += u32::from(!evicted);
            }
            self.unpin(buffer);
        }
        counts
    }
}

impl Backend {
    /// Discards every page of a relation's fork from block `first` on, even if it is dirty
    /// (PostgreSQL's `DropRelationBuffers`). This waits for I/O in progress, and for other sessions
    /// to release their pins. In PostgreSQL, the caller holds an AccessExclusiveLock, so only a
    /// concurrent flush can have one of these pages pinned. We don't have a lock manager, so we
    /// must wait for all other pins. The calling session must not have any of these pages pinned
    /// itself, because it would then wait forever for its own pin.
    ///
    /// # Errors
    /// The session was cancelled, in which case some pages may already be discarded.
    pub fn invalidate(&mut self, relation: &Relation, first: BlockNo) -> Result<(), Cancelled> {
        let manager = Arc::clone(self.manager());
        let tag = BufferTag::of(relation, first);
        let wanted = |other: BufferTag| other.same_fork(tag) && other.block() >= first;
        for (buffer, descriptor) in manager.buffers().iter() {
            while wanted(descriptor.tag()) && descriptor.word().pin(0).is_some() {
                // The tag can't change while we hold a pin. We can discard the page once ours is
                // the only pin.
                if !wanted(descriptor.tag()) || manager.discard(buffer) {
                    manager.unpin(buffer);
                    break;
                }
                let io = descriptor.io_in_progress();
                // We must release our pin before we wait, because another session might be trying
                // to discard the same page and be waiting for our pin.
                manager.unpin(buffer);
                match io {
                    Some(io) => self.session().join(io)?,
                    None => manager.buffers().wait_for(self.session(), buffer, |descriptor| {
                        let state = descriptor.state();
                        let ours = state.has(flag::TAG_VALID) && wanted(descriptor.tag());
                        state.pins() == 0 || !ours
                    })?,
                }
            }
        }
        relation.storage().forget(relation.locator());
        Ok(())
    }

    /// Truncates a relation's fork to `blocks` blocks. The pages beyond the new end are discarded
    /// even if they are dirty, but only after all pins on them are released and all I/O on them has
    /// ended.
    ///
    /// # Errors
    /// If the cluster is read-only, the fork cannot be opened, or the session was cancelled,
    /// nothing has changed on disk. If truncating the file fails after the pages have been
    /// discarded ([`crate::storage::StorageError::Damaged`]), the caller can retry, but must not
    /// use the relation until a retry succeeds.
    pub fn truncate(&mut self, relation: &Relation, blocks: BlockNo) -> Result<(), WriteError> {
        // The next checkpoint of this pool must sync the truncated file.
        self.manager().clusters().allow_writes(relation.storage());
        // First do everything that can fail without harm.
        let Some(cut) = relation.prepare_truncate(blocks)? else { return Ok(()) };
        self.invalidate(relation, blocks)?;
        Ok(cut.run()?)
    }

    /// Drops a relation's fork: discards its pages, and removes its files.
    ///
    /// # Errors
    /// As for [`Backend::truncate`].
    pub fn drop_relation(&mut self, relation: &Relation) -> Result<(), WriteError> {
        let segments = relation.prepare_remove()?;
        self.invalidate(relation, 0)?;
        Ok(relation.remove(segments)?)
    }
}
