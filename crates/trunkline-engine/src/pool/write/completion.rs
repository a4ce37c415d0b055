//! Completion of a write: marks pages clean once the kernel has accepted them. All other pages stay
//! dirty.
//!
//! The callback runs on whichever thread completes the I/O. If the write failed or was short, the
//! pages that were not written stay dirty, so no change is lost as long as the process lives. The
//! callback also records which pages were written, so that the issuer can find out.
//!
//! Note that "clean" doesn't mean durable. After a buffered write, the data is only in the kernel's
//! page cache, and the next checkpoint must still fsync the segment. The callback therefore records
//! that the segment has been written before it marks any page clean. If it did this in the opposite
//! order, a checkpoint could see that the page is clean and skip it, find no pending fsync, and
//! complete although the page isn't durable. PostgreSQL has the same rule: `FlushBuffer` registers
//! the fsync request (through `smgrwrite`) before it clears `BM_DIRTY`.
//!
//! A page must not change while it's being written. In debug builds we check this by computing a
//! checksum when the write is issued, and comparing it here. We can't rely on the checksum stored
//! in the page, because a session that illegally changed the page could have updated that checksum
//! as well.

use super::super::descriptor::WriteEnd;
use super::super::manager::BufferManager;
use crate::storage::PendingFsync;
use std::fmt;
use trunkline_aio::facade::Arc;
use trunkline_aio::{Callback, Completion, Outcome, Payload, Status, WaitRef};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes, page_checksum};

/// The callback's input and result: the segment and the buffers of the write, and which of the
/// pages were written.
#[derive(Default)]
pub(crate) struct WritePayload {
    /// The segment being written. We keep this reference until the slot's next write, so that the
    /// callback never drops the last reference. That would free memory or close a file, which a
    /// callback must not do.
    segment: Option<Arc<PendingFsync>>,
    first: BlockNo,
    pages: Vec<WritePage>,
}

/// One page of a write.
#[derive(Debug, Clone, Copy)]
struct WritePage {
    buffer: u32,
    /// In debug builds the checksum at the time of issue.
    checksum: u16,
    written: bool,
}

impl fmt::Debug for WritePayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WritePayload({:?} from block {})", self.pages, self.first)
    }
}

impl Payload for WritePayload {
    fn data_len(&self) -> usize {
        self.pages.len()
    }
}

impl WritePayload {
    /// Makes room for the largest write, so that nothing allocates later.
    pub(super) fn reserve(&mut self, blocks: usize) {
        self.pages.reserve_exact(blocks);
    }

    /// Describes the next write, of pages that were claimed for `io`.
    pub(super) fn set(
        &mut self,
        manager: &BufferManager,
        segment: Arc<PendingFsync>,
        first: BlockNo,
        buffers: &[u32],
        io: WaitRef,
    ) {
        self.segment = Some(segment);
        self.first = first;
        self.pages.clear();
        let pages = buffers.iter().zip(first..).map(|(&buffer, block)| {
            let checksum = match cfg!(debug_assertions) {
                true => manager
                    .frames()
                    .with_written_page(buffer, io, |bytes| page_checksum(bytes, block)),
                false => 0,
            };
            WritePage { buffer, checksum, written: false }
        });
        self.pages.extend(pages);
    }

    /// Number of leading blocks that the kernel has accepted. If a write was short, a block that
    /// was only partly written doesn't count.
    pub(super) fn written(&self) -> usize {
        self.pages.iter().take_while(|page| page.written).count()
    }
}

/// The completion callback of page writes.
pub(super) struct WriteCallback {
    manager: Arc<BufferManager>,
}

impl fmt::Debug for WriteCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WriteCallback")
    }
}

impl WriteCallback {
    /// For writes from this pool.
    pub(super) fn new(manager: &Arc<BufferManager>) -> Self {
        Self { manager: Arc::clone(manager) }
    }
}

impl Callback<WritePayload> for WriteCallback {
    fn name(&self) -> &'static str {
        "buffer write"
    }

    fn complete(&self, io: &mut Completion<'_, WritePayload>, prior: Outcome) -> Outcome {
        let failed = prior.status == Status::Error;
        let written = if failed { 0 } else { prior.count as usize / BLOCK_SIZE };
        // If the kernel has written only part of a block, we treat that block as not written and
        // leave it dirty.
        let WritePayload { segment, first, pages } = &mut *io.payload;
        if let Some(segment) = segment {
            // Do this before marking any page clean. If a checkpoint finds that a page is clean, it
            // must also find the page's segment in the list of pending fsyncs.
            segment.write_ended();
        }
        for (at, (page, block)) in pages.iter_mut().zip(*first..).enumerate() {
            if cfg!(debug_assertions) {
                let frames = self.manager.frames();
                frames.with_written_page(page.buffer, io.wait_ref, |bytes| {
                    assert_unchanged(bytes, block, page.checksum);
                });
            }
            page.written = at < written;
            let end = if page.written { WriteEnd::Written } else { WriteEnd::Failed };
            self.manager.buffers().finish_write(page.buffer, end);
        }
        prior
    }
}

/// Asserts that a page is still the one whose checksum was computed.
fn assert_unchanged(bytes: &PageBytes, block: BlockNo, checksum: u16) {
    let found = page_checksum(bytes, block);
    assert_eq!(found, checksum, "block {block} was changed while it was being written");
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
    fn an_unchanged_page_passes() {
        let sum = page_checksum(&page(1), 7);
        assert_unchanged(&page(1), 7, sum);
        // Our checksum must not cover the page's own checksum field, because if we write a copy of
        // the page, the checksum is set in the copy but not in the page.
        let mut bare = page(1);
        bare[8..10].fill(0);
        assert_unchanged(&bare, 7, sum);
    }

    #[test]
    #[should_panic(expected = "block 7 was changed")]
    fn a_changed_page_with_a_matching_checksum_is_detected() {
        assert_unchanged(&page(2), 7, page_checksum(&page(1), 7));
    }
}
