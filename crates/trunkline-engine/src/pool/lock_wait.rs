//! Lock waits: the registration of a task that waits for a content lock.
//!
//! A thread is registered only while it sleeps. A task stays registered after its poll has returned,
//! until it polls again, gives up or is dropped, so it owns its registration.

use super::manager::BufferManager;
use trunkline_aio::facade::Arc;

/// The registration of a task that waits for a content lock, until it is dropped.
#[derive(Debug)]
pub(crate) struct LockWait {
    manager: Arc<BufferManager>,
    session: u32,
}

impl LockWait {
    /// Registers a session.
    pub(crate) fn new(manager: &Arc<BufferManager>, session: u32) -> Self {
        manager.buffers().polled_waiters().insert(session);
        Self { manager: Arc::clone(manager), session }
    }
}

impl Drop for LockWait {
    fn drop(&mut self) {
        self.manager.buffers().polled_waiters().remove(self.session);
    }
}
