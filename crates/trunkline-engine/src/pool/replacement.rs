//! Buffer replacement: finds buffers for pages that have none.
//!
//! ```text
//!   victims        Replacement: takes buffers from a ring, by the clock sweep, or by the bitmap
//!   clock_sweep    the hand that ages pages and picks victims
//!   clean_bitmap   where clean buffers are, when the clock would visit dirty ones in vain
//!   ring_buffer    access strategies, and the ring of a bulk operation
//!   allocations    how many buffers were taken, for the background writer
//! ```

mod allocations;
pub(crate) mod clean_bitmap;
mod clock_sweep;
pub(crate) mod ring_buffer;
mod victims;

pub(crate) use self::victims::{Allocation, Replacement};
