//! Executes a statement and returns its rows.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use futures::StreamExt;
use futures::future::BoxFuture;
use trunkline_engine::read_stream::StatementStreams;
use trunkline_sql::bound::{BoundStatement, Origin, SqlType, with_stack_for};
use trunkline_sql::values::Carrier;
use trunkline_sql::{SqlError, SqlState};

use super::context::StatementContext;
use super::deep_stack::OnDeepStack;
use crate::environment::Environment;
use crate::error::from_datafusion;
use crate::expression::column_name;
use crate::lower::{Lowering, TableSource, scanned_files};
use crate::scan::{CancelCause, Cancellation, FoundRelations, StatementReads, TableSizes};
use crate::server::ServerView;

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultColumn {
    /// Its name, which need not be unique.
    pub name: Box<str>,
    /// Its type.
    pub ty: SqlType,
    /// How its values are held.
    pub carrier: Carrier,
    /// The table column that it shows unchanged.
    pub origin: Option<Origin>,
}

/// The rows of a statement. Dropping them ends the statement: its sessions are closed, and its
/// temporary files are removed.
pub struct Rows {
    columns: Arc<[ResultColumn]>,
    supply: Supply,
    /// What ends when these rows do, such as the time limit of the statement.
    guard: Option<Box<dyn Send>>,
}

/// Where rows come from.
struct Supply {
    source: Source,
    /// Rows that were returned to the supply.
    pending: VecDeque<RecordBatch>,
}

enum Source {
    Running {
        stream: SendableRecordBatchStream,
        streams: StatementStreams,
        cancellation: Cancellation,
        nesting: usize,
    },
    Memory,
    Part(Box<dyn RowsPart>),
}

/// A part of rows that something else keeps, such as a cursor.
pub(super) trait RowsPart: Send {
    /// The next rows of the part.
    fn next(&mut self) -> BoxFuture<'_, Result<Option<RecordBatch>, SqlError>>;

    /// Releases what was read ahead.
    fn release_ahead(&self);

    /// What cancels the rows.
    fn cancellation(&self) -> &Cancellation;
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Rows {
    fn new(
        columns: impl Into<Arc<[ResultColumn]>>,
        source: Source,
        pending: VecDeque<RecordBatch>,
    ) -> Self {
        let supply = Supply { source, pending };
        Self { columns: columns.into(), supply, guard: None }
    }

    /// Rows that are in memory.
    pub fn in_memory(columns: impl Into<Arc<[ResultColumn]>>, batches: Vec<RecordBatch>) -> Self {
        Self::new(columns, Source::Memory, batches.into())
    }

    /// Rows that are a part of other ones.
    pub(super) fn of_part(columns: Vec<ResultColumn>, part: Box<dyn RowsPart>) -> Self {
        Self::new(columns, Source::Part(part), VecDeque::new())
    }

    /// The columns of each batch.
    pub fn columns(&self) -> &Arc<[ResultColumn]> {
        &self.columns
    }

    /// The next rows; `None` at the end. After an error, the statement must be dropped.
    ///
    /// # Errors
    /// Those of functions and scans; 57014 if the statement was cancelled.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        self.supply.next().await
    }

    /// Returns rows that weren't used. [`Rows::next`] will return them again, before all others.
    pub fn put_back(&mut self, batch: RecordBatch) {
        self.supply.pending.push_front(batch);
    }

    /// Releases the pages that the statement's scans have read ahead, because no more rows will be
    /// fetched for a while.
    pub fn release_ahead(&self) {
        match &self.supply.source {
            Source::Running { streams, .. } => streams.release_ahead(),
            Source::Part(part) => part.release_ahead(),
            Source::Memory => {}
        }
    }

    /// What cancels these rows; `None` if they are in memory.
    pub(crate) fn cancellation(&self) -> Option<&Cancellation> {
        match &self.supply.source {
            Source::Running { cancellation, .. } => Some(cancellation),
            Source::Part(part) => Some(part.cancellation()),
            Source::Memory => None,
        }
    }

    /// Keeps a value until these rows are dropped, or until another one replaces it.
    pub(crate) fn set_guard(&mut self, guard: Option<Box<dyn Send>>) {
        self.guard = guard;
    }
}

impl Supply {
    async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        if let Source::Running { cancellation, .. } = &self.source {
            cancellation.check()?;
        }
        if let Some(batch) = self.pending.pop_front() {
            return Ok(Some(batch));
        }
        let (stream, cancellation, nesting) = match &mut self.source {
            Source::Running { stream, cancellation, nesting, .. } => {
                (stream, cancellation, nesting)
            }
            Source::Part(part) => return part.next().await,
            Source::Memory => return Ok(None),
        };
        match OnDeepStack::new(*nesting, stream.next()).await {
            None => Ok(None),
            Some(Ok(batch)) => Ok(Some(batch)),
            Some(Err(error)) => Err(failure(&error, cancellation)),
        }
    }
}

/// Why a statement failed.
pub(super) fn failure(error: &DataFusionError, cancellation: &Cancellation) -> SqlError {
    with_cause(from_datafusion(error), cancellation)
}

/// The error with which a statement ends. A scan, and what reads statistics, only knows that it was
/// cancelled, but not why.
pub(super) fn with_cause(error: SqlError, cancellation: &Cancellation) -> SqlError {
    let cause = cancellation.cause().filter(|_| error.code() == SqlState::QUERY_CANCELED);
    cause.map_or(error, CancelCause::error)
}

