//! The visibility map: two bits for each page of a heap.
//!
//! All-visible and all-frozen.
