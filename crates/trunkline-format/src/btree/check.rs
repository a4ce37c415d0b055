//! B-tree page checks that do not need the index's columns.
//!
//! Each entry must be of the kind its level requires, and its length must match its line pointer. A
//! posting list's TIDs must ascend. On an inner page the first entry has no key, but every other
//! pivot tuple and every high key must have one.
//!
//! Follows `contrib/amcheck/verify_nbtree.c`, restricted to the checks that need only one page.

use super::entry::{Entry, Target};
use super::fault::Fault;
use super::page::BtreePage;

impl BtreePage<'_> {
    /// Checks everything that does not depend on the index's columns: each entry's kind, length and
    /// posting list. Pass [`super::Meta::orders_rows`] as `orders_rows`.
    ///
    /// # Errors
    /// The first fault found.
    pub fn check(&self, orders_rows: bool) -> Result<(), Fault> {
        if self.is_deleted() {
            return Ok(());
        }
        if let Some(high) = self.high_key()? {
            // A half-dead page's high key is a dummy that links to its top parent, so it has no
            // key columns.
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
        // Posting lists (PostgreSQL 13) can occur only in version 4 indexes.
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
