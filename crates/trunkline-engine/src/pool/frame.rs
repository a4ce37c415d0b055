//! Frames: the memory that contains the pages, and the only code that creates references to it.
//!
//! This is the only file in the engine that uses `unsafe`. A buffer's state word determines which
//! thread may access its frame. The compiler can't check that, so all access goes through one of
//! the functions below, and each function first asserts that the caller has the required right:
//!
//! ```text
//!   access by                      right                                              gets
//!   session that reads             shared or share-exclusive lock on a valid page     &PageBytes
//!   session that changes           exclusive lock on a valid page                     &mut PageBytes
//!   reader that sets hint bits     the same, by upgrading its own lock                &mut PageBytes
//!   kernel or executor, read       read claimed for this I/O, page not valid          the frame
//!   completion of a read           the same I/O, now complete                         &mut PageBytes
//!   session that starts a write    exclusive lock, taken with the write's claim       &mut PageBytes
//!   kernel or executor, write      share-exclusive lock, owned by the write           the frame, to read
//!   session that fills a buffer    its pin on a buffer without a tag                  &mut PageBytes
//! ```
//!
//! Access to a valid page always requires the content lock in some mode, so the cases with a valid
//! page exclude each other. The other cases require that the page is not valid. A page becomes
//! valid only when its read completes or when it is filled, and it becomes invalid only while the
//! evicting session has the only pin. Those cases therefore exclude every lock holder too.
//! `BufferState::assert_change` asserts both rules whenever a buffer word changes.

#![expect(unsafe_code, reason = "references to frames, by the rights that the buffer word grants")]

use super::buffers::Buffers;
use super::clusters::WritableClusters;
use super::descriptor::{LockMode, TryLock, flag};
use crate::storage::Located;
use std::fmt;
use std::ops::{Deref, DerefMut};
use trunkline_aio::facade::Arc;
use trunkline_aio::{DefineError, Io, Lease, Payload, Slots, WaitRef, prefetch};
use trunkline_format::{BLOCK_SIZE, Lsn, PageBytes};

/// A pool's buffers with their frames. Buffer n uses the lease's n-th frame.
#[derive(Debug)]
pub(crate) struct Frames {
    buffers: Buffers,
    clusters: Arc<WritableClusters>,
    lease: Lease,
    start: *mut PageBytes,
}

// SAFETY: the lease owns the frames exclusively and may be used on any thread. Only functions in
// this module create references to frames, and each function explains why that is safe.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

/// Whether an I/O reads from the file into the frames, or writes the frames to the file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Transfer {
    Read,
    Write,
}

const _: () = assert!(trunkline_aio::limits::FRAME_SIZE == BLOCK_SIZE);

impl Frames {
    /// One buffer for each frame of the lease.
    pub(crate) fn new(lease: Lease, buffers: Buffers, clusters: Arc<WritableClusters>) -> Self {
        assert_eq!(lease.frames(), buffers.count(), "one frame for each buffer");
        let start = lease.as_ptr().cast();
        Self { buffers, clusters, lease, start }
    }

    /// The descriptors.
    pub(crate) fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// The clusters whose pages may be changed.
    pub(crate) fn clusters(&self) -> &Arc<WritableClusters> {
        &self.clusters
    }

    /// Asserts that frame numbers of this pool are valid for the I/O.
    ///
    /// # Panics
    /// If the I/O belongs to another instance and therefore to a different page region.
    pub(crate) fn assert_same_instance(&self, io: &Io<'_>) {
        assert!(io.owns(&self.lease), "a session of another instance than the pool's");
    }

    /// Number of the buffer's frame within the page region.
    fn number(&self, buffer: u32) -> u32 {
        self.lease.first_frame() + buffer
    }

    /// Makes sure that a buffer's frame has memory, before its first use.
    pub(crate) fn populate(&self, buffer: u32) {
        self.lease.populate(buffer);
    }

