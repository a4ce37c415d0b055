//! **Background jobs.** Worker threads with progress, cancellation and one place for errors.
//!
//! ```text
//!   caller: reports progress, checks for cancellation every 50 ms; can leave at any time
//!     └▶ coordinator thread: plans the work, rechecks the data directory
//!          └▶ worker threads: one per mount, table or parallel participant
//! ```
//!
//! Verification, prewarming, `COPY` and parallel sequential scans are all jobs. A job resembles a
//! parallel query in PostgreSQL with its leader and workers, except that the threads share one
//! address space, so they need no DSM segment.
//!
//! Any file system call can hang: an NFS server goes away, or a device stops responding. That's why
//! neither the caller nor the coordinator does I/O that a worker could do. A worker that hangs
//! blocks only itself, and the caller can abandon it.
//!
//! The first worker that fails stops the other workers, and its error becomes the job's error. We
//! must also count a worker that panics as failed, because otherwise the coordinator would wait for
//! it forever.

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
