//! **The order of indexes**: which scan is best if its rows must be sorted.
//!
//! A scan is planned before the sort above it is known. So the scan keeps what it could do in the order
//! of each index, and when the sort is known, one of these is chosen:
//!
//! ```text
//!   the cheapest path, and a sort of its rows       its cost + cost_sort
//!   a path in the order of an index, either way     its cost, up to the last row that is wanted
//! ```
//!
//! An index gives an order if its leading columns are those of the sort, in the same or in the opposite
//! direction. Columns with a single value in all rows, as `a = 5` says, are passed over:
//!
//! ```text
//!   index (a, b DESC, c)     WHERE a = 5 ORDER BY b DESC     forward
//!                            WHERE a = 5 ORDER BY b, a       backward
//!                            ORDER BY a DESC, b              backward
//! ```

use std::sync::Arc;

use trunkline_format::btree::{Comparison, Condition, Direction, KeyRanges};

use super::clause::Clause;
use super::column_order::{ColumnOrder, SortedBy};
use super::cost::{Cost, PlannerSettings};
use super::path::{AccessPath, IndexSearch, PathKind, STATISTICS};
use super::selectivity::Estimates;
use super::sort_cost::SortSize;
use super::unused_index::{Reason, unused};

/// A column that rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SortColumn {
    /// Its place among the stored columns of the table, from 0.
    pub(crate) place: usize,
    /// How its values compare.
    pub(crate) by: SortedBy,
    /// `DESC`
    pub(crate) descending: bool,
    /// `NULLS FIRST`
    pub(crate) nulls_first: bool,
}

/// A sort of the rows of a scan.
#[derive(Debug, Clone)]
pub(crate) struct Sort<'a> {
    pub(crate) columns: &'a [SortColumn],
    /// The rows that are wanted, if not all are.
    pub(crate) fetch: Option<usize>,
    /// The estimated bytes of a row.
    pub(crate) width: f64,
    /// The tasks of the scan.
    pub(crate) tasks: usize,
}

/// A scan in the order of an index.
#[derive(Debug, Clone)]
pub(super) struct OrderedPath {
    pub(super) search: Arc<IndexSearch>,
    /// The costs of all rows.
    pub(super) cost: Cost,
    /// The filters that it covers.
    pub(super) covered: Vec<usize>,
}

/// What a scan can do in the order of an index.
#[derive(Debug, Clone)]
pub(crate) struct OrderedChoice {
    /// The usable indexes of the table.
    pub(super) paths: Vec<OrderedPath>,
    /// The columns that have one value in all rows, with the order in which that is so.
    pub(super) fixed: Vec<(usize, ColumnOrder)>,
    pub(super) settings: PlannerSettings,
    /// The rows that are estimated to pass all filters.
    pub(super) rows: f64,
    /// `work_mem`, in bytes.
    pub(super) work_mem: usize,
    /// Whether text in our arrays compares as it does in the database.
    pub(super) sorts_text: bool,
    /// What is known about each index without its order.
    pub(super) reasons: Vec<(String, Reason)>,
    pub(super) has_filters: bool,
}

impl OrderedChoice {
    /// Chooses the best path for a sort; `best` is the cheapest one without it. Returns also whether the
    /// rows come in the order of the sort.
    pub(crate) fn choose(&self, best: &AccessPath, sort: &Sort<'_>) -> (AccessPath, bool) {
        // If all rows are equal, there is nothing to sort.
        if sort.columns.iter().all(|column| self.is_fixed(column)) {
            return (best.clone(), true);
        }
        let size = SortSize {
            rows: self.rows,
            width: sort.width,
            fetch: sort.fetch,
            tasks: sort.tasks.max(1) as f64,
            work_mem: self.work_mem as f64,
        };
        let one_task = SortSize { tasks: 1.0, ..size };
        let fraction = sort.fetch.map_or(1.0, |fetch| fetch as f64 / self.rows.max(1.0));
        // The whole costs of each way, so that they can be compared.
        let mut chosen =
            AccessPath { cost: self.settings.sorted(best.cost, &size), ..best.clone() };
        let mut reasons = self.reasons.clone();
        for (_, reason) in &mut reasons {
            if let Reason::Cost(cost) = reason {
                *cost = self.settings.sorted(*cost, &one_task);
            }
        }
        let mut is_ordered = false;
        for path in &self.paths {
            let Some(direction) = self.direction(&path.search, sort.columns) else { continue };
            let cost = path.cost.of_fraction(fraction);
            let name = &path.search.index.name;
            if let Some((_, reason)) = reasons.iter_mut().find(|(known, _)| known == name) {
                match reason {
                    Reason::Cost(known) if !cost.is_below(known) => {}
                    _ => *reason = Reason::Cost(cost),
                }
            }
            let Some(search) = in_order(&path.search, direction) else { continue };
            is_ordered |= cost.is_below(&chosen.cost);
            chosen = chosen.or(PathKind::Index(Arc::new(search)), cost, path.covered.clone());
        }
        if !self.has_filters {
            reasons.retain(|(_, reason)| matches!(reason, Reason::Cost(_)));
        }
        let statistics = chosen.unused.iter().filter(|(name, _)| name == STATISTICS).cloned();
        let statistics: Vec<_> = statistics.collect();
        chosen.unused = unused(&chosen, &reasons);
        chosen.unused.extend(statistics);
        if !is_ordered {
            chosen.cost = best.cost;
        }
        (chosen, is_ordered)
    }

