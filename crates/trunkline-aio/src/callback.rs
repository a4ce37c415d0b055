//! Completion callbacks: what a layer above adds to every I/O of a set of operations.
//!
//! Callbacks are stacked, the last one added runs first, so that a lower layer translates the raw
//! result before an upper one interprets it. `complete` may run on any thread of the process: it
//! must not block, allocate, panic or raise. It turns one compact result into another. The issuer
//! renders the final one with `report`, in its own time.

use crate::file::File;
use crate::outcome::Outcome;
use crate::region::Lease;
use crate::request::Operation;
use crate::wait::WaitRef;

/// How much work `complete` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Next to nothing: the thread that reaps the result completes at once.
    Light,
    /// Touches the pages (checksums, copies): the waiter or a helper completes, so that the
    /// thread that reaps can go on reaping.
    Heavy,
}

/// An I/O at stage time. From now on the handle owns what it needs.
#[derive(Debug)]
pub struct Staging<'a> {
    /// The reference by which others may wait for it.
    pub wait_ref: WaitRef,
    /// What will be done.
    pub operation: Operation,
    /// The file.
    pub file: &'a File,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
    /// The issuer's words for this I/O.
    pub data: &'a [u64],
}

/// An I/O at completion.
#[derive(Debug)]
pub struct Completion<'a> {
    /// The reference by which others wait for it; they are woken after the last callback.
    pub wait_ref: WaitRef,
    /// What was done.
    pub operation: Operation,
    /// The file.
    pub file: &'a File,
    /// Byte offset in the file.
    pub offset: u64,
    /// Bytes asked for.
    pub length: u32,
    /// The slot's memory, in the order of the transfer. Empty if the I/O went into frames that
    /// somebody else leases ([`crate::Io::read_frames`]): the callback knows them by its words.
    pub memory: &'a mut [Lease],
    /// The issuer's words for this I/O; a callback may leave more than the outcome holds here.
    pub data: &'a mut [u64],
}

/// One layer's part in every I/O of a set of operations ([`crate::Operations::new`]).
pub trait Callback: Send + Sync {
    /// A name for traces.
    fn name(&self) -> &'static str;

    /// How much work `complete` does.
    fn weight(&self) -> Weight {
        Weight::Light
    }

    /// Takes over what the I/O needs (pins, locks) before it is submitted. Runs in the issuer, the last
    /// callback added first.
    fn stage(&self, _io: &Staging<'_>) {}

    /// Interprets the result so far, `prior`; what it returns is the result from now on.
    ///
    /// Any thread may run it, also the one driver of a ring, so it must not block or allocate. A panic
    /// in it ends the process: the I/O would never end.
    fn complete(&self, io: &mut Completion<'_>, prior: Outcome) -> Outcome;

    /// Turns an outcome that this callback decided into text; `None` leaves it to the errno's. Runs in
    /// the issuer.
    fn report(&self, _outcome: Outcome) -> Option<String> {
        None
    }
}
