//! Chooses the access path of a scan: the cheapest one.

use std::sync::Arc;

use super::bitmap_choice::EstimatedBitmap;
use super::candidate_index::TableIndexes;
use super::clause::Clause;
use super::column_order::ColumnOrder;
use super::cost::{Cost, PlannerSettings, TableSize};
use super::index_condition::Conditions;
use super::index_search::{EstimatedSearch, Searches};
use super::ordered_choice::{OrderedChoice, OrderedPath};
use super::page_costs::RelationPages;
use super::path::{AccessPath, PathKind, RejectedPath};
use super::selectivity::Estimates;
use super::statistics::TableStatistics;
use super::unused_index::{Reason, unused};
use crate::environment::Environment;
use trunkline_engine::catalog::{ColumnInfo, Database, RelationInfo};

/// What a choice depends on.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) database: &'a Database,
    pub(crate) table: &'a RelationInfo,
    pub(crate) indexes: &'a TableIndexes,
    pub(crate) statistics: &'a TableStatistics,
    /// The places of the columns that filters or indexes are about.
    pub(crate) columns: &'a [usize],
    /// The places of the columns that the scan decodes; `None` if it needs the rows themselves.
    pub(crate) needed: Option<&'a [usize]>,
    pub(crate) settings: &'a PlannerSettings,
    /// The pages of the indexes, in their order; `None` if a file can't be used.
    pub(crate) index_pages: &'a [Option<RelationPages>],
    /// The pages of the table.
    pub(crate) pages: RelationPages,
    /// Its estimated rows.
    pub(crate) rows: f64,
    /// `effective_io_concurrency`, limited by the pins of a scan.
    pub(crate) reads: u32,
    /// `work_mem`, in bytes.
    pub(crate) work_mem: usize,
    /// The number of tasks of a sequential scan.
    pub(crate) tasks: usize,
    /// The most rows that are wanted.
    pub(crate) fetch: Option<usize>,
    /// Whether statistics were asked for, so that the number of rows can be estimated.
    pub(crate) is_estimated: bool,
    /// Whether the rows will be sorted, so that the order of an index may be worth something.
    pub(crate) is_sorted: bool,
}

