//! Progress tracking for a worker that processes one page at a time.
//!
//! The same call also checks whether the job is being stopped, so that workers can't forget to do
//! that.

use super::workers::Job;

/// How many pages a worker processes before it updates the job's shared counters. It checks for
/// cancellation at the same time, so after the job has been stopped, a worker may still process up
/// to 64 more pages.
const PAGES_BATCHED: u32 = 64;

impl Job {
    /// Starts counting the pages of one worker.
    pub(crate) fn page_progress(&self) -> PageProgress<'_> {
        PageProgress { job: self, unreported: 0 }
    }
}

/// Counts the pages that a worker has processed. All workers update the same atomics, and the
/// caller polls them. If we updated them after every page, the cache line would bounce between
/// CPUs. We therefore add up a whole batch of pages first. When this counter is dropped, it adds
/// the remaining pages.
pub(crate) struct PageProgress<'j> {
    job: &'j Job,
    unreported: u32,
}

impl PageProgress<'_> {
    /// Counts a page. Returns false if the worker should stop; we check that only once per batch.
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
