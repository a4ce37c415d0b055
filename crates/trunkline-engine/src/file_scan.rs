//! **Raw file scan.** Reads whole relation files, in any order, bypassing the buffer pool.
//!
//! ```text
//!   files, by mount ──▶ ReadQueue ──▶ several workers: a session and a window of buffers each
//!                       next run of blocks (≤ io_combine_limit) ──▶ read ──▶ visitor
//!                           ▲ rest of a short read, blocks of a failed read ◀──┘
//! ```
//!
//! We use this scan to verify pages and to prewarm the page cache. Both need each page only once,
//! so if they read through the pool, they would just evict pages that other sessions need.
//! `pg_checksums` reads relation files directly for the same reason, but reads one block at a time,
//! synchronously.
//!
//! Each worker leases a small window of buffers. It always takes the buffer that was used most
//! recently, because that buffer's memory is most likely to still be in the CPU cache.
//!
//! Each mount has its own workers, so that a hung file system doesn't hold up the others.
//!
//! A failed read doesn't end the scan. Instead, we read the blocks of that run again, one by one,
//! to find out which of them can't be read. The rules for this are in `file_reads.rs`.

mod file_reads;
mod mount_worker;
mod options;
mod read_queue;
mod scan;
mod visitor;

pub use options::ReadOptions;
pub(crate) use scan::read_files;
pub(crate) use visitor::{BlockVisitor, ReadFailure, ReadPayload};
