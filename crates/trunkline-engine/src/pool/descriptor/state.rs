//! Buffer state: the 64 bits that PostgreSQL calls `BufferDesc.state`, and the rules for changing
//! them.
//!
//! ```text
//!   63    54 53          52               51    34 33    22 21   18 17   0
//!  ┌────────┬───────────┬────────────────┬────────┬────────┬───────┬──────┐
//!  │ unused │ exclusive │ share-exclusive│ shares │ flags  │ usage │ pins │
//!  └────────┴───────────┴────────────────┴────────┴────────┴───────┴──────┘
//! ```
//!
//! The layout is the same as in PostgreSQL 19 (`buf_internals.h`): one word contains the pin count,
//! the clock sweep's usage count, the `BM_*` flags and the content lock. A single compare-exchange
//! can therefore test the flags and take a pin or a lock at the same time, without the separate
//! buffer header spinlock that older versions needed.
//!
//! The pin count has 18 bits, enough for 262143 backends, which is PostgreSQL's `MAX_BACKENDS`.
//! Every session that holds a shared content lock also holds a pin, so the share count doesn't need
//! more bits than the pin count.

/// Maximum usage count (PostgreSQL's `BM_MAX_USAGE_COUNT`). A popular page survives this many
/// passes of the clock hand. A higher maximum would approximate LRU better, but the sweep would
/// need more passes to find a victim.
pub(crate) const USAGE_MAX: u32 = 5;

pub(super) const PIN: u64 = 1;
pub(super) const PINS: u64 = (1 << 18) - 1;
const USAGE_SHIFT: u32 = 18;
pub(super) const USAGE_ONE: u64 = 1 << USAGE_SHIFT;
pub(super) const USAGE: u64 = 0xF << USAGE_SHIFT;
const SHARE_SHIFT: u32 = 34;
pub(super) const SHARE: u64 = 1 << SHARE_SHIFT;
pub(super) const SHARES: u64 = PINS << SHARE_SHIFT;
pub(super) const SHARE_EXCLUSIVE: u64 = 1 << 52;
pub(super) const EXCLUSIVE: u64 = 1 << 53;

/// Flags of a buffer, PostgreSQL's `BM_*`.
pub(crate) mod flag {
    /// The buffer has a tag and is in the mapping table.
    pub(crate) const TAG_VALID: u64 = 1 << 22;
    /// The frame contains the page. Only valid pages can be content-locked.
    pub(crate) const VALID: u64 = 1 << 23;
    /// The page has been changed since it was last written. This flag is set only while holding the
    /// exclusive content lock, or when a new page is published. It is cleared only when a write of
    /// the page has reached the kernel, or when the page is discarded.
    pub(crate) const DIRTY: u64 = 1 << 24;
    /// A read or a write of the page is in progress: a read if `VALID` is clear, otherwise a write.
    /// Only the thread that set the flag may issue the I/O.
    pub(crate) const IO_IN_PROGRESS: u64 = 1 << 25;
    /// The last I/O on the page failed. This does not prevent another attempt: the next session
    /// that needs the page may retry the I/O. But a session that is looking for pages to evict
    /// skips this page if it can write others instead.
    pub(crate) const IO_ERROR: u64 = 1 << 26;
    /// At least one session is asleep, waiting for this word to change. Sessions test this bit in
    /// the same instruction that releases a pin, a lock or an I/O claim. So a release costs nothing
    /// extra in the common case where there are no waiters.
    pub(crate) const WAITERS: u64 = 1 << 27;
    /// The current checkpoint must write this page. Any session that writes the page clears the
    /// flag, and then the checkpoint can skip the page.
    pub(crate) const CHECKPOINT_NEEDED: u64 = 1 << 28;
}

const _: () = assert!(USAGE_MAX <= 15, "the usage count has four bits");
const _: () = assert!(PINS & USAGE == 0 && SHARES & (SHARE_EXCLUSIVE | EXCLUSIVE) == 0);
const _: () = assert!(flag::CHECKPOINT_NEEDED < SHARE && flag::TAG_VALID > USAGE);

/// One value of a buffer's state word, as it was when the word was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferState(pub(super) u64);

