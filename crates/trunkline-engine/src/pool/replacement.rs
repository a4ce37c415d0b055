//! Buffer replacement: finds buffers for pages that have none (PostgreSQL's `freelist.c`).
//!
//! There is no free list. Empty buffers are victims like all others, and the clock sweep finds
//! them. PostgreSQL's sweep may return a dirty victim for the backend to flush, but ours returns
//! only clean buffers. A session flushes only if no clean buffer exists (`eviction`). A read
//! therefore does not wait for a write while any clean page can be evicted.
//!
//! ```text
//!   victims        Replacement: takes buffers from a ring, the clock sweep or the bitmap
//!   clock_sweep    the hand that ages pages and picks victims
//!   clean_bitmap   finds clean buffers when the clock would visit only dirty buffers
//!   ring_buffer    access strategies, and the ring of a bulk operation
//!   allocations    how many buffers were taken, for the background writer
//! ```

mod allocations;
pub(crate) mod clean_bitmap;
mod clock_sweep;
pub(crate) mod ring_buffer;
mod victims;

pub(crate) use self::victims::{Allocation, Replacement};
