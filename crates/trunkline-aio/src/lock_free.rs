//! The lock-free building blocks: small types consisting of a few atomics, each with a loom model
//! that explores its interleavings.
//!
//! The layers above rely on these types, so no argument about memory ordering spans two files. All
//! operations are sequentially consistent. Weaker orderings would save little on x86, where an
//! atomic read-modify-write is a full barrier anyway. Besides, sleeping and waking depend on
//! arguments like "at least one of the two threads must see the other's store", which require
//! sequential consistency.

pub(crate) mod bitmap;
pub(crate) mod event;
pub(crate) mod freelist;
pub(crate) mod mailbox;
pub(crate) mod outcome;
pub(crate) mod state;
pub(crate) mod wait_ref;
