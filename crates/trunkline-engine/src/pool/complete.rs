//! The end of a read: every page is judged, and becomes valid or does not.
//!
//! Runs on whichever thread completes the I/O. It knows the buffers by the data words of the I/O and
//! judges by the policy that the issuer had when it issued: what the completing session's own
//! settings are does not matter, and it learns nothing of the outcome. The issuer finds a code per
//! block in the words, and the verdicts on bad pages in a short list of its own.
//!
//! ```text
//!   word 0   policy and checksums      word 1   first block
//!   word 2+  buffer (low half), code (high half, set here)
//! ```

use super::shared::Shared;
use std::fmt;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Callback, Completion, Outcome, Status, Weight};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes, PageVerdict, verify_page};

/// Data words before the blocks'.
pub(super) const HEADER: usize = 2;

/// Bad pages of one issuer whose verdicts are kept until it looks.
const VERDICTS_MAX: usize = 64;

/// Blocks of the largest read that is judged by the thread that reaps it. Handing a read to another
/// thread costs about as much as 16 checksums, and wakes the issuer for each read by itself.
const LIGHT_BLOCKS_MAX: u32 = 16;

/// What to do with a page that is not sound. Captured when a read is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Policy {
    /// `zero_damaged_pages`: it becomes a page of zeros.
    pub zero_damaged_pages: bool,
    /// `ignore_checksum_failure`: if only the checksum is wrong it is used as it is.
    pub ignore_checksum_failure: bool,
}

impl Policy {
    const CHECKSUMS: u64 = 1;
    const ZERO: u64 = 2;
    const IGNORE: u64 = 4;

    pub(super) fn word(self, checksums: bool) -> u64 {
        let bit = |set: bool, bit: u64| if set { bit } else { 0 };
        bit(checksums, Self::CHECKSUMS)
            | bit(self.zero_damaged_pages, Self::ZERO)
            | bit(self.ignore_checksum_failure, Self::IGNORE)
    }
}

/// What became of a block, as the high half of its data word.
pub(super) mod code {
    pub(in super::super) const UNREAD: u32 = 0;
    pub(in super::super) const VALID: u32 = 1;
    pub(in super::super) const ZEROED: u32 = 2;
    pub(in super::super) const IGNORED: u32 = 3;
    pub(in super::super) const BAD: u32 = 4;
    /// Set beside the code if the checksum was wrong.
    pub(in super::super) const CHECKSUM_FAILED: u32 = 8;
}

/// The callback of one issuer's reads.
pub(super) struct ReadCallback {
    shared: Arc<Shared>,
    weight: Weight,
    verdicts: Mutex<Vec<(u32, PageVerdict)>>,
}

impl fmt::Debug for ReadCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadCallback")
    }
}

impl ReadCallback {
    /// For reads of up to so many blocks.
    pub(super) fn new(shared: &Arc<Shared>, blocks_max: u32) -> Self {
        let weight = if blocks_max <= LIGHT_BLOCKS_MAX { Weight::Light } else { Weight::Heavy };
        let verdicts = Mutex::new(Vec::with_capacity(VERDICTS_MAX));
        Self { shared: Arc::clone(shared), weight, verdicts }
    }

    /// The verdict on what was read into a buffer, if it was kept; it is kept no longer.
    pub(super) fn take_verdict(&self, buffer: u32) -> Option<PageVerdict> {
        let mut verdicts = self.verdicts.lock();
        let at = verdicts.iter().position(|(judged, _)| *judged == buffer)?;
        Some(verdicts.swap_remove(at).1)
    }

    fn keep(&self, buffer: u32, verdict: PageVerdict) {
        let mut verdicts = self.verdicts.lock();
        // Within the capacity: a completion must not allocate.
        if verdicts.len() < verdicts.capacity() {
            verdicts.push((buffer, verdict));
        }
    }
}

impl Callback<Vec<u64>> for ReadCallback {
    fn name(&self) -> &'static str {
        "buffer read"
    }

    fn weight(&self) -> Weight {
        self.weight
    }

    fn complete(&self, io: &mut Completion<'_, Vec<u64>>, prior: Outcome) -> Outcome {
        let blocks = io.payload.len().saturating_sub(HEADER);
        let read =
            if prior.status == Status::Error { 0 } else { prior.count as usize / BLOCK_SIZE };
        let (policy, first) = (io.payload[0], io.payload[1] as BlockNo);
        let (mut bad, mut warned) = (0, 0);
        for at in 0..blocks {
            let buffer = io.payload[HEADER + at] as u32;
            let (mut code, mut failed) = (code::UNREAD, 0);
            if at < read {
                let block = first + at as BlockNo;
                let (verdict, judged) =
                    self.shared.with_incoming(buffer, io, |page| judge(page, block, policy));
                code = judged;
                if verdict.is_checksum_failure() {
                    failed = code::CHECKSUM_FAILED;
                }
                if code != code::VALID {
                    self.keep(buffer, verdict);
                }
                bad += u32::from(code == code::BAD);
                warned += u32::from(matches!(code, code::ZEROED | code::IGNORED));
            }
            io.payload[HEADER + at] |= u64::from(code | failed) << 32;
            self.shared.finish_read(buffer, !matches!(code, code::UNREAD | code::BAD));
        }
        let whole = (read * BLOCK_SIZE) as u32;
        match prior.status {
            Status::Error => prior,
            _ if bad > 0 => Outcome::new(Status::Error, bad, whole),
            _ if read < blocks => prior,
            _ if warned > 0 => Outcome::new(Status::Warning, warned, whole),
            _ => prior,
        }
    }

    fn report(&self, outcome: Outcome) -> Option<String> {
        let what = if outcome.status == Status::Error { "invalid" } else { "zeroed or ignored" };
        Some(format!("{} {what} pages", outcome.detail))
    }
}

fn judge(page: &mut PageBytes, block: BlockNo, policy: u64) -> (PageVerdict, u32) {
    let verdict = verify_page(page, block, policy & Policy::CHECKSUMS != 0);
    let code = if verdict.is_valid() {
        code::VALID
    } else if policy & Policy::IGNORE != 0 && verdict.is_valid_but_for_checksum() {
        code::IGNORED
    } else if policy & Policy::ZERO != 0 {
        page.fill(0);
        code::ZEROED
    } else {
        code::BAD
    };
    (verdict, code)
}
