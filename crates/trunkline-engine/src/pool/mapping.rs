//! Buffer mapping table: from a buffer tag to the buffer that holds the page.
//!
//! The table is a fixed array of hash buckets with chains of buffers. The chains are linked through
//! the descriptors, so the table never allocates. To change a chain, a session takes its
//! partition's lock, for a few instructions and never across I/O. A lookup takes no lock, so the
//! pin is the only shared write on the hit path:
//!
//! ```text
//!   lookup:  walk the chain ──▶ tag matches? ──▶ pin (compare-exchange) ──▶ tag still matches? ──▶ hit
//! ```
//!
//! A concurrent change can mislead a lookup. If a buffer on the lookup's path is evicted and
//! inserted into another chain, the lookup continues in that other chain and misses a page that is
//! in the pool. A miss is therefore only a hint, and the insertion that follows looks again under
//! the lock. A lookup never returns a wrong page: it compares the tag again after the pin, and a
//! tag cannot change under a pin.
//!
//! # Lock order
//!
//! A partition lock is the innermost lock. Code that holds one changes only atomics of descriptors:
//! it takes no other lock, never waits and notifies no waiter. Evicting the old page and inserting
//! the new one are two separate steps, so no operation needs two partition locks. (PostgreSQL's
//! `BufferAlloc` held two until version 15, in partition order.)
//!
//! PostgreSQL takes the partition lock in shared mode for every lookup (`BufTableLookup`).

use super::buffers::Buffers;
use super::descriptor::{BufferDescriptor, BufferState, BufferWord, flag};
use super::tag::BufferTag;
use trunkline_aio::WaitRef;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_aio::facade::{Mutex, MutexGuard};

/// Number of partitions, each with its own lock (PostgreSQL's `NUM_BUFFER_PARTITIONS`).
const PARTITIONS: usize = 128;

/// Maximum number of steps in a lookup without the lock. There are twice as many buckets as
/// buffers, so chains are a few buffers long. A longer walk has strayed into other chains, and
/// could even loop forever.
const STEPS_MAX: u32 = 64;

/// The mapping table.
#[derive(Debug)]
pub(crate) struct BufferMapping {
    /// First buffer of each chain, plus one; 0 is an empty chain.
    heads: Box<[AtomicU32]>,
    /// A lock for each partition. They protect the chains: links, heads, and tags of buffers in
    /// them.
    partitions: Box<[Mutex<()>]>,
}

/// A buffer that a lookup has found and pinned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PinnedBuffer {
    /// The buffer.
    pub(crate) buffer: u32,
    /// Its state just after the pin.
    pub(crate) state: BufferState,
}

/// Result of an insertion.
#[derive(Debug)]
pub(crate) enum Insertion {
    /// The buffer has the tag now.
    Inserted,
    /// Another session has inserted the page first. Its buffer is pinned.
    Present(PinnedBuffer),
}

