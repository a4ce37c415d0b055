//! The check itself, in two places: a callback that runs where a read completes, and a second look
//! in the job's own thread at the few pages that it marked.
//!
//! ```text
//!   words of a read:   0 first block    1 fork    2, 3 a bit per block: bad
//! ```
//! The callback may run anywhere, so it neither allocates nor locks: it only sets bits.

use trunkline_aio::sync::Arc;
use trunkline_aio::{Callback, Completion, Operation, Outcome, Status, Weight};
use trunkline_format::{BLOCK_SIZE, BlockNo, CheckOptions, Fork, PageBytes, Verdict, check_page};

use super::findings::Findings;
use crate::datadir::FileEntry;
use crate::scan::{Trouble, Visitor, Words};

/// The callback.
struct Check {
    checksums: bool,
}

impl Callback<Vec<u64>> for Check {
    fn name(&self) -> &'static str {
        "check pages"
    }

    fn weight(&self) -> Weight {
        Weight::Heavy
    }

    fn complete(&self, io: &mut Completion<'_, Vec<u64>>, prior: Outcome) -> Outcome {
        let whole = prior.count as usize / BLOCK_SIZE;
        if io.operation != Operation::Readv || prior.status == Status::Error || whole == 0 {
            return prior;
        }
        let [first, fork, low, high] = &mut io.payload[..] else { return prior };
        let options = CheckOptions { checksums: self.checksums, fork: fork_of(*fork) };
        let pages = io.memory.iter().flat_map(|lease| lease.as_chunks::<BLOCK_SIZE>().0);
        let mut bad = 0;
        for (at, page) in (0_u32..).zip(pages.take(whole)) {
            let block = (*first as BlockNo).wrapping_add(at);
            if matches!(check_page(page, block, &options), Verdict::Bad(_)) {
                let word = if at < 64 { &mut *low } else { &mut *high };
                *word |= 1 << (at % 64);
                bad += 1;
            }
        }
        if bad == 0 || prior.status != Status::Ok {
            return prior;
        }
        Outcome { status: Status::Warning, detail: bad, ..prior }
    }

    fn report(&self, outcome: Outcome) -> Option<String> {
        (outcome.status == Status::Warning).then(|| format!("{} bad pages", outcome.detail))
    }
}

/// The visitor.
pub(super) struct Pages {
    checksums: bool,
    findings: Arc<Findings>,
}

impl Pages {
    pub(super) fn new(checksums: bool, findings: Arc<Findings>) -> Self {
        Self { checksums, findings }
    }
}

impl Visitor for Pages {
    fn callbacks(&self) -> Vec<Arc<dyn Callback<Vec<u64>>>> {
        vec![Arc::new(Check { checksums: self.checksums })]
    }

    fn words(&self, file: &FileEntry, first: BlockNo) -> Words {
        [u64::from(first), file.fork as u64, 0, 0]
    }

    fn arrived(&self, file: &FileEntry, first: BlockNo, pages: &[u8], words: Words) {
        let [_, _, low, high] = words;
        if low | high == 0 {
            return;
        }
        let marks = u128::from(high) << 64 | u128::from(low);
        let options = CheckOptions { checksums: self.checksums, fork: file.fork };
        let pages: &[PageBytes] = pages.as_chunks().0;
        for (at, page) in (0_u32..).zip(pages).filter(|(at, _)| marks >> at & 1 != 0) {
            let block = first.wrapping_add(at);
            if let Verdict::Bad(finding) = check_page(page, block, &options) {
                self.findings.page(&file.path, block, finding);
            }
        }
    }

    fn trouble(&self, file: &FileEntry, trouble: Trouble) {
        self.findings.trouble(&file.path, trouble);
    }
}

fn fork_of(number: u64) -> Fork {
    Fork::ALL.into_iter().find(|fork| *fork as u64 == number).unwrap_or_default()
}
