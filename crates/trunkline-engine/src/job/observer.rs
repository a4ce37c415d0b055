//! Progress reports and cancellation: the interface that the caller of a job must implement.
//!
//! The command line implements it by showing a progress bar and by cancelling the job on Ctrl-C.

use std::path::Path;

use trunkline_format::BlockNo;

/// Follows the progress of a job, and can cancel it. These methods are called by the caller's
/// thread, by the coordinator and by the workers. They must not block, because while a worker is
/// blocked here, it can't issue any I/O.
pub trait Observer: Send + Sync {
    /// Called once per job, when the job has been planned and we know how much there is to do.
    fn begins(&self, _files: usize, _bytes: u64) {}

    /// The number of bytes processed so far, out of the total that was passed to
    /// [`begins`](Self::begins). Called about twenty times a second.
    fn progressed(&self, _bytes: u64) {}

    /// Called before a run of a file's blocks is read. Jobs that read through the buffer pool don't
    /// call this, only those that read files directly.
    fn reading(&self, _path: &Path, _first: BlockNo, _blocks: u32) {}

    /// Whether to stop the job. We call this about twenty times a second, until it returns true.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores progress and never cancels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
