//! What there is to say about one buffer, in one cache line.
//!
//! The word (see `state`) owns everything else: the tag changes only while the word says that there
//! is none, the I/O reference only while it says that an I/O is in progress. Readers may look at
//! any time; what they read is to be trusted only with a pin.

use super::state::{BufferWord, flag};
use super::tag::Tag;
use trunkline_aio::WaitRef;
use trunkline_aio::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use trunkline_aio::sync::thread;

/// See the module.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Descriptor {
    pub(crate) word: BufferWord,
    tag: [AtomicU64; 3],
    /// The I/O in progress ([`WaitRef::to_bits`]); 0 is none.
    io: AtomicU64,
    /// The next buffer of the same chain of the mapping table, plus one; 0 ends it.
    pub(super) next: AtomicU32,
}

const _: () = assert!(size_of::<Descriptor>() == 64);

impl Descriptor {
    pub(crate) fn new() -> Self {
        Self {
            word: BufferWord::new(),
            tag: [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)],
            io: AtomicU64::new(0),
            next: AtomicU32::new(0),
        }
    }

    /// The tag as it is now: stable under a pin, otherwise a hint that may be torn.
    pub(crate) fn tag(&self) -> Tag {
        Tag::from_words([0, 1, 2].map(|at| self.tag[at].load(Ordering::Relaxed)))
    }

    pub(super) fn set_tag(&self, tag: Tag) {
        for (word, value) in self.tag.iter().zip(tag.words()) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Says which I/O fills or writes the page. Only for who has claimed that right.
    pub(crate) fn set_io(&self, io: WaitRef) {
        self.io.store(io.to_bits(), Ordering::Release);
    }

    /// The I/O has ended; before the word says so.
    pub(crate) fn clear_io(&self) {
        self.io.store(0, Ordering::Release);
    }

    /// Whether this is the I/O that was noted last.
    pub(crate) fn is_io(&self, io: WaitRef) -> bool {
        self.io.load(Ordering::Acquire) == io.to_bits()
    }

    /// The I/O that is noted, for views.
    pub(crate) fn noted_io(&self) -> Option<WaitRef> {
        WaitRef::from_bits(self.io.load(Ordering::Acquire))
    }

    /// The I/O in progress; `None` once there is none. Between the claim of a page and the note of
    /// its I/O lie two instructions of another thread, which is given the processor meanwhile.
    pub(crate) fn io_in_progress(&self) -> Option<WaitRef> {
        while self.word.load().has(flag::IO_IN_PROGRESS) {
            let io = WaitRef::from_bits(self.io.load(Ordering::Acquire));
            if io.is_some() {
                return io;
            }
            thread::yield_now();
        }
        None
    }
}