    /// Loads the cache line at `offset` of a buffer's frame into the CPU's cache. This needs no right,
    /// because nothing is read.
    pub(crate) fn prefetch(&self, buffer: u32, offset: usize) {
        prefetch(self.page(buffer).cast::<u8>().wrapping_add(offset));
    }

    fn page(&self, buffer: u32) -> *mut PageBytes {
        assert!(buffer < self.lease.frames(), "buffer {buffer} has no frame");
        // SAFETY: within the lease's run of frames, as just checked.
        unsafe { self.start.add(buffer as usize) }
    }

    /// Issues a read or write of `buffers`. The caller must have claimed every buffer for this
    /// particular I/O. The I/O must hold a pin on each buffer. For a write, it must also hold each
    /// buffer's share-exclusive lock.
    ///
    /// # Panics
    /// If a buffer is not claimed for this I/O, or the handle belongs to another instance.
    pub(crate) fn issue<P: Payload>(
        &self,
        io: Io<'_>,
        transfer: Transfer,
        Located { file, offset, .. }: &Located,
        buffers: &[u32],
        (slots, slot): (&mut Slots<P>, usize),
    ) -> Result<WaitRef, DefineError> {
        self.assert_same_instance(&io);
        for &buffer in buffers {
            match transfer {
                Transfer::Read => self.assert_reading(buffer, io.wait_ref()),
                Transfer::Write => self.assert_writing(buffer, io.wait_ref(), false),
            }
        }
        let frames = buffers.iter().map(|&buffer| self.number(buffer));
        match transfer {
            // SAFETY: we've just asserted that each page is claimed for this I/O and is not valid.
            // No session can hold or take a lock on a page that is not valid, and the page stays
            // that way until the completion callback ends the read. A buffer can be claimed only
            // once, so no frame is in the list twice. The I/O's own pins, and the callback's
            // reference to the pool, keep the frames leased until then.
            Transfer::Read => unsafe { io.read_frames(file, *offset, frames, slots, slot) },
            // SAFETY: we've just asserted that each page is claimed for this I/O. The I/O holds the
            // page's share-exclusive lock until the completion callback ends the write. Until then,
            // other sessions can read the page, but they can't change it, because that requires the
            // exclusive lock. The I/O's own pins, and the callback's reference to the pool, keep
            // the frames leased until then.
            Transfer::Write => unsafe { io.write_frames(file, *offset, frames, slots, slot) },
        }
    }

    /// Lends a completion the page that its I/O has read.
    ///
    /// # Panics
    /// If the page was not claimed for this I/O.
    pub(crate) fn with_read_page<R>(
        &self,
        buffer: u32,
        io: WaitRef,
        body: impl FnOnce(&mut PageBytes) -> R,
    ) -> R {
        self.assert_reading(buffer, io);
        // SAFETY: the page is claimed for this I/O and is not valid, so no session holds a lock on
        // it. The kernel no longer accesses the frame, and an I/O's callbacks run only once, on one
        // thread.
        body(unsafe { &mut *self.page(buffer) })
    }

    /// Gives a session access to the bytes of a page that it has claimed for writing, so that it
    /// can set the checksum.
    ///
    /// # Panics
    /// If the page was not claimed for this I/O, or if readers have already been let in.
    pub(crate) fn with_claimed_page<R>(
        &self,
        buffer: u32,
        io: WaitRef,
        body: impl FnOnce(&mut PageBytes) -> R,
    ) -> R {
        self.assert_writing(buffer, io, true);
        // SAFETY: the claim holds the exclusive lock on a valid page, so no other session holds a
        // lock on it. Only the thread that claimed the page for this I/O calls this function, and
        // it does so before it issues the I/O.
        body(unsafe { &mut *self.page(buffer) })
    }

    /// Gives read-only access to a page that is being written, either to the issuing session or to
    /// the completion callback.
    ///
    /// # Panics
    /// If the page was not claimed for this I/O.
    pub(crate) fn with_written_page<R>(
        &self,
        buffer: u32,
        io: WaitRef,
        body: impl FnOnce(&PageBytes) -> R,
    ) -> R {
        self.assert_writing(buffer, io, false);
        // SAFETY: the write holds the share-exclusive lock on a valid page, so no session can
        // change the page.
        body(unsafe { &*self.page(buffer) })
    }

