//! Progress of a worker that handles one page at a time.
//!
//! It also checks now and then whether the job is stopping.

use super::workers::Job;

/// Pages between two updates of the job's shared counters.
const PAGES_BATCHED: u32 = 64;

impl Job {
    /// Starts to count the pages of one worker.
    pub(crate) fn page_progress(&self) -> PageProgress<'_> {
        PageProgress { job: self, unreported: 0 }
    }
}

/// Counts the pages of one worker. The shared counters are atomics that every worker updates and
/// the caller polls, so a worker adds to them once per batch of pages and when it is done.
pub(crate) struct PageProgress<'j> {
    job: &'j Job,
    unreported: u32,
}

impl PageProgress<'_> {
    /// Counts a page. False if the worker should stop, which is checked once per batch.
    pub(crate) fn page_done(&mut self) -> bool {
        self.unreported += 1;
        if self.unreported < PAGES_BATCHED {
            return true;
        }
        self.report();
        !self.job.is_stopping()
    }

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
