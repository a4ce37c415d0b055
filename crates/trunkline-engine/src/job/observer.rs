//! Progress reports and cancellation, as a caller of a job implements them.
//!
//! The command line draws a progress bar with it and cancels the job on Ctrl-C.

use std::path::Path;

use trunkline_format::BlockNo;

/// Follows the progress of a job and can cancel it. The job's threads call these methods, so they
/// must not block.
pub trait Observer: Send + Sync {
    /// The amount of work is known. Called once.
    fn begins(&self, _files: usize, _bytes: u64) {}

    /// Bytes done so far, out of those announced. Called about twenty times a second.
    fn progressed(&self, _bytes: u64) {}

    /// A run of blocks of a file is about to be read. Only jobs that read files directly call this;
    /// jobs that read through the buffer pool do not.
    fn reading(&self, _path: &Path, _first: BlockNo, _blocks: u32) {}

    /// Whether to stop the job. Called about twenty times a second.
    fn cancelled(&self) -> bool {
        false
    }
}

/// Ignores progress and never cancels.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {}
