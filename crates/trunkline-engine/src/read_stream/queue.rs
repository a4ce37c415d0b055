//! Stream queue: the blocks between the source and the consumer, in the order of the source.
//!
//! ```text
//!   front ▶ taken  ready  reading  joined │ unread  unread ◀ back
//!                       started           │ pending: collected, not started yet
//! ```
//! Each entry has a sequence number that never changes, so a completed read finds its entries no
//! matter how far the front has moved. An unordered stream may return any entry that is ready. Such
//! an entry stays in the queue, marked as taken, until the front reaches it.

use crate::pool::ReadError;
use std::collections::VecDeque;
use trunkline_aio::WaitRef;
use trunkline_format::BlockNo;

/// One block.
#[derive(Debug)]
pub(super) struct Entry<D> {
    pub(super) block: BlockNo,
    pub(super) data: Option<D>,
    pub(super) state: EntryState,
    /// A combined read that contained the block has failed. The block is now read alone, because
    /// the error doesn't say which block is bad.
    pub(super) alone: bool,
    /// Another entry of this stream has pinned the same page, so this pin doesn't use an additional
    /// buffer. Sources that return a block twice, such as an index scan, cause this.
    pub(super) duplicate: bool,
}

/// Where an entry is between collection and consumption. An entry holds a pin if it is reading,
/// joined or ready, and otherwise doesn't.
#[derive(Debug)]
pub(super) enum EntryState {
    /// Not pinned, because the read hasn't started yet, the page was released, or the block is
    /// about to be read again. `advised` is set if `posix_fadvise` was issued for the block.
    Unread { advised: bool },
    /// This stream has a read of the block in flight.
    Reading { slot: usize },
    /// Another session, or another entry of this stream, is reading the block into this buffer,
    /// which is pinned.
    Joined { buffer: u32, io: WaitRef },
    /// The block is in this buffer, which is pinned.
    Ready { buffer: u32 },
    /// The block could not be read.
    Failed(Box<ReadError>),
    /// The consumer has taken the block.
    Taken,
}

/// The entries of a stream.
#[derive(Debug)]
pub(super) struct Queue<D> {
    entries: VecDeque<Entry<D>>,
    /// Sequence number of the front.
    base: u64,
    /// Entries at the back that were not started yet.
    pending: usize,
}

impl<D> Queue<D> {
    /// An empty queue.
    pub(super) fn with_capacity(entries: usize) -> Self {
        Self { entries: VecDeque::with_capacity(entries), base: 0, pending: 0 }
    }

    /// Whether there is no entry.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of entries that were not started yet.
    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Adds a pending entry.
    pub(super) fn push(&mut self, block: BlockNo, data: D) {
        let state = EntryState::Unread { advised: false };
        self.entries.push_back(Entry {
            block,
            data: Some(data),
            state,
            alone: false,
            duplicate: false,
        });
        self.pending += 1;
    }

    /// The first `count` pending entries were started.
    pub(super) fn started(&mut self, count: usize) {
        self.pending -= count;
    }

    /// The block that would continue the pending ones.
    pub(super) fn continuation(&self) -> Option<BlockNo> {
        let last = self.entries.back().filter(|_| self.pending > 0)?;
        last.block.checked_add(1)
    }

    /// Position of the first pending entry.
    pub(super) fn first_pending(&self) -> usize {
        self.entries.len() - self.pending
    }

    /// Sequence number of the entry at a position.
    pub(super) fn sequence(&self, at: usize) -> u64 {
        self.base + at as u64
    }

    /// The entry with a sequence number.
    pub(super) fn by_sequence(&mut self, sequence: u64) -> &mut Entry<D> {
        &mut self.entries[(sequence - self.base) as usize]
    }

    /// The entry at a position.
    pub(super) fn at(&self, at: usize) -> &Entry<D> {
        &self.entries[at]
    }

    /// The entry at a position, for changes.
    pub(super) fn at_mut(&mut self, at: usize) -> &mut Entry<D> {
        &mut self.entries[at]
    }

    /// All entries, for changes.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<D>> {
        self.entries.iter_mut()
    }

    /// Number of consecutive blocks from a position on that can be read together.
    pub(super) fn run_length(&self, at: usize, most: usize) -> usize {
        let first = &self.entries[at];
        if first.alone {
            return 1;
        }
        let follows = |(offset, entry): (usize, &Entry<D>)| {
            matches!(entry.state, EntryState::Unread { .. })
                && !entry.alone
                && first.block.checked_add(offset as u32) == Some(entry.block)
        };
        let run = self.entries.iter().skip(at).take(most).enumerate();
        run.take_while(|&pair| follows(pair)).count()
    }

    /// Takes an entry for the consumer, and removes taken entries from the front.
    pub(super) fn take(&mut self, at: usize) -> (EntryState, BlockNo, Option<D>) {
        let entry = &mut self.entries[at];
        let state = std::mem::replace(&mut entry.state, EntryState::Taken);
        let taken = (state, entry.block, entry.data.take());
        while self.entries.len() > self.pending
            && self.entries.front().is_some_and(|entry| matches!(entry.state, EntryState::Taken))
        {
            self.entries.pop_front();
            self.base += 1;
        }
        taken
    }

    /// Removes and returns all entries.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Entry<D>> + '_ {
        self.base += self.entries.len() as u64;
        self.pending = 0;
        self.entries.drain(..)
    }
}
