//! Contract suite for writing the log, on a simulated disk: whatever happens, a record whose flush was
//! acknowledged is in the log after a crash, and everything before it.
//!
//! Each seed decides how the sessions interleave, what survives of the writes that were not synced, and which
//! faults strike. Each method of making WAL durable is tried, through the page cache and past it. A crash is tried at random moments of a run, on a copy of the disk. The log is then read, opened
//! again where it ends, and continued.

#![expect(clippy::expect_used, clippy::panic, reason = "tests")]

mod crashes;
mod device;
mod disk_log;
mod failures;
mod images;
mod recycling;
