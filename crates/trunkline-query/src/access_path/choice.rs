//! Chooses the access path of a scan: the cheapest one.

use std::sync::Arc;

use trunkline_engine::catalog::{ColumnInfo, Database, RelationInfo};
use trunkline_format::BlockNo;

use super::bitmap_choice::EstimatedBitmap;
use super::candidate_index::TableIndexes;
use super::clause::Clause;
use super::column_order::ColumnOrder;
use super::cost::{Cost, PlannerSettings, TableSize};
use super::index_condition::Conditions;
use super::index_search::Searches;
use super::path::{AccessPath, PathKind};
use super::selectivity::Estimates;
use super::statistics::TableStatistics;
use crate::environment::Environment;

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
    /// The sizes of the indexes, in their order, in blocks; `None` if a file can't be used.
    pub(crate) index_blocks: &'a [Option<BlockNo>],
    /// Blocks of the table.
    pub(crate) blocks: BlockNo,
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
}

impl Choice<'_> {
    /// The cheapest path for these filters.
    pub(crate) fn path(&self, filters: &[Clause]) -> AccessPath {
        // Filters may consist of several clauses, which can be searched for in several indexes.
        let owned = |(number, filter): (usize, &Clause)| {
            let parts = filter.conjuncts().into_iter().cloned();
            parts.map(|part| (number, part)).collect::<Vec<_>>()
        };
        let (owners, clauses): (Vec<usize>, Vec<Clause>) =
            filters.iter().enumerate().flat_map(owned).unzip();
        let covers = |covered: &[usize]| -> Vec<usize> {
            let is_covered = |filter: &usize| {
                let parts = owners.iter().enumerate().filter(|(_, owner)| *owner == filter);
                parts.map(|(part, _)| part).all(|part| covered.contains(&part))
            };
            (0..filters.len()).filter(is_covered).collect()
        };
        let mut path = self.cheapest(&clauses, filters.len());
        if filters.is_empty() {
            path.unused.clear();
        }
        path.covered = covers(&path.covered);
        path
    }

    fn cheapest(&self, clauses: &[Clause], filters: usize) -> AccessPath {
        let conditions = Conditions::new(self.environment, self.database.info().encoding);
        let orders = self.orders();
        let unique = self.unique_columns();
        let estimates = Estimates {
            statistics: self.statistics,
            rows: self.rows,
            conditions,
            orders: &orders,
            unique: &unique,
        };
        let table = TableSize {
            pages: f64::from(self.blocks),
            rows: self.rows,
            reads: f64::from(self.reads),
            filters: filters as f64,
            all_visible: self.all_visible(),
        };
        let rows = (estimates.all(clauses) * self.rows).clamp(1.0, self.rows.max(1.0)).round();
        // With a limit, a path ends when it has found enough.
        let fraction = self.fetch.map_or(1.0, |fetch| fetch as f64 / rows);
        let tasks = self.tasks.max(1) as f64;
        let mut best = AccessPath {
            kind: PathKind::Sequential,
            cost: self.settings.sequential(&table, tasks).of_fraction(fraction),
            rows: self.is_estimated.then_some(rows),
            covered: Vec::new(),
            unused: Vec::new(),
        };
        let searches = Searches {
            settings: self.settings,
            indexes: self.indexes,
            index_blocks: self.index_blocks,
            estimates,
            table,
            work_mem: self.work_mem,
        };
        let found = searches.all(clauses);
        // What each index would cost at least.
        let mut costs: Vec<(String, Cost)> = Vec::new();
        for one in found.iter().chain(&self.whole_indexes(&searches, &found)) {
            let search = Arc::clone(&one.search);
            let (whole, kind) = match self.is_index_only(&search.index) {
                true => (
                    self.settings.index_only_scan(&table, &one.size, &one.cost),
                    PathKind::IndexOnly(search),
                ),
                false => (
                    self.settings.index_scan(&table, &one.size, &one.cost),
                    PathKind::Index(search),
                ),
            };
            let cost = whole.of_fraction(fraction);
            costs.push((one.search.index.name.clone(), cost));
            if cost.is_below(&best.cost) {
                let covered = one.conditions.covered.clone();
                best = AccessPath { kind, cost, covered, ..best };
            }
        }
        if let Some(bitmap) = searches.bitmap(&found, clauses) {
            let cost = searches.bitmap_cost(&bitmap).of_fraction(fraction);
            for search in bitmap.node.searches() {
                let name = &search.index.name;
                match costs.iter_mut().find(|(known, _)| known == name) {
                    Some((_, known)) if cost.is_below(known) => *known = cost,
                    Some(_) => {}
                    None => costs.push((name.clone(), cost)),
                }
            }
            if cost.is_below(&best.cost) {
                let EstimatedBitmap { node, covered, .. } = bitmap;
                best = AccessPath { kind: PathKind::Bitmap(node), cost, covered, ..best };
            }
        }
        best.unused = self.unused(&best, &costs);
        best
    }

    /// The indexes that the best path doesn't use, each with the reason.
    fn unused(&self, best: &AccessPath, costs: &[(String, Cost)]) -> Vec<(String, String)> {
        let mut unused = self.indexes.unusable.clone();
        let used = best.index_names();
        let others = self.indexes.usable.iter().zip(self.index_blocks);
        unused.extend(others.filter(|(index, _)| !used.contains(&index.name)).map(
            |(index, blocks)| {
                let cost = costs.iter().find(|(name, _)| *name == index.name);
                let why = match (cost, blocks) {
                    (_, None) => "its file can't be used".to_owned(),
                    (None, _) => match index.unknown.filter(|_| index.columns.is_empty()) {
                        Some(unknown) => format!("its first column {unknown}"),
                        None => "no condition that it can be searched for".to_owned(),
                    },
                    (Some((_, cost)), _) if cost.disabled > best.cost.disabled => {
                        "it is disabled by a setting".to_owned()
                    }
                    (Some((_, cost)), _) => {
                        let (own, least) = (cost.total, best.cost.total);
                        format!("its estimated cost is {own:.2}, not {least:.2}")
                    }
                };
                (index.name.clone(), why)
            },
        ));
        unused
    }

    /// How the columns that matter are sorted by default.
    fn orders(&self) -> Vec<Option<ColumnOrder>> {
        let columns = self.database.columns(self.table).unwrap_or_default();
        let order = |(place, column): (usize, &ColumnInfo)| {
            let is_wanted = self.columns.contains(&place);
            is_wanted
                .then(|| ColumnOrder::of_type(self.database, column.type_oid, column.collation))?
        };
        columns.iter().enumerate().map(order).collect()
    }

    /// The columns with a unique index of their own.
    fn unique_columns(&self) -> Vec<usize> {
        let unique =
            self.indexes.usable.iter().filter(|index| index.unique && index.key_count == 1);
        let unique = unique.filter(|index| !index.is_partial);
        unique.filter_map(|index| index.columns.first()).map(|column| column.place).collect()
    }
}

impl AccessPath {
    /// The names of the indexes that it uses.
    fn index_names(&self) -> Vec<String> {
        let searches = match &self.kind {
            PathKind::Sequential => Vec::new(),
            PathKind::Index(search) | PathKind::IndexOnly(search) => vec![&**search],
            PathKind::Bitmap(node) => node.searches(),
        };
        searches.into_iter().map(|search| search.index.name.clone()).collect()
    }
}
