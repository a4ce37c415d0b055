//! Looking at all buffers, and emptying them: `pg_buffercache` and its functions, and what dropping
//! or truncating a relation needs.
//!
//! These go through every descriptor; none of them is on the path of a read.

use super::Pool;
use super::state::{Seen, flag};
use super::tag::Tag;
use super::write::WriteError;
use crate::storage::{Relation, RelationLocator};
use trunkline_aio::{Cancelled, WaitRef};
use trunkline_format::{BlockNo, Fork};

use super::backend::Backend;

/// One buffer with a page: a row of `pg_buffercache`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferRow {
    /// Number of the buffer, from 1.
    pub bufferid: u32,
    /// Number of the cluster ([`crate::storage::Storage::number`]).
    pub cluster: u16,
    /// The relation.
    pub relation: RelationLocator,
    /// Its fork.
    pub fork: Fork,
    /// The block.
    pub block: BlockNo,
    /// Whether it must be written before it goes.
    pub dirty: bool,
    /// Whether the page can be used; otherwise it is being read, or reading failed.
    pub valid: bool,
    /// How often the clock will pass by before it goes.
    pub usage: u32,
    /// Pins, those of I/O included.
    pub pins: u32,
    /// The I/O that is under way on it.
    pub io: Option<WaitRef>,
}

/// What became of an attempt to empty buffers (`pg_buffercache_evict_relation` shows the same).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evicted {
    /// Emptied.
    pub evicted: u32,
    /// Pinned, being read, or to be written: left as they were.
    pub skipped: u32,
}

impl Pool {
    /// Every buffer that has a page. Each row was true at some moment, all of them perhaps never.
    pub fn rows(&self) -> Vec<BufferRow> {
        let rows = self.shared.buffers.iter().zip(1_u32..).filter_map(|(descriptor, bufferid)| {
            let tag = descriptor.tag();
            let seen = descriptor.word.load();
            // A tag that changed meanwhile may be torn.
            if !seen.has(flag::TAG_VALID) || descriptor.tag() != tag {
                return None;
            }
            Some(BufferRow {
                bufferid,
                cluster: tag.cluster(),
                relation: tag.locator(),
                fork: tag.fork(),
                block: tag.block(),
                dirty: seen.has(flag::DIRTY),
                valid: seen.has(flag::VALID),
                usage: seen.usage(),
                pins: seen.pins(),
                io: if seen.has(flag::IO_IN_PROGRESS) { descriptor.noted_io() } else { None },
            })
        });
        rows.collect()
    }

    /// Whether a block has a valid page in the pool. True or not at some moment during the call.
    pub fn contains(&self, relation: &Relation, block: BlockNo) -> bool {
        let seen = self.shared.table.peek(&self.shared.buffers, Tag::of(relation, block));
        seen.is_some_and(|seen| seen.has(flag::VALID))
    }

    /// Pins on a block's buffer, those of I/O included; `None` if it has none. True at some moment
    /// during the call, and cheap: a completion may ask.
    pub fn pins_on(&self, relation: &Relation, block: BlockNo) -> Option<u32> {
        let seen = self.shared.table.peek(&self.shared.buffers, Tag::of(relation, block));
        seen.map(Seen::pins)
    }

    /// Empties one buffer, numbered from 1 (`pg_buffercache_evict`). False: it is empty, pinned,
    /// being read, to be written, or there is no such buffer.
    pub fn evict(&self, bufferid: u32) -> bool {
        let Some(buffer) = bufferid.checked_sub(1).filter(|&at| at < self.shared.count()) else {
            return false;
        };
        if self.shared.word(buffer).pin(0).is_none() {
            return false;
        }
        let evicted = self.shared.empty(buffer);
        self.shared.unpin(buffer);
        evicted
    }

    /// Empties every buffer of a relation's fork from block `first` on.
    pub fn evict_relation(&self, relation: &Relation, first: BlockNo) -> Evicted {
        let tag = Tag::of(relation, first);
        self.evict_where(|other| other.same_fork(tag) && other.block() >= first)
    }

    /// Empties every buffer that can be emptied now, and lets go of clusters that were closed.
    pub fn evict_all(&self) -> Evicted {
        drop(self.shared.storages());
        self.evict_where(|_| true)
    }

