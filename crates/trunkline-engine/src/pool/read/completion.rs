//! Completion of a read: checks every page, and marks its buffer valid if the page can be used.
//!
//! The callback runs on whichever thread completes the I/O. It finds the buffers in the I/O's
//! payload, and checks their pages under the policy that the issuer had when it issued the read. It
//! stores a verdict for each page in the payload, where the issuer can find it. PostgreSQL's
//! `buffer_readv_complete` must return its result in the few bits of a `PgAioResult`, so it can
//! report only one damaged page per I/O.
//!
//! The callback must not block, allocate memory or take a lock that other threads hold during I/O,
//! because that would delay other completions. It ends the claims in block order, so other sessions
//! may already be using the first page while the callback is still checking the last one. After it
//! has ended its claim on a buffer, it must not touch the buffer any more, because from then on the
//! page belongs to the sessions that have it pinned.

use super::super::manager::BufferManager;
use super::policy::{PageCheck, PageChecks};
use std::fmt;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Callback, Completion, Outcome, Payload, Status, Weight};
use trunkline_format::{BLOCK_SIZE, BlockNo};

/// The thread that reaps a read also checks its pages, unless the read may span more than this many
/// blocks. Handing the check off to another thread costs about as much as computing 16 checksums
/// (decision 0006).
const LIGHT_BLOCKS_MAX: u32 = 16;

/// The callback's input and result: the buffers of the read, how to check their pages, and a
/// verdict for each page.
#[derive(Debug, Default)]
pub(crate) struct ReadPayload {
    checks: PageChecks,
    first: BlockNo,
    blocks: Vec<ReadBlock>,
}

/// One block of a read.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadBlock {
    buffer: u32,
    check: PageCheck,
}

impl ReadBlock {
    /// What became of the page.
    pub(super) fn check(self) -> PageCheck {
        self.check
    }
}

impl Payload for ReadPayload {
    fn data_len(&self) -> usize {
        self.blocks.len()
    }
}

impl ReadPayload {
    /// Makes room for the largest read, so that nothing allocates later.
    pub(super) fn reserve(&mut self, blocks: usize) {
        self.blocks.reserve_exact(blocks);
    }

    /// Describes the next read.
    pub(super) fn set(&mut self, checks: PageChecks, first: BlockNo, buffers: &[u32]) {
        (self.checks, self.first) = (checks, first);
        self.blocks.clear();
        let unread = |&buffer: &u32| ReadBlock { buffer, check: PageCheck::Unread };
        self.blocks.extend(buffers.iter().map(unread));
    }

    /// The blocks of the read, in order.
    pub(super) fn blocks(&self) -> &[ReadBlock] {
        &self.blocks
    }
}

/// The completion callback of page reads.
pub(super) struct ReadCallback {
    manager: Arc<BufferManager>,
    weight: Weight,
}

impl fmt::Debug for ReadCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadCallback")
    }
}

impl ReadCallback {
    /// Creates the callback for reads of up to `blocks_max` blocks.
    pub(super) fn new(manager: &Arc<BufferManager>, blocks_max: u32) -> Self {
        let weight = if blocks_max <= LIGHT_BLOCKS_MAX { Weight::Light } else { Weight::Heavy };
        Self { manager: Arc::clone(manager), weight }
    }
}

impl Callback<ReadPayload> for ReadCallback {
    fn name(&self) -> &'static str {
        "buffer read"
    }

    fn weight(&self) -> Weight {
        self.weight
    }

    fn complete(&self, io: &mut Completion<'_, ReadPayload>, prior: Outcome) -> Outcome {
        let failed = prior.status == Status::Error;
        let read = if failed { 0 } else { prior.count as usize / BLOCK_SIZE };
        let ReadPayload { checks, first, blocks } = &mut *io.payload;
        let (mut bad, mut warned) = (0, 0);
        for (at, (ReadBlock { buffer, check }, block)) in
            blocks.iter_mut().zip(*first..).enumerate()
        {
            if at < read {
                let frames = self.manager.frames();
                *check =
                    frames.with_read_page(*buffer, io.wait_ref, |page| checks.check(page, block));
                bad += u32::from(matches!(check, PageCheck::Bad(_) | PageCheck::Newer(_)));
                let accepted = matches!(check, PageCheck::Zeroed(_) | PageCheck::Ignored(_));
                warned += u32::from(accepted);
            }
            // If the read was short, the remaining pages are not valid. We keep their tags, so that
            // the issuer or another session can read the blocks again.
            self.manager.buffers().finish_read(*buffer, check.is_usable());
        }
        // The outcome includes only whole blocks. If any page is bad, the detail is the number of
        // bad pages. The individual verdicts are in the payload.
        let whole = (read * BLOCK_SIZE) as u32;
        match prior.status {
            Status::Error => prior,
            _ if bad > 0 => Outcome::new(Status::Error, bad, whole),
            _ if read < blocks.len() => prior,
            _ if warned > 0 => Outcome::new(Status::Warning, warned, whole),
            _ => prior,
        }
    }

    fn report(&self, outcome: Outcome) -> Option<String> {
        let what = if outcome.status == Status::Error { "invalid" } else { "zeroed or ignored" };
        Some(format!("{} {what} pages", outcome.detail))
    }
}
