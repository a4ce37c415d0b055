//! Completion: from a raw result to a published one, and the worker pool that helps with it.
//!
//! Completing threads wake workers, and workers complete I/O. So the queue and the wake-ups of the
//! pool are here, and its threads are above, in `method::worker`.

pub(crate) mod completions;
pub(crate) mod in_flight;
pub(crate) mod lanes;
pub(crate) mod roster;
pub(crate) mod worker_pool;
