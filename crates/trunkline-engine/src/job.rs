//! **Background jobs.** Worker threads with support for progress reports, cancellation and error
//! handling.
//!
//! ```text
//!   caller: reports progress, checks for cancellation every 50 ms; can leave at any time
//!     └▶ coordinator thread: plans the work, rechecks the data directory
//!          └▶ worker threads: several per mount, one per table or parallel participant
//! ```
//!
//! Verification, prewarming, `COPY` and parallel sequential scans all run as jobs. With its leader
//! and workers, a job is similar to a parallel query in PostgreSQL, except that there's no need for
//! a DSM segment, because all threads share one address space.
//!
//! Any file system call can hang, for example because an NFS server goes away or a device stops
//! responding. The caller and the coordinator therefore leave as much of the I/O as possible to the
//! workers. If a worker hangs, it blocks only itself, and the caller can still abandon it.
//!
//! The first worker that fails stops the other workers, and the job returns that worker's error. A
//! worker that panics must also be counted as failed, because otherwise the coordinator would wait
//! for it forever.

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
