//! I/O completion: turns the kernel's raw result into an outcome and stores it in the issuer's
//! slot. The worker pool's queue is part of this layer as well, because workers help to complete
//! I/O.
//!
//! A thread that completes I/O wakes workers, and workers in turn complete I/O, so the two would
//! depend on each other. To break this cycle, the pool's queue and wake-up code are part of this
//! layer, while its threads are in `method::worker`, one layer above.
//!
//! # Lock order
//!
//! A completion takes few locks, and holds each of them for only a few instructions. It must not
//! hold any lock while it calls a callback or the probe, because we don't know what that code does.
//! Locks are nested in only one place: a worker that looks for work holds the roster's lock, and
//! may then also lock the list of files in `deferred` to find a file to close. All other locks (the
//! admission queues, wakers, statistics shards, the region's free runs) are leaf locks: we never
//! take another lock while holding one of them.

pub(crate) mod completions;
pub(crate) mod handle_queue;
pub(crate) mod in_flight;
pub(crate) mod lanes;
pub(crate) mod roster;
pub(crate) mod worker_pool;