impl Choice<'_> {
    /// The cheapest path for these filters, and if the rows will be sorted, what else could be chosen.
    pub(crate) fn path(&self, filters: &[Clause]) -> (AccessPath, Option<OrderedChoice>) {
        let parts = FilterParts::of(filters);
        let (mut path, mut ordered) = self.cheapest(&parts.clauses, filters.len());
        if filters.is_empty() {
            path.unused.clear();
        }
        path.covered = parts.covered(&path.covered);
        for path in ordered.iter_mut().flat_map(|ordered| &mut ordered.paths) {
            path.covered = parts.covered(&path.covered);
        }
        (path, ordered)
    }

    fn cheapest(&self, clauses: &[Clause], filters: usize) -> (AccessPath, Option<OrderedChoice>) {
        let columns = self.column_facts();
        let searches = self.searches(&columns, filters);
        let (estimates, table) = (searches.estimates, searches.table);
        let rows = (estimates.all(clauses) * self.rows).clamp(1.0, self.rows.max(1.0)).round();
        // With a limit, a path ends when it has found enough.
        let fraction = self.fetch.map_or(1.0, |fetch| fetch as f64 / rows);
        let tasks = self.tasks.max(1) as f64;
        let found = searches.all(clauses);
        let windows = found.iter().map(|one| searches.window(one));
        let window = windows.fold(1.0, f64::min);
        let mut best = AccessPath {
            kind: PathKind::Sequential,
            cost: self.settings.sequential(&table, tasks, (fraction, window)),
            rows: self.is_estimated.then_some(rows),
            covered: Vec::new(),
            unused: Vec::new(),
            rejected: Vec::new(),
        };
        // What each index would cost at least.
        let mut costs: Vec<(String, Cost)> = Vec::new();
        for one in found.iter().chain(&self.whole_indexes(&searches, &found)) {
            let search = Arc::clone(&one.search);
            let (fraction, rest) = table.costs.limited(fraction);
            let size = one.size.first(fraction);
            let found = self.settings.search(&table, &size);
            let (cost, kind) = match self.is_index_only(&search.index) {
                true => (
                    self.settings.index_only_scan(&table, &size, &found),
                    PathKind::IndexOnly(search),
                ),
                false => (self.settings.index_scan(&table, &size, &found), PathKind::Index(search)),
            };
            let cost = cost.of_fraction(rest);
            costs.push((one.search.index.name.clone(), cost));
            best = best.or(kind, cost, one.conditions.covered.clone());
        }
        if let Some(bitmap) = searches.bitmap(&found, clauses) {
            let (fraction, rest) = table.costs.limited(fraction);
            let cost = searches.bitmap_cost(&bitmap, fraction).of_fraction(rest);
            for search in bitmap.node.searches() {
                let name = &search.index.name;
                match costs.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) if cost.is_below(known) => *known = cost,
                    Some(_) => {}
                    None => costs.push((name.clone(), cost)),
                }
            }
            let EstimatedBitmap { node, covered, .. } = bitmap;
            best = best.or(PathKind::Bitmap(node), cost, covered);
        }
        let reasons = self.reasons(&costs);
        best.unused = unused(&best, &reasons);
        let is_sorted = self.is_sorted && self.fetch.is_none();
        let ordered =
            is_sorted.then(|| self.ordered(&searches, (&found, clauses), (rows, reasons)));
        (best, ordered)
    }

    /// What is known about each index: why it can't be used, or what it would cost.
    fn reasons(&self, costs: &[(String, Cost)]) -> Vec<(String, Reason)> {
        let unusable = self.indexes.unusable.iter();
        let unusable = unusable.map(|(name, why)| (name.clone(), Reason::Unusable(why.clone())));
        let others = self.indexes.usable.iter().zip(self.index_pages).map(|(index, pages)| {
            let cost = costs.iter().find(|(name, _)| *name == index.name);
            let reason = match (cost, pages) {
                (_, None) => Reason::Unusable("its file can't be used".to_owned()),
                (None, _) => match index.unknown.filter(|_| index.columns.is_empty()) {
                    Some(unknown) => Reason::Unusable(format!("its first column {unknown}")),
                    None => Reason::NoCondition,
                },
                (Some((_, cost)), _) => Reason::Cost(*cost),
            };
            (index.name.clone(), reason)
        });
        unusable.chain(others).collect()
    }

    /// What could be chosen if the rows must be sorted.
    fn ordered(
        &self,
        searches: &Searches<'_>,
        (found, clauses): (&[EstimatedSearch], &[Clause]),
        (rows, reasons): (f64, Vec<(String, Reason)>),
    ) -> OrderedChoice {
        let indexes = self.indexes.usable.iter().zip(self.index_pages);
        let paths = indexes.filter_map(|(index, pages)| {
            let known = found.iter().find(|one| one.search.index.oid == index.oid).cloned();
            let one = known.or_else(|| searches.whole(index, (*pages)?))?;
            let cost = self.settings.index_scan(&searches.table, &one.size, &one.cost);
            Some(OrderedPath { search: one.search, cost, covered: one.conditions.covered })
        });
        OrderedChoice {
            paths: paths.collect(),
            fixed: searches.estimates.fixed_columns(clauses),
            settings: *self.settings,
            rows,
            work_mem: self.work_mem,
            // The order of other encodings isn't that of our texts.
            sorts_text: matches!(self.database.info().encoding, 0 | 6 | 8),
            reasons,
            has_filters: !clauses.is_empty(),
        }
    }

    /// What matters about the columns for all estimates.
    pub(super) fn column_facts(&self) -> ColumnFacts {
        let columns = self.database.columns(self.table).unwrap_or_default();
        let order = |(place, column): (usize, &ColumnInfo)| {
            let is_wanted = self.columns.contains(&place);
            is_wanted
                .then(|| ColumnOrder::of_type(self.database, column.type_oid, column.collation))?
        };
        let unique =
            self.indexes.usable.iter().filter(|index| index.unique && index.key_count == 1);
        let unique = unique.filter(|index| !index.is_partial);
        let unique = unique.filter_map(|index| index.columns.first()).map(|column| column.place);
        ColumnFacts {
            orders: columns.iter().enumerate().map(order).collect(),
            unique: unique.collect(),
        }
    }

    /// What finds and estimates the searches of the table's indexes, with this number of filters.
    pub(super) fn searches<'s>(&'s self, columns: &'s ColumnFacts, filters: usize) -> Searches<'s> {
        let estimates = Estimates {
            statistics: self.statistics,
            rows: self.rows,
            conditions: Conditions::new(self.environment, self.database.info().encoding),
            orders: &columns.orders,
            unique: &columns.unique,
        };
        let table = TableSize {
            pages: f64::from(self.pages.blocks),
            costs: self.pages.costs,
            rows: self.rows,
            reads: f64::from(self.reads),
            filters: filters as f64,
            all_visible: self.all_visible(),
        };
        Searches {
            settings: self.settings,
            indexes: self.indexes,
            index_pages: self.index_pages,
            estimates,
            table,
            work_mem: self.work_mem,
        }
    }
}

impl AccessPath {
    /// The better one of this path and another one for the same rows.
    pub(super) fn or(mut self, kind: PathKind, cost: Cost, covered: Vec<usize>) -> Self {
        let is_better = cost.is_below(&self.cost);
        let (name, rejected) = match is_better {
            true => (self.kind.name(), self.cost),
            false => (kind.name(), cost),
        };
        self.rejected.push(RejectedPath { name, cost: rejected });
        if is_better { Self { kind, cost, covered, ..self } } else { self }
    }
}

/// What matters about the columns of a table.
pub(super) struct ColumnFacts {
    /// How those that matter are sorted by default.
    orders: Vec<Option<ColumnOrder>>,
    /// Those with a unique index of their own.
    unique: Vec<usize>,
}

/// The parts of filters. A filter may consist of several clauses, which can be searched for in several
/// indexes.
pub(super) struct FilterParts {
    pub(super) clauses: Vec<Clause>,
    /// The number of the filter that each of them is a part of.
    owners: Vec<usize>,
    filters: usize,
}

impl FilterParts {
    pub(super) fn of(filters: &[Clause]) -> Self {
        let owned = |(number, filter): (usize, &Clause)| {
            let parts = filter.conjuncts().into_iter().cloned();
            parts.map(|part| (number, part)).collect::<Vec<_>>()
        };
        let (owners, clauses) = filters.iter().enumerate().flat_map(owned).unzip();
        Self { clauses, owners, filters: filters.len() }
    }

    /// The filters of which all parts are covered.
    pub(super) fn covered(&self, parts: &[usize]) -> Vec<usize> {
        let is_covered = |filter: &usize| {
            let own = self.owners.iter().enumerate().filter(|(_, owner)| *owner == filter);
            own.map(|(part, _)| part).all(|part| parts.contains(&part))
        };
        (0..self.filters).filter(is_covered).collect()
    }
}
