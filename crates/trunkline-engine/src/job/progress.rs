//! Progress tracking for a worker that processes one page at a time.
//!
//! The same call also checks whether the job is stopping, so that a worker can't forget to.

use super::workers::Job;

/// Pages between two updates of the job's shared counters. A worker also checks for cancellation
/// only this often, so it may process up to 64 more pages after the job was stopped.
const PAGES_BATCHED: u32 = 64;

impl Job {
    /// Starts counting the pages of one worker.
    pub(crate) fn page_progress(&self) -> PageProgress<'_> {
        PageProgress { job: self, unreported: 0 }
    }
}

/// Counts one worker's pages. All workers add to the same atomics and the caller polls them, so
/// updating them for every page would bounce the cache line between CPUs. Instead a worker adds a
/// whole batch at a time, and the remainder when this counter is dropped.
pub(crate) struct PageProgress<'j> {
    job: &'j Job,
    unreported: u32,
}

impl PageProgress<'_> {
    /// Counts a page. Returns false if the worker should stop, which is checked once per batch.
    pub(crate) fn page_done(&mut self) -> bool {
        self.unreported += 1;
        if self.unreported < PAGES_BATCHED {
            return true;
        }
        self.report();
        !self.job.is_stopping()
    }

    /// Adds the pages counted since the last call to the job's counters.
    fn report(&mut self) {
        let pages = std::mem::take(&mut self.unreported);
        self.job.count(pages, pages);
    }
}

impl Drop for PageProgress<'_> {
    fn drop(&mut self) {
        self.report();
    }
}