    fn evict_where(&self, wanted: impl Fn(Tag) -> bool) -> Evicted {
        let mut evicted = Evicted::default();
        for (descriptor, buffer) in self.shared.buffers.iter().zip(0..) {
            if !wanted(descriptor.tag()) || descriptor.word.pin(0).is_none() {
                continue;
            }
            let gone = wanted(descriptor.tag()) && self.shared.empty(buffer);
            evicted.evicted += u32::from(gone);
            evicted.skipped += u32::from(!gone && wanted(descriptor.tag()));
            self.shared.unpin(buffer);
        }
        evicted
    }
}

impl Backend {
    /// Forgets every page of a relation's fork from block `first` on, as dropping and truncating
    /// need it: waits for reads under way, and for pins that others still hold. The session itself
    /// must have none of these pages pinned: it would wait for itself.
    ///
    /// # Errors
    /// The session was cancelled; some pages may be gone.
    pub fn invalidate(&mut self, relation: &Relation, first: BlockNo) -> Result<(), Cancelled> {
        let shared = trunkline_aio::sync::Arc::clone(&self.shared);
        let tag = Tag::of(relation, first);
        let wanted = |other: Tag| other.same_fork(tag) && other.block() >= first;
        for (descriptor, buffer) in shared.buffers.iter().zip(0..) {
            while wanted(descriptor.tag()) && descriptor.word.pin(0).is_some() {
                // Pinned, so the tag stands; and ours is the pin that is left in the end.
                if !wanted(descriptor.tag()) || shared.discard(buffer) {
                    shared.unpin(buffer);
                    break;
                }
                let io = descriptor.io_in_progress();
                // Another session that forgets the same pages must not wait for our pin.
                shared.unpin(buffer);
                match io {
                    Some(io) => self.session.join(io)?,
                    None => self.wait_for_no_pin(buffer, wanted)?,
                }
            }
        }
        relation.storage().forget(relation.locator());
        Ok(())
    }

    /// Cuts a relation's fork off after `blocks`: their pages are forgotten, whatever there was to
    /// write, once I/O on them has ended and nobody has them pinned.
    ///
    /// # Errors
    /// The cluster is not for writing, the fork cannot be opened, or the session was cancelled: then
    /// nothing has happened, but for pages that were read anew. Or the system refuses to cut a file off
    /// whose pages are forgotten: [`crate::storage::StorageError::Damaged`]. The caller can try again,
    /// and must not use the relation before that has gone well.
    pub fn truncate(&mut self, relation: &Relation, blocks: BlockNo) -> Result<(), WriteError> {
        // The file that is cut off is to be synced by a checkpoint of this pool.
        self.shared.allow_writes(relation.storage());
        // Everything that can be refused without harm comes first.
        let Some(cut) = relation.prepare_truncate(blocks)? else { return Ok(()) };
        self.invalidate(relation, blocks)?;
        Ok(cut.run()?)
    }

    /// Removes a relation's fork: its pages are forgotten, and its files removed.
    ///
    /// # Errors
    /// As [`Backend::truncate`].
    pub fn drop_relation(&mut self, relation: &Relation) -> Result<(), WriteError> {
        let segments = relation.prepare_remove()?;
        self.invalidate(relation, 0)?;
        Ok(relation.remove(segments)?)
    }

    /// Sleeps until nobody has the buffer pinned, or it has another page.
    fn wait_for_no_pin(
        &mut self,
        buffer: u32,
        wanted: impl Fn(Tag) -> bool,
    ) -> Result<(), Cancelled> {
        let shared = trunkline_aio::sync::Arc::clone(&self.shared);
        let (id, descriptor) = (self.session.id(), &shared.buffers[buffer as usize]);
        shared.waiting.begin(id, buffer);
        let waited = self.session.wait_for(|| {
            descriptor.word.announce_waiter();
            let seen = descriptor.word.load();
            let ours = seen.has(flag::TAG_VALID) && wanted(descriptor.tag());
            seen.pins() == 0 || !ours
        });
        shared.waiting.end(id);
        waited
    }
}
