//! Contract suite of the I/O core. It tests everything that an I/O method is required to do, both
//! on the simulated disk with random seeds, and on real files.
//!
//! Cases taken from PostgreSQL's `test_aio` module keep its numbers, PG 1 to PG 28.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

mod calls;
mod classes;
mod completers;
mod coverage;
mod durable;
mod files;
mod frames_io;
mod handle_waits;
mod handles;
mod handover;
mod inline_writes;
mod joining;
mod many_sessions;
mod results;
mod scheduler;
mod shared_sessions;
mod snapshots;
mod switching;
mod tasks;
mod vanish;
mod waiting;
mod worker_pool;
mod workloads;
