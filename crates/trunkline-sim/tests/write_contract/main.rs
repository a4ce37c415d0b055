//! Contract suite for page writes: checkpoints, eviction, writeback, relation extension, removal
//! and crashes. The cases run under the `sync`, `worker` and `io_uring` methods. They also run on a
//! simulated disk with many random seeds, both with and without storage faults.
//!
//! In every case, the cluster's write checker verifies each write. The pages on disk must have
//! valid checksums, and when the write was submitted, the WAL must already have been flushed up to
//! the LSNs of these pages.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

mod background;
mod bulk;
mod calls;
mod coverage;
mod crashes;
mod cut_short;
mod durability;
mod extension;
mod failed_checkpoints;
mod faults;
mod killed;
mod logged;
mod lost_writebacks;
mod many_pages;
mod opening;
mod polled;
mod polled_log;
mod pools;
mod pressure;
mod removal;
mod reopened;
mod segments;
mod stability;
mod starved;
mod syncs;
mod writeback;
