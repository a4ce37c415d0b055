//! Buffer manager: combines the descriptors, the frames, the mapping table, the replacement
//! strategy and the pin limits into one pool.
//!
//! The parts don't know about each other. The buffer manager owns one of each, and implements the
//! operations that need two of them: a lookup pins a buffer that it finds in the mapping table, an
//! allocation evicts pages from the mapping table, and releasing a page also releases the reserved
//! pin. Sessions, streams and completion callbacks all share the manager through one `Arc`. The
//! frames therefore outlive every I/O, even if the session that issued the I/O no longer exists.
//!
//! None of these functions does I/O or waits. In PostgreSQL, the corresponding functions are those
//! in `bufmgr.c` that only do bookkeeping: `BufferAlloc`, `PinBuffer` and `InvalidateBuffer`.

use super::buffers::Buffers;
use super::clusters::WritableClusters;
use super::descriptor::{BufferState, LockMode, flag};
use super::frame::{Frames, Page, PageMut};
use super::mapping::{BufferMapping, Insertion, PinnedBuffer};
use super::pin_limits::PinLimiter;
use super::replacement::ring_buffer::RingBuffer;
use super::replacement::{Allocation, Replacement};
use super::statistics::Tally;
use super::tag::BufferTag;
use crate::storage::Storage;
use std::fmt;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Lease, Notifier, WaitRef};
use trunkline_format::page::{LinePointerFlags, is_all_zero, line_pointer};

/// The shared parts of one pool.
pub(crate) struct BufferManager {
    frames: Frames,
    mapping: BufferMapping,
    replacement: Replacement,
    limits: PinLimiter,
}

impl fmt::Debug for BufferManager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BufferManager({} buffers)", self.buffers().count())
    }
}

impl BufferManager {
    /// Creates a buffer manager whose buffers are all empty and use the frames of `lease`. One
    /// session's look-ahead may use at most `ahead_max` buffers.
    pub(crate) fn new(
        lease: Lease,
        ahead_max: u32,
        notifier: Notifier,
        clusters: WritableClusters,
    ) -> Self {
        let count = lease.frames();
        let buffers = Buffers::new(count, notifier.clone());
        Self {
            frames: Frames::new(lease, buffers, Arc::new(clusters)),
            mapping: BufferMapping::new(count),
            replacement: Replacement::new(count),
            limits: PinLimiter::new(count, ahead_max, notifier),
        }
    }

    /// The frames.
    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    /// The descriptors.
    pub(crate) fn buffers(&self) -> &Buffers {
        self.frames.buffers()
    }

    /// The clusters whose pages may be changed.
    pub(crate) fn clusters(&self) -> &Arc<WritableClusters> {
        self.frames.clusters()
    }

    /// The clock sweep and the allocation counter.
    pub(crate) fn replacement(&self) -> &Replacement {
        &self.replacement
    }

    /// The pin limits.
    pub(crate) fn limits(&self) -> &PinLimiter {
        &self.limits
    }

    /// The writable clusters that are open, or that still have pages to write or files to sync.
    pub(crate) fn open_storages(&self) -> Vec<Storage> {
        self.clusters().open_storages(|cluster| self.buffers().is_cluster_in_use(cluster))
    }

    /// Looks up a page and pins it. A miss is only a hint; see `mapping`.
    pub(crate) fn pin(&self, tag: BufferTag, usage_max: u32) -> Option<PinnedBuffer> {
        self.mapping.pin(self.buffers(), tag, usage_max)
    }

    /// Pins a buffer that isn't reserved for a session, if it still contains this page. Doesn't count as a use of the
    /// page. The caller must call [`BufferManager::unpin`], and must not wait for other sessions' pins until then.
    pub(crate) fn pin_in(&self, tag: BufferTag, buffer: u32) -> bool {
        let descriptor = self.buffers().descriptor(buffer);
        if descriptor.word().pin(0).is_none() {
            return false;
        }
        let is_same = descriptor.tag() == tag;
        if !is_same {
            self.unpin(buffer);
        }
        is_same
    }

    /// The state of the page's buffer, without a pin: a hint.
    pub(crate) fn peek(&self, tag: BufferTag) -> Option<BufferState> {
        self.mapping.peek(self.buffers(), tag)
    }

    /// Loads the head of the chain in which a page would be found into the CPU's cache.
    pub(crate) fn prefetch_head(&self, tag: BufferTag) {
        self.mapping.prefetch_head(tag);
    }

    /// Loads the descriptor of a page, if it is in the pool, into the CPU's cache.
    pub(crate) fn prefetch_descriptor(&self, tag: BufferTag) {
        self.mapping.prefetch_first_descriptor(self.buffers(), tag);
    }

