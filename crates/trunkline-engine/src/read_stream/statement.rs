//! The streams of a statement: releases what all of them hold ahead when the statement is
//! suspended.
//!
//! A stream keeps pages pinned ahead of its consumer. If the consumer stops for a while, for
//! example because a client doesn't fetch any more rows, other sessions may need these buffers. The
//! code that notices this usually has no access to the streams: they are deep inside the
//! statement's plan, and may be polled on other threads. So each stream is registered here when it
//! is created.
//!
//! ```
//! use trunkline_engine::read_stream::{ReleaseAhead, StatementStreams};
//!
//! #[derive(Default)]
//! struct Scan {
//!     pinned: u32,
//! }
//! impl ReleaseAhead for Scan {
//!     fn release_ahead(&mut self) {
//!         self.pinned = 0;
//!     }
//! }
//! let streams = StatementStreams::default();
//! let scan = streams.register(Scan::default());
//! scan.lock().pinned = 7; // the consumer polls it
//! streams.release_ahead(); // the statement is suspended
//! assert_eq!(scan.lock().pinned, 0);
//! ```

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Weak;
use trunkline_aio::facade::atomic::{AtomicBool, Ordering};
use trunkline_aio::facade::{Arc, Mutex, MutexGuard};

/// Something that holds pages ahead of its consumer and can release them.
pub trait ReleaseAhead: Send {
    /// Releases all pins. The consumer must still get every page. If it is a task that waits for
    /// the stream, it must be woken, because the stream no longer waits for anything. Its waker is
    /// called while the stream is locked.
    fn release_ahead(&mut self);
}

/// The streams of one statement. Clones refer to the same statement.
#[derive(Clone, Default)]
pub struct StatementStreams {
    streams: Arc<Mutex<Vec<Weak<dyn Registered>>>>,
}

impl fmt::Debug for StatementStreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StatementStreams({})", self.streams.lock().len())
    }
}

impl StatementStreams {
    /// Registers a stream until it is dropped.
    pub fn register<T: ReleaseAhead + 'static>(&self, stream: T) -> RegisteredStream<T> {
        let shared =
            Arc::new(Shared { stream: Mutex::new(stream), wanted: AtomicBool::new(false) });
        let registered: Arc<dyn Registered> = Arc::clone(&shared) as _;
        let mut streams = self.streams.lock();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&registered));
        RegisteredStream(shared)
    }

    /// Makes all streams release what they hold ahead. Any thread may call this, and it doesn't
    /// wait for streams that are in use: those release what they hold as soon as their consumer
    /// unlocks them. A stream looks ahead again when it is next used.
    pub fn release_ahead(&self) {
        // Don't hold the lock while streams release their pins.
        let streams = self.streams.lock().clone();
        streams.iter().filter_map(Weak::upgrade).for_each(|stream| stream.release_ahead());
    }
}

/// A registered stream of any type.
trait Registered: Send + Sync {
    fn release_ahead(&self);
}

struct Shared<T> {
    stream: Mutex<T>,
    /// The stream must release what it holds.
    wanted: AtomicBool,
}

impl<T: ReleaseAhead> Shared<T> {
    /// Releases what the stream holds if that is wanted, unless the stream is in use. We set
    /// `wanted` before we try the lock, and the consumer looks at it after it has unlocked the
    /// stream. So one of the two sees the other.
    fn release_if_wanted(&self) {
        while self.wanted.load(Ordering::SeqCst)
            && let Some(mut stream) = self.stream.try_lock()
        {
            if self.wanted.swap(false, Ordering::SeqCst) {
                stream.release_ahead();
            }
        }
    }
}

impl<T: ReleaseAhead> Registered for Shared<T> {
    fn release_ahead(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        self.release_if_wanted();
    }
}

/// A stream that is registered with its statement. Its consumer locks it for each poll.
pub struct RegisteredStream<T>(Arc<Shared<T>>);

impl<T> fmt::Debug for RegisteredStream<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegisteredStream")
    }
}

impl<T: ReleaseAhead> RegisteredStream<T> {
    /// Locks the stream for its consumer. Only the consumer and a release use the lock, so this
    /// waits at most until a release is over. The consumer must unlock the stream whenever it stops
    /// for longer than it takes to process a page.
    pub fn lock(&self) -> RegisteredStreamGuard<'_, T> {
        RegisteredStreamGuard { shared: &self.0, guard: Some(self.0.stream.lock()) }
    }
}

/// A locked stream. Dropping this unlocks it. If a release was wanted in the meantime, it happens
/// then.
pub struct RegisteredStreamGuard<'a, T: ReleaseAhead> {
    shared: &'a Shared<T>,
    /// `None` only while this is dropped.
    guard: Option<MutexGuard<'a, T>>,
}

impl<T: ReleaseAhead> fmt::Debug for RegisteredStreamGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegisteredStreamGuard")
    }
}

impl<T: ReleaseAhead> Deref for RegisteredStreamGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard is taken only by drop"),
        }
    }
}

impl<T: ReleaseAhead> DerefMut for RegisteredStreamGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.guard {
            Some(guard) => guard,
            None => unreachable!("the guard is taken only by drop"),
        }
    }
}

impl<T: ReleaseAhead> Drop for RegisteredStreamGuard<'_, T> {
    fn drop(&mut self) {
        drop(self.guard.take());
        self.shared.release_if_wanted();
    }
}
