//! Buffer mapping table: maps a buffer tag to the buffer that contains the page.
//!
//! The table is a fixed-size array of hash buckets, each with a chain of buffers. The chains are
//! linked through the buffer descriptors, so the table never allocates memory. A session that wants
//! to change a chain must take the lock of the chain's partition, which it holds for only a few
//! instructions and never during I/O. A lookup takes no lock, so if the page is in the pool, the
//! pin is the only write to shared memory:
//!
//! ```text
//!   lookup:  walk the chain ──▶ tag matches? ──▶ pin (compare-exchange) ──▶ tag still matches? ──▶ hit
//! ```
//!
//! A concurrent change can mislead a lookup. If a buffer on the lookup's path is evicted and
//! inserted into another chain, the lookup continues in that other chain and doesn't find the page,
//! although it is in the pool. A miss is therefore only a hint, and the insertion that follows it
//! checks again while holding the lock. However, a lookup never returns the wrong page, because it
//! compares the tag again after pinning the buffer, and the tag of a pinned buffer can't change.
//!
//! # Lock order
//!
//! A partition lock is always the last lock that a session acquires. While holding one, we only
//! change atomics: we don't take any other lock, don't wait and don't notify waiters. We remove the
//! old page and insert the new one in two separate steps, so we never need two partition locks at
//! the same time. (PostgreSQL's `BufferAlloc` held two, taken in partition order, until version
//! 15.)
//!
//! PostgreSQL takes the partition lock in shared mode for every lookup (`BufTableLookup`).

use super::buffers::Buffers;
use super::descriptor::{BufferDescriptor, BufferState, BufferWord, flag};
use super::tag::BufferTag;
use trunkline_aio::facade::atomic::{AtomicU32, Ordering};
use trunkline_aio::facade::{Mutex, MutexGuard, ZeroedSlice};
use trunkline_aio::{WaitRef, prefetch};

/// Number of partitions, each with its own lock (PostgreSQL's `NUM_BUFFER_PARTITIONS`).
const PARTITIONS: usize = 128;

/// Maximum number of steps that a lookup takes. There are twice as many buckets as buffers, so a
/// chain normally has only a few buffers. If a lookup takes more steps, concurrent changes have led
/// it into other chains, where it could even loop forever, because it doesn't hold the lock.
const STEPS_MAX: u32 = 64;

