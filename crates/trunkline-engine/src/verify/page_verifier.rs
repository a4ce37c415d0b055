//! Page verification in two steps. A completion callback marks bad pages. The mount's worker then
//! checks the marked pages again to report what is wrong with them.
//!
//! The callback may run on any thread, so it must neither allocate nor take a lock, and just sets
//! one bit per bad page. Bad pages are rare, so the second check costs nothing in practice. This
//! way checksums are computed in parallel, on the threads that complete I/O.

use trunkline_aio::facade::Arc;
use trunkline_aio::{Callback, Completion, Operation, Outcome, Status, Weight};
use trunkline_format::{BLOCK_SIZE, BlockNo, CheckOptions, PageBytes, Verdict, check_page};

use super::finding_log::FindingLog;
use crate::datadir::FileEntry;
use crate::file_scan::{BlockVisitor, ReadFailure, ReadPayload};

/// The completion callback. It sets `bad` in the payload and turns the outcome into a warning.
struct MarkBadPages {
    checksums: bool,
}

impl Callback<ReadPayload> for MarkBadPages {
    fn name(&self) -> &'static str {
        "check pages"
    }

    /// Computing a checksum touches every byte of the pages. The thread that reaps completions
    /// should therefore leave this callback to the session waiting for the read, or to a helper
    /// thread.
    fn weight(&self) -> Weight {
        Weight::Heavy
    }

    /// Checks every whole page of a read and marks the bad ones.
    fn complete(&self, io: &mut Completion<'_, ReadPayload>, prior: Outcome) -> Outcome {
        let whole = prior.count as usize / BLOCK_SIZE;
        // A short read that ends mid-page still delivers the whole pages before that point.
        if io.operation != Operation::Readv || prior.status == Status::Error || whole == 0 {
            return prior;
        }
        let ReadPayload { fork, first, bad } = io.payload;
        let options = CheckOptions { checksums: self.checksums, fork: *fork };
        let pages = io.memory.iter().flat_map(|lease| lease.as_chunks::<BLOCK_SIZE>().0);
        for (at, page) in (0_u32..).zip(pages.take(whole)) {
            if matches!(check_page(page, first.wrapping_add(at), &options), Verdict::Bad(_)) {
                *bad |= 1 << at;
            }
        }
        // If the read returned short, keep that status, so that the scan reads the rest. The bad
        // pages aren't lost, because their bits are in the payload.
        if *bad == 0 || prior.status != Status::Ok {
            return prior;
        }
        Outcome { status: Status::Warning, detail: bad.count_ones(), ..prior }
    }

    fn report(&self, outcome: Outcome) -> Option<String> {
        (outcome.status == Status::Warning).then(|| format!("{} bad pages", outcome.detail))
    }
}

/// The visitor of the file scan: registers the callback and reports the pages that it marked.
pub(super) struct PageVerifier {
    checksums: bool,
    findings: Arc<FindingLog>,
}

impl PageVerifier {
    pub(super) fn new(checksums: bool, findings: Arc<FindingLog>) -> Self {
        Self { checksums, findings }
    }
}

impl BlockVisitor for PageVerifier {
    fn callbacks(&self) -> Vec<Arc<dyn Callback<ReadPayload>>> {
        vec![Arc::new(MarkBadPages { checksums: self.checksums })]
    }

    /// Checks the marked pages again and reports what is wrong with them.
    fn blocks_read(&self, file: &FileEntry, first: BlockNo, pages: &[u8], bad: u128) {
        if bad == 0 {
            return;
        }
        let options = CheckOptions { checksums: self.checksums, fork: file.fork };
        let pages: &[PageBytes] = pages.as_chunks().0;
        for (at, page) in (0_u32..).zip(pages).filter(|(at, _)| bad >> at & 1 != 0) {
            let block = first.wrapping_add(at);
            if let Verdict::Bad(finding) = check_page(page, block, &options) {
                self.findings.page(&file.path, block, finding);
            }
        }
    }

    fn failed(&self, file: &FileEntry, failure: ReadFailure) {
        self.findings.failure(&file.path, failure);
    }
}
