//! Content locks of a backend, which waits for them if need be.
//!
//! PostgreSQL's `LockBuffer` and `LockBufferForCleanup`. A waiting session can be cancelled here.
//! Time spent waiting for a lock is not I/O, so it is not counted in the statistics.

use super::super::descriptor::LockMode;
use super::super::frame::{Page, PageMut};
use super::super::pin::PinRef;
use super::Backend;
use trunkline_aio::Cancelled;
use trunkline_aio::sync::Arc;

impl Backend {
    /// Locks a page for reading (shared).
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn read_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<Page<'p>, Cancelled> {
        self.lock_page(pin, LockMode::Shared)
    }

    /// Locks a page for reading and keeps changes out (share-exclusive).
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

    /// Takes the cleanup lock: exclusive, and no other pin on the page exists, not even an I/O's.
    /// Only then may tuples move within the page. The caller has one pin on it.
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

    /// Waits until a page that is locked or under I/O may be free for a write.
    pub(crate) fn wait_until_writable(&mut self, buffer: u32) -> Result<(), Cancelled> {
        let manager = Arc::clone(&self.manager);
        let descriptor = manager.buffers().descriptor(buffer);
        if let Some(io) = descriptor.io_in_progress() {
            return self.sleep_for_io(io);
        }
        // Pinned, so that the session does not sleep on the word of a page that is evicted.
        if descriptor.word().pin(0).is_none() {
            return Ok(());
        }
        let pin = PinRef::new(manager.frames(), buffer);
        let waited = self.wait_for_lock(pin, LockMode::Exclusive, false);
        manager.unpin(buffer);
        waited
    }
}
