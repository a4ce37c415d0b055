//! Contract tests for page writes: checkpoints, eviction, writeback, relation extension, removal
//! and crashes. They run under the `sync`, `worker` and `io_uring` methods, and with many random
//! seeds on a simulated disk, with and without storage faults.
//!
//! The cluster's write checker verifies every write of every case: the pages on disk must have
//! valid checksums, and the WAL must have been durable up to their LSNs when the write was
//! submitted.

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
mod pools;
mod pressure;
mod removal;
mod reopened;
mod segments;
mod stability;
mod syncs;
mod writeback;
