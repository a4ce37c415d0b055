//! Copies of pages whose rows wait for something: for values from TOAST, which take fewer round trips
//! the more are fetched together.
//!
//! A table of long rows has four of them in a page, and eight chunks for these in two pages of its
//! TOAST table: waiting for these two, then for the next two, would keep one read in flight. A copy
//! costs a microsecond, and no pin.

use trunkline_format::{BLOCK_SIZE, BlockNo, PageBytes};

use super::page::{HeapPage, Judged, Rows};
use crate::storage::Relation;

/// See the module. Keeps its memory when it is emptied.
#[derive(Debug, Default)]
pub struct PageCopies {
    copies: Vec<Copied>,
    /// Those of them that hold a page now.
    len: usize,
}

#[derive(Debug)]
struct Copied {
    page: Box<PageBytes>,
    block: BlockNo,
    relation: Relation,
    judged: Judged,
}

impl PageCopies {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a copy of a page and of what is known of its rows.
    pub fn push(&mut self, page: &HeapPage<'_>) {
        if self.len == self.copies.len() {
            self.copies.push(Copied {
                page: Box::new([0; BLOCK_SIZE]),
                block: 0,
                relation: page.relation().clone(),
                judged: Judged::default(),
            });
        }
        if let Some(copied) = self.copies.get_mut(self.len) {
            copied.page.copy_from_slice(page.bytes());
            copied.block = page.block();
            copied.relation.clone_from(page.relation());
            copied.judged.clone_from(page.judged());
            self.len += 1;
        }
    }

    /// Pages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Lets go of all.
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The rows of all pages, in the order in which these were added; as [`HeapPage::rows`].
    pub fn rows(&self) -> impl Iterator<Item = <Rows<'_> as Iterator>::Item> + '_ {
        self.copies.iter().take(self.len).flat_map(|copied| {
            Rows::new(&copied.page, copied.block, &copied.relation, &copied.judged)
        })
    }
}
