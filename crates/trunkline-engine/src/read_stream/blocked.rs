//! What prevents a stream from returning a page, and the reads that it has in flight.

use trunkline_aio::WaitRef;

/// What must happen before a page can be returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    /// A read of this stream must end.
    Own(usize),
    /// Any read of this stream must end.
    Any,
    /// A read of another session must end.
    Joined(WaitRef),
    /// A segment must have been opened.
    Open,
    /// A pin must be available.
    Pin,
    /// A buffer must become a victim.
    Buffer,
    /// An I/O handle must be free.
    Handle,
    /// The source must be able to continue. The stream has no page left and nothing in flight.
    Source,
}

/// Whether the stream may execute reads in this thread, as it does under `sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Tries {
    /// Its consumer wants a page.
    #[default]
    No,
    /// The stream is the source of another one, which doesn't wait for it now. It may only advise.
    Advises,
    /// The same, but the next page was advised by an earlier try, so it should be in the kernel's page
    /// cache.
    Reads,
}

impl Tries {
    pub(super) fn is_try(self) -> bool {
        self != Self::No
    }
}

/// A read of the stream that is in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadInFlight {
    /// Sequence number of the read's first entry.
    pub(super) first: u64,
    /// The consumer has waited for the read, or has executed it in its own thread.
    pub(super) waited: bool,
}
