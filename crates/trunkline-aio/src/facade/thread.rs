//! Threads: named and joinable. In a scheduled run they are the scheduler's tasks.
//!
//! All threads in all crates are started here, so that the scheduler controls them and one seed
//! determines how they interleave.

#![expect(clippy::disallowed_methods, reason = "the façade's own way to start a thread")]

use std::cell::Cell;
use std::io;

/// A started thread. Joining it is optional.
#[derive(Debug)]
pub struct JoinHandle {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Native(std::thread::JoinHandle<()>),
    #[cfg(feature = "sched")]
    Task(super::sched::TaskRef),
}

impl JoinHandle {
    /// Waits for the thread to end.
    ///
    /// # Errors
    /// The thread panicked.
    pub fn join(self) -> Result<(), ThreadPanicked> {
        match self.kind {
            Kind::Native(handle) => handle.join().map_err(|_| ThreadPanicked),
            #[cfg(feature = "sched")]
            Kind::Task(task) => {
                task.join();
                Ok(())
            }
        }
    }
}

/// The joined thread panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the thread panicked")]
pub struct ThreadPanicked;

thread_local! {
    /// Set in threads started and joined by an instance. Such a thread must not join itself.
    static INTERNAL: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread was started by [`spawn_internal`].
pub(crate) fn is_internal() -> bool {
    // If the thread-local has been destroyed, the thread is exiting and doesn't call this any more.
    INTERNAL.try_with(Cell::get).unwrap_or(false)
}

/// Starts a thread.
///
/// # Errors
/// If the operating system refuses to start a thread.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle> {
    #[cfg(feature = "sched")]
    if super::sched::active() {
        let task = super::sched::spawn(name.to_owned(), body)
            .ok_or_else(|| io::Error::other("the scheduler has ended"))?;
        return Ok(JoinHandle { kind: Kind::Task(task) });
    }
    let handle = std::thread::Builder::new().name(name.to_owned()).spawn(body)?;
    Ok(JoinHandle { kind: Kind::Native(handle) })
}

/// Starts a thread that belongs to an instance. The instance joins it at shutdown.
pub(crate) fn spawn_internal(
    name: &str,
    body: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle> {
    spawn(name, move || {
        INTERNAL.set(true);
        body();
    })
}

/// Lets another thread run. In a scheduled run this is a switch point.
pub fn yield_now() {
    #[cfg(feature = "sched")]
    if super::sched::active() {
        super::sched::point();
        return;
    }
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

/// How many threads can run in parallel; at least 1.
pub fn available_parallelism() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
