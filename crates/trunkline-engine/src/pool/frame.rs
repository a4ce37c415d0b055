//! The bytes of the pages, and the only references to them: the one place of the engine with
//! `unsafe`, because who may look at a frame is decided by a word of atomics and not by a borrow.
//!
//! ```text
//!   who                         by what right                                  what they get
//!   a session that reads        shared or share-exclusive lock, page valid     &PageBytes
//!   a session that changes      exclusive lock, page valid                     &mut PageBytes
//!   a reader that sets hints    the same, for a moment, upgraded from its own  &mut PageBytes
//!   the kernel, or an executor  the read claimed for this I/O, page not valid  the frame
//!   a completion callback       the same I/O, now complete                     &mut PageBytes
//!   who starts a write          exclusive lock, taken with the write's claim   &mut PageBytes
//!   the kernel, for a write     share-exclusive lock, the write's              the frame, to read
//!   who fills an empty buffer   its pin, and it has no identity                &mut PageBytes
//! ```
//! Whoever looks at a page that is valid holds its content lock, in one mode or another, also who sets
//! hints, who starts a write, and the write itself: so they exclude each other. A read, its completion
//! and who fills an empty buffer need a page that is not valid, and a page becomes valid only when its
//! read ends or it is filled, and invalid only when nobody else has it pinned: so they exclude those
//! with a lock too (`BufferWord::update` asserts it).

#![expect(unsafe_code, reason = "references to frames, by the rights that the buffer word grants")]

use super::content_lock::{LockMode, TryLock};
use super::shared::Shared;
use super::state::flag;
use std::fmt;
use std::ops::{Deref, DerefMut};
use trunkline_aio::{Completion, DefineError, File, Io, Lease, Payload, Slots, WaitRef};
use trunkline_format::page::is_all_zero;
use trunkline_format::{BLOCK_SIZE, PageBytes};

/// The frames of all buffers of a pool: buffer n has the n-th frame of one lease.
#[derive(Debug)]
pub(crate) struct Frames {
    lease: Lease,
    start: *mut PageBytes,
}

// SAFETY: the lease is the sole right to the frames and may be used on any thread; references to
// them are made only by the functions of this module, each of which says why it may.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

const _: () = assert!(trunkline_aio::limits::FRAME_SIZE == BLOCK_SIZE);

impl Frames {
    /// Takes the frames over.
    pub(crate) fn new(lease: Lease) -> Self {
        let start = lease.as_ptr().cast();
        Self { lease, start }
    }

    /// Whether an I/O's frame numbers count in the region that these frames are of.
    pub(crate) fn are_for(&self, io: &Io<'_>) -> bool {
        io.owns(&self.lease)
    }

    /// Number of the buffer's frame within the region.
    fn number(&self, buffer: u32) -> u32 {
        self.lease.first_frame() + buffer
    }

    fn page(&self, buffer: u32) -> *mut PageBytes {
        assert!(buffer < self.lease.frames(), "buffer {buffer} has no frame");
        // SAFETY: within the lease's run of frames, as just checked.
        unsafe { self.start.add(buffer as usize) }
    }
}

/// The right to read a page: its content lock, shared or share-exclusive. Dropping it unlocks.
pub struct Page<'p> {
    shared: &'p Shared,
    buffer: u32,
    mode: LockMode,
}

/// The right to change a page: its content lock, exclusive. Dropping it unlocks.
pub struct PageMut<'p> {
    shared: &'p Shared,
    buffer: u32,
}

impl<'p> Page<'p> {
    /// Locks a page that the caller has pinned, if that can be had at once.
    pub(crate) fn try_lock(
        shared: &'p Shared,
        buffer: u32,
        mode: LockMode,
    ) -> Result<Self, TryLock> {
        assert!(mode != LockMode::Exclusive, "PageMut is the exclusive lock");
        match shared.word(buffer).try_lock(mode) {
            TryLock::Locked => Ok(Self { shared, buffer, mode }),
            refused => Err(refused),
        }
    }
}

impl Page<'_> {
    /// Lets a reader note in the page what everybody could find out again: hint bits. At once or not
    /// at all: false, and nothing is changed, if anybody else looks at the page, if it is being written,
    /// or if its cluster is only read. A hint that could not be set is set by a later reader.
    ///
    /// The page is then to be written, without a record in the log: its position there stays as it is,
    /// and losing the hint in a crash is no loss. What a torn write of it would do is another matter:
    /// with checksums, whoever keeps a log must have put the whole page into it since the checkpoint's
    /// beginning before the first hint is set (PostgreSQL's `wal_log_hints`).
    ///
    /// PostgreSQL 19 sets hints under a share-exclusive lock, beside readers. References to the bytes
    /// that other readers hold allow no change at all here, so who sets a hint must be alone.
    pub fn try_set_hints(&mut self, set: impl FnOnce(&mut PageBytes)) -> bool {
        let (shared, buffer, mode) = (self.shared, self.buffer, self.mode);
        let cluster = shared.buffers[buffer as usize].tag().cluster();
        if !shared.is_writable(cluster) || !shared.word(buffer).try_upgrade(mode) {
            return false;
        }
        let upgraded = Upgraded { shared, buffer, mode };
        shared.word(buffer).mark_dirty();
        // SAFETY: the exclusive lock on a valid page until `upgraded` goes: no other lock is held, no
        // I/O is under way, and &mut self says that no reference of our own is left.
        set(unsafe { &mut *shared.frames.page(buffer) });
        drop(upgraded);
        true
    }
}

