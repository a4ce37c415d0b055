//! Stream queue: the blocks that the source has returned but the consumer has not yet received, in
//! the source's order.
//!
//! ```text
//!   front ▶ taken  ready  reading  joined │ unread  unread ◀ back
//!                       started           │ pending: collected, not started yet
//! ```
//! Each entry has a sequence number that never changes. When a read completes, we can therefore
//! find its entries even if the front of the queue has moved. An unordered stream can return any
//! entry that is ready. We mark such an entry as taken, and leave it in the queue until the front
//! reaches it.

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
    /// A combined read of this block and others has failed. The error doesn't say which of the
    /// blocks is bad, so we now read this block alone.
    pub(super) alone: bool,
    /// Another entry of this stream has already pinned the same page, so this pin doesn't use
    /// another buffer. This happens if the source returns a block twice, for example during an
    /// index scan.
    pub(super) duplicate: bool,
}

/// State of an entry after the source has returned it and before the consumer takes it. An entry
/// holds a pin only if it is reading, joined or ready.
#[derive(Debug)]
pub(super) enum EntryState {
    /// Not pinned. Either we haven't started reading the block, or its page was released, or the
    /// block must be read again. `advised` is set if we've called `posix_fadvise` for the block.
    Unread { advised: bool },
    /// This stream has a read of the block in flight.
    Reading { slot: usize },
    /// Another session, or another entry of this stream, is reading the block into this buffer. We
    /// have it pinned.
    Joined { buffer: u32, io: WaitRef },
    /// The block is in this buffer, which is pinned.
    Ready { buffer: u32 },
    /// The block could not be read.
    Failed(Box<ReadError>),
    /// The consumer has taken the block.
    Taken,
}

/// The first sequence number. There are smaller ones, because an entry may be put back in front.
const BASE: u64 = 1 << 32;

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
        // An entry may be put back.
        Self { entries: VecDeque::with_capacity(entries + 1), base: BASE, pending: 0 }
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

    /// Number of consecutive blocks, starting at a position, that can be read together.
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

    /// Takes an entry out of the queue for the consumer, and removes taken entries from the front.
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

    /// Puts an entry that the consumer has taken back in front of all others. It must be read
    /// again.
    pub(super) fn put_back(&mut self, block: BlockNo, data: D) {
        let state = EntryState::Unread { advised: false };
        let entry = Entry { block, data: Some(data), state, alone: false, duplicate: false };
        self.entries.push_front(entry);
        self.base -= 1;
    }

    /// Removes and returns all entries.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Entry<D>> + '_ {
        self.base += self.entries.len() as u64;
        self.pending = 0;
        self.entries.drain(..)
    }
}
