//! The lock-free building blocks: small types made of a few atomics, each with a loom model that
//! explores its interleavings.
//!
//! Everything above builds on them, so no argument about memory ordering spans two files. All their
//! operations are sequentially consistent. Weaker orderings would save little on x86, where an
//! atomic read-modify-write is a full barrier anyway. Sequential consistency also allows the
//! reasoning of the form "one of the two threads must see the other's store" that sleeping and
//! waking depend on.

pub(crate) mod bitmap;
pub(crate) mod event;
pub(crate) mod freelist;
pub(crate) mod mailbox;
pub(crate) mod outcome;
pub(crate) mod state;
pub(crate) mod wait_ref;