/// A reader's lock that is exclusive for a moment. Dropping it, also by a panic, makes it what it was.
struct Upgraded<'p> {
    shared: &'p Shared,
    buffer: u32,
    mode: LockMode,
}

impl Drop for Upgraded<'_> {
    fn drop(&mut self) {
        self.shared.downgrade(self.buffer, self.mode);
    }
}

impl Deref for Page<'_> {
    type Target = PageBytes;
    fn deref(&self) -> &PageBytes {
        // SAFETY: the page is valid, and our lock keeps it pinned and keeps every exclusive lock,
        // the only way to a &mut, and every read into the frame away while self lives.
        unsafe { &*self.shared.frames.page(self.buffer) }
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        self.shared.unlock(self.buffer, self.mode);
    }
}

impl<'p> PageMut<'p> {
    /// Locks a page that the caller has pinned, if that can be had at once; for a cleanup only if
    /// nobody else has pinned it.
    pub(crate) fn try_lock(
        shared: &'p Shared,
        buffer: u32,
        cleanup: bool,
    ) -> Result<Self, TryLock> {
        let word = shared.word(buffer);
        let locked = match cleanup {
            true => word.try_lock_for_cleanup(),
            false => word.try_lock(LockMode::Exclusive),
        };
        match locked {
            TryLock::Locked => Ok(Self { shared, buffer }),
            refused => Err(refused),
        }
    }
}

impl PageMut<'_> {
    /// Notes that the page was changed, or is about to be under this lock: it is written to disk before
    /// it goes. Whoever logs changes calls this first, then appends the record, and puts its position
    /// into the page's header: so a checkpoint that begins between the two writes the page.
    ///
    /// # Panics
    /// If the page is of a cluster that was opened for reading only.
    pub fn mark_dirty(&mut self) {
        let tag = self.shared.buffers[self.buffer as usize].tag();
        assert!(self.shared.is_writable(tag.cluster()), "a page of a read-only cluster changed");
        self.shared.word(self.buffer).mark_dirty();
    }
}

impl Deref for PageMut<'_> {
    type Target = PageBytes;
    fn deref(&self) -> &PageBytes {
        // SAFETY: as in deref_mut, and &self allows no change meanwhile.
        unsafe { &*self.shared.frames.page(self.buffer) }
    }
}

impl DerefMut for PageMut<'_> {
    fn deref_mut(&mut self) -> &mut PageBytes {
        // SAFETY: the exclusive lock on a valid page: no other lock is held, no read is under way,
        // and &mut self makes this the only reference.
        unsafe { &mut *self.shared.frames.page(self.buffer) }
    }
}

impl Drop for PageMut<'_> {
    fn drop(&mut self) {
        self.shared.unlock(self.buffer, LockMode::Exclusive);
    }
}

impl fmt::Debug for Page<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Page({}, {:?})", self.buffer, self.mode)
    }
}

impl fmt::Debug for PageMut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageMut({})", self.buffer)
    }
}

impl Shared {
    /// Issues the read of `buffers`, each of which was claimed for exactly this I/O, which has a pin
    /// on each.
    ///
    /// # Panics
    /// If one of them was not, or the handle is another instance's.
    pub(crate) fn read_into<P: Payload>(
        &self,
        io: Io<'_>,
        file: &File,
        offset: u64,
        buffers: &[u32],
        operations: &mut Slots<P>,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        assert!(self.frames.are_for(&io), "a session of another instance than the pool's");
        buffers.iter().for_each(|&buffer| self.assert_claimed(buffer, io.wait_ref()));
        let frames = buffers.iter().map(|&buffer| self.frames.number(buffer));
        // SAFETY: each frame's page is claimed for this I/O, as just asserted: it is not valid, so
        // no lock on it is held or can be had, and it stays so until the I/O's completion callback
        // ends the read. A buffer is claimed once, so no frame is there twice. The I/O's own pins
        // and the callback, which holds the pool, keep the frames leased until then.
        unsafe { io.read_frames(file, offset, frames, operations, slot) }
    }

    /// Lets a completion look at, and change, a page that its I/O has read.
    ///
    /// # Panics
    /// If the page was not claimed for this I/O.
    pub(crate) fn with_incoming<P, R>(
        &self,
        buffer: u32,
        io: &Completion<'_, P>,
        look: impl FnOnce(&mut PageBytes) -> R,
    ) -> R {
        self.assert_claimed(buffer, io.wait_ref);
        // SAFETY: the page is claimed for this I/O and not valid, so nobody holds a lock on it; the
        // storage is done with the frame, and one thread runs the callbacks of an I/O, once.
        look(unsafe { &mut *self.frames.page(buffer) })
    }

