//! Upcoming blocks: pages in the pool that the consumer is about to need are loaded into the CPU's
//! cache.
//!
//! A scan of cached pages in a random order waits for memory at every step: for the head of the
//! chain in the mapping table, for the buffer's descriptor, and for the lines of the page. If the
//! source knows its next blocks, these steps can overlap with the work on the pages before. Each
//! block passes four places on its way to the consumer:
//!
//! ```text
//!   blocks ahead      16 ──────────▶ 12 ─────────▶ 8 ───────────────────▶ 4 ─▶ 0
//!   is loaded         head of chain  descriptor    header, line pointer   row  returned
//! ```
//!
//! No pin is kept and nothing is read from a file, so this doesn't count as looking ahead: if the
//! consumer stops, only the loads were in vain.

use super::ReadStream;
use super::source::BlockSource;
use super::upcoming::{DESCRIPTOR, HEAD, PAGE, ROW, Upcoming};
use trunkline_format::page::{HEADER_SIZE, LINE_POINTER_SIZE};

impl<S: BlockSource> ReadStream<S> {
    /// Goes on by one block. Call this for each block that the source has returned.
    pub(super) fn load_upcoming(&mut self) {
        // While reads are in flight, the consumer waits for the storage and not for the memory.
        if self.reads.window().in_flight() > 0 {
            return;
        }
        let (manager, tag) = (&self.manager, self.tag);
        if let Some(Upcoming { block, .. }) = self.source.upcoming(HEAD) {
            manager.prefetch_head(tag.at(block));
        }
        if let Some(Upcoming { block, .. }) = self.source.upcoming(DESCRIPTOR) {
            manager.prefetch_descriptor(tag.at(block));
        }
        let mut found = None;
        if let Some(Upcoming { block, item }) = self.source.upcoming(PAGE) {
            // A damaged entry may name any item, and the page is only 8 kB long.
            let before = usize::from(item.saturating_sub(1)) * usize::from(LINE_POINTER_SIZE);
            let pointer = usize::from(HEADER_SIZE) + before;
            found = manager.prefetch_page(tag.at(block), pointer);
        }
        if let Some(buffer) = self.upcoming.exchange(found)
            && let Some(Upcoming { block, item }) = self.source.upcoming(ROW)
        {
            manager.prefetch_item(tag.at(block), buffer, item);
        }
    }
}
