//! The lock-free building blocks: small types consisting of a few atomics, each with a loom model
//! that explores its interleavings.
//!
//! The layers above use these types as building blocks, so each argument about memory ordering can
//! be understood by reading a single file. All operations are sequentially consistent. We wouldn't
//! gain much from weaker orderings, because on x86 an atomic read-modify-write is a full barrier
//! anyway. Moreover, the code for sleeping and waking relies on arguments like "at least one of the
//! two threads must see the other's store", which are only valid under sequential consistency.

pub(crate) mod bitmap;
pub(crate) mod event;
pub(crate) mod freelist;
pub(crate) mod mailbox;
pub(crate) mod outcome;
pub(crate) mod state;
pub(crate) mod wait_ref;
pub(crate) mod wakers;