impl BufferState {
    /// Pin count, pins of I/O included.
    pub(crate) fn pins(self) -> u32 {
        (self.0 & PINS) as u32
    }

    /// Usage count of the clock sweep.
    pub(crate) fn usage(self) -> u32 {
        ((self.0 & USAGE) >> USAGE_SHIFT) as u32
    }

    /// Whether all of these flags are set.
    pub(crate) fn has(self, flags: u64) -> bool {
        self.0 & flags == flags
    }

    /// Whether any of these flags is set.
    pub(crate) fn any(self, flags: u64) -> bool {
        self.0 & flags != 0
    }

    /// Whether the page is being written, that is, whether a write has claimed it and holds its
    /// content lock.
    pub(crate) fn is_being_written(self) -> bool {
        self.has(flag::IO_IN_PROGRESS | flag::VALID) && self.any(EXCLUSIVE | SHARE_EXCLUSIVE)
    }

    /// Whether the content lock is held in exclusive mode.
    pub(crate) fn is_exclusive(self) -> bool {
        self.any(EXCLUSIVE)
    }

    /// Whether the content lock is held in any mode.
    pub(crate) fn is_locked(self) -> bool {
        self.any(SHARES | SHARE_EXCLUSIVE | EXCLUSIVE)
    }

    /// Whether the buffer contains no page and is not about to receive one from a read.
    pub(crate) fn is_empty(self) -> bool {
        !self.any(flag::TAG_VALID | flag::VALID | flag::IO_IN_PROGRESS)
    }

    /// Whether the page can be used now, or can probably be used when the read in progress ends.
    pub(crate) fn is_valid_or_in_progress(self) -> bool {
        self.any(flag::VALID | flag::IO_IN_PROGRESS)
    }

    /// True if the page must be written before its buffer can be reused, and a write of the page
    /// could be started now.
    pub(crate) fn needs_write(self) -> bool {
        self.has(flag::DIRTY) && !self.any(flag::IO_IN_PROGRESS)
    }

    /// Whether the buffer could be evicted without writing it first: it is not dirty, and no I/O is
    /// in progress.
    pub(crate) fn is_clean(self) -> bool {
        !self.any(flag::DIRTY | flag::IO_IN_PROGRESS)
    }

    /// Asserts that the change from one value of a word to the next obeys the rules. We check every
    /// change that goes through `BufferWord::update`, even in release builds. The check takes only
    /// a few instructions on values that are already in registers, whereas a violation would
    /// silently corrupt a page.
    ///
    /// # Panics
    /// If the change breaks a rule. We can't continue in that case, because two sessions might both
    /// believe that they own the page.
    pub(super) fn assert_change(old: u64, new: u64) {
        let (before, after) = (Self(old), Self(new));
        let pins = (before.pins(), after.pins());
        assert!(pins.1.abs_diff(pins.0) <= 1 && new >> 54 == 0, "pins {pins:?}");
        // A page can't be valid and being read at the same time. If I/O is in progress on a valid
        // page, it must be a write, and the content lock must prevent all changes. This ensures
        // that a read never overwrites a page in use.
        let writing = after.has(flag::IO_IN_PROGRESS | flag::VALID);
        assert!(!writing || (before.has(flag::VALID) && after.any(EXCLUSIVE | SHARE_EXCLUSIVE)));
        // A valid page must have a tag, because otherwise a write wouldn't know which block to
        // write. A dirty page must be valid, because otherwise we would write garbage.
        assert!(!after.has(flag::VALID) || after.has(flag::TAG_VALID));
        assert!(!after.has(flag::DIRTY) || after.has(flag::VALID));
        // Without a pin the page could be evicted under the lock.
        assert!(!after.is_locked() || after.pins() > 0, "a lock without a pin");
        // A page becomes dirty only under the exclusive content lock, or while it is being
        // initialised.
        let made_dirty = after.has(flag::DIRTY) && !before.has(flag::DIRTY);
        let allowed = before.is_exclusive() || !before.has(flag::VALID);
        assert!(!made_dirty || allowed, "a page changed without the exclusive lock");
        assert!(!after.has(flag::CHECKPOINT_NEEDED) || after.has(flag::DIRTY));
    }
}
