//! Buffer descriptor: tag, state word and I/O reference of one buffer, in one cache line.
//!
//! The state word protects the rest. The tag changes only while `TAG_VALID` is clear. The I/O
//! reference changes only while `IO_IN_PROGRESS` is set, or before the buffer is published. Both
//! can be read at any time, but without a pin they are hints.
//!
//! The chain link of the mapping table is here too, so that the table allocates nothing and a
//! lookup that follows a chain loads one cache line per buffer. PostgreSQL keeps its hash entries
//! (`BufferLookupEnt`) in a separate dynahash table.

use super::super::tag::BufferTag;
use super::state::{BufferState, flag};
use super::word::BufferWord;
use trunkline_aio::WaitRef;
use trunkline_aio::facade::atomic::{AtomicU32, AtomicU64, Ordering};
use trunkline_aio::facade::thread;

/// Tag, state word and I/O reference of one buffer (PostgreSQL's `BufferDesc`).
///
/// Aligned to a cache line, as PostgreSQL pads its descriptors (`BUFFERDESC_PAD_TO_SIZE`): pins of
/// neighbouring buffers must not contend for one line.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct BufferDescriptor {
    word: BufferWord,
    /// The words of the [`BufferTag`]. They are atomics because lookups read them without a lock.
    tag: [AtomicU64; 3],
    /// The I/O in progress ([`WaitRef::to_bits`]), or 0.
    io: AtomicU64,
    /// The next buffer in the same chain of the mapping table, plus one; 0 ends the chain.
    next: AtomicU32,
}

const _: () = assert!(size_of::<BufferDescriptor>() == 64);

impl BufferDescriptor {
    /// An empty buffer.
    pub(crate) fn new() -> Self {
        Self {
            word: BufferWord::new(),
            tag: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)],
            io: AtomicU64::new(0),
            next: AtomicU32::new(0),
        }
    }

    /// The state word.
    pub(crate) fn word(&self) -> &BufferWord {
        &self.word
    }

    /// The state at this moment.
    pub(crate) fn state(&self) -> BufferState {
        self.word.load()
    }

    /// The tag. It's stable under a pin; otherwise it's only a hint, and may be torn.
    ///
    /// Relaxed loads suffice. A caller that relies on the tag must first have pinned the buffer,
    /// and the pin reads the state word, which was published after the tag was stored.
    pub(crate) fn tag(&self) -> BufferTag {
        BufferTag::from_words([0, 1, 2].map(|at| self.tag[at].load(Ordering::Relaxed)))
    }

    /// Sets the tag. Only the mapping table may call this, under the partition lock and while
    /// `TAG_VALID` is clear. The state word change that follows publishes the tag.
    pub(crate) fn set_tag(&self, tag: BufferTag) {
        for (word, value) in self.tag.iter().zip(tag.words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// The link to the next buffer of the chain. Only the mapping table follows it.
    pub(crate) fn next(&self) -> &AtomicU32 {
        &self.next
    }

    /// Stores the I/O that reads or writes the page. The caller must have claimed the page for this
    /// I/O. Other sessions then wait for the I/O itself, so a buffer doesn't need a condition
    /// variable.
    pub(crate) fn set_io(&self, io: WaitRef) {
        self.io.store(io.to_bits(), Ordering::Release);
    }

    /// Removes the I/O reference. This must happen before the state word change that ends the I/O,
    /// because after that change another session may claim the page and store its own reference,
    /// which must not be erased.
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

    /// The I/O in progress, or `None` if it has ended. The thread that claims a page stores the
    /// reference just after the claim. If this is called between the claim and the store, it yields
    /// the processor until the reference appears. The claiming thread never blocks in between, so
    /// we can afford to spin here.
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
