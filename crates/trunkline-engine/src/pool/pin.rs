//! Pins: a pinned page can't be evicted, and its buffer keeps its tag.
//!
//! A pin doesn't give access to the page's bytes. For that the page must be locked, which yields a
//! [`Page`] or a [`PageMut`]. Their lifetimes end before the pin's, so the compiler enforces
//! PostgreSQL's rule that a content lock is released before the pin. A caller that only wants a
//! page to be in the pool, such as prewarm, needs no lock.
//!
//! There's no counterpart of PostgreSQL's `PrivateRefCount`: each [`Pin`] is one pin in the shared
//! count, and Rust's ownership rules replace the `ResourceOwner` that would release it on error.

use super::descriptor::LockMode;
use super::frame::{Frames, Page, PageMut};
use super::manager::BufferManager;
use std::fmt;
use trunkline_aio::facade::Arc;
use trunkline_format::BlockNo;

/// A page that is pinned for the lifetime `'p`, by a [`Pin`] or by a stream. Cheap to copy.
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

    /// Locks the page for reading and keeps changes out (share-exclusive), if the lock is free.
    pub fn try_read_stable(self) -> Option<Page<'p>> {
        Page::try_lock(self.frames, self.buffer, LockMode::ShareExclusive).ok()
    }

    /// Locks the page for changing, if the lock is free.
    pub fn try_write(self) -> Option<PageMut<'p>> {
        PageMut::try_lock(self.frames, self.buffer, false).ok()
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