/// The mapping table.
#[derive(Debug)]
pub(crate) struct BufferMapping {
    /// First buffer of each chain, plus one; 0 is an empty chain.
    /// The memory begins at a page, so the buckets of neighbouring blocks are in one cache line.
    heads: ZeroedSlice<AtomicU32>,
    /// One lock per partition. It protects the partition's chains, that is, their heads and links,
    /// and the tags of the buffers in them.
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
            heads: ZeroedSlice::new(heads),
            partitions: (0..PARTITIONS).map(|_| Mutex::new(())).collect(),
        }
    }

    /// Looks up a page and pins its buffer. This may return `None` for a page that is in the pool,
    /// if another session is changing the chains at the same time. In that case, the insertion that
    /// follows will find the page.
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
        // The buffer was reused after we found it. Another session may be waiting for other pins on
        // the buffer's new page to be released, so we must wake it when we release ours.
        buffers.unpin(buffer);
        None
    }

    /// The state of the page's buffer, without a pin: a hint.
    pub(crate) fn peek(&self, buffers: &Buffers, tag: BufferTag) -> Option<BufferState> {
        let state = buffers.state(self.find(buffers, tag)?);
        state.has(flag::TAG_VALID).then_some(state)
    }

    /// Loads the head of the page's chain into the CPU's cache.
    pub(crate) fn prefetch_head(&self, tag: BufferTag) {
        prefetch(self.head(tag));
    }

    /// Loads the descriptor of the first buffer of the page's chain into the CPU's cache. Usually that
    /// is the page's.
    pub(crate) fn prefetch_first_descriptor(&self, buffers: &Buffers, tag: BufferTag) {
        if let Some(buffer) = self.head(tag).load(Ordering::Relaxed).checked_sub(1) {
            prefetch(buffers.descriptor(buffer));
        }
    }

    /// Returns the buffer that seems to contain the page, if there is one. The result is only a
    /// hint until the caller has pinned the buffer. The acquire loads pair with the release stores
    /// in `insert`. They guarantee that if we reach a buffer through a new link, its tag and its
    /// own link are already set.
    pub(crate) fn find(&self, buffers: &Buffers, tag: BufferTag) -> Option<u32> {
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

    /// Assigns the tag to an empty buffer that the caller has allocated, and records `io` as the
    /// I/O that will read the page. If the page already has a buffer, this does nothing except pin
    /// that buffer. This corresponds to the call to `BufTableInsert` in PostgreSQL's `BufferAlloc`.
    pub(crate) fn insert_for_read(
        &self,
        buffers: &Buffers,
        tag: BufferTag,
        buffer: u32,
        usage_max: u32,
        io: WaitRef,
    ) -> Insertion {
        self.insert(buffers, tag, buffer, usage_max, |descriptor| {
            // Record the I/O before publishing the buffer, so that a session that wants to join the
            // read can find it.
            descriptor.set_io(io);
            BufferWord::publish
        })
    }

    /// Assigns the tag of a new dirty page to an empty buffer that the caller has allocated and
    /// filled. Note that a block beyond the end of the file can already have a buffer, because of a
    /// read that has failed or is about to fail.
    pub(crate) fn insert_new(&self, buffers: &Buffers, tag: BufferTag, buffer: u32) -> Insertion {
        self.insert(buffers, tag, buffer, 0, |_| |word: &BufferWord| word.publish_valid(true))
    }

    /// Inserts a buffer while holding the partition lock, so that a page never gets two buffers.
    /// Because lookups run concurrently, the order of the stores matters: first the tag and the
    /// link, then the state word, and finally the head of the chain. `prepare` is called before the
    /// tag is set, and returns the change that publishes the buffer.
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

    /// Makes sure that a buffer contains no page. The caller must have pinned the buffer. Returns
    /// false if another session has pinned the buffer too, if the page is dirty, or if I/O on it is
    /// in progress.
    pub(crate) fn evict(&self, buffers: &Buffers, buffer: u32) -> bool {
        !buffers.state(buffer).has(flag::TAG_VALID)
            || self.unlink(buffers, buffer, BufferWord::evict)
    }

    /// Like [`BufferMapping::evict`], but for a page whose relation was dropped or truncated. The
    /// page may therefore be dirty.
    pub(crate) fn discard(&self, buffers: &Buffers, buffer: u32) -> bool {
        let discarded = !buffers.state(buffer).has(flag::TAG_VALID)
            || self.unlink(buffers, buffer, BufferWord::discard);
        if discarded {
            buffers.note_clean(buffer);
        }
        discarded
    }

    /// Like [`BufferMapping::discard`], but the caller must hold the page's exclusive lock, which
    /// is released together with the tag.
    pub(crate) fn discard_locked(&self, buffers: &Buffers, buffer: u32) -> bool {
        let discarded = self.unlink(buffers, buffer, BufferWord::discard_locked);
        if discarded {
            buffers.note_clean(buffer);
        }
        discarded
    }

    /// Calls `release` to remove the tag, and removes the buffer from its chain, all while holding
    /// the partition lock. We change the state word first, because after that a lookup that still
    /// reaches the buffer can no longer pin it.
    fn unlink(
        &self,
        buffers: &Buffers,
        buffer: u32,
        release: impl FnOnce(&BufferWord) -> bool,
    ) -> bool {
        let descriptor = buffers.descriptor(buffer);
        let tag = descriptor.tag();
        let _partition = self.lock_partition(tag);
        // If the buffer has a tag, it can't have changed since the caller pinned the buffer, so
        // we've locked the right partition. If the buffer has no tag, `release` returns false.
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

    /// Creates buffers for the tests, in which no session ever waits, so there are no waiters to
    /// notify.
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