/// Plans and starts a statement. This must be called in a runtime of tokio, which will run the
/// statement's tasks.
///
/// # Errors
/// 0A000: the statement contains something that is not implemented. Otherwise, those of tables that
/// can't be opened.
pub async fn execute(
    statement: &BoundStatement,
    context: &StatementContext,
) -> Result<Rows, SqlError> {
    let streams = StatementStreams::default();
    let (state, plan) = physical_plan(statement, context, &streams).await?;
    let stream = execute_stream(plan, state.task_ctx()).map_err(|error| from_datafusion(&error))?;
    let columns = result_columns(statement, &context.environment)?;
    let cancellation = context.cancellation.clone();
    let source = Source::Running { stream, streams, cancellation, nesting: statement.nesting };
    Ok(Rows::new(columns, source, VecDeque::new()))
}

/// The columns of a statement's rows.
///
/// # Errors
/// 0A000: we can't hold the values of a column.
pub fn result_columns(
    statement: &BoundStatement,
    environment: &Environment,
) -> Result<Vec<ResultColumn>, SqlError> {
    let columns = statement.query.output.iter().map(|output| {
        let column = statement.columns.get(output.id);
        let carrier = environment.carrier(column.ty.oid)?;
        let (name, ty, origin) = (output.name.clone(), column.ty, column.origin);
        Ok(ResultColumn { name, ty, carrier, origin })
    });
    columns.collect()
}

/// The physical plan of a statement as text, in DataFusion's words.
///
/// # Errors
/// As for [`execute`].
pub async fn explain(
    statement: &BoundStatement,
    context: &StatementContext,
) -> Result<String, SqlError> {
    let streams = StatementStreams::default();
    let (_, plan) = physical_plan(statement, context, &streams).await?;
    Ok(displayable(&*plan).indent(false).to_string())
}

/// Plans a statement.
///
/// # Errors
/// As for [`execute`].
pub(super) async fn physical_plan(
    statement: &BoundStatement,
    context: &StatementContext,
    streams: &StatementStreams,
) -> Result<(SessionState, Arc<dyn ExecutionPlan>), SqlError> {
    let planned = plan_physically(statement, context, streams).await;
    planned.map_err(|error| with_cause(error, &context.cancellation))
}

async fn plan_physically(
    statement: &BoundStatement,
    context: &StatementContext,
    streams: &StatementStreams,
) -> Result<(SessionState, Arc<dyn ExecutionPlan>), SqlError> {
    context.cancellation.check()?;
    let nesting = statement.nesting;
    let files = with_stack_for(nesting, || scanned_files(statement, &context.database));
    let cancellation = &context.cancellation;
    let sizes = TableSizes::ask(&context.engine, cancellation, &files).await;
    cancellation.check()?;
    let (io, sizes) = (context.io(), Arc::new(sizes?));
    let found = match context.options.planner.uses_measured_costs() {
        true => FoundRelations::ask((&context.engine, &io), cancellation, &files, &sizes).await,
        false => Ok(FoundRelations::default()),
    };
    cancellation.check()?;
    let reads = StatementReads {
        engine: context.engine.clone(),
        io,
        streams: streams.clone(),
        cancellation: cancellation.clone(),
        sizes,
        found: Arc::new(found?),
        planner: Arc::new(context.options.planner),
        work_mem: context.options.work_mem,
    };
    let logical = with_stack_for(nesting, || logical_plan(statement, context, reads))?;
    let state = context.options.state(&context.cancellation)?;
    let plan = OnDeepStack::new(nesting, state.create_physical_plan(&logical)).await;
    Ok((state, plan.map_err(|error| from_datafusion(&error))?))
}

/// The logical plan, with the output columns in order.
fn logical_plan(
    statement: &BoundStatement,
    context: &StatementContext,
    reads: StatementReads,
) -> Result<LogicalPlan, SqlError> {
    let (environment, server) = with_server(context);
    let source = TableSource { database: Arc::clone(&context.database), reads, server };
    let BoundStatement { columns, subqueries, query, .. } = statement;
    let mut lowering = Lowering::new(&environment, &source, columns, subqueries);
    let plan = lowering.relation(&query.relation)?;
    // A column may be returned more than once.
    let output = query.output.iter().enumerate().map(|(number, output)| {
        crate::lower::field(&column_name(output.id)).alias(format!("r{number}"))
    });
    let output: Vec<_> = output.collect();
    let plan = LogicalPlanBuilder::from(plan).project(output);
    plan.and_then(LogicalPlanBuilder::build).map_err(|error| from_datafusion(&error))
}

/// The environment with what the statement's functions see of the server.
fn with_server(context: &StatementContext) -> (Environment, Arc<ServerView>) {
    let mut environment = context.environment.clone();
    let mut settings = (*environment.settings).clone();
    let server = Arc::new(ServerView::new(
        context.engine.clone(),
        context.io(),
        Arc::clone(&context.database),
        context.cancellation.clone(),
        settings.statement_start,
        settings.server.take(),
    ));
    settings.server = Some(Arc::clone(&server) as _);
    environment.settings = Arc::new(settings);
    (environment, server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::cancelled;

    #[test]
    fn a_cancelled_statement_ends_with_the_cause() {
        let statement = Cancellation::default();
        let code = |error: SqlError| with_cause(error, &statement).code();
        assert_eq!(code(cancelled()), SqlState::QUERY_CANCELED);
        statement.cancel_for(CancelCause::AdminShutdown);
        assert_eq!(code(cancelled()), SqlState::ADMIN_SHUTDOWN);
        // It had failed before.
        let other = SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero");
        assert_eq!(code(other), SqlState::DIVISION_BY_ZERO);
    }
}
