//! Searches of a scan's table for the keys of other rows, which joins may choose.

use super::access::TableAccess;
use super::exec::ScanExec;
use super::path_source::{PathSource, SearchBasis};
use crate::access_path::{
    Choice, FilterColumn, KeyColumn, KeyedPath, TableIndexes, TableStatistics,
};
use crate::environment::Environment;

impl ScanExec {
    /// A column of the result as filters see it; `None` for system columns.
    pub(crate) fn filter_column(&self, number: usize) -> Option<FilterColumn> {
        self.columns().filter_column(number)
    }

    /// What expressions over the table are compiled with.
    pub(crate) fn environment(&self) -> Option<&Environment> {
        self.basis().map(|basis| &basis.source.environment)
    }

    /// The estimated number of rows that pass the filters.
    pub(crate) fn estimated_rows(&self) -> f64 {
        let all = || self.access().estimated_rows(self.columns().width());
        self.path().rows.unwrap_or_else(all)
    }

    /// The cheapest search for `loops` rows with these keys; `None` if no index can be searched for them.
    /// Statistics are used if they have been read.
    pub(crate) fn keyed_path(&self, keys: &[KeyColumn], loops: f64) -> Option<KeyedPath> {
        let SearchBasis { source, clauses } = self.basis()?;
        let PathSource { environment, database, table, .. } = source;
        let table = database.relation(*table)?;
        let access: &TableAccess = self.access();
        let indexes = TableIndexes::of(database, table);
        let mut columns: Vec<usize> = keys.iter().map(|key| key.column.place).collect();
        columns.extend(indexes.columns());
        clauses.iter().for_each(|clause| clause.add_columns(&mut columns));
        let statistics = database.known_statistics(table.oid).map(|rows| {
            TableStatistics::of(database, &environment.catalog, table, &rows, &columns)
        });
        let pages = indexes.usable.iter().map(|index| access.index_pages(index.oid));
        let pages: Vec<_> = pages.collect();
        let choice = Choice {
            environment,
            database,
            table,
            indexes: &indexes,
            statistics: &statistics.unwrap_or_default(),
            columns: &columns,
            needed: None,
            settings: access.planner(),
            index_pages: &pages,
            pages: access.pages(),
            rows: access.estimated_rows(self.columns().width()),
            reads: access.reads_max(),
            work_mem: access.work_mem(),
            tasks: 1,
            fetch: None,
            is_estimated: true,
            is_sorted: false,
        };
        choice.keyed_path(clauses, keys, loops)
    }
}