impl BufferMapping {
    /// An empty table.
    pub(crate) fn new(buffers: u32) -> Self {
        let heads = (buffers as usize * 2).next_power_of_two().max(PARTITIONS);
        Self {
            heads: (0..heads).map(|_| AtomicU32::new(0)).collect(),
            partitions: (0..PARTITIONS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Looks the page up and pins its buffer. A `None` can be wrong while chains are changing. In
    /// that case the insertion that follows the miss finds the page.
    pub(crate) fn pin(
        &self,
        buffers: &Buffers,
        tag: BufferTag,
        usage_max: u32,
    ) -> Option<PinnedBuffer> {
        let buffer = self.find(buffers, tag)?;
        let descriptor = buffers.descriptor(buffer);
        let state = descriptor.word().pin(usage_max)?;
        if descriptor.tag() == tag {
            return Some(PinnedBuffer { buffer, state });
        }
        // The buffer was reused in between. A session may be waiting for the last pin on its new
        // page, so the pin must be released with a wake-up.
        buffers.unpin(buffer);
        None
    }

    /// The state of the page's buffer, without a pin: a hint.
    pub(crate) fn peek(&self, buffers: &Buffers, tag: BufferTag) -> Option<BufferState> {
        let state = buffers.state(self.find(buffers, tag)?);
        state.has(flag::TAG_VALID).then_some(state)
    }

    /// Returns the buffer that seems to hold the page, if there is one. Either answer is only a
    /// hint until the buffer is pinned. The acquire loads pair with the release stores of `insert`:
    /// a buffer that we reach through a new link already has its tag and its own link.
    fn find(&self, buffers: &Buffers, tag: BufferTag) -> Option<u32> {
        let mut at = self.head(tag).load(Ordering::Acquire);
        for _ in 0..STEPS_MAX {
            let buffer = at.checked_sub(1)?;
            let descriptor = buffers.descriptor(buffer);
            if descriptor.tag() == tag {
                return Some(buffer);
            }
            at = descriptor.next().load(Ordering::Acquire);
        }
        None
    }

    /// Assigns the tag to an empty buffer that the caller has allocated, and makes `io` the I/O
    /// that will read the page. Does nothing if the page already has a buffer. This corresponds to
    /// PostgreSQL's `BufTableInsert` in `BufferAlloc`.
    pub(crate) fn insert_for_read(
        &self,
        buffers: &Buffers,
        tag: BufferTag,
        buffer: u32,
        usage_max: u32,
        io: WaitRef,
    ) -> Insertion {
        self.insert(buffers, tag, buffer, usage_max, |descriptor| {
            // Store the reference before the buffer is published, so that a session that joins the
            // read finds it.
            descriptor.set_io(io);
            BufferWord::publish
        })
    }

    /// Gives the tag of a new dirty page to an empty buffer that the caller has allocated and
    /// filled. A block beyond the end of the file can have a buffer already, from a read that
    /// failed or is about to fail.
    pub(crate) fn insert_new(&self, buffers: &Buffers, tag: BufferTag, buffer: u32) -> Insertion {
        self.insert(buffers, tag, buffer, 0, |_| |word: &BufferWord| word.publish_valid(true))
    }

    /// Inserts under the partition lock, so that a page never has two buffers. The order of the
    /// stores matters to lookups, which run concurrently: tag and link first, then the state word,
    /// then the head of the chain. `prepare` runs before the tag is set, and returns the change
    /// that publishes the word.
    fn insert<P: FnOnce(&BufferWord)>(
        &self,
        buffers: &Buffers,
        tag: BufferTag,
        buffer: u32,
        usage_max: u32,
        prepare: impl FnOnce(&BufferDescriptor) -> P,
    ) -> Insertion {
        let head = self.head(tag);
        let _partition = self.lock_partition(tag);
        let mut at = head.load(Ordering::Acquire);
        while let Some(other) = at.checked_sub(1) {
            let descriptor = buffers.descriptor(other);
            if descriptor.tag() == tag
                && let Some(state) = descriptor.word().pin(usage_max)
            {
                return Insertion::Present(PinnedBuffer { buffer: other, state });
            }
            at = descriptor.next().load(Ordering::Acquire);
        }
        let descriptor = buffers.descriptor(buffer);
        let publish = prepare(descriptor);
        descriptor.set_tag(tag);
        descriptor.next().store(head.load(Ordering::Acquire), Ordering::Release);
        publish(descriptor.word());
        head.store(buffer + 1, Ordering::Release);
        Insertion::Inserted
    }

    /// Ensures that a buffer has no page. The caller must have pinned the buffer. Returns false if
    /// another session has pinned it too, or it is dirty or under I/O.
    pub(crate) fn evict(&self, buffers: &Buffers, buffer: u32) -> bool {
        !buffers.state(buffer).has(flag::TAG_VALID)
            || self.unlink(buffers, buffer, BufferWord::evict)
    }

    /// Like [`BufferMapping::evict`], for a page whose relation was dropped or truncated: the page
    /// may be dirty.
    pub(crate) fn discard(&self, buffers: &Buffers, buffer: u32) -> bool {
        let discarded = !buffers.state(buffer).has(flag::TAG_VALID)
            || self.unlink(buffers, buffer, BufferWord::discard);
        if discarded {
            buffers.note_clean(buffer);
        }
        discarded
    }

    /// Like [`BufferMapping::discard`], for a caller that holds the page's exclusive lock. The lock
    /// is released with the tag.
    pub(crate) fn discard_locked(&self, buffers: &Buffers, buffer: u32) -> bool {
        let discarded = self.unlink(buffers, buffer, BufferWord::discard_locked);
        if discarded {
            buffers.note_clean(buffer);
        }
        discarded
    }

    /// Removes the tag with `release`, and the buffer from its chain. Both happen under the
    /// partition lock, and the word changes first: once it refuses pins, a lookup that still
    /// reaches the buffer can't pin it.
    fn unlink(
        &self,
        buffers: &Buffers,
        buffer: u32,
        release: impl FnOnce(&BufferWord) -> bool,
    ) -> bool {
        let descriptor = buffers.descriptor(buffer);
        let tag = descriptor.tag();
        let _partition = self.lock_partition(tag);
        // If the buffer has a tag, the caller's pin keeps the tag stable, so we've locked the right
        // partition. If it has no tag, `release` fails.
        if !release(descriptor.word()) {
            return false;
        }
        let mut link = self.head(tag);
        while let Some(other) = link.load(Ordering::Acquire).checked_sub(1) {
            if other == buffer {
                link.store(descriptor.next().load(Ordering::Acquire), Ordering::Release);
                return true;
            }
            link = buffers.descriptor(other).next();
        }
        unreachable!("buffer {buffer} has a tag and is in no chain");
    }

    fn head(&self, tag: BufferTag) -> &AtomicU32 {
        &self.heads[tag.hash() as usize & (self.heads.len() - 1)]
    }

    fn lock_partition(&self, tag: BufferTag) -> MutexGuard<'_, ()> {
        // The number of chains is a multiple of the number of partitions, so each chain has exactly
        // one lock.
        self.partitions[tag.hash() as usize & (PARTITIONS - 1)].lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_aio::{Builder, MethodKind};

    /// Creates buffers without waiters to notify, since no session of the instance waits.
    fn buffers(count: u32) -> Buffers {
        let aio = Builder::new().method(MethodKind::Sync).start().expect("starts");
        Buffers::new(count, aio.notifier())
    }

    fn tag(block: u32) -> BufferTag {
        BufferTag::from_words([1 << 56, 9, 0]).at(block)
    }

    fn fill(mapping: &BufferMapping, buffers: &Buffers, buffer: u32, block: u32) {
        buffers.word(buffer).clock_visit();
        let inserted = mapping.insert(buffers, tag(block), buffer, 1, |_| BufferWord::publish);
        assert!(matches!(inserted, Insertion::Inserted));
        buffers.word(buffer).finish_read(true);
    }

    #[test]
    fn pages_are_found_until_they_are_evicted() {
        let (mapping, buffers) = (BufferMapping::new(256), buffers(256));
        (0..256).for_each(|at| fill(&mapping, &buffers, at, at * 3));
        for at in 0..256 {
            assert_eq!(mapping.find(&buffers, tag(at * 3)), Some(at));
            assert!(mapping.find(&buffers, tag(at * 3 + 1)).is_none());
            buffers.word(at).pin(5).expect("present");
            assert!(!mapping.evict(&buffers, at), "pinned twice");
            buffers.word(at).unpin();
        }
        for at in (0..256).rev() {
            assert!(mapping.evict(&buffers, at));
            assert!(mapping.peek(&buffers, tag(at * 3)).is_none());
            let left = (0..at).all(|other| mapping.peek(&buffers, tag(other * 3)).is_some());
            assert!(left, "the eviction of {at} removed other pages too");
        }
    }

    #[test]
    fn a_second_insertion_finds_the_first() {
        let (mapping, buffers) = (BufferMapping::new(16), buffers(16));
        fill(&mapping, &buffers, 3, 7);
        buffers.word(4).clock_visit();
        let second = mapping.insert(&buffers, tag(7), 4, 5, |_| BufferWord::publish);
        assert!(matches!(second, Insertion::Present(PinnedBuffer { buffer: 3, .. })), "{second:?}");
    }
}
