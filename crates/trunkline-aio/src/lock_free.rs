//! The lock-free pieces: small types of a few atomics, each with a loom model of its own.
//!
//! Everything above builds on them, so no argument about memory ordering spans two files. Their
//! operations are sequentially consistent.

pub(crate) mod bitmap;
pub(crate) mod event;
pub(crate) mod freelist;
pub(crate) mod mailbox;
pub(crate) mod outcome;
pub(crate) mod state;
pub(crate) mod wait_ref;
