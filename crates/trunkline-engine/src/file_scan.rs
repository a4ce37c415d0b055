//! **Raw file scan.** Reads relation files whole, around the buffer pool and in any order.
//!
//! ```text
//!   files, by mount ──▶ one worker per mount: a session and a window of buffers
//!                        ReadQueue: next run of blocks (≤ io_combine_limit) ──▶ read ──▶ visitor
//!                              ▲ rest of a short read, blocks of a failed read ◀──┘
//! ```
//!
//! Verification and prewarming of the page cache use this scan. They look at each page once, so
//! passing the pages through the pool would only evict what others need. A worker owns a small
//! window of leased buffers instead. It reuses the buffer that was used last, whose memory is most
//! likely still in the CPU cache.
//!
//! Each mount has its own worker, so a file system that hangs does not stop the others.

mod mount_worker;
mod options;
mod read_queue;
mod scan;
mod visitor;
mod window;

pub use options::ReadOptions;
pub(crate) use scan::read_files;
pub(crate) use visitor::{BlockVisitor, ReadFailure, ReadPayload};
