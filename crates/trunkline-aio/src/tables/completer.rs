//! The kinds of threads that complete I/O, for the statistics.
//!
//! Many completions by waiters or helpers mean that callbacks are expensive. Many inline
//! completions mean that the method has no room, or that it is not needed because the data is
//! cached.

/// The kind of thread that completed an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Completer {
    /// The issuing session, after executing the I/O inline.
    Inline = 0,
    /// A session that waited for the I/O, its issuer or another one.
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
