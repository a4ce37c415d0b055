//! **Index-only scans**: which indexes store all columns that a scan needs (`check_index_only`).
//!
//! The entries of such an index are the rows, except for those of which the visibility map doesn't say that
//! they are visible; these are looked up in the table. An index without any condition is a candidate, too: all
//! of its entries may be fewer pages than the table, as for `count(*)`.
//!
//! Where no page of the table is all-visible, every entry would be looked up. An index scan does the same, and
//! it reads a page once for all rows of a batch, so it is preferred there.

use std::sync::Arc;

use trunkline_engine::catalog::{Database, RelationInfo};
use trunkline_engine::storage::Relation;
use trunkline_format::Oid;

use super::candidate_index::{CandidateIndex, TableIndexes};
use super::choice::Choice;
use super::index_search::{EstimatedSearch, Searches};

impl Choice<'_> {
    /// Whether the entries of an index are enough for the scan.
    pub(super) fn is_index_only(&self, index: &CandidateIndex) -> bool {
        let is_possible = self.settings.enable_indexonlyscan && self.table.all_visible > 0;
        is_possible && self.needed.is_some_and(|places| index.stores(places))
    }

    /// The fraction of the blocks that are all-visible, as far as known (`allvisfrac`).
    pub(super) fn all_visible(&self) -> f64 {
        let marked = f64::from(self.table.all_visible.max(0));
        (marked / f64::from(self.pages.blocks.max(1))).min(1.0)
    }

    /// Searches for all entries of the indexes that no condition is about, but that may be smaller than the
    /// table: those that store enough, and partial ones.
    pub(super) fn whole_indexes(
        &self,
        searches: &Searches<'_>,
        found: &[EstimatedSearch],
    ) -> Vec<EstimatedSearch> {
        let indexes = self.indexes.usable.iter().zip(self.index_pages);
        let is_found = |index: &Arc<CandidateIndex>| {
            found.iter().any(|search| search.search.index.oid == index.oid)
        };
        let is_smaller =
            |index: &Arc<CandidateIndex>| index.is_partial || self.is_index_only(index);
        let whole = indexes.filter(|(index, _)| is_smaller(index) && !is_found(index));
        whole.filter_map(|(index, pages)| searches.whole(index, (*pages)?)).collect()
    }
}

/// The files whose sizes must be known for index-only scans of a table, where `needed` are the places of the
/// columns that the statement uses: the visibility map, and of a statement without conditions, the
/// smallest index that stores all of them. The indexes of other statements are known already.
pub(crate) fn index_only_files(
    database: &Database,
    table: &RelationInfo,
    (rows, map): (&Relation, impl FnOnce(&Relation) -> Relation),
    needed: &[usize],
    has_conditions: bool,
) -> Vec<(Oid, Relation)> {
    if table.all_visible <= 0 {
        return Vec::new();
    }
    let indexes = TableIndexes::of(database, table).usable.into_iter();
    let smallest = indexes.filter(|index| index.stores(needed)).min_by_key(|index| index.pages);
    let Some(smallest) = smallest else { return Vec::new() };
    let mut files = vec![(table.oid, map(rows))];
    if !has_conditions {
        files.push((smallest.oid, smallest.index.relation().clone()));
    }
    files
}
