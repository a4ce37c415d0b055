//! Buffer descriptor: the tag, state word and I/O reference of one buffer, in a single cache line.
//!
//! The other fields are protected by the state word. The tag may change only while `TAG_VALID` is
//! clear. The I/O reference may change only while `IO_IN_PROGRESS` is set, or before the buffer is
//! published. You can read both at any time, but unless you have the buffer pinned, they are only
//! hints. The LSN changes under the exclusive content lock, or with the tag.
//!
//! The descriptor also contains the link for the mapping table's chains. This way, the table
//! doesn't have to allocate any memory, and following a chain only needs one cache line per buffer.
//! PostgreSQL, in contrast, keeps its hash entries (`BufferLookupEnt`) in a separate dynahash
//! table.

use super::super::tag::BufferTag;
use super::state::{BufferState, flag};
use super::word::BufferWord;
use trunkline_aio::WaitRef;
use trunkline_aio::facade::atomic::{AtomicU32, AtomicU64, Ordering};
use trunkline_aio::facade::thread;
use trunkline_format::Lsn;

/// Tag, state word and I/O reference of one buffer (PostgreSQL's `BufferDesc`).
///
/// We align descriptors to cache lines, just as PostgreSQL pads its own (`BUFFERDESC_PAD_TO_SIZE`),
/// so that sessions that pin neighbouring buffers don't contend for the same line.
///
/// A descriptor of an empty buffer is all zeros, so we don't have to initialise the array of a large
/// pool ([`trunkline_aio::facade::ZeroedSlice`]).
#[derive(Debug, zerocopy::FromZeros)]
#[repr(align(64))]
pub(crate) struct BufferDescriptor {
    word: BufferWord,
    /// The words of the [`BufferTag`]. They have to be atomics, because lookups read them without
    /// holding a lock.
    tag: [AtomicU64; 3],
    /// The I/O in progress ([`WaitRef::to_bits`]), or 0.
    io: AtomicU64,
    /// The next buffer in the same chain of the mapping table, plus one. This is 0 at the end of
    /// the chain.
    next: AtomicU32,
    /// The LSN of a page without a header. For pages with a header, it is 0.
    lsn: AtomicU64,
}

const _: () = assert!(size_of::<BufferDescriptor>() == 64);

impl BufferDescriptor {
    /// The state word.
    pub(crate) fn word(&self) -> &BufferWord {
        &self.word
    }

    /// The state at this moment.
    pub(crate) fn state(&self) -> BufferState {
        self.word.load()
    }

    /// Returns the tag. It can't change while the buffer is pinned. Without a pin, it's only a hint
    /// and may be torn.
    ///
    /// Relaxed loads are enough here. A caller that relies on the tag must have pinned the buffer
    /// first. To do that it has read the state word, and the state word was published after the tag
    /// was stored.
    pub(crate) fn tag(&self) -> BufferTag {
        BufferTag::from_words([0, 1, 2].map(|at| self.tag[at].load(Ordering::Relaxed)))
    }

    /// Sets the tag. Only the mapping table may call this. It must hold the partition lock, and
    /// `TAG_VALID` must be clear. The tag is published when the state word is changed afterwards.
    /// The new page has no LSN yet.
    pub(crate) fn set_tag(&self, tag: BufferTag) {
        for (word, value) in self.tag.iter().zip(tag.words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.lsn.store(0, Ordering::Relaxed);
    }

    /// The LSN of a page without a header: up to where the WAL must be durable before the page is
    /// written. 0 for a page with a header.
    pub(crate) fn lsn(&self) -> Lsn {
        Lsn(self.lsn.load(Ordering::Relaxed))
    }

    /// Raises the LSN of a page without a header. The caller must hold the exclusive content lock,
    /// and a write that reads the LSN holds it too, or the share-exclusive one. So relaxed accesses
    /// are enough.
    pub(crate) fn raise_lsn(&self, lsn: Lsn) {
        self.lsn.fetch_max(lsn.0, Ordering::Relaxed);
    }

    /// The link to the next buffer of the chain. It is only used by the mapping table.
    pub(crate) fn next(&self) -> &AtomicU32 {
        &self.next
    }

    /// Stores a reference to the I/O that reads or writes the page. The caller must have claimed
    /// the page for that I/O. Other sessions can then wait for the I/O directly, so we don't need a
    /// condition variable for each buffer.
    pub(crate) fn set_io(&self, io: WaitRef) {
        self.io.store(io.to_bits(), Ordering::Release);
    }

    /// Removes the I/O reference. We must do this before we end the I/O by changing the state word.
    /// As soon as that has been changed, another session may claim the page and store a reference
    /// to its own I/O, and we must not erase that.
    pub(crate) fn clear_io(&self) {
        self.io.store(0, Ordering::Release);
    }

    /// Whether `io` is the I/O that was stored last.
    pub(crate) fn is_io(&self, io: WaitRef) -> bool {
        self.io.load(Ordering::Acquire) == io.to_bits()
    }

    /// The stored I/O, for monitoring views.
    pub(crate) fn noted_io(&self) -> Option<WaitRef> {
        WaitRef::from_bits(self.io.load(Ordering::Acquire))
    }

    /// Returns the I/O in progress, or `None` if there isn't any. A session that claims a page
    /// stores the I/O reference immediately afterwards. If we get here in between, we just yield
    /// the processor until the reference appears. It's OK to spin here, because the claiming thread
    /// never blocks between these two steps.
    pub(crate) fn io_in_progress(&self) -> Option<WaitRef> {
        while self.state().has(flag::IO_IN_PROGRESS) {
            let io = self.noted_io();
            if io.is_some() {
                return io;
            }
            thread::yield_now();
        }
        None
    }
}
