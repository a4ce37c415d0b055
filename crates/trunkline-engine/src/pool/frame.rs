//! Frames: the memory of the pages, and the only code that creates references to it.
//!
//! This is the only file in the engine that uses `unsafe`. A buffer's state word decides which
//! thread may access its frame. The compiler can't check that, so every access goes through one of
//! the functions below, which asserts the required right first:
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
//! Access to a valid page always needs the content lock, in some mode, so those cases exclude each
//! other. The other cases need a page that is not valid. A page becomes valid only when its read
//! ends or it is filled, and invalid only when the evictor has the only pin. So they exclude every
//! lock holder too. `BufferState::assert_change` asserts both rules at every change of a buffer
//! word.

#![expect(unsafe_code, reason = "references to frames, by the rights that the buffer word grants")]

use super::buffers::Buffers;
use super::clusters::WritableClusters;
use super::descriptor::{LockMode, TryLock, flag};
use crate::storage::Located;
use std::fmt;
use std::ops::{Deref, DerefMut};
use trunkline_aio::facade::Arc;
use trunkline_aio::{DefineError, Io, Lease, Payload, Slots, WaitRef};
use trunkline_format::{BLOCK_SIZE, PageBytes};

/// A pool's buffers with their frames: buffer n uses the lease's n-th frame.
#[derive(Debug)]
pub(crate) struct Frames {
    buffers: Buffers,
    clusters: Arc<WritableClusters>,
    lease: Lease,
    start: *mut PageBytes,
}

// SAFETY: the lease owns the frames exclusively and may be used on any thread. Only the functions
// of this module create references to frames, and each function explains why it may.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

