//! Pins: a pinned page can't be evicted, and its buffer keeps its tag.
//!
//! A pin alone doesn't give access to the page's bytes. To read or change them, the caller must
//! also lock the page, which returns a [`Page`] or a [`PageMut`]. Neither can outlive the pin, so
//! the compiler enforces PostgreSQL's rule that the content lock must be released before the pin.
//! Callers that only want the page to be in the pool, such as prewarm, don't need to lock it.
//!
//! There is no equivalent of PostgreSQL's `PrivateRefCount`, because each [`Pin`] is counted
//! individually in the shared pin count. We don't need a `ResourceOwner` either: if an error
//! occurs, Rust's ownership rules ensure that the pin is released.

use super::descriptor::LockMode;
use super::frame::{Frames, Page, PageMut};
use super::manager::BufferManager;
use std::fmt;
use trunkline_aio::facade::Arc;
use trunkline_format::BlockNo;

/// A page that is kept pinned for the lifetime `'p`, either by a [`Pin`] or by a stream. It is
/// cheap to copy.
#[derive(Clone, Copy)]
pub struct PinRef<'p> {
    frames: &'p Frames,
    buffer: u32,
}

impl fmt::Debug for PinRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinRef({})", self.buffer)
    }
}

impl<'p> PinRef<'p> {
    /// The caller guarantees that the buffer stays pinned for `'p`.
    pub(crate) fn new(frames: &'p Frames, buffer: u32) -> Self {
        Self { frames, buffer }
    }

    /// The frames that the buffer belongs to.
    pub(crate) fn frames(self) -> &'p Frames {
        self.frames
    }

    /// Number of the buffer, from 0 (`pg_buffercache.bufferid` counts from 1).
    pub fn buffer(self) -> u32 {
        self.buffer
    }

    /// The block of the page.
    pub fn block(self) -> BlockNo {
        self.frames.buffers().tag(self.buffer).block()
    }

    /// Locks the page for reading, if the lock is free.
    pub fn try_read(self) -> Option<Page<'p>> {
        Page::try_lock(self.frames, self.buffer, LockMode::Shared).ok()
    }

    /// Locks the page in share-exclusive mode, which allows reading and prevents changes, if the
    /// lock is free.
    pub fn try_read_stable(self) -> Option<Page<'p>> {
        Page::try_lock(self.frames, self.buffer, LockMode::ShareExclusive).ok()
    }

    /// Locks the page for changing, if the lock is free.
    pub fn try_write(self) -> Option<PageMut<'p>> {
        PageMut::try_lock(self.frames, self.buffer, false).ok()
    }

    /// Takes the cleanup lock of the page, if the lock is free and there is no other pin
    /// (`ConditionalLockBufferForCleanup`). See [`Backend::cleanup_lock`](super::Backend::cleanup_lock).
    pub fn try_cleanup(self) -> Option<PageMut<'p>> {
        PageMut::try_lock(self.frames, self.buffer, true).ok()
    }
}

/// An owned pin. Dropping it, on any thread, releases the page.
pub struct Pin {
    manager: Arc<BufferManager>,
    session: u32,
    buffer: u32,
}

impl Pin {
    /// Takes over a pin and its reservation.
    pub(crate) fn new(manager: &Arc<BufferManager>, session: u32, buffer: u32) -> Self {
        Self { manager: Arc::clone(manager), session, buffer }
    }

    /// The page, ready to be locked.
    pub fn page(&self) -> PinRef<'_> {
        PinRef { frames: self.manager.frames(), buffer: self.buffer }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.manager.release(self.buffer, self.session);
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({})", self.buffer)
    }
}
