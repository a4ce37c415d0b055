//! **Raw file scan.** Reads whole relation files, in any order, bypassing the buffer pool.
//!
//! ```text
//!   files, by mount ──▶ one worker per mount: a session and a window of buffers
//!                        ReadQueue: next run of blocks (≤ io_combine_limit) ──▶ read ──▶ visitor
//!                              ▲ rest of a short read, blocks of a failed read ◀──┘
//! ```
//!
//! Page verification and page cache prewarming use this scan. They look at each page just once, so
//! reading through the pool would only evict pages that other sessions need. `pg_checksums` reads
//! relation files directly for the same reason, but with one synchronous read per block.
//!
//! Each worker leases a small window of buffers. It always reuses the most recently used buffer,
//! because that buffer's memory is most likely still in the CPU cache.
//!
//! Every mount gets its own worker, so a file system that hangs doesn't hold up the rest.
//!
//! A failed read doesn't end the scan. Instead we read the run's blocks again one by one, so that
//! we can report exactly the unreadable blocks; see `file_reads.rs` for the rules.

mod file_reads;
mod mount_worker;
mod options;
mod read_queue;
mod scan;
mod visitor;

pub use options::ReadOptions;
pub(crate) use scan::read_files;
pub(crate) use visitor::{BlockVisitor, ReadFailure, ReadPayload};
