//! A futex is a 32-bit word that threads can sleep on. All our other waiting primitives are built
//! on top of it. The kernel lets a thread sleep only if the word still has the value the thread
//! expects, so we can't miss a change that happens just before the thread goes to sleep.
//!
//! In an ordinary build, this is a private kernel futex. Under the scheduler, it's a simulated
//! futex whose timeouts use virtual time. Under loom, it's a simulated futex that doesn't support
//! timeouts.

use super::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Why [`Futex::wait`] returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FutexWait {
    /// Woken, interrupted, or the word had changed. The caller must check its condition again.
    Look,
    /// The timeout passed first.
    TimedOut,
}

/// An atomic word with wait and wake.
#[derive(Debug, Default)]
pub struct Futex {
    word: AtomicU32,
    #[cfg(loom)]
    lock: loom::sync::Mutex<()>,
    #[cfg(loom)]
    woken: loom::sync::Condvar,
}

impl Futex {
    /// Creates a futex with the value `value`.
    pub fn new(value: u32) -> Self {
        Self {
            word: AtomicU32::new(value),
            #[cfg(loom)]
            lock: loom::sync::Mutex::new(()),
            #[cfg(loom)]
            woken: loom::sync::Condvar::new(),
        }
    }

    /// The word.
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }

    /// Returns the word, used as an event counter. To wait for a condition, a thread reads the
    /// counter, tests the condition, and then waits for the counter to change. If an event happens
    /// after the thread has read the counter, the wait ends immediately.
    pub fn epoch(&self) -> u32 {
        self.word.load(Ordering::SeqCst)
    }

    /// Counts an event, and wakes every sleeper. The caller must have changed the condition
    /// already.
    pub fn signal(&self) {
        self.word.fetch_add(1, Ordering::SeqCst);
        self.wake(u32::MAX);
    }

    /// Sleeps if the word is still `expected`. May return spuriously, so callers must wait in a
    /// loop.
    #[cfg(not(loom))]
    pub fn wait(&self, expected: u32, timeout: Option<Duration>) -> FutexWait {
        #[cfg(feature = "sched")]
        if super::sched::active() {
            // No other task can run between this check and `block`, so the two are atomic, just as
            // they are in the kernel.
            if self.word.load(Ordering::SeqCst) != expected {
                return FutexWait::Look;
            }
            let deadline = timeout.map(|t| crate::clock::now().after(t));
            let timed_out = super::sched::block(self.address(), deadline.map(|d| d.nanos()));
            return if timed_out { FutexWait::TimedOut } else { FutexWait::Look };
        }
        kernel::wait(&self.word, expected, timeout)
    }

    /// Wakes up to `count` sleepers.
    #[cfg(not(loom))]
    pub fn wake(&self, count: u32) {
        #[cfg(feature = "sched")]
        if super::sched::active() {
            super::sched::wake(self.address(), count as usize);
            return;
        }
        kernel::wake(&self.word, count);
    }

    #[cfg(all(feature = "sched", not(loom)))]
    fn address(&self) -> usize {
        self.word.as_ptr().addr()
    }

    /// Sleeps if the word is still `expected`.
    #[cfg(loom)]
    pub fn wait(&self, expected: u32, _timeout: Option<Duration>) -> FutexWait {
        if let Ok(guard) = self.lock.lock()
            && self.word.load(Ordering::SeqCst) == expected
        {
            drop(self.woken.wait(guard));
        }
        FutexWait::Look
    }

    /// Wakes every sleeper.
    #[cfg(loom)]
    pub fn wake(&self, _count: u32) {
        // We take the lock here to make sure that the waiter can't miss the new word. If the waiter
        // hasn't checked the word yet, it will see the new value. If it has, it is already in
        // `wait` and we notify it.
        drop(self.lock.lock());
        self.woken.notify_all();
    }
}

#[cfg(not(loom))]
#[expect(clippy::disallowed_methods, reason = "the façade's own futex")]
mod kernel {
    use crate::facade::atomic::AtomicU32;
    use crate::facade::futex::FutexWait;
    use rustix::thread::futex;
    use std::time::Duration;

    /// The word as the type that rustix expects.
    fn raw(word: &AtomicU32) -> &std::sync::atomic::AtomicU32 {
        // SAFETY: the façade's AtomicU32 is std's, or a repr(transparent) wrapper around it, and
        // the reference keeps it alive.
        unsafe { &*word.as_ptr().cast::<std::sync::atomic::AtomicU32>() }
    }

    pub(super) fn wait(word: &AtomicU32, expected: u32, timeout: Option<Duration>) -> FutexWait {
        let timeout = timeout.map(|t| futex::Timespec {
            tv_sec: i64::try_from(t.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(t.subsec_nanos()),
        });
        match futex::wait(raw(word), futex::Flags::PRIVATE, expected, timeout.as_ref()) {
            Err(rustix::io::Errno::TIMEDOUT) => FutexWait::TimedOut,
            _ => FutexWait::Look,
        }
    }

    pub(super) fn wake(word: &AtomicU32, count: u32) {
        // For the kernel, the count is a signed number. With a negative one it wakes one thread.
        let count = count.min(i32::MAX as u32);
        // Waking cannot fail on a mapped, aligned word.
        let _ = futex::wake(raw(word), futex::Flags::PRIVATE, count);
    }
}
