//! **Background jobs.** Worker threads with progress, cancellation and one place for errors.
//!
//! ```text
//!   caller: reports progress, checks for cancellation every 50 ms; can leave at any time
//!     └▶ coordinator thread: plans the work, rechecks the data directory
//!          └▶ worker threads: one per mount, table or parallel participant
//! ```
//!
//! Verification, prewarming, `COPY` and parallel sequential scans are all jobs. A job corresponds
//! to a PostgreSQL parallel query with its leader and parallel workers, except that the threads
//! share one address space and no DSM segment is needed.
//!
//! Any system call on a file system can hang: an NFS server goes away, or a device stops answering.
//! Therefore neither the caller nor the coordinator does I/O that a worker could do. A worker that
//! hangs blocks only itself, and the caller can abandon it.
//!
//! The first worker that fails stops the others, and its error becomes the error of the job. A
//! worker that panics counts as failed. Otherwise the coordinator would wait for it forever.

mod backend;
mod error;
mod observer;
mod progress;
mod summary;
mod workers;

pub(crate) use backend::WarningLog;
pub use error::JobError;
pub use observer::{Observer, Unobserved};
pub use summary::{End, IoSummary};
pub(crate) use summary::{JobSummary, bytes_per_second};
pub(crate) use workers::{Job, by_mount};
