//! The end of a write: every page is clean, or it is not and stays what it was.
//!
//! Runs on whichever thread completes the I/O. A write that failed, or a part of it, leaves its pages
//! dirty: nothing is lost in memory, and whoever needs them on disk learns that they are not there.
//!
//! Nobody may change a page meanwhile: in debug builds its checksum is taken when the write is defined and
//! again here. Not compared with the one inside the page, which a change may have put right.
//!
//! ```text
//!   word 0   slot
//!   word 1   first block      word 2+  buffer (bits 0-31), code (32-47), checksum (48-63)
//! ```

use super::complete::{HEADER, code};
use super::io_claim::WriteEnd;
use super::shared::Shared;
use crate::storage::PendingFsync;
use std::fmt;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Callback, Completion, Outcome, Status, WaitRef, Weight};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes, page_checksum};

/// A word of a page that is to be written.
pub(super) fn page_word(shared: &Shared, buffer: u32, block: BlockNo, io: WaitRef) -> u64 {
    let sum = match cfg!(debug_assertions) {
        true => shared.with_stable(buffer, io, |bytes| page_checksum(bytes, block)),
        false => 0,
    };
    u64::from(buffer) | u64::from(sum) << SUM_SHIFT
}

/// Where the checksum begins.
const SUM_SHIFT: u32 = 48;

/// Whether a page that was to be written is with the system.
pub(super) fn is_written(word: u64) -> bool {
    u32::from((word >> 32) as u16) == code::VALID
}

/// The callback of one issuer's writes.
pub(super) struct WriteCallback {
    shared: Arc<Shared>,
    /// By slot: the segment that its last write belongs to.
    segments: Box<[Mutex<Option<Arc<PendingFsync>>>]>,
}

impl fmt::Debug for WriteCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteCallback")
    }
}

impl WriteCallback {
    pub(super) fn new(shared: &Arc<Shared>, slots: usize) -> Self {
        let segments = (0..slots).map(|_| Mutex::new(None)).collect();
        Self { shared: Arc::clone(shared), segments }
    }

    /// Notes the segment of a write that is about to be issued in a slot. The note stays until the
    /// next one, so that nothing is freed by a completion.
    pub(super) fn note(&self, slot: usize, segment: Arc<PendingFsync>) {
        let before = self.segments[slot].lock().replace(segment);
        drop(before);
    }
}

impl Callback<Vec<u64>> for WriteCallback {
    fn name(&self) -> &'static str {
        "buffer write"
    }

    fn weight(&self) -> Weight {
        Weight::Light
    }

    fn complete(&self, io: &mut Completion<'_, Vec<u64>>, prior: Outcome) -> Outcome {
        let blocks = io.payload.len().saturating_sub(HEADER);
        let failed = prior.status == Status::Error;
        let written = if failed { 0 } else { prior.count as usize / BLOCK_SIZE };
        if let Some(segment) = &*self.segments[io.payload[0] as usize].lock() {
            // Before any page is clean: who finds it clean finds the segment to be synced.
            segment.write_ended();
        }
        for at in 0..blocks {
            let word = io.payload[HEADER + at];
            let buffer = word as u32;
            if cfg!(debug_assertions) {
                let block = io.payload[1] as BlockNo + at as BlockNo;
                let sum = (word >> SUM_SHIFT) as u16;
                self.shared.with_outgoing(buffer, io, |bytes| assert_unchanged(bytes, block, sum));
            }
            let done = at < written;
            let code = if done { code::VALID } else { code::UNREAD };
            io.payload[HEADER + at] |= u64::from(code) << 32;
            self.shared
                .finish_write(buffer, if done { WriteEnd::Written } else { WriteEnd::Failed });
        }
        prior
    }
}

/// A page that was written must still be the one whose checksum was taken.
fn assert_unchanged(bytes: &PageBytes, block: BlockNo, sum: u16) {
    let found = page_checksum(bytes, block);
    assert_eq!(found, sum, "block {block} was changed while it was being written");
}

#[cfg(test)]
mod tests {
    use super::*;
    use trunkline_format::HeapPageBuilder;
    use trunkline_sample::push_account;

    fn page(version: i32) -> PageBytes {
        let mut page = HeapPageBuilder::new(7);
        push_account(&mut page, 1, version, 1).expect("room");
        page.finish(true)
    }

    #[test]
    fn a_page_as_it_was_passes() {
        let sum = page_checksum(&page(1), 7);
        assert_unchanged(&page(1), 7, sum);
        // Its checksum is no part of the page: a copy is written with one, the page itself has none yet.
        let mut bare = page(1);
        bare[8..10].fill(0);
        assert_unchanged(&bare, 7, sum);
    }

    #[test]
    #[should_panic(expected = "block 7 was changed")]
    fn a_change_that_brings_its_own_checksum_is_noticed() {
        assert_unchanged(&page(2), 7, page_checksum(&page(1), 7));
    }
}