    /// The direction in which a search gives an order; `None` if it doesn't.
    fn direction(&self, search: &IndexSearch, sorted: &[SortColumn]) -> Option<Direction> {
        let keys = search.index().layout().keys();
        let mut columns = search.index.columns.iter().zip(keys).enumerate();
        let mut direction = None;
        for wanted in sorted.iter().filter(|wanted| !self.is_fixed(wanted)) {
            let (_, (_, key)) = columns.find_map(|(at, (column, key))| {
                let is_it = column.place == wanted.place && self.compares(&column.order, wanted);
                match is_it {
                    true => Some(Some((at, (column, key)))),
                    // The next column may be the one.
                    false if has_one_value(search, at) => None,
                    false => Some(None),
                }
            })??;
            let same = (key.descending, key.nulls_first);
            let found = match (wanted.descending, wanted.nulls_first) {
                wanted if wanted == same => Direction::Forward,
                (descending, nulls_first) if (!descending, !nulls_first) == same => {
                    Direction::Backward
                }
                _ => return None,
            };
            if direction.is_some_and(|known| known != found) {
                return None;
            }
            direction = Some(found);
        }
        direction
    }

    /// Whether all rows have the same value in a column, as the sort compares them.
    fn is_fixed(&self, column: &SortColumn) -> bool {
        let mut fixed = self.fixed.iter().filter(|(place, _)| *place == column.place);
        fixed.any(|(_, order)| self.compares(order, column))
    }

    /// Whether a sort by a column has this order.
    fn compares(&self, order: &ColumnOrder, column: &SortColumn) -> bool {
        order.is_that_of(column.by) && (self.sorts_text || !order.is_text())
    }
}

/// The search in the order of its index.
fn in_order(search: &IndexSearch, direction: Direction) -> Option<IndexSearch> {
    let layout = search.index().layout();
    let ranges = KeyRanges::new(layout, &search.conditions, direction).ok()?;
    Some(IndexSearch { ranges, order: Some(direction), ..search.clone() })
}

/// Whether all entries of a search have the same value in a column of the index.
fn has_one_value(search: &IndexSearch, at: usize) -> bool {
    search.conditions.iter().any(|condition| {
        is_one_value(condition).is_some_and(|column| column == at)
            || matches!(condition, Condition::IsNull { column } if *column == at)
    })
}

/// The column that has one value by a condition, which isn't null.
fn is_one_value(condition: &Condition) -> Option<usize> {
    match condition {
        Condition::Compare { column, comparison: Comparison::Equal, value: Some(_) } => {
            Some(*column)
        }
        Condition::AnyOf { column, values } if matches!(&**values, [Some(_)]) => Some(*column),
        _ => None,
    }
}

impl Estimates<'_> {
    /// The columns that have one value in all rows for which the clauses are true.
    pub(super) fn fixed_columns(&self, clauses: &[Clause]) -> Vec<(usize, ColumnOrder)> {
        let fixed = clauses.iter().flat_map(Clause::conjuncts).filter_map(|clause| {
            let Clause::Test(test) = clause else { return None };
            let order = self.orders.get(test.column).copied().flatten()?;
            let condition = self.default_condition(test)?;
            is_one_value(&condition).map(|_| (test.column, order))
        });
        fixed.collect()
    }
}
