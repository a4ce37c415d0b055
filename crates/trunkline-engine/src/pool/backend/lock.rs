//! Content locks: a backend first tries to get the lock, and if that fails, sleeps until it may be
//! available.
//!
//! This is PostgreSQL's `LockBuffer` and `LockBufferForCleanup`. In PostgreSQL, a backend that
//! waits for an LWLock can't be interrupted, but here the waiting session can be cancelled. We
//! don't count the time spent waiting for a lock in the I/O statistics, because it isn't I/O.
//!
//! All lock functions use the same loop. We try to acquire the lock; if that fails, we sleep until
//! the state word shows that the lock might be free, and try again. Since releasing a lock may wake
//! several sessions, we may have to go through the loop more than once.

use super::super::descriptor::LockMode;
use super::super::frame::{Page, PageMut};
use super::super::lock_wait::LockWait;
use super::super::pin::PinRef;
use super::Backend;
use crate::waiting::Waiting;
use std::task::{Poll, ready};
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

    /// [`Backend::read_lock`] for a thread or a task. If this returns `Pending`, `registered`
    /// contains the session's registration as a waiter, which ends when the task drops it.
    pub(crate) fn lock_shared<'p>(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        pin: PinRef<'p>,
        registered: &mut Option<LockWait>,
    ) -> Poll<Result<Page<'p>, Cancelled>> {
        let locked = if waiting.is_sleep() {
            Poll::Ready(self.read_lock(pin))
        } else {
            self.poll_lock(waiting, pin, registered)
        };
        if locked.is_ready() {
            *registered = None;
        }
        locked
    }

    fn poll_lock<'p>(
        &mut self,
        waiting: &mut Waiting<'_, '_>,
        pin: PinRef<'p>,
        registered: &mut Option<LockWait>,
    ) -> Poll<Result<Page<'p>, Cancelled>> {
        let descriptor = self.manager.buffers().descriptor(pin.buffer());
        loop {
            if let Ok(page) = Page::try_lock(pin.frames(), pin.buffer(), LockMode::Shared) {
                return Poll::Ready(Ok(page));
            }
            // Register before the test, so that we are woken if the lock is released in between.
            registered.get_or_insert_with(|| LockWait::new(&self.manager, self.session.id()));
            ready!(waiting.until(&mut self.session, || {
                descriptor.word().announce_waiter();
                descriptor.word().could_lock(LockMode::Shared, false)
            }))?;
        }
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

    /// Acquires the cleanup lock, that is, an exclusive lock that is granted only while the caller
    /// has the only pin on the page. Even a pin held by an I/O counts. You need this lock to move
    /// tuples within the page, because any other session that has the page pinned may hold pointers
    /// to its tuples. The caller must hold exactly one pin on the page; if it held two, it would
    /// wait for itself.
    ///
    /// # Errors
    /// The session was cancelled.
    pub fn cleanup_lock<'p>(&mut self, pin: PinRef<'p>) -> Result<PageMut<'p>, Cancelled> {
        self.lock_page_mut(pin, true)
    }

    /// [`Backend::write_lock`] for a change that must be made even if the session is cancelled (PostgreSQL's
    /// `HOLD_INTERRUPTS`). The session is still cancelled afterwards.
    pub(crate) fn write_lock_despite_cancel<'p>(&mut self, pin: PinRef<'p>) -> PageMut<'p> {
        let mut is_cancelled = false;
        loop {
            if let Ok(page) = self.write_lock(pin) {
                if is_cancelled {
                    self.session.canceller().cancel();
                }
                return page;
            }
            is_cancelled = true;
            self.session.clear_cancel();
        }
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

    /// If a page is locked or under I/O, waits until it looks as if we can write it.
    pub(crate) fn wait_until_writable(&mut self, buffer: u32) -> Result<(), Cancelled> {
        let manager = Arc::clone(&self.manager);
        let descriptor = manager.buffers().descriptor(buffer);
        if let Some(io) = descriptor.io_in_progress() {
            return self.sleep_for_io(io);
        }
        // Pin the buffer, so that the page can't be evicted while we're sleeping.
        if descriptor.word().pin(0).is_none() {
            return Ok(());
        }
        let pin = PinRef::new(manager.frames(), buffer);
        let waited = self.wait_for_lock(pin, LockMode::Exclusive, false);
        manager.unpin(buffer);
        waited
    }
}
