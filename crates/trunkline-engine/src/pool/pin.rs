//! Pins: a page that cannot go away while somebody holds one.
//!
//! A pin says nothing about the page's bytes: those belong to its content lock, and [`Page`] and
//! [`PageMut`](super::PageMut) are the ways to them. A session that only wants to know that a page
//! is in the pool, as prewarming does, never locks it.

use super::content_lock::LockMode;
use super::frame::{Page, PageMut};
use super::shared::Shared;
use std::fmt;
use trunkline_aio::sync::Arc;
use trunkline_format::BlockNo;

/// A page that is pinned for as long as this lives, by whomever. Cheap to copy.
#[derive(Clone, Copy)]
pub struct PinRef<'p> {
    pub(super) shared: &'p Shared,
    pub(super) buffer: u32,
}

impl fmt::Debug for PinRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinRef({})", self.buffer)
    }
}

impl<'p> PinRef<'p> {
    /// For who knows that the buffer is pinned while 'p lasts.
    pub(crate) fn new(shared: &'p Shared, buffer: u32) -> Self {
        Self { shared, buffer }
    }

    /// Number of the buffer, from 0 (`pg_buffercache.bufferid` counts from 1).
    pub fn buffer(self) -> u32 {
        self.buffer
    }

    /// The block.
    pub fn block(self) -> BlockNo {
        self.shared.buffers[self.buffer as usize].tag().block()
    }

    /// Locks the page's content for reading, if that can be had at once.
    pub fn try_read(self) -> Option<Page<'p>> {
        Page::try_lock(self.shared, self.buffer, LockMode::Shared).ok()
    }

    /// Locks the page's content for reading, and keeps changes out while others read too, if that
    /// can be had at once.
    pub fn try_read_stable(self) -> Option<Page<'p>> {
        Page::try_lock(self.shared, self.buffer, LockMode::ShareExclusive).ok()
    }

    /// Locks the page's content for oneself, if that can be had at once.
    pub fn try_write(self) -> Option<PageMut<'p>> {
        PageMut::try_lock(self.shared, self.buffer, false).ok()
    }
}

/// A pin of its own. Dropping it gives it back, on whatever thread.
pub struct Pin {
    shared: Arc<Shared>,
    session: u32,
    buffer: u32,
}

impl Pin {
    /// Takes over a pin and its booking.
    pub(super) fn new(shared: Arc<Shared>, session: u32, buffer: u32) -> Self {
        Self { shared, session, buffer }
    }

    /// The page, for locking.
    pub fn page(&self) -> PinRef<'_> {
        PinRef { shared: &self.shared, buffer: self.buffer }
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.shared.release(self.buffer, self.session);
    }
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pin({})", self.buffer)
    }
}