    /// Zeroes the frame of an empty buffer. The caller must be the session that has taken the
    /// buffer.
    ///
    /// # Panics
    /// If the buffer has a page.
    pub(crate) fn zero_empty(&self, buffer: u32) {
        let state = self.buffers.state(buffer);
        let empty = state.is_empty() && state.pins() > 0;
        assert!(empty, "buffer {buffer} is not empty, or not pinned");
        // SAFETY: the buffer has no tag, so no lookup can find it, no session can lock it, and no
        // I/O is in progress. The caller is the only session that has taken the buffer.
        unsafe { (*self.page(buffer)).fill(0) };
    }

    fn assert_reading(&self, buffer: u32, io: WaitRef) {
        let descriptor = self.buffers.descriptor(buffer);
        let state = descriptor.state();
        let claimed = state.has(flag::IO_IN_PROGRESS) && !state.has(flag::VALID);
        assert!(claimed && descriptor.is_io(io), "buffer {buffer} is not claimed for this I/O");
    }

    fn assert_writing(&self, buffer: u32, io: WaitRef, exclusive: bool) {
        let descriptor = self.buffers.descriptor(buffer);
        let state = descriptor.state();
        let claimed = state.is_being_written() && state.is_exclusive() == exclusive;
        let claimed = claimed && descriptor.is_io(io);
        assert!(claimed, "buffer {buffer} is not being written by this I/O");
    }
}

/// A page locked for reading, in shared or share-exclusive mode. Dropping it releases the lock.
///
/// It dereferences to the bytes of the page.
pub struct Page<'p> {
    frames: &'p Frames,
    buffer: u32,
    mode: LockMode,
}

/// A page locked for changing. Dropping it releases the lock.
///
/// A `PageMut` dereferences to the page's bytes. The caller must call [`PageMut::mark_dirty`]
/// before or after changing the page, but before releasing the lock.
pub struct PageMut<'p> {
    frames: &'p Frames,
    buffer: u32,
}

impl<'p> Page<'p> {
    /// Locks a page that the caller has pinned, if the lock is free.
    pub(crate) fn try_lock(
        frames: &'p Frames,
        buffer: u32,
        mode: LockMode,
    ) -> Result<Self, TryLock> {
        assert!(mode != LockMode::Exclusive, "PageMut is the exclusive lock");
        match frames.buffers.word(buffer).try_lock(mode) {
            TryLock::Locked => Ok(Self { frames, buffer, mode }),
            refused => Err(refused),
        }
    }
}

impl Page<'_> {
    /// Sets hint bits in the page without waiting. This does nothing and returns false if other
    /// readers have locked the page, if the page is being written, or if its cluster is read-only.
    /// In that case a later reader will set the hint bits.
    ///
    /// This makes the page dirty without writing a WAL record, and the page's LSN doesn't change.
    /// Losing a hint bit in a crash is harmless, but a torn page isn't. If checksums are enabled,
    /// the caller must therefore make sure that the WAL contains a full-page image taken since the
    /// last checkpoint began, before it sets the first hint bit (PostgreSQL's `wal_log_hints`).
    ///
    /// PostgreSQL 19 sets hint bits under a share-exclusive lock, while other sessions read the
    /// page. We can't do that, because the other readers hold a `&PageBytes`, and Rust doesn't
    /// allow the bytes behind such a reference to change. So we need the exclusive lock to set a
    /// hint bit.
    pub fn try_set_hints(&mut self, set: impl FnOnce(&mut PageBytes)) -> bool {
        let (frames, buffer, mode) = (self.frames, self.buffer, self.mode);
        let cluster = frames.buffers.tag(buffer).cluster();
        let word = frames.buffers.word(buffer);
        if !frames.clusters.is_writable(cluster) || !word.try_upgrade(mode) {
            return false;
        }
        let upgraded = Upgraded { frames, buffer, mode };
        word.mark_dirty();
        // SAFETY: we hold the exclusive lock on a valid page until `upgraded` is dropped, so no
        // other session holds a lock and no I/O is in progress. Because of &mut self, we have no
        // other reference to the page either.
        set(unsafe { &mut *frames.page(buffer) });
        drop(upgraded);
        true
    }
}

