//! Completion of I/O: from the kernel's raw result to the outcome in the issuer's slot, and the
//! worker pool that shares this work.
//!
//! Completing threads wake workers, and workers complete I/O. To break this circle, the queue and
//! the wake-ups of the pool are in this layer, and its threads are in the layer above, in
//! `method::worker`.
//!
//! # Lock order
//!
//! A completion takes few locks, each for a few instructions. It holds none of them while it runs a
//! callback or the probe, because both are foreign code. The only nesting is the roster's lock,
//! then the files in `deferred`: a worker that looks for work under the roster's lock also looks
//! for a file to close. All other locks (admission's queues, wakers, the statistics' shards, runs
//! of free frames) are leaves: no other lock is taken while one of them is held.

pub(crate) mod completions;
pub(crate) mod in_flight;
pub(crate) mod lanes;
pub(crate) mod roster;
pub(crate) mod worker_pool;
