//! Completion: from a raw result to a published one, and the worker pool that helps with it.

pub(crate) mod completions;
pub(crate) mod in_flight;
pub(crate) mod lanes;
pub(crate) mod roster;
pub(crate) mod worker_pool;
