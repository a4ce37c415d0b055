//! Index scan: descends from the root, then follows the leaves while their entries are in range.
//!
//! We copy a leaf's TIDs before we return any of them, as `_bt_readpage` does in nbtree. That way,
//! we don't keep any index page pinned while the caller fetches the rows from the table through the
//! same pool.

use std::cmp::Ordering;

use trunkline_format::btree::{Key, Step};
use trunkline_format::{BlockNo, Tid};

use super::error::BtreeError;
use super::index::{Index, RightSteps};
use crate::pool::Backend;

/// A scan of the entries between two keys, one leaf at a time.
#[derive(Debug)]
pub struct IndexScan {
    index: Index,
    /// The upper bound, inclusive. The scan owns a copy because it outlives the call that passed
    /// the key.
    to: Vec<Option<Vec<u8>>>,
    /// Where the scan continues: a leaf and a line pointer. `None` when the scan has ended.
    next: Option<(BlockNo, u16)>,
    steps: RightSteps,
}

impl Index {
    /// Scans the entries between two keys, including both bounds. A key may have fewer columns than
    /// the index, in which case we ignore the remaining columns. To find all entries that are equal
    /// to a prefix, pass the prefix as both keys.
    ///
    /// # Errors
    /// See [`BtreeError`].
    pub fn scan(
        &self,
        backend: &mut Backend,
        from: &[Key<'_>],
        to: &[Key<'_>],
    ) -> Result<IndexScan, BtreeError> {
        let mut steps = RightSteps::default();
        let next = descend(self, backend, from, &mut steps)?;
        let to = to.iter().map(|key| key.map(<[u8]>::to_vec)).collect();
        Ok(IndexScan { index: self.clone(), to, next, steps })
    }
}

impl IndexScan {
    /// Scans from the first entry of a leaf up to `to`.
    pub(super) fn from_leaf(index: &Index, leaf: BlockNo, to: &[Key<'_>]) -> Self {
        let to = to.iter().map(|key| key.map(<[u8]>::to_vec)).collect();
        Self { index: index.clone(), to, next: Some((leaf, 0)), steps: RightSteps::default() }
    }

    /// Appends the next leaf's rows to `rows`, in key order. Returns false at the end of the scan.
    ///
    /// We skip the entries that the server has marked dead (`LP_DEAD`). The other entries may still
    /// point to tuples that aren't visible, so the caller must check visibility in the table.
    ///
    /// # Errors
    /// See [`BtreeError`]. An error ends the scan.
    pub fn next_page(
        &mut self,
        backend: &mut Backend,
        rows: &mut Vec<Tid>,
    ) -> Result<bool, BtreeError> {
        let Some((block, first)) = self.next.take() else { return Ok(false) };
        let (index, to) = (&self.index, &self.to);
        let right = index.read_level_page(backend, block, 0, |page| {
            if !page.is_ignored() {
                let to: Vec<Key<'_>> = to.iter().map(Option::as_deref).collect();
                for item in first.max(page.first())..=page.count() {
                    let entry = page.entry(item)?;
                    if index.layout().compare(&entry, &to)? == Ordering::Greater {
                        return Ok(None);
                    }
                    if !entry.is_dead() {
                        rows.extend(entry.rows());
                    }
                }
            }
            Ok(page.right())
        })?;
        if let Some(right) = right {
            self.steps.count(index, right)?;
        }
        // Line pointer 0 stands for the first entry on the page. Its real number is 1 or 2,
        // depending on whether the page has a high key, which we don't know until we have read the
        // page.
        self.next = right.map(|right| (right, 0));
        Ok(self.next.is_some())
    }
}

/// Descends to the first entry that is not less than the lower bound, `from`, and returns its leaf
/// and its line pointer, or `None` if the index is empty. We start at the fast root, in order to
/// skip upper levels that have only one page.
fn descend(
    index: &Index,
    backend: &mut Backend,
    from: &[Key<'_>],
    steps: &mut RightSteps,
) -> Result<Option<(BlockNo, u16)>, BtreeError> {
    let meta = index.meta(backend)?;
    let (mut block, mut level) = (meta.fast_root, meta.fast_level);
    if block == 0 {
        return Ok(None);
    }
    loop {
        let step =
            index.read_level_page(backend, block, level, |page| index.layout().step(page, from))?;
        block = match step {
            Step::Here(item) => return Ok(Some((block, item))),
            Step::Right(right) => {
                steps.count(index, right)?;
                right
            }
            Step::Down(child) => {
                level = index.level_below(block, level)?;
                child
            }
        };
    }
}
