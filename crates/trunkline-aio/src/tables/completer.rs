//! The kinds of threads that can complete I/O, for the statistics.
//!
//! If waiters or helpers complete many I/Os, the callbacks must be expensive. If many I/Os are
//! completed inline, either the I/O method has no room for more, or there was no need to use it
//! because the data was already cached.

/// The kind of thread that completed an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Completer {
    /// The issuing session, after executing the I/O inline.
    Inline = 0,
    /// A session waiting for the I/O: its issuer or another session.
    Waiter = 1,
    /// The worker that executed it.
    Worker = 2,
    /// A worker that found it in the ready set.
    Helper = 3,
    /// The driver that reaped it.
    Reaper = 4,
}

/// All completers, in the order of their numbers.
pub const COMPLETERS: [Completer; 5] =
    [Completer::Inline, Completer::Waiter, Completer::Worker, Completer::Helper, Completer::Reaper];
