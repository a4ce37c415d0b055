//! The visibility map as an index-only scan needs it: which blocks of the table are all-visible.
//!
//! A page of the map covers 32,672 blocks, so a few copies of its pages cover most tables. As in
//! PostgreSQL, a page of the map that can't be read counts as if no bit were set: the rows are then
//! looked up in the table. The scan's caller gets the error for a warning.

use std::task::{Poll, ready};

use trunkline_aio::facade::hash::Map;
use trunkline_format::visibility_map::{bits, map_block};
use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use crate::btree::PageStream;
use crate::pool::{Backend, ReadError};
use crate::read_stream::SourceWait;
use crate::storage::Relation;

/// The most pages of the map to keep, half a megabyte.
const PAGES_MAX: usize = 64;

/// Copies of pages of a visibility map.
#[derive(Debug)]
pub(super) struct MapBits {
    pages: PageStream,
    requested: Option<BlockNo>,
    kept: Map<BlockNo, Box<PageBytes>>,
    /// The length of the map.
    blocks: BlockNo,
    /// Why a page of the map couldn't be read.
    error: Option<ReadError>,
}

impl MapBits {
    pub(super) fn new(backend: &Backend, map: &Relation, blocks: BlockNo) -> Self {
        let pages = PageStream::one_by_one(backend, map);
        Self { pages, requested: None, kept: Map::default(), blocks, error: None }
    }

    /// Whether all rows of a block are visible.
    ///
    /// # Errors
    /// The session was cancelled.
    pub(super) fn poll_all_visible(
        &mut self,
        backend: &mut Backend,
        wait: &mut SourceWait<'_, '_>,
        block: BlockNo,
    ) -> Poll<Result<bool, ReadError>> {
        let map = map_block(block);
        if map >= self.blocks {
            return Poll::Ready(Ok(false));
        }
        if let Some(page) = self.kept.get(&map) {
            return Poll::Ready(Ok(bits(page, block).all_visible));
        }
        if self.requested != Some(map) {
            self.pages.clear();
            self.pages.extend([map]);
            self.requested = Some(map);
        }
        let polled = ready!(self.pages.poll_page(backend, wait, |_, page| Box::new(*page)));
        let page = match polled {
            Ok(page) => page,
            Err(ReadError::Cancelled) => return Poll::Ready(Err(ReadError::Cancelled)),
            Err(error) => {
                self.error.get_or_insert(error);
                Box::new([0; BLOCK_SIZE])
            }
        };
        self.requested = None;
        let all_visible = bits(&page, block).all_visible;
        if self.kept.len() >= PAGES_MAX {
            self.kept.clear();
        }
        self.kept.insert(map, page);
        Poll::Ready(Ok(all_visible))
    }

    /// The first error of a page of the map that hasn't been taken.
    pub(super) fn take_error(&mut self) -> Option<ReadError> {
        self.error.take()
    }

    /// Ends the wait for a page.
    pub(super) fn stop_waiting(&mut self) {
        self.pages.stop_waiting();
    }

    pub(super) fn release_ahead(&mut self) {
        self.pages.release_ahead();
    }
}
