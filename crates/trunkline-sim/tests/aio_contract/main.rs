//! The contract suite: what every I/O method must do, on the simulated disk under seeds and on
//! real files. Cases of PostgreSQL's own test suite are named PG 1 to PG 27, as in our notes.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

mod at_once;
mod completers;
mod coverage;
mod files;
mod handle_waits;
mod handles;
mod handover;
mod joining;

mod pool;
mod results;
mod scheduler;
mod shared;
mod snapshots;
mod switching;
mod tasks;
mod vanish;
mod waiting;
mod workloads;
