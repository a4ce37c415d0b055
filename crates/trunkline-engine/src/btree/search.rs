//! Rows by key: down from the root, then along the leaves for as long as entries are in range.
//!
//! Rows are copied out leaf by leaf, so that whoever fetches them, from a table through the same
//! small pool, competes with no page of the index.

use std::cmp::Ordering;

use trunkline_format::btree::{Fault, Key, Step};
use trunkline_format::{BlockNo, Tid};

use super::{BtreeError, Index, Steps};
use crate::pool::Backend;

/// The rows between two keys, one leaf at a time.
#[derive(Debug)]
pub struct IndexScan {
    index: Index,
    to: Vec<Option<Vec<u8>>>,
    /// Where it goes on: a leaf and a line pointer.
    next: Option<(BlockNo, u16)>,
    steps: Steps,
}

impl IndexScan {
    pub(super) fn new(
        index: &Index,
        backend: &mut Backend,
        from: &[Key<'_>],
        to: &[Key<'_>],
    ) -> Result<Self, BtreeError> {
        let mut steps = Steps::default();
        let next = descend(index, backend, from, &mut steps)?;
        let to = to.iter().map(|key| key.map(<[u8]>::to_vec)).collect();
        Ok(Self { index: index.clone(), to, next, steps })
    }

    /// From the first entry of a leaf, up to `to`.
    pub(super) fn from_leaf(index: &Index, leaf: BlockNo, to: &[Key<'_>]) -> Self {
        let to = to.iter().map(|key| key.map(<[u8]>::to_vec)).collect();
        Self { index: index.clone(), to, next: Some((leaf, 0)), steps: Steps::default() }
    }

    /// Appends the rows of the next leaf to `rows`, in the order of their keys; false if there are
    /// no more. Entries that the server has marked as dead are left out; of the others, too, some
    /// may lead to row versions that nobody sees.
    ///
    /// # Errors
    /// See [`BtreeError`]; there are no more rows then.
    pub fn next_page(
        &mut self,
        backend: &mut Backend,
        rows: &mut Vec<Tid>,
    ) -> Result<bool, BtreeError> {
        let Some((block, first)) = self.next.take() else { return Ok(false) };
        let (index, to) = (&self.index, &self.to);
        let right = index.look_at(backend, block, 0, |page| {
            if !page.is_ignored() {
                let to: Vec<Key<'_>> = to.iter().map(Option::as_deref).collect();
                for item in first.max(page.first())..=page.count() {
                    let entry = page.entry(item)?;
                    if index.layout.compare(&entry, &to)? == Ordering::Greater {
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
        // Line pointer 0 stands for the first entry, wherever that is.
        self.next = right.map(|right| (right, 0));
        Ok(self.next.is_some())
    }
}

/// The leaf, and the line pointer in it, from which on entries are not below `from`; `None` if the
/// index is empty.
fn descend(
    index: &Index,
    backend: &mut Backend,
    from: &[Key<'_>],
    steps: &mut Steps,
) -> Result<Option<(BlockNo, u16)>, BtreeError> {
    let meta = index.meta(backend)?;
    let (mut block, mut level) = (meta.fast_root, meta.fast_level);
    if block == 0 {
        return Ok(None);
    }
    loop {
        let step = index.look_at(backend, block, level, |page| index.layout.step(page, from))?;
        block = match step {
            Step::Here(item) => return Ok(Some((block, item))),
            Step::Right(right) => {
                steps.count(index, right)?;
                right
            }
            Step::Down(child) => {
                // Only a deleted page, whose level was not looked at, has none below it.
                let fault = super::BtreeProblem::Fault(Fault::LeafLevel { found: level });
                level = level.checked_sub(1).ok_or_else(|| index.problem(block, fault))?;
                child
            }
        };
    }
}
