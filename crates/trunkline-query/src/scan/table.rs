//! A table as DataFusion sees it: a provider of scans.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::runtime::SpawnedTask;
use datafusion::common::{Result as PlanResult, Statistics, ToDFSchema};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use trunkline_engine::catalog::RelationInfo;
use trunkline_format::Oid;
use trunkline_format::catalog::ColumnStatisticsRow;
use trunkline_sql::{SqlError, SqlState};

use super::access::TableAccess;
use super::cancellation::cancelled;
use super::columns::{ScanColumns, catalog_error};
use super::exec::ScanExec;
use super::path_source::{PathSource, SearchBasis};
use crate::access_path::{
    AccessPath, Choice, Clause, Clauses, Facts, OrderedChoice, PathKind, STATISTICS, TableIndexes,
    TableStatistics,
};
use crate::error::to_datafusion;

/// A table with the columns that a statement uses.
#[derive(Debug)]
pub(crate) struct ScanTable {
    access: TableAccess,
    columns: ScanColumns,
    schema: SchemaRef,
    source: PathSource,
}

impl ScanTable {
    /// The columns have these names in plans.
    pub(crate) fn new(
        access: TableAccess,
        columns: ScanColumns,
        names: &[String],
        source: PathSource,
    ) -> Self {
        let schema = columns.schema(names);
        Self { access, columns, schema, source }
    }

    /// What the filters say about single columns.
    fn clauses(&self, filters: &[Expr]) -> Vec<Clause> {
        let columns = |name: &str| self.columns.filter_column(self.schema.index_of(name).ok()?);
        let clauses = Clauses::new(&self.source.environment, &columns);
        filters.iter().map(|filter| clauses.of(filter)).collect()
    }

    /// The indexes of the table, partial ones if the filters imply their predicates.
    fn indexes(&self, table: &RelationInfo, filters: &[Expr], clauses: &[Clause]) -> TableIndexes {
        let PathSource { environment, database, .. } = &self.source;
        let indexes = TableIndexes::of(database, table);
        if !indexes.has_partial() {
            return indexes;
        }
        let columns = |name: &str| self.columns.filter_column(self.schema.index_of(name).ok()?);
        let written = Clauses::new(environment, &columns);
        let expressions: Vec<_> =
            filters.iter().flat_map(|filter| written.expressions(filter)).collect();
        let unequal: Vec<_> = filters.iter().flat_map(|filter| written.unequal(filter)).collect();
        let facts = Facts { clauses, expressions: &expressions, unequal: &unequal };
        indexes.with_implied(environment, database, table, facts)
    }

    /// Chooses how a scan with these filters gets to its rows.
    async fn path(
        &self,
        (filters, clauses): (&[Expr], &[Clause]),
        needed: Option<&[usize]>,
        tasks: usize,
        fetch: Option<usize>,
    ) -> Result<(AccessPath, Option<OrderedChoice>), SqlError> {
        let PathSource { environment, database, table, is_sorted } = &self.source;
        let Some(table) = database.relation(*table) else {
            return Ok((AccessPath::sequential(), None));
        };
        let indexes = self.indexes(table, filters, clauses);
        // If no index can be searched for anything, and no order is asked for, nothing is to be chosen or
        // estimated.
        let is_sorted = *is_sorted && fetch.is_none();
        let is_known = is_sorted || clauses.iter().any(|clause| *clause != Clause::Other);
        let is_estimated = is_known && indexes.columns().next().is_some();
        let mut columns = Vec::new();
        if is_known {
            clauses.iter().for_each(|clause| clause.add_columns(&mut columns));
            columns.extend(indexes.columns());
        }
        let (statistics, why_none) = match is_estimated {
            false => (TableStatistics::default(), None),
            true => match self.statistics_rows(table.oid).await {
                Ok(rows) => {
                    let catalog = &environment.catalog;
                    (TableStatistics::of(database, catalog, table, &rows, &columns), None)
                }
                Err(error) if error.code() == SqlState::QUERY_CANCELED => return Err(error),
                // They are only estimates, and the table can be read without them.
                Err(error) => (TableStatistics::default(), Some(error.to_string())),
            },
        };
        let pages = indexes.usable.iter().map(|index| self.access.index_pages(index.oid));
        let pages: Vec<_> = pages.collect();
        let choice = Choice {
            environment,
            database,
            table,
            indexes: &indexes,
            statistics: &statistics,
            columns: &columns,
            needed: needed.filter(|_| self.access.visibility_map().is_some()),
            settings: self.access.planner(),
            index_pages: &pages,
            pages: self.access.pages(),
            rows: self.access.estimated_rows(self.columns.width()),
            reads: self.access.reads_max(),
            work_mem: self.access.work_mem(),
            tasks,
            fetch,
            is_estimated,
            is_sorted,
        };
        let (mut path, ordered) = choice.path(clauses);
        path.unused.extend(why_none.map(|why| (STATISTICS.to_owned(), why)));
        Ok((path, ordered))
    }

