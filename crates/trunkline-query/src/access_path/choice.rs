//! Chooses the access path of a scan: the cheapest one.

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
        };
        let rows = (estimates.all(clauses) * self.rows).clamp(1.0, self.rows.max(1.0)).round();
        // With a limit, a path ends when it has found enough.
        let fraction = self.fetch.map_or(1.0, |fetch| fetch as f64 / rows);
        let tasks = self.tasks.max(1) as f64;
        let mut best = AccessPath {
            kind: PathKind::Sequential,
            cost: self.settings.sequential(&table, tasks).of_fraction(fraction),
            // Without an index, no statistics were read.
            rows: (!self.indexes.usable.is_empty()).then_some(rows),
            covered: Vec::new(),
            unused: Vec::new(),
        };
        let mut unused = self.indexes.unusable.clone();
        let searches = Searches {
            settings: self.settings,
            indexes: self.indexes,
            index_blocks: self.index_blocks,
            estimates,
            table,
            work_mem: self.work_mem,
        };
        let found = searches.all(clauses);
        for (index, blocks) in self.indexes.usable.iter().zip(self.index_blocks) {
            if !found.iter().any(|found| found.search.index.oid == index.oid) {
                let why = match blocks {
                    Some(_) => "no condition on its columns",
                    None => "its file can't be used",
                };
                unused.push((index.name.clone(), why.to_owned()));
            }
        }
        let mut costs = Vec::new();
        for one in &found {
            let whole = self.settings.index_scan(&table, &one.size, &one.cost);
            let cost = whole.of_fraction(fraction);
            costs.push((one.search.index.name.clone(), cost));
            if cost.is_below(&best.cost) {
                let kind = PathKind::Index(one.search.clone());
                let covered = one.conditions.covered.clone();
                best = AccessPath { kind, cost, covered, ..best };
            }
        }
        if let Some(bitmap) = searches.bitmap(&found, clauses) {
            let cost = searches.bitmap_cost(&bitmap).of_fraction(fraction);
            for search in bitmap.node.searches() {
                let known = costs.iter_mut().find(|(name, _)| *name == search.index.name);
                if let Some((_, known)) = known.filter(|(_, known)| cost.is_below(known)) {
                    *known = cost;
                }
            }
            if cost.is_below(&best.cost) {
                let EstimatedBitmap { node, covered, .. } = bitmap;
                best = AccessPath { kind: PathKind::Bitmap(node), cost, covered, ..best };
            }
        }
        let used = best.index_names();
        let dearer = costs.into_iter().filter(|(name, _)| !used.contains(name));
        let disabled = |cost: &Cost| cost.disabled > best.cost.disabled;
        unused.extend(dearer.map(|(name, cost)| {
            let why = match disabled(&cost) {
                true => "it is disabled by a setting".to_owned(),
                false => {
                    format!("its estimated cost is {:.2}, not {:.2}", cost.total, best.cost.total)
                }
            };
            (name, why)
        }));
        best.unused = unused;
        best
    }

    /// How the table's columns are sorted by default.
    fn orders(&self) -> Vec<Option<ColumnOrder>> {
        let columns = self.database.columns(self.table).unwrap_or_default();
        let order = |column: &ColumnInfo| {
            ColumnOrder::of_type(self.database, column.type_oid, column.collation)
        };
        columns.iter().map(order).collect()
    }

    /// The columns with a unique index of their own.
    fn unique_columns(&self) -> Vec<usize> {
        let unique =
            self.indexes.usable.iter().filter(|index| index.unique && index.key_count == 1);
        unique.filter_map(|index| index.columns.first()).map(|column| column.place).collect()
    }
}

impl AccessPath {
    /// The names of the indexes that it uses.
    fn index_names(&self) -> Vec<String> {
        let searches = match &self.kind {
            PathKind::Sequential => Vec::new(),
            PathKind::Index(search) => vec![search],
            PathKind::Bitmap(node) => node.searches(),
        };
        searches.into_iter().map(|search| search.index.name.clone()).collect()
    }
}
