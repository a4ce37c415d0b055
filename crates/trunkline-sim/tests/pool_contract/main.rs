//! The suite of the buffer pool and its streams, over `sync`, `worker`, `io_uring` and a simulated
//! disk under seeds, for shared and session-local pools. Cases of PostgreSQL's own test suite are
//! named PG 8 to PG 37, as in our notes; PG 19 (a database made from a template) has no counterpart.

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
