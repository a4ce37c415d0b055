//! The end of a write: every page is clean, or it is not and stays what it was.
//!
//! Runs on whichever thread completes the I/O. A write that failed, or a part of it, leaves its pages
//! dirty: nothing is lost in memory, and whoever needs them on disk learns that they are not there.
//!
//! ```text
//!   word 0   slot, and 1 if it is a copy that is written (see `header`)
//!   word 1   first block      word 2+  buffer (low half), code (high half)
//! ```

use super::complete::{HEADER, code};
use super::io_claim::WriteEnd;
use super::shared::Shared;
use crate::storage::SegmentSync;
use std::fmt;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Callback, Completion, Outcome, Status, Weight};
use trunkline_format::{BLOCK_SIZE, BlockNo, page, page_checksum};

/// In word 0: what is written is a copy.
const COPIED: u64 = 1;

/// Word 0 of a write in a slot, of pages or of a copy.
pub(super) fn header(slot: usize, copied: bool) -> u64 {
    (slot as u64) << 1 | u64::from(copied)
}

/// The callback of one issuer's writes.
pub(super) struct WriteCallback {
    shared: Arc<Shared>,
    /// By slot: the segment that its last write belongs to.
    segments: Box<[Mutex<Option<Arc<SegmentSync>>>]>,
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
    pub(super) fn note(&self, slot: usize, segment: Arc<SegmentSync>) {
        let before = self.segments[slot].lock().replace(segment);
        drop(before);
    }
}

impl Callback for WriteCallback {
    fn name(&self) -> &'static str {
        "buffer write"
    }

    fn weight(&self) -> Weight {
        Weight::Light
    }

    fn complete(&self, io: &mut Completion<'_>, prior: Outcome) -> Outcome {
        let blocks = io.data.len().saturating_sub(HEADER);
        let failed = prior.status == Status::Error;
        let written = if failed { 0 } else { prior.count as usize / BLOCK_SIZE };
        if let Some(segment) = &*self.segments[(io.data[0] >> 1) as usize].lock() {
            // Before any page is clean: who finds it clean finds the segment to be synced.
            segment.write_ended();
        }
        for at in 0..blocks {
            let buffer = io.data[HEADER + at] as u32;
            if cfg!(debug_assertions) && io.data[0] & COPIED == 0 {
                let block = io.data[1] as BlockNo + at as BlockNo;
                self.shared.with_outgoing(buffer, io, |bytes| assert_unchanged(bytes, block));
            }
            let done = at < written;
            let code = if done { code::VALID } else { code::UNREAD };
            io.data[HEADER + at] |= u64::from(code) << 32;
            self.shared
                .finish_write(buffer, if done { WriteEnd::Written } else { WriteEnd::Failed });
        }
        prior
    }
}

/// A page that was written must still be the one whose checksum was taken.
fn assert_unchanged(bytes: &trunkline_format::PageBytes, block: BlockNo) {
    if !page::is_new(bytes) {
        let found = u16::from_le_bytes([bytes[8], bytes[9]]);
        let right = found == 0 || found == page_checksum(bytes, block);
        assert!(right, "block {block} was changed while it was being written");
    }
}