    /// Issues the write of `buffers`, each of which was claimed for exactly this I/O, which has a pin
    /// and the share-exclusive lock on each.
    ///
    /// # Panics
    /// If one of them was not, or the handle is another instance's.
    pub(crate) fn write_from<P: Payload>(
        &self,
        io: Io<'_>,
        file: &File,
        offset: u64,
        buffers: &[u32],
        operations: &mut Slots<P>,
        slot: usize,
    ) -> Result<WaitRef, DefineError> {
        assert!(io.owns(&self.frames.lease), "a session of another instance than the pool's");
        buffers.iter().for_each(|&buffer| self.assert_writing(buffer, io.wait_ref(), false));
        let frames = buffers.iter().map(|&buffer| self.frames.number(buffer));
        // SAFETY: each page is claimed for this I/O, which holds its share-exclusive lock until the
        // completion callback ends the write, as just asserted: nobody can lock it exclusively, the
        // only way to change it, until then. Others may read it. The I/O's own pins and the
        // callback, which holds the pool, keep the frames leased until then.
        unsafe { io.write_frames(file, offset, frames, operations, slot) }
    }

    /// Lets who has claimed a write finish the page: its checksum.
    ///
    /// # Panics
    /// If the page was not claimed for this I/O, or may be read by others already.
    pub(crate) fn with_claimed<R>(
        &self,
        buffer: u32,
        io: WaitRef,
        look: impl FnOnce(&mut PageBytes) -> R,
    ) -> R {
        self.assert_writing(buffer, io, true);
        // SAFETY: the claim holds the exclusive lock on a valid page: no other lock is held, and
        // one thread, which called this, starts the I/O that it was claimed for.
        look(unsafe { &mut *self.frames.page(buffer) })
    }

    /// Lets who has claimed the write of a copy make it.
    ///
    /// # Panics
    /// If the page was not claimed for this I/O.
    pub(crate) fn with_stable<R>(
        &self,
        buffer: u32,
        io: WaitRef,
        look: impl FnOnce(&PageBytes) -> R,
    ) -> R {
        self.assert_writing(buffer, io, false);
        // SAFETY: the claim holds the share-exclusive lock of a valid page, so nobody changes it.
        look(unsafe { &*self.frames.page(buffer) })
    }

    /// Lets a completion look at a page that its I/O has written.
    ///
    /// # Panics
    /// If the page was not claimed for this I/O.
    pub(crate) fn with_outgoing<P, R>(
        &self,
        buffer: u32,
        io: &Completion<'_, P>,
        look: impl FnOnce(&PageBytes) -> R,
    ) -> R {
        self.assert_writing(buffer, io.wait_ref, false);
        // SAFETY: the I/O holds the share-exclusive lock, so nobody changes the page.
        look(unsafe { &*self.frames.page(buffer) })
    }

    /// Takes the identity of a buffer away, which the caller has pinned, if its page is one that nobody
    /// has filled, and that nobody else has pinned. True also if it has no page.
    pub(crate) fn discard_new(&self, buffer: u32) -> bool {
        if !self.word(buffer).load().has(flag::TAG_VALID) {
            return true;
        }
        let Ok(page) = PageMut::try_lock(self, buffer, true) else { return false };
        let gone = is_all_zero(&page) && self.table.discard_locked(&self.buffers, buffer);
        if gone {
            // There is no lock any more.
            std::mem::forget(page);
            self.clean.set(buffer);
        }
        gone
    }

    /// Fills the frame of a buffer that has no page, for the one who has taken it, with zeros.
    ///
    /// # Panics
    /// If it has a page.
    pub(crate) fn clear_empty(&self, buffer: u32) {
        let seen = self.word(buffer).load();
        let empty = !seen.any(flag::TAG_VALID | flag::VALID | flag::IO_IN_PROGRESS);
        assert!(empty && seen.pins() > 0, "buffer {buffer} is not empty, or nobody's");
        // SAFETY: without an identity nobody can find it, no lock on it can be had and no I/O is
        // under way; it was taken by one session, which called this.
        unsafe { (*self.frames.page(buffer)).fill(0) };
    }

    fn assert_writing(&self, buffer: u32, io: WaitRef, exclusive: bool) {
        let descriptor = &self.buffers[buffer as usize];
        let seen = descriptor.word.load();
        let claimed = seen.is_being_written() && seen.is_exclusive() == exclusive;
        assert!(
            claimed && descriptor.is_io(io),
            "buffer {buffer} is not being written by this I/O"
        );
    }

    fn assert_claimed(&self, buffer: u32, io: WaitRef) {
        let descriptor = &self.buffers[buffer as usize];
        let seen = descriptor.word.load();
        let claimed = seen.has(flag::IO_IN_PROGRESS) && !seen.has(flag::VALID);
        assert!(claimed && descriptor.is_io(io), "buffer {buffer} is not claimed for this I/O");
    }
}