/// Whether an I/O fills frames from the file, or writes them to it.
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
    /// If the I/O belongs to another instance, and so to another page region.
    pub(crate) fn assert_same_instance(&self, io: &Io<'_>) {
        assert!(io.owns(&self.lease), "a session of another instance than the pool's");
    }

    /// Number of the buffer's frame within the page region.
    fn number(&self, buffer: u32) -> u32 {
        self.lease.first_frame() + buffer
    }

    fn page(&self, buffer: u32) -> *mut PageBytes {
        assert!(buffer < self.lease.frames(), "buffer {buffer} has no frame");
        // SAFETY: within the lease's run of frames, as just checked.
        unsafe { self.start.add(buffer as usize) }
    }

    /// Issues the read or write of `buffers`. The caller must have claimed each buffer for exactly
    /// this I/O. The I/O must hold a pin on each buffer and, for a write, also its share-exclusive
    /// lock.
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
            // SAFETY: each page is claimed for this I/O, as just asserted. It is not valid, so no
            // lock on it exists or can be taken, until the completion callback ends the read. A
            // buffer is claimed once, so no frame is listed twice. The I/O's own pins and the
            // callback, which holds the pool, keep the frames leased until then.
            Transfer::Read => unsafe { io.read_frames(file, *offset, frames, slots, slot) },
            // SAFETY: each page is claimed for this I/O, as just asserted. The I/O holds its
            // share-exclusive lock until the completion callback ends the write. Until then nothing
            // can lock the page exclusively, which is the only way to change it, but other sessions
            // may read it. The I/O's own pins and the callback, which holds the pool, keep the
            // frames leased until then.
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
        // SAFETY: the page is claimed for this I/O and not valid, so no lock on it is held. The
        // kernel is done with the frame, and an I/O's callbacks run only once, on one thread.
        body(unsafe { &mut *self.page(buffer) })
    }

    /// Lends a claimed page to the session that is about to write it, so that it can set the
    /// checksum.
    ///
    /// # Panics
    /// If the page was not claimed for this I/O, or readers were let in already.
    pub(crate) fn with_claimed_page<R>(
        &self,
        buffer: u32,
        io: WaitRef,
        body: impl FnOnce(&mut PageBytes) -> R,
    ) -> R {
        self.assert_writing(buffer, io, true);
        // SAFETY: the claim holds the exclusive lock on a valid page, so no other lock is held.
        // Only the thread that claimed the page for this I/O calls this, before it issues the I/O.
        body(unsafe { &mut *self.page(buffer) })
    }

    /// Lends the page of a write in progress for reading, to the issuing session or the completion.
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
        // SAFETY: the write holds the share-exclusive lock of a valid page, so nothing changes it.
        body(unsafe { &*self.page(buffer) })
    }

    /// Zeroes the frame of an empty buffer, for the session that has taken it.
    ///
    /// # Panics
    /// If the buffer has a page.
    pub(crate) fn zero_empty(&self, buffer: u32) {
        let state = self.buffers.state(buffer);
        let empty = state.is_empty() && state.pins() > 0;
        assert!(empty, "buffer {buffer} is not empty, or not pinned");
        // SAFETY: without a tag no lookup finds the buffer, no lock on it can be taken and no I/O
        // is in progress. Only the caller has taken the buffer.
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
/// It dereferences to the bytes of the page. The caller must call [`PageMut::mark_dirty`] before or
/// after a change, under the same lock.
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
    /// Sets hint bits in the page, without waiting. Changes nothing and returns false if other
    /// readers have the page locked, it is being written, or its cluster is read-only. In that case
    /// a later reader sets the hint.
    ///
    /// The page becomes dirty without a WAL record, and its LSN doesn't change. Losing a hint bit
    /// in a crash does no harm, but a torn page would. With checksums, the log must therefore
    /// contain a full-page image from after the last checkpoint began before the first hint is set
    /// (PostgreSQL's `wal_log_hints`).
    ///
    /// PostgreSQL 19 sets hint bits under a share-exclusive lock, alongside readers. Here other
    /// readers hold a `&PageBytes`, and Rust doesn't allow the bytes behind it to change at all. So
    /// setting a hint bit requires the exclusive lock.
    pub fn try_set_hints(&mut self, set: impl FnOnce(&mut PageBytes)) -> bool {
        let (frames, buffer, mode) = (self.frames, self.buffer, self.mode);
        let cluster = frames.buffers.tag(buffer).cluster();
        let word = frames.buffers.word(buffer);
        if !frames.clusters.is_writable(cluster) || !word.try_upgrade(mode) {
            return false;
        }
        let upgraded = Upgraded { frames, buffer, mode };
        word.mark_dirty();
        // SAFETY: the exclusive lock on a valid page until `upgraded` is dropped: no other lock is
        // held, no I/O is in progress, and &mut self says that no reference of our own is left.
        set(unsafe { &mut *frames.page(buffer) });
        drop(upgraded);
        true
    }
}

/// A reader's lock that is exclusive for a moment. Dropping it, also by a panic, downgrades it.
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
        // SAFETY: the page is valid. While self exists its lock keeps the page pinned, and excludes
        // every exclusive lock, the only way to a &mut, and every read into the frame.
        unsafe { &*self.frames.page(self.buffer) }
    }
}

impl Drop for Page<'_> {
    fn drop(&mut self) {
        self.frames.buffers.unlock(self.buffer, self.mode);
    }
}

impl<'p> PageMut<'p> {
    /// Locks a page that the caller has pinned, if the lock is free. A cleanup lock also needs the
    /// caller to have the only pin.
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
    /// Marks the page dirty, so that it is written before it is evicted.
    ///
    /// A caller that logs its changes must call this first, then append the WAL record, and then
    /// set the page's LSN to the record's LSN (see PostgreSQL's `access/transam/README`). If the
    /// page became dirty only after the record was appended, a checkpoint could set its redo point
    /// after the record and still skip the page. The change would then be neither on disk nor
    /// redone.
    ///
    /// # Panics
    /// If the page belongs to a cluster that was opened for reading only.
    pub fn mark_dirty(&mut self) {
        let cluster = self.frames.buffers.tag(self.buffer).cluster();
        assert!(self.frames.clusters.is_writable(cluster), "a page of a read-only cluster changed");
        self.frames.buffers.word(self.buffer).mark_dirty();
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
        // SAFETY: the exclusive lock on a valid page: no other lock is held, no read is in
        // progress, and &mut self makes this the only reference.
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
