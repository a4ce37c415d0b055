//! Rows of a page that is in the pool, without a scan.

use super::hot_chain::ChainRoot;
use super::page::{HeapPage, PageRows, RowFilter};
use super::wanted::Wanted;
use crate::pool::Backend;
use crate::storage::Relation;
use crate::transactions::{StatusPages, Transactions};
use trunkline_format::BlockNo;

/// Passes the visible rows of HOT chains to `take`, if their page is in the pool, and all pages of the
/// commit log that they need are cached. Otherwise, and if the page is locked or damaged, the result is
/// `None`, and nothing was waited for. `index` is the one whose entries have led to the chains.
pub(crate) fn pooled_rows<R>(
    backend: &mut Backend,
    (relation, index): (&Relation, &Relation),
    transactions: &Transactions,
    (block, roots): (BlockNo, &[ChainRoot]),
    take: impl FnOnce(HeapPage<'_>) -> R,
) -> Option<R> {
    let pin = backend.find(relation, block)?;
    let page = pin.page().try_read()?;
    let (mut statuses, mut rows) = (StatusPages::default(), PageRows::default());
    let wanted = Wanted::Chains { roots, recheck: false };
    let mut lookup = transactions.lookup(&mut statuses);
    let filter = (RowFilter::Visible, wanted, Some(index));
    rows.prepare(&page, relation, block, filter, &mut lookup).ok()?;
    statuses.is_complete().then(|| take(HeapPage::new(page, block, relation, &rows)))
}
