//! **Point queries**: `SELECT columns FROM table WHERE key = constant`, for all columns of a unique index.
//!
//! Planning such a statement takes far longer than finding its row. So we don't plan it: the row is looked
//! up in the thread of the caller, by the same index scan and decoder as in a plan.
//!
//! ```text
//!   bound statement ── shape ──▶ PointQuery: the table's columns, its unique indexes      once
//!   parameters ── condition ──▶ search of an index ──▶ row ── search again ──▶ Rows       each time
//! ```
//!
//! The result can't differ from that of a plan: the search says all of the statement's condition, it is
//! checked for the row that was found, and there can't be another row, because the index is unique. Whatever
//! is not of this form is planned. So is everything if `enable_indexscan` is off, and if the files of the
//! indexes can't be used.

use std::iter;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::filter_record_batch;
use tokio::sync::OnceCell;
use trunkline_aio::facade::Mutex;
use trunkline_engine::read_stream::StatementStreams;
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BoundStatement, ColumnId, Expr, ExprKind, Relation, TableScan};
use trunkline_sql::values::PayloadReader;

use super::context::StatementContext;
use super::rows::{ResultColumn, Rows, result_columns, with_cause};
use crate::access_path::{
    BoundClauses, CandidateIndex, IndexSearch, TableIndexes, unique_indexes, unique_search,
};
use crate::expression::{column_name, failed};
use crate::lower::only_table;
use crate::scan::{RowLookup, ScanColumns, StatementReads, TableAccess, TableSizes};

/// A condition that nests deeper than this is left to the planner, which gets a stack for it.
const NESTING_MAX: usize = 100;

/// What doesn't change from one execution of a point query to the next.
pub(crate) struct PointQuery {
    table: Oid,
    indexes: Vec<Arc<CandidateIndex>>,
    lookup: RowLookup,
    /// The ids of the columns that are looked up.
    ids: Vec<ColumnId>,
    /// The columns of the result, and where they are among those of the table.
    result: Arc<[ResultColumn]>,
    places: Vec<usize>,
    /// The schema of the result's batches.
    schema: SchemaRef,
    /// The sizes of the table and of its indexes, which stay the same as long as the directory is open.
    /// `None` until all of them are known.
    sizes: Mutex<Option<Arc<TableSizes>>>,
    /// The table, as the first statement has opened it.
    access: OnceCell<TableAccess>,
}

/// The parts of a statement that has the form of a point query.
struct Form<'s> {
    scan: &'s TableScan,
    condition: &'s Expr,
    /// The columns of the table that are returned.
    output: Vec<ColumnId>,
}

impl<'s> Form<'s> {
    fn of(statement: &'s BoundStatement) -> Option<Self> {
        if statement.nesting > NESTING_MAX || !statement.subqueries.ids().is_empty() {
            return None;
        }
        let Relation::Project { input, columns } = &statement.query.relation else { return None };
        let Relation::Filter { input, condition } = &**input else { return None };
        let Relation::Table(scan) = &**input else { return None };
        let output = statement.query.output.iter().map(|output| {
            let (_, expr) = columns.iter().find(|(id, _)| *id == output.id)?;
            match expr.kind {
                ExprKind::Column(id) => Some(id),
                _ => None,
            }
        });
        Some(Self { scan, condition, output: output.collect::<Option<_>>()? })
    }
}

impl PointQuery {
    /// The statement as a point query, if it has the form of one.
    pub(crate) fn of(statement: &BoundStatement, context: &StatementContext) -> Option<Self> {
        let form = Form::of(statement)?;
        let (database, environment) = (&context.database, &context.environment);
        let table = only_table(database, form.scan)?;
        let indexes = unique_indexes(&TableIndexes::of(database, table));
        if indexes.is_empty() {
            return None;
        }
        // If there is an error, the planner will report it.
        let scanned = &form.scan.columns;
        let columns = ScanColumns::new(environment, database, table, table, scanned).ok()?;
        let result = result_columns(statement, environment).ok()?;
        let ids: Vec<ColumnId> = scanned.iter().map(|column| column.id).collect();
        let names: Vec<String> = ids.iter().map(|id| column_name(*id)).collect();
        let place = |wanted: &ColumnId| ids.iter().position(|id| id == wanted);
        let places: Vec<usize> = form.output.iter().map(place).collect::<Option<_>>()?;
        let schema = columns.schema(&names);
        let of_result = Arc::new(schema.project(&places).ok()?);
        let lookup = RowLookup::new(columns, schema);
        let (table, sizes, access) = (table.oid, Mutex::new(None), OnceCell::new());
        let (result, schema) = (result.into(), of_result);
        Some(Self { table, indexes, lookup, ids, result, places, schema, sizes, access })
    }

