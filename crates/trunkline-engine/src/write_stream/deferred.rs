//! Deferred pages: pages that were locked when the stream first tried to write them.
//!
//! ```text
//!   locked ──▶ deferred ──▶ at the end, one by one:  free ──▶ written like any other page
//!                                                    locked by readers ──▶ a copy is written
//!                                                    locked exclusively, or being written ──▶ wait
//! ```
//!
//! The list contains only tags and buffer numbers, because it can be long. A dirty page keeps its
//! cluster open, so its relation can be found again by the tag. If the cluster is closed, the page
//! is no longer dirty and there's nothing to write.

use crate::pool::{BufferTag, PageWrites};
use std::collections::VecDeque;

/// The deferred pages of a stream.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// The deferred pages, with the buffers that probably hold them.
    pages: VecDeque<(BufferTag, u32)>,
    /// Writes from copies, for pages that readers keep locked.
    copies: Option<PageWrites>,
}

impl Deferred {
    /// Adds a page that is probably in `buffer`.
    pub(super) fn push(&mut self, tag: BufferTag, buffer: u32) {
        self.pages.push_back((tag, buffer));
    }

    /// Whether no page is deferred.
    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Takes the oldest page.
    pub(super) fn pop(&mut self) -> Option<(BufferTag, u32)> {
        self.pages.pop_front()
    }

    /// Puts a page back, as the oldest.
    pub(super) fn push_front(&mut self, tag: BufferTag, buffer: u32) {
        self.pages.push_front((tag, buffer));
    }

    /// Whether copies can be written.
    pub(super) fn has_copies(&self) -> bool {
        self.copies.is_some()
    }

    /// Takes the writes of copies out, so that they can be used while the stream is borrowed.
    pub(super) fn take_copies(&mut self) -> Option<PageWrites> {
        self.copies.take()
    }

    /// Puts the writes of copies back.
    pub(super) fn set_copies(&mut self, copies: PageWrites) {
        self.copies = Some(copies);
    }
}
