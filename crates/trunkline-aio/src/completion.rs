//! I/O completion: turns the kernel's raw result into the outcome in the issuer's slot. The worker
//! pool's queue is here too, because workers help to complete I/O.
//!
//! Completing threads wake workers, and workers complete I/O. To break this cycle, the pool's queue
//! and wake-ups are in this layer, but its threads are in the layer above, in `method::worker`.
//!
//! # Lock order
//!
//! A completion takes few locks and holds each for only a few instructions. It must not hold any
//! lock while it runs a callback or the probe, because both are foreign code. Locks nest in only
//! one place: a worker looking for work under the roster's lock may also lock `deferred`'s files,
//! to find a file to close. All other locks (the admission queues, wakers, statistics shards, the
//! region's free runs) are leaves: no other lock is taken while one of them is held.

pub(crate) mod completions;
pub(crate) mod in_flight;
pub(crate) mod lanes;
pub(crate) mod roster;
pub(crate) mod worker_pool;
