//! Completion callbacks: code that a layer above runs as part of every I/O in a slot set.
//!
//! For example, the buffer manager must validate a page and unlock its buffer as soon as the read
//! completes, even if the session that issued the read never looks at it again. It therefore
//! attaches a [`Callback`] to its [`Slots`](crate::Slots), and whichever thread completes the I/O
//! runs the callback. PostgreSQL does the same with `PgAioHandleCallbacks`.
//!
//! Callbacks can be stacked. The callback that was added last runs first, so that a lower layer can
//! translate the raw result before an upper layer interprets it. Each callback maps one compact
//! [`Outcome`] to another. The issuer doesn't convert the final outcome to text (with
//! [`Callback::report`]) until it can afford to allocate memory.
//!
//! Any per-I/O data that a callback needs, such as which buffers are involved, is stored in the
//! slot's [`Payload`]. In PostgreSQL, this is the handle's `handle_data`, which is an array of
//! integers.

use crate::lock_free::outcome::Outcome;
use crate::lock_free::wait_ref::WaitRef;
use crate::storage::file::File;
use crate::storage::operation::Operation;
use crate::storage::region::Lease;

/// How expensive a callback's [`Callback::complete`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Negligible. The thread that reaps the raw result also completes the I/O.
    Light,
    /// The callback touches the pages, for example to verify checksums or to copy data. We leave
    /// this to the waiting session or to a helper, so that the thread that reaps results can go on
    /// to the next one.
    Heavy,
}

/// The data an issuer stores in a slot for its next I/O's callbacks.
///
/// A slot keeps its payload for as long as the set of slots exists. If the payload owns memory (a
/// `Vec`, for example), that memory is allocated only once and then reused for every I/O.
pub trait Payload: Default + Send + 'static {
    /// The length shown as `pg_aios.handle_data_len`: the number of buffers, for buffer pool I/O.
    fn data_len(&self) -> usize {
        0
    }
}

impl Payload for () {}

impl<T: Send + 'static> Payload for Vec<T> {
    fn data_len(&self) -> usize {
        self.len()
    }
}

/// An I/O that is being completed.
#[derive(Debug)]
pub struct Completion<'a, P = ()> {
    /// The reference other sessions use to wait for this I/O. We wake them after the last callback
    /// has run.
    pub wait_ref: WaitRef,
    /// The operation.
    pub operation: Operation,
    /// The file.
    pub file: &'a File,
    /// Byte offset in the file.
    pub offset: u64,
    /// Requested length in bytes.
    pub length: u32,
    /// The slot's leases, in transfer order. This is empty if the I/O was issued with frame numbers
    /// ([`crate::Io::read_frames`]), in which case the callback must find the frames through its
    /// payload.
    pub memory: &'a mut [Lease],
    /// The slot's payload. If a callback has more to report than fits into the outcome, it can
    /// store it here, and the issuer reads it after the result has been published.
    pub payload: &'a mut P,
}

/// Code that runs as part of every I/O in a slot set ([`crate::Slots::with_callbacks`]).
pub trait Callback<P = ()>: Send + Sync {
    /// The callback's name, for traces.
    fn name(&self) -> &'static str;

    /// How expensive [`Callback::complete`] is.
    fn weight(&self) -> Weight {
        Weight::Light
    }

    /// Interprets `prior`, the result so far, and returns the new result.
    ///
    /// This may run on any thread, including the only driver of a ring, so it must neither block
    /// nor allocate memory. If it panics, we abort the process, because otherwise the I/O would
    /// never complete and its handle would be lost.
    fn complete(&self, io: &mut Completion<'_, P>, prior: Outcome) -> Outcome;

    /// Describes an outcome that this callback has decided, or returns `None` to use the errno's
    /// text. This runs in the issuing thread.
    fn report(&self, _outcome: Outcome) -> Option<String> {
        None
    }
}
