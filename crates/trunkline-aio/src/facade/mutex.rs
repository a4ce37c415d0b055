//! A mutex without poisoning, which the deterministic scheduler controls.
//!
//! Critical sections are short and never block. If a thread panics inside one, that's a bug, and
//! either the process aborts or the test fails. We have no use for std's poison flag, because all
//! it would do is add an error that callers don't know how to handle.

#[cfg(loom)]
use loom::sync as imp;
#[cfg(not(loom))]
use std::sync as imp;

use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;

/// Mutual exclusion for short critical sections that do not block.
#[derive(Debug, Default)]
pub struct Mutex<T> {
    #[cfg_attr(not(loom), expect(clippy::disallowed_types, reason = "the façade's own lock"))]
    inner: imp::Mutex<T>,
}

/// Holds the lock until dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    // This is an `Option` because `drop` must release the lock before it wakes a thread waiting in
    // the scheduler.
    guard: Option<imp::MutexGuard<'a, T>>,
    #[cfg(all(feature = "sched", not(loom)))]
    lock: &'a Mutex<T>,
}

impl<T> Mutex<T> {
    /// Wraps a value.
    #[cfg_attr(not(loom), expect(clippy::disallowed_types, reason = "the façade's own lock"))]
    pub fn new(value: T) -> Self {
        Self { inner: imp::Mutex::new(value) }
    }

    /// Takes the lock, waiting if necessary.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        #[cfg(all(feature = "sched", not(loom)))]
        if super::sched::active() {
            return self.lock_scheduled();
        }
        // Poisoned: a thread panicked in its critical section. See the module documentation.
        self.wrap(self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        use std::sync::TryLockError;
        #[cfg(all(feature = "sched", not(loom)))]
        if super::sched::active() {
            super::sched::point();
        }
        match self.inner.try_lock() {
            Ok(guard) => Some(self.wrap(guard)),
            Err(TryLockError::Poisoned(poisoned)) => Some(self.wrap(poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn wrap<'a>(&'a self, guard: imp::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard {
            guard: Some(guard),
            #[cfg(all(feature = "sched", not(loom)))]
            lock: self,
        }
    }

    /// Acquires the lock under the scheduler. If we blocked in std's mutex, the thread would keep
    /// the baton while it is blocked. So we only try to take the lock, and if that fails, block in
    /// the scheduler instead.
    #[cfg(all(feature = "sched", not(loom)))]
    fn lock_scheduled(&self) -> MutexGuard<'_, T> {
        use std::sync::TryLockError;
        super::sched::point();
        loop {
            match self.inner.try_lock() {
                Ok(guard) => return self.wrap(guard),
                Err(TryLockError::Poisoned(poisoned)) => return self.wrap(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => super::sched::block(self.address(), None),
            };
        }
    }

    #[cfg(all(feature = "sched", not(loom)))]
    fn address(&self) -> usize {
        std::ptr::from_ref(&self.inner).addr()
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.guard.take());
        #[cfg(all(feature = "sched", not(loom)))]
        // Wake every waiter, not just one: the seed decides which of them gets the lock.
        super::sched::wake(self.lock.address(), usize::MAX);
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        match &self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard is taken only by drop"),
        }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard is taken only by drop"),
        }
    }
}