    /// Looks up the row. `None` if the statement must be planned this time. `statement` is the one that
    /// this was made of.
    ///
    /// # Errors
    /// Those of scans and functions; 57014 if the statement was cancelled.
    pub(crate) async fn run(
        &self,
        statement: &BoundStatement,
        context: &StatementContext,
    ) -> Result<Option<Rows>, SqlError> {
        if !context.options.planner.enable_indexscan {
            return Ok(None);
        }
        let found = self.look_up(statement, context).await;
        found.map_err(|error| with_cause(error, &context.cancellation))
    }

    async fn look_up(
        &self,
        statement: &BoundStatement,
        context: &StatementContext,
    ) -> Result<Option<Rows>, SqlError> {
        context.cancellation.check()?;
        let (database, environment) = (&context.database, &context.environment);
        let form = Form::of(statement).zip(database.relation(self.table));
        let Some((Form { condition, .. }, table)) = form else { return Ok(None) };
        let column = |id| self.place_of(id).and_then(|at| self.lookup.columns().filter_column(at));
        let clause = BoundClauses::new(environment, &column).of(condition);
        let encoding = database.info().encoding;
        let searches = self.indexes.iter();
        let mut searches =
            searches.filter_map(|index| unique_search(environment, encoding, index, &clause));
        let Some(first) = searches.next() else { return Ok(None) };
        let sizes = self.sizes(context).await?;
        let search =
            iter::once(first).chain(searches).find(|search| sizes.is_known(search.index.oid));
        let Some(search) = search else { return Ok(None) };
        let reads = StatementReads {
            engine: context.engine.clone(),
            io: context.io(),
            streams: StatementStreams::default(),
            cancellation: context.cancellation.clone(),
            sizes,
            // The path is known already.
            found: Arc::default(),
            planner: Arc::new(context.options.planner),
            work_mem: context.options.work_mem,
        };
        let open = async || TableAccess::new(database, table, &reads);
        let access = self.access.get_or_try_init(open).await?.for_statement(&reads);
        let mut batches = self.lookup.rows(access, &search).await?;
        for batch in &mut batches {
            *batch = self.projected(&self.passing(batch, &search)?)?;
        }
        Ok(Some(Rows::in_memory(Arc::clone(&self.result), batches)))
    }

    /// The columns of the result.
    fn projected(&self, batch: &RecordBatch) -> Result<RecordBatch, SqlError> {
        let arrays = self.places.iter().map(|place| Arc::clone(batch.column(*place)));
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let schema = Arc::clone(&self.schema);
        RecordBatch::try_new_with_options(schema, arrays.collect(), &options).map_err(failed)
    }

    fn place_of(&self, id: ColumnId) -> Option<usize> {
        self.ids.iter().position(|known| *known == id)
    }

    /// The rows of a batch that the search was for. As the statement's condition says no more than the
    /// search, these are the rows for which it is true.
    fn passing(&self, batch: &RecordBatch, search: &IndexSearch) -> Result<RecordBatch, SqlError> {
        let columns = self.lookup.columns();
        let mut passed = vec![true; batch.num_rows()];
        for (row, passed) in passed.iter_mut().enumerate() {
            let mut stored = Vec::with_capacity(batch.num_columns());
            for (at, array) in batch.columns().iter().enumerate() {
                let Some(column) = columns.filter_column(at) else { continue };
                let mut reader = PayloadReader::new(column.carrier, array)?;
                stored.push((column.place, reader.get(row).map(<[u8]>::to_vec)));
            }
            *passed = search.is_of_key(|place| {
                let found = stored.iter().find(|(known, _)| *known == place);
                found.and_then(|(_, value)| value.as_deref())
            });
        }
        match passed.contains(&false) {
            false => Ok(batch.clone()),
            true => filter_record_batch(batch, &BooleanArray::from(passed)).map_err(failed),
        }
    }

    /// Asks for the sizes of the files, until there are no errors among the answers. What was wrong with a
    /// file may be mended by the next execution.
    async fn sizes(&self, context: &StatementContext) -> Result<Arc<TableSizes>, SqlError> {
        if let Some(known) = &*self.sizes.lock() {
            return Ok(Arc::clone(known));
        }
        let table = context.database.relation(self.table);
        let files = table.and_then(|table| context.database.files(table));
        let files = files.map(|files| (self.table, files)).into_iter();
        let indexes = self.indexes.iter();
        let indexes = indexes.map(|index| (index.oid, index.index.relation().clone()));
        let files: Vec<_> = files.chain(indexes).collect();
        let sizes = TableSizes::ask(&context.engine, &context.cancellation, &files).await?;
        let sizes = Arc::new(sizes);
        if sizes.are_all_known() {
            *self.sizes.lock() = Some(Arc::clone(&sizes));
        }
        Ok(sizes)
    }
}
