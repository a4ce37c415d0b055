//! Progress reports and cancellation: the interface that a caller of a job implements.
//!
//! The command line implements it with a progress bar, and cancels the job on Ctrl-C.

use std::path::Path;

use trunkline_format::BlockNo;

/// Follows the progress of a job and can cancel it. The caller's thread, the coordinator and the
/// workers all call these methods. They must not block, because a blocked worker stalls its I/O.
pub trait Observer: Send + Sync {
    /// The plan is ready and the amount of work is known. Called once per job.
    fn begins(&self, _files: usize, _bytes: u64) {}

    /// Bytes done so far, out of those announced by [`begins`](Self::begins). Called about twenty
    /// times a second.
    fn progressed(&self, _bytes: u64) {}

    /// A run of a file's blocks is about to be read. Only jobs that read files directly call this;
    /// jobs that read through the buffer pool don't.
    fn reading(&self, _path: &Path, _first: BlockNo, _blocks: u32) {}

    /// Whether to stop the job. Polled about twenty times a second until it returns true.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores progress and never cancels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