    /// Loads the header of a page, if it is in the pool, and the cache line at `offset` into the
    /// CPU's cache. The page isn't pinned. Returns its buffer, which is a hint.
    pub(crate) fn prefetch_page(&self, tag: BufferTag, offset: usize) -> Option<u32> {
        let buffer = self.mapping.find(self.buffers(), tag)?;
        self.frames.prefetch(buffer, 0);
        self.frames.prefetch(buffer, offset);
        Some(buffer)
    }

    /// Loads the beginning of the item of a line pointer into the CPU's cache, if the page is still
    /// in this buffer. Reading the line pointer takes a pin and a lock for a moment, if both are
    /// free. The pin isn't reserved: a session that finds no victim because of it is woken at once.
    pub(crate) fn prefetch_item(&self, tag: BufferTag, buffer: u32, item: u16) {
        let descriptor = self.buffers().descriptor(buffer);
        if descriptor.tag() != tag || descriptor.word().pin(0).is_none() {
            return;
        }
        if descriptor.tag() == tag
            && let Ok(page) = Page::try_lock(&self.frames, buffer, LockMode::Shared)
            && let Some(line) = line_pointer(&page, item)
        {
            // The line pointer of a pruned HOT chain names that of its first tuple.
            let line = match line.flags {
                LinePointerFlags::Redirect => line_pointer(&page, line.offset),
                _ => Some(line),
            };
            self.frames.prefetch(buffer, line.map_or(0, |line| usize::from(line.offset)));
        }
        self.unpin(buffer);
    }

    /// Releases a pin, but not the session's reservation of it.
    pub(crate) fn unpin(&self, buffer: u32) {
        self.buffers().unpin(buffer);
    }

    /// Releases a pin together with the session's reservation of it.
    pub(crate) fn release(&self, buffer: u32, session: u32) {
        self.unpin(buffer);
        self.limits.give_back(session, 1);
    }

    /// Takes up to `want` empty buffers and pins each of them once. The caller must already have
    /// reserved the pins. Returns fewer buffers than requested, or none, if no more are available
    /// at the moment. This never flushes a page and never waits for I/O or locks on pages, but it
    /// populates the frames of buffers that are used for the first time.
    pub(crate) fn allocate(
        &self,
        want: u32,
        ring: Option<&mut RingBuffer>,
        tally: &mut Tally,
        taken: &mut Vec<u32>,
    ) {
        let (replacement, mapping) = (&self.replacement, &self.mapping);
        let buffers = self.buffers();
        let first = taken.len();
        Allocation { replacement, buffers, mapping, tally, taken: &mut *taken }.take(want, ring);
        // Frames of a large pool get their memory when they are first used. That may take a while,
        // so it must happen before anything is claimed.
        taken.iter().skip(first).for_each(|&buffer| self.frames.populate(buffer));
    }

    /// Whether [`BufferManager::allocate`] would find a buffer now.
    pub(crate) fn has_victim(&self) -> bool {
        self.replacement.has_victim(self.buffers())
    }

    /// Assigns an allocated buffer to a page and claims the page's read for `io`, unless the page
    /// already has a buffer.
    pub(crate) fn insert_for_read(
        &self,
        tag: BufferTag,
        buffer: u32,
        usage_max: u32,
        io: WaitRef,
    ) -> Insertion {
        self.mapping.insert_for_read(self.buffers(), tag, buffer, usage_max, io)
    }

    /// Assigns a buffer to a new, dirty page, unless the page already has a buffer. The caller must
    /// have allocated the buffer and filled its frame.
    pub(crate) fn insert_new(&self, tag: BufferTag, buffer: u32) -> Insertion {
        self.mapping.insert_new(self.buffers(), tag, buffer)
    }

    /// Removes the page from a buffer that the caller has pinned. Returns false if another session
    /// has pinned the buffer too, if the page is dirty, or if I/O on it is in progress.
    pub(crate) fn evict(&self, buffer: u32) -> bool {
        self.mapping.evict(self.buffers(), buffer)
    }

    /// Like [`BufferManager::evict`], but the page may be dirty, because its relation was dropped
    /// or truncated.
    pub(crate) fn discard(&self, buffer: u32) -> bool {
        self.mapping.discard(self.buffers(), buffer)
    }

    /// Removes a page that was added by a failed extension, provided that it's still all zeros and
    /// only the caller has it pinned. Also returns true if the buffer contains no page. We must
    /// hold the exclusive lock until the page has been removed, because otherwise another session
    /// could fill the page after we've checked it.
    pub(crate) fn discard_new(&self, buffer: u32) -> bool {
        if !self.buffers().state(buffer).has(flag::TAG_VALID) {
            return true;
        }
        let Ok(page) = PageMut::try_lock(&self.frames, buffer, true) else { return false };
        let discarded = is_all_zero(&page) && self.mapping.discard_locked(self.buffers(), buffer);
        if discarded {
            page.forget();
        }
        discarded
    }
}
