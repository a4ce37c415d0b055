//! Verifies pages in two steps. First, a completion callback finds the bad pages and marks them.
//! Then a worker of the mount checks the marked pages again to find out and report what is wrong with
//! them.
//!
//! Since the callback may run on any thread, it must not allocate memory or take a lock. It
//! therefore does nothing but set a bit for each bad page. The benefit is that checksums are
//! computed in parallel, by the threads that complete the I/O. Checking the bad pages twice isn't
//! expensive, because they are rare.

use trunkline_aio::facade::Arc;
use trunkline_aio::{Callback, Completion, Operation, Outcome, Status, Weight};
use trunkline_format::{BLOCK_SIZE, BlockNo, CheckOptions, PageBytes, Verdict, check_page};

use super::catalog_files::CatalogFiles;
use super::finding_log::FindingLog;
use super::replayed_pages::{Built, ReplayedPages};
use crate::datadir::FileEntry;
use crate::file_scan::{BlockVisitor, ReadFailure, ReadPayload};
use crate::replay::PageRedoError;

/// The completion callback. It sets `bad` in the payload and turns the outcome into a warning.
struct MarkBadPages {
    checksums: bool,
}

impl Callback<ReadPayload> for MarkBadPages {
    fn name(&self) -> &'static str {
        "check pages"
    }

    /// To compute the checksums, we have to look at every byte of the pages, which takes some time.
    /// The thread that reaps completions should therefore not run this callback itself, but leave
    /// it to the session that is waiting for the read or to a helper thread.
    fn weight(&self) -> Weight {
        Weight::Heavy
    }

    /// Checks every whole page of a read and marks the bad ones.
    fn complete(&self, io: &mut Completion<'_, ReadPayload>, prior: Outcome) -> Outcome {
        let whole = prior.count as usize / BLOCK_SIZE;
        // If a read returned short and ended mid-page, we can still check the whole pages before
        // that point.
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
        // If the read was short, don't change its status, because the scan must still read the
        // rest. We won't lose track of the bad pages, because their bits are in the payload.
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
    /// Collects the references to other pages in each page. `None` if we don't compare the files with
    /// the catalogs.
    catalogs: Option<Arc<CatalogFiles>>,
    /// Pages that are in the log and not in the files.
    replayed: Option<ReplayedPages>,
}

impl PageVerifier {
    pub(super) fn new(
        checksums: bool,
        findings: Arc<FindingLog>,
        catalogs: Option<Arc<CatalogFiles>>,
    ) -> Self {
        Self { checksums, findings, catalogs, replayed: None }
    }

    /// For a directory that is read through its log.
    pub(super) fn with_replayed(self, replayed: Option<ReplayedPages>) -> Self {
        Self { replayed, ..self }
    }

    /// Checks a page that was built from the log.
    pub(super) fn built(&self, file: &FileEntry, block: BlockNo, page: Built) {
        match page {
            Ok(page) => {
                let bad = u128::from(!self.is_good(file, &page, block));
                self.pages(file, block, &page[..], bad);
            }
            Err(error) => {
                if matches!(error, PageRedoError::Newer { .. }) && !self.is_complete(file) {
                    return;
                }
                if let Some(catalogs) = &self.catalogs {
                    catalogs.pages_failed(file);
                }
                // In a table or a B-tree, a record of another index method is wrong.
                let catalogs = self.catalogs.as_ref();
                if error.lacks_rule() && !catalogs.is_some_and(|all| all.has_rules(file)) {
                    return self.findings.not_checked(file, block, error);
                }
                self.findings.not_replayed(&file.path, block, error);
            }
        }
    }

    /// Whether the file belongs to a relation that is complete. A transaction that builds an index or rewrites
    /// a table writes the pages before their records; only its commit makes the log durable. So a crash may
    /// leave pages that are newer than the log, in files that no catalog names, or in an index that
    /// `CREATE INDEX CONCURRENTLY` has committed before it is built.
    fn is_complete(&self, file: &FileEntry) -> bool {
        self.catalogs.as_ref().is_some_and(|catalogs| catalogs.is_built(file))
    }

    fn is_good(&self, file: &FileEntry, page: &PageBytes, block: BlockNo) -> bool {
        let options = CheckOptions { checksums: self.checksums, fork: file.fork };
        !matches!(check_page(page, block, &options), Verdict::Bad(_))
    }

    /// Looks for references in good pages, and reports what is wrong with bad ones.
    fn pages(&self, file: &FileEntry, first: BlockNo, pages: &[u8], bad: u128) {
        if let Some(catalogs) = &self.catalogs {
            catalogs.pages_read(file, first, pages, bad);
        }
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
}

impl BlockVisitor for PageVerifier {
    fn callbacks(&self) -> Vec<Arc<dyn Callback<ReadPayload>>> {
        vec![Arc::new(MarkBadPages { checksums: self.checksums })]
    }

    /// Checks the marked pages again and reports what is wrong with them.
    fn blocks_read(&self, file: &FileEntry, first: BlockNo, pages: &[u8], bad: u128) {
        let Some(replayed) = &self.replayed else { return self.pages(file, first, pages, bad) };
        let check = |page: &PageBytes, block| self.is_good(file, page, block);
        let replaced = replayed.replace(file, first, pages, bad, check);
        for (block, error) in replaced.failed {
            self.built(file, block, Err(error));
        }
        self.pages(file, first, replaced.pages.as_deref().unwrap_or(pages), replaced.bad);
    }

    fn failed(&self, file: &FileEntry, failure: ReadFailure) {
        if let Some(catalogs) = &self.catalogs {
            catalogs.pages_failed(file);
        }
        self.findings.failure(&file.path, failure);
    }
}