/// A reader's lock that we have briefly upgraded to exclusive. Dropping it downgrades the lock
/// again, even during a panic.
struct Upgraded<'p> {
    frames: &'p Frames,
    buffer: u32,
    mode: LockMode,
}

impl Drop for Upgraded<'_> {
    fn drop(&mut self) {
        self.frames.buffers.downgrade(self.buffer, self.mode);
    }
}

impl Deref for Page<'_> {
    type Target = PageBytes;
    fn deref(&self) -> &PageBytes {
        // SAFETY: the page is valid. As long as self exists, its lock keeps the page pinned. While
        // it is held, no session can take the exclusive lock, which is the only way to get a &mut,
        // and no read into the frame can start.
        unsafe { &*self.frames.page(self.buffer) }
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        self.frames.buffers.unlock(self.buffer, self.mode);
    }
}

impl<'p> PageMut<'p> {
    /// Locks a page that the caller has pinned, if the lock is free. For a cleanup lock, the
    /// caller's pin must also be the only one.
    pub(crate) fn try_lock(
        frames: &'p Frames,
        buffer: u32,
        cleanup: bool,
    ) -> Result<Self, TryLock> {
        let word = frames.buffers.word(buffer);
        let locked = match cleanup {
            true => word.try_lock_for_cleanup(),
            false => word.try_lock(LockMode::Exclusive),
        };
        match locked {
            TryLock::Locked => Ok(Self { frames, buffer }),
            refused => Err(refused),
        }
    }

    /// Forgets the lock without releasing it, because it was released together with the page's tag.
    pub(crate) fn forget(self) {
        std::mem::forget(self);
    }
}

impl PageMut<'_> {
    /// Marks the page dirty, so that it will be written before it is evicted.
    ///
    /// If the change is WAL-logged, the caller must call this function first, then append the WAL
    /// record, and then set the page's LSN to that of the record (see PostgreSQL's
    /// `access/transam/README`). If the caller marked the page dirty only after appending the
    /// record, a concurrent checkpoint could set its redo point after the record and still skip the
    /// page. The change would then be neither on disk nor replayed after a crash.
    ///
    /// # Panics
    /// If the page belongs to a cluster that was opened read-only.
    pub fn mark_dirty(&mut self) {
        let cluster = self.frames.buffers.tag(self.buffer).cluster();
        assert!(self.frames.clusters.is_writable(cluster), "a page of a read-only cluster changed");
        self.frames.buffers.word(self.buffer).mark_dirty();
    }

    /// Raises the LSN of a page that has no header: the page is written only when the WAL is durable up to there. For a page
    /// with a header, set the LSN in the header.
    ///
    /// # Panics
    /// If the page has a header.
    pub(crate) fn raise_lsn(&mut self, lsn: Lsn) {
        let descriptor = self.frames.buffers.descriptor(self.buffer);
        assert!(!descriptor.tag().has_header(), "the LSN of this page is in its header");
        descriptor.raise_lsn(lsn);
    }
}

impl Deref for PageMut<'_> {
    type Target = PageBytes;
    fn deref(&self) -> &PageBytes {
        // SAFETY: as in deref_mut, and &self allows no change.
        unsafe { &*self.frames.page(self.buffer) }
    }
}

impl DerefMut for PageMut<'_> {
    fn deref_mut(&mut self) -> &mut PageBytes {
        // SAFETY: we hold the exclusive lock on a valid page, so no other session holds a lock and
        // no read is in progress. Because of &mut self, this is the only reference.
        unsafe { &mut *self.frames.page(self.buffer) }
    }
}

impl Drop for PageMut<'_> {
    fn drop(&mut self) {
        self.frames.buffers.unlock(self.buffer, LockMode::Exclusive);
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
