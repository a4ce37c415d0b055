//! Completion: from a raw result to a published one, and the worker pool that helps with it.
//!
//! Completing threads wake workers, and workers complete I/O. So the queue and the wake-ups of the
//! pool are here, and its threads are above, in `method::worker`.
//!
//! # Lock order
//!
//! A completion takes few locks, each for a few instructions, and holds none while it runs a callback
//! or the probe. The only nesting is roster, then files in `deferred`: a worker that looks for work
//! under the lock of the roster also looks for a file to close. All other locks (queues of admission,
//! wakers, shards of the statistics, runs of free frames) are leaves.

pub(crate) mod completions;
pub(crate) mod in_flight;
pub(crate) mod lanes;
pub(crate) mod roster;
pub(crate) mod worker_pool;
