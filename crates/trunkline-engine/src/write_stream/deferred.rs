//! Deferred pages: pages that were locked when the stream first tried to write them.
//!
//! ```text
//!   locked ──▶ deferred ──▶ at the end, one by one:  free ──▶ written like any other page
//!                                                    locked by readers ──▶ a copy is written
//!                                                    locked exclusively, or being written ──▶ wait
//! ```
//!
//! The list may become long, so it contains only tags and buffer numbers. That's enough, because a
//! cluster stays open as long as it has dirty pages, and we can find the relation through the tag.
//! If the cluster has been closed, its pages are no longer dirty, so we don't have to write them.

use crate::pool::{BufferTag, PageWrites};
use std::collections::VecDeque;

/// The deferred pages of a stream.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    /// The deferred pages, with the buffers that probably hold them.
    pages: VecDeque<(BufferTag, u32)>,
    /// The writes of copies, which we use if readers keep a page locked.
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

    /// Takes out the writes of copies, so that the caller can use them while the stream is
    /// borrowed.
    pub(super) fn take_copies(&mut self) -> Option<PageWrites> {
        self.copies.take()
    }

    /// Puts the writes of copies back.
    pub(super) fn set_copies(&mut self, copies: PageWrites) {
        self.copies = Some(copies);
    }
}
