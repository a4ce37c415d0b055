//! The end of a write: every page is clean, or it is not and stays what it was.
//!
//! Runs on whichever thread completes the I/O. A write that failed, or a part of it, leaves its pages
//! dirty: nothing is lost in memory, and whoever needs them on disk learns that they are not there.
//!
//! ```text
//!   word 0   1 if it is a copy that is written      word 1   first block      word 2+  buffer (low half), code (high half)
//! ```

use super::complete::{HEADER, code};
use super::shared::Shared;
use super::state::WriteEnd;
use crate::storage::SegmentSync;
use std::fmt;
use trunkline_aio::sync::{Arc, Mutex};
use trunkline_aio::{Callback, Completion, Outcome, Status, Weight};
use trunkline_format::{BLOCK_SIZE, BlockNo, page, page_checksum};

/// In word 0: what is written is a copy.
pub(super) const COPIED: u64 = 1;

/// The callback of one issuer's writes.
pub(super) struct WriteCallback {
    shared: Arc<Shared>,
    /// By slot, found by the first buffer of its I/O: the segment that the write belongs to.
    segments: Mutex<Vec<(u32, Arc<SegmentSync>)>>,
}

impl fmt::Debug for WriteCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteCallback")
    }
}

impl WriteCallback {
    pub(super) fn new(shared: &Arc<Shared>, slots: usize) -> Self {
        let segments = Mutex::new(Vec::with_capacity(slots));
        Self { shared: Arc::clone(shared), segments }
    }

    /// Notes the segment of a write that is about to be issued, by the first of its buffers.
    pub(super) fn note(&self, buffer: u32, segment: Arc<SegmentSync>) {
        self.segments.lock().push((buffer, segment));
    }

    /// The segment that was noted; it is noted no longer.
    pub(super) fn take(&self, buffer: u32) -> Option<Arc<SegmentSync>> {
        let mut segments = self.segments.lock();
        let at = segments.iter().position(|(noted, _)| *noted == buffer)?;
        Some(segments.swap_remove(at).1)
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
        if let Some(&first) = io.data.get(HEADER)
            && let Some(segment) = self.take(first as u32)
        {
            // Before any page is clean: who finds it clean finds the segment to be synced.
            segment.write_ended();
        }
        for at in 0..blocks {
            let buffer = io.data[HEADER + at] as u32;
            if cfg!(debug_assertions) && io.data[0] != COPIED {
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
