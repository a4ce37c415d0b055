//! The suite of page writes, over `sync`, `worker`, `io_uring` and a simulated disk under seeds:
//! write-back, checkpoints, extension, removal, crashes, and what each does when storage fails.
//!
//! Beside what a case asserts, the cluster looks at every write of every case: the pages that reached the
//! disk have the right checksum, and the log was durable up to them when they were submitted.

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
