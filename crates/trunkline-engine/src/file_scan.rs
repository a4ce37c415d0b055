//! **Raw file scan.** Reads relation files whole and in any order, bypassing the buffer pool.
//!
//! ```text
//!   files, by mount ──▶ one worker per mount: a session and a window of buffers
//!                        ReadQueue: next run of blocks (≤ io_combine_limit) ──▶ read ──▶ visitor
//!                              ▲ rest of a short read, blocks of a failed read ◀──┘
//! ```
//!
//! Page verification and prewarming of the page cache use this scan. They look at each page once,
//! so reading through the pool would only evict pages that other sessions need. `pg_checksums`
//! reads files around shared buffers for the same reason, but with one synchronous read per block.
//!
//! A worker leases a small window of buffers. It reuses the buffer that was used last, because the
//! memory of that buffer is most likely still in the CPU cache.
//!
//! Each mount has its own worker, so a file system that hangs does not stop the others.
//!
//! A failed read does not end the scan. The blocks of a failed run are read again one by one, so
//! that exactly the unreadable blocks are reported; see `window.rs` for the rules.

mod mount_worker;
mod options;
mod read_queue;
mod scan;
mod visitor;
mod window;

pub use options::ReadOptions;
pub(crate) use scan::read_files;
pub(crate) use visitor::{BlockVisitor, ReadFailure, ReadPayload};
