//! Contract suite for the buffer pool and read streams. The cases run with shared and local pools,
//! under `sync`, `worker` and `io_uring`, and also on a simulated disk with random seeds.
//!
//! Some of the cases are taken from PostgreSQL's `test_aio` module. We have kept its numbers, so
//! these are PG 8 to PG 37. PG 19 creates a database from a template, and has no counterpart here.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

mod bad_input;
mod cancel;
mod claims;
mod corruption;
mod heap_polls;
mod index_scans;
mod interleavings;
mod lessons;
mod locks;
mod many_sessions;
mod opens;
mod polling;
mod progress;
mod shared_backends;
mod splitting;
mod streams;
mod toast;
mod vanish;
mod waiting_sources;
