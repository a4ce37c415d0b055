//! The blocks between the source and the consumer, in the source's order.
//!
//! ```text
//!   front ▶ taken  ready  reading  joined │ unread  unread ◀ back
//!                       started           │ pending: gathered, not yet started
//! ```
//! Each entry has a sequence number that never changes, so a read knows its entries wherever the
//! front has got to. An unordered stream hands out whichever entry is ready and leaves it behind as
//! taken until the front reaches it.

use crate::pool::ReadError;
use std::collections::VecDeque;
use trunkline_aio::WaitRef;
use trunkline_format::BlockNo;

/// One block on its way.
#[derive(Debug)]
pub(super) struct Entry<D> {
    pub(super) block: BlockNo,
    pub(super) data: Option<D>,
    pub(super) state: State,
    /// A combined read of it has failed: read it by itself, to learn which block it was.
    pub(super) alone: bool,
    /// Its page is pinned for another entry of this stream already: it costs no place in memory.
    pub(super) duplicate: bool,
}

/// Where it stands.
#[derive(Debug)]
pub(super) enum State {
    /// Not pinned: not started yet, let go of, or to be read again. `advised`: the system was told.
    Unread { advised: bool },
    /// A read of this stream will bring it.
    Reading { slot: usize },
    /// Somebody's read brings it into this buffer, which is pinned.
    Joined { buffer: u32, io: WaitRef },
    /// It is in this buffer, pinned.
    Ready { buffer: u32 },
    /// It could not be had.
    Failed(Box<ReadError>),
    /// The consumer has had it.
    Taken,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Queue<D> {
    entries: VecDeque<Entry<D>>,
    /// Sequence number of the front.
    base: u64,
    /// Entries at the back that were gathered and not started.
    pending: usize,
}

impl<D> Queue<D> {
    pub(super) fn with_capacity(entries: usize) -> Self {
        Self { entries: VecDeque::with_capacity(entries), base: 0, pending: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn pending(&self) -> usize {
        self.pending
    }

    /// Adds a pending entry.
    pub(super) fn push(&mut self, block: BlockNo, data: D) {
        let state = State::Unread { advised: false };
        self.entries.push_back(Entry {
            block,
            data: Some(data),
            state,
            alone: false,
            duplicate: false,
        });
        self.pending += 1;
    }

    /// So many pending entries, the first of them, are pending no longer.
    pub(super) fn started(&mut self, count: usize) {
        self.pending -= count;
    }

    /// The block that would make the pending ones one longer.
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

    pub(super) fn at(&self, at: usize) -> &Entry<D> {
        &self.entries[at]
    }

    pub(super) fn at_mut(&mut self, at: usize) -> &mut Entry<D> {
        &mut self.entries[at]
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry<D>> {
        self.entries.iter_mut()
    }

    /// How many blocks in a row from a position on are to be read with the one there.
    pub(super) fn row_from(&self, at: usize, most: usize) -> usize {
        let first = &self.entries[at];
        if first.alone {
            return 1;
        }
        let follows = |(offset, entry): (usize, &Entry<D>)| {
            matches!(entry.state, State::Unread { .. })
                && !entry.alone
                && first.block.checked_add(offset as u32) == Some(entry.block)
        };
        let row = self.entries.iter().skip(at).take(most).enumerate();
        row.take_while(|&pair| follows(pair)).count()
    }

    /// Takes an entry for the consumer, and drops the front as far as it was taken.
    pub(super) fn take(&mut self, at: usize) -> (State, BlockNo, Option<D>) {
        let entry = &mut self.entries[at];
        let state = std::mem::replace(&mut entry.state, State::Taken);
        let taken = (state, entry.block, entry.data.take());
        while self.entries.len() > self.pending
            && self.entries.front().is_some_and(|entry| matches!(entry.state, State::Taken))
        {
            self.entries.pop_front();
            self.base += 1;
        }
        taken
    }

    /// Empties the queue; the entries that were in it.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Entry<D>> + '_ {
        self.base += self.entries.len() as u64;
        self.pending = 0;
        self.entries.drain(..)
    }
}
