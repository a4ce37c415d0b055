//! Content locks: a backend tries the lock, and if it isn't free sleeps until it may be.
//!
//! This is PostgreSQL's `LockBuffer` and `LockBufferForCleanup`. Unlike in PostgreSQL, where LWLock
//! waits can't be interrupted, a waiting session can be cancelled. Time spent waiting for a lock
//! isn't I/O, so it isn't counted in the statistics.
//!
//! Every lock function has the same loop. It tries to take the lock and, if that fails, sleeps
//! until the state word shows that the lock could be granted. One release may wake several
//! sessions, so the loop may go round more than once.

use super::super::descriptor::LockMode;
use super::super::frame::{Page, PageMut};
use super::super::pin::PinRef;
use super::Backend;
use trunkline_aio::Cancelled;
use trunkline_aio::facade::Arc;

impl Backend {
    /// Locks a page for reading (shared).
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn read_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<Page<'p>, Cancelled> {
        self.lock_page(pin, LockMode::Shared)
    }

    /// Locks a page for reading and excludes changes (share-exclusive).
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn stable_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<Page<'p>, Cancelled> {
        self.lock_page(pin, LockMode::ShareExclusive)
    }

    fn lock_page<'p>(&mut self, pin: PinRef<'p>, mode: LockMode) -> Result<Page<'p>, Cancelled> {
        loop {
            if let Ok(page) = Page::try_lock(pin.frames(), pin.buffer(), mode) {
                return Ok(page);
            }
            self.wait_for_lock(pin, mode, false)?;
        }
    }

    /// Locks a page for changing (exclusive).
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn write_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<PageMut<'p>, Cancelled> {
        self.lock_page_mut(pin, false)
    }

    /// Takes the cleanup lock: the exclusive lock, granted only while the caller's pin is the only
    /// one. Even an I/O's pin counts. Only under this lock may tuples be moved within the page,
    /// because any other pin may belong to a session that holds pointers to tuples. The caller must
    /// have exactly one pin on the page, because with a second pin it would wait for itself.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn cleanup_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<PageMut<'p>, Cancelled> {
        self.lock_page_mut(pin, true)
    }

    fn lock_page_mut<'p>(
        &mut self,
        pin: PinRef<'p>,
        cleanup: bool,
    ) -> Result<PageMut<'p>, Cancelled> {
        loop {
            if let Ok(page) = PageMut::try_lock(pin.frames(), pin.buffer(), cleanup) {
                return Ok(page);
            }
            self.wait_for_lock(pin, LockMode::Exclusive, cleanup)?;
        }
    }

    fn wait_for_lock(
        &mut self,
        pin: PinRef<'_>,
        mode: LockMode,
        cleanup: bool,
    ) -> Result<(), Cancelled> {
        let buffers = pin.frames().buffers();
        buffers.wait_for(&mut self.session, pin.buffer(), |descriptor| {
            descriptor.word().could_lock(mode, cleanup)
        })
    }

    /// Waits until a page that is locked or under I/O can probably be written.
    pub(crate) fn wait_until_writable(&mut self, buffer: u32) -> Result<(), Cancelled> {
        let manager = Arc::clone(&self.manager);
        let descriptor = manager.buffers().descriptor(buffer);
        if let Some(io) = descriptor.io_in_progress() {
            return self.sleep_for_io(io);
        }
        // Pin the page, so that it can't be evicted while the session sleeps on its word.
        if descriptor.word().pin(0).is_none() {
            return Ok(());
        }
        let pin = PinRef::new(manager.frames(), buffer);
        let waited = self.wait_for_lock(pin, LockMode::Exclusive, false);
        manager.unpin(buffer);
        waited
    }
}
