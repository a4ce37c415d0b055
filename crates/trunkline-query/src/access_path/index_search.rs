//! Searches of single indexes: which part of an index and of its table they look at.

use std::sync::Arc;

use trunkline_format::btree::{Comparison, Condition, Direction, KeyRanges};

use super::candidate_index::{CandidateIndex, TableIndexes};
use super::clause::Clause;
use super::cost::{PlannerSettings, SearchCost, SearchSize, TableSize};
use super::index_condition::{IndexConditions, first_column};
use super::page_costs::RelationPages;
use super::path::IndexSearch;
use super::selectivity::Estimates;

/// Finds searches, and estimates them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Searches<'a> {
    pub(super) settings: &'a PlannerSettings,
    pub(super) indexes: &'a TableIndexes,
    /// The pages of the indexes, in their order; `None` if a file can't be used.
    pub(super) index_pages: &'a [Option<RelationPages>],
    pub(super) estimates: Estimates<'a>,
    pub(super) table: TableSize,
    /// `work_mem`, in bytes.
    pub(super) work_mem: usize,
}

/// A search with its estimates.
#[derive(Debug, Clone)]
pub(super) struct EstimatedSearch {
    pub(super) search: Arc<IndexSearch>,
    pub(super) size: SearchSize,
    pub(super) cost: SearchCost,
    pub(super) conditions: IndexConditions,
}

impl Searches<'_> {
    /// The searches of all indexes that the clauses say something about.
    pub(super) fn all(&self, clauses: &[Clause]) -> Vec<EstimatedSearch> {
        let indexes = self.indexes.usable.iter().zip(self.index_pages);
        indexes.filter_map(|(index, pages)| self.search(index, (*pages)?, clauses)).collect()
    }

    /// The search of an index, if the clauses say something about its columns.
    pub(super) fn search(
        &self,
        index: &Arc<CandidateIndex>,
        pages: RelationPages,
        clauses: &[Clause],
    ) -> Option<EstimatedSearch> {
        let found = self.estimates.conditions.on(index, clauses);
        if found.conditions.is_empty() { None } else { self.estimated(index, pages, found) }
    }

    /// The scan of a whole index.
    pub(super) fn whole(
        &self,
        index: &Arc<CandidateIndex>,
        pages: RelationPages,
    ) -> Option<EstimatedSearch> {
        self.estimated(index, pages, IndexConditions::default())
    }

    fn estimated(
        &self,
        index: &Arc<CandidateIndex>,
        pages: RelationPages,
        found: IndexConditions,
    ) -> Option<EstimatedSearch> {
        let layout = index.index.layout();
        let ranges = KeyRanges::new(layout, &found.conditions, Direction::Forward).ok()?;
        let size = self.search_size(index, pages, &found.conditions, &[]);
        let cost = self.settings.search(&self.table, &size);
        let search = IndexSearch {
            index: Arc::clone(index),
            conditions: found.conditions.clone(),
            ranges,
            order: None,
            entries: cost.rows,
        };
        Some(EstimatedSearch { search: Arc::new(search), size, cost, conditions: found })
    }

    /// The sizes of a search: which part of the index it looks at, and which part of the table it
    /// finds. `keys` are columns of the index that must be equal to values which aren't known yet.
    pub(super) fn search_size(
        &self,
        index: &CandidateIndex,
        pages: RelationPages,
        conditions: &[Condition],
        keys: &[usize],
    ) -> SearchSize {
        let estimates = &self.estimates;
        let RelationPages { blocks, costs } = pages;
        let pages = f64::from(blocks);
        // As for tables, the density of the last VACUUM is applied to the current size.
        let entries = match (index.entries, index.pages) {
            (Some(entries), known) if known > 0 => f64::from(entries) / f64::from(known) * pages,
            _ => self.table.rows,
        };
        // A partial index has only some of the rows. Its predicate may be about other columns than the
        // conditions, or about the same ones.
        let part = match index.is_partial {
            true => (entries / self.table.rows.max(1.0)).min(1.0),
            false => 1.0,
        };
        let (mut selectivity, mut boundary, mut descents) = (1.0, 1.0, 1.0);
        let mut is_boundary = true;
        // Nothing is skipped behind the last column with a condition or a key.
        let searched = conditions.iter().map(first_column).chain(keys.iter().copied()).max();
        let columns = index.columns.iter().take(searched.map_or(0, |last| last + 1));
        for (at, column) in columns.enumerate() {
            let own: Vec<&Condition> =
                conditions.iter().filter(|condition| first_column(condition) == at).collect();
            let is_key = keys.contains(&at);
            if own.is_empty() && !is_key {
                // The scan skips to the next value of this column, if there are few of them.
                let skips = descents * (estimates.distinct(column.place) + 1.0);
                is_boundary &= skips < pages / 3.0;
                if is_boundary {
                    descents = skips;
                }
                continue;
            }
            let mut part = estimates.column(column.place, Some(&column.order), &own);
            if is_key {
                part = part.min(estimates.equal_to_any(column.place));
            }
            // An index may have a column twice, with the same conditions.
            if !index.columns.iter().take(at).any(|before| before.place == column.place) {
                selectivity *= part;
            }
            if is_boundary {
                boundary *= part;
                let lists = own.iter().filter_map(|condition| match condition {
                    Condition::AnyOf { values, .. } => Some(values.len().max(1) as f64),
                    _ => None,
                });
                descents *= lists.reduce(f64::min).unwrap_or(1.0);
            }
            // Behind a range, the next column isn't sorted.
            let is_point = is_key
                || own.iter().any(|condition| {
                    matches!(
                        condition,
                        Condition::Compare { comparison: Comparison::Equal, .. }
                            | Condition::AnyOf { .. }
                            | Condition::IsNull { .. }
                    )
                });
            is_boundary &= is_point;
        }
        let first = index.columns.first().and_then(|column| {
            let found = estimates.statistics.columns.get(&column.place)?;
            let descending = index.index.layout().keys().first()?.descending;
            Some(if descending { -found.correlation } else { found.correlation })
        });
        // With more columns, the order of the first one says less.
        let share = if index.key_count > 1 { 0.75 } else { 1.0 };
        SearchSize {
            pages,
            costs,
            entries,
            height: if pages > 1.0 { pages.log(300.0).ceil() } else { 0.0 },
            selectivity: f64::min(selectivity, part),
            boundary,
            descents,
            conditions: (conditions.len() + keys.len()) as f64,
            correlation: first.unwrap_or(0.0) * share,
        }
    }
}
