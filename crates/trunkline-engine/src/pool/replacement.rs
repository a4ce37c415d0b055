//! Buffer replacement: finds buffers for pages that have none (PostgreSQL's `freelist.c`).
//!
//! There is no free list. An empty buffer is just another victim for the clock sweep to find.
//! PostgreSQL's sweep may return a dirty victim, which the backend must then flush, but ours
//! returns only clean buffers. A session flushes pages only if there are no clean buffers at all
//! (`eviction`). As long as any clean page can be evicted, a read therefore doesn't have to wait
//! for a write.
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
