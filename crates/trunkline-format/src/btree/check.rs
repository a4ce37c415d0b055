//! B-tree page checks that don't need to know the index's columns.
//!
//! Every entry on a page must have the right kind for the page's level, and its length must match
//! the length in its line pointer. The TIDs in a posting list must be in ascending order. The first
//! entry on an internal page has no key, but all other pivot tuples must have one, including high
//! keys.
//!
//! Based on `contrib/amcheck/verify_nbtree.c`, but limited to those checks that only need a single
//! page.

use super::entry::{Entry, Target};
use super::fault::Fault;
use super::page::BtreePage;

impl BtreePage<'_> {
    /// Checks everything that doesn't depend on the index's columns: the kind, length and posting
    /// list of each entry. The caller must pass the value of [`super::Meta::orders_rows`] as
    /// `orders_rows`.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self, orders_rows: bool) -> Result<(), Fault> {
        if self.is_deleted() {
            return Ok(());
        }
        if let Some(high) = self.high_key()? {
            // The high key of a half-dead page is a dummy that contains a link to the top parent.
            // It has no key columns.
            let no_key = high.columns(1) == 0 && !self.is_half_dead();
            if no_key {
                return Err(Fault::Columns { item: high.item(), found: 0, expected: 1 });
            }
        }
        if !self.is_leaf() && !self.is_half_dead() && self.count() < self.first() {
            return Err(Fault::NoDownlink);
        }
        for entry in self.entries() {
            check_entry(self, &entry?, orders_rows)?;
        }
        Ok(())
    }
}

fn check_entry(page: &BtreePage<'_>, entry: &Entry<'_>, orders_rows: bool) -> Result<(), Fault> {
    let item = entry.item();
    match entry.target() {
        Target::Row(tid) if tid.item == 0 => Err(Fault::NoRow { item }),
        Target::Row(_) => Ok(()),
        // Only version 4 indexes can have posting lists, which were added in PostgreSQL 13.
        Target::Rows(_) if !orders_rows => Err(Fault::Kind { item }),
        Target::Rows(tids) => {
            let mut before = None;
            for tid in tids {
                if tid.item == 0 {
                    return Err(Fault::NoRow { item });
                }
                if before.is_some_and(|before| before >= tid) {
                    return Err(Fault::PostingOrder { item });
                }
                before = Some(tid);
            }
            Ok(())
        }
        Target::Child { block, .. } => {
            // Block 0 is the metapage, so it can't be a child.
            if block == 0 {
                return Err(Fault::Kind { item });
            }
            if item > page.first() && entry.columns(1) == 0 {
                return Err(Fault::Columns { item, found: 0, expected: 1 });
            }
            Ok(())
        }
    }
}
