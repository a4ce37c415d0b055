//! Completion callbacks: code that a layer above runs as part of every I/O in a slot set.
//!
//! The buffer manager, for example, must validate a page and unlock its buffer as soon as the read
//! completes, even if the session that issued the read never looks at it again. It therefore
//! attaches a [`Callback`] to its [`Slots`](crate::Slots), and whichever thread completes the I/O
//! runs the callback. PostgreSQL does the same with `PgAioHandleCallbacks`.
//!
//! Callbacks can be stacked. The callback added last runs first, so a lower layer translates the
//! raw result before an upper layer interprets it. A callback maps one compact [`Outcome`] to
//! another. The issuer later turns the final outcome into text with [`Callback::report`], when it
//! can afford to allocate.
//!
//! The per-I/O data a callback needs (which buffers, which block, which policy) is its slot's
//! [`Payload`]. In PostgreSQL this is the handle's `handle_data`, an array of integers.

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
    /// Touches the pages (checksums, copies). The waiting session or a helper completes the I/O, so
    /// that the reaping thread can go on to the next result.
    Heavy,
}

/// The data an issuer stores in a slot for its next I/O's callbacks.
///
/// A slot keeps its payload for as long as the set exists. A payload that owns memory (such as a
/// `Vec`) therefore only allocates once and is reused for every I/O.
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
    /// The slot's leases, in transfer order. Empty if the I/O used frames given by number
    /// ([`crate::Io::read_frames`]); in that case the callback finds the frames through its
    /// payload.
    pub memory: &'a mut [Lease],
    /// The slot's payload. A callback may store more here than fits into the outcome; the issuer
    /// reads it after the result has been published.
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
    /// May run on any thread, including a ring's only driver, so it must neither block nor
    /// allocate. A panic aborts the process, because otherwise the I/O would never complete and its
    /// handle would be lost.
    fn complete(&self, io: &mut Completion<'_, P>, prior: Outcome) -> Outcome;

    /// Describes an outcome this callback decided. If this returns `None`, the errno's text is
    /// used. Runs in the issuing thread.
    fn report(&self, _outcome: Outcome) -> Option<String> {
        None
    }
}