    /// Reads the table's statistics, if it may be searched for the rows of another one.
    ///
    /// # Errors
    /// 57014: the statement was cancelled.
    pub(crate) async fn read_statistics(&self) -> Result<(), SqlError> {
        let PathSource { database, table, .. } = &self.source;
        let Some(table) = database.relation(*table) else { return Ok(()) };
        if TableIndexes::of(database, table).usable.is_empty() {
            return Ok(());
        }
        match self.statistics_rows(table.oid).await {
            Err(error) if error.code() == SqlState::QUERY_CANCELED => Err(error),
            // They are only estimates.
            _ => Ok(()),
        }
    }

    /// The table's rows of `pg_statistic`, which a thread for blocking work reads the first time.
    async fn statistics_rows(&self, table: Oid) -> Result<Arc<Vec<ColumnStatisticsRow>>, SqlError> {
        if let Some(known) = self.source.database.known_statistics(table) {
            return Ok(known);
        }
        let mut backend = self.access.session()?;
        let database = Arc::clone(&self.source.database);
        let waiting = self.access.cancellation.wait_for_io();
        let read = SpawnedTask::spawn_blocking(move || {
            database.column_statistics(&mut backend, table).map_err(|error| {
                match error.is_cancelled() {
                    true => cancelled(),
                    false => catalog_error(&error),
                }
            })
        });
        let read = read.await;
        drop(waiting);
        read.map_err(|error| SqlError::internal(error.to_string()))?
    }
}

#[async_trait::async_trait]
impl TableProvider for ScanTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.access.statistics(&self.schema, None))
    }

    /// All filters are evaluated by the scan. Those with volatile functions aren't offered.
    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> PlanResult<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Exact; filters.len()])
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> PlanResult<Arc<dyn ExecutionPlan>> {
        self.access.cancellation.check().map_err(to_datafusion)?;
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let projection = projection.unwrap_or(&all).clone();
        // A filter's columns are decoded even if nothing else needs them. Columns of the result come
        // first.
        let mut decoded = projection.clone();
        for column in filters.iter().flat_map(Expr::column_refs) {
            let place = self.schema.index_of(&column.name)?;
            if !decoded.contains(&place) {
                decoded.push(place);
            }
        }
        let schema = Arc::new(self.schema.project(&decoded)?);
        let by_name = schema.as_ref().clone().to_dfschema()?;
        let most = self.access.partitions_max();
        let partitions = state.config().target_partitions().min(most);
        let columns = self.columns.select(&decoded);
        let needed = columns.stored_places();
        let clauses = self.clauses(filters);
        let known = (filters, &*clauses);
        let path = self.path(known, needed.as_deref(), partitions, limit).await;
        let (path, ordered) = path.map_err(to_datafusion)?;
        let filters =
            filters.iter().map(|filter| state.create_physical_expr(filter.clone(), &by_name));
        let filters = filters.collect::<PlanResult<Vec<_>>>()?;
        let partitions = match path.kind {
            PathKind::Sequential => partitions,
            _ => 1,
        };
        let scan = ScanExec::new(
            (self.access.clone(), path),
            columns,
            schema,
            projection.len(),
            filters,
            limit,
            partitions,
        )?;
        let basis = SearchBasis { source: self.source.clone(), clauses };
        Ok(Arc::new(scan.with_ordered(ordered).searched_by(basis)))
    }
}
