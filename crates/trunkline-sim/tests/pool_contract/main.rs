//! Contract suite of the buffer pool and read streams: shared and local pools, under `sync`,
//! `worker` and `io_uring`, and on a simulated disk under seeds.
//!
//! Cases taken from PostgreSQL's `test_aio` module keep its numbers, PG 8 to PG 37. PG 19 (a
//! database created from a template) has no counterpart here.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

mod bad_input;
mod cancel;
mod claims;
mod corruption;
mod interleavings;
mod lessons;
mod locks;
mod polling;
mod progress;
mod splitting;
mod streams;
mod vanish;
