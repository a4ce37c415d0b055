//! Executes a statement and returns its rows.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::{ExecutionPlan, displayable, execute_stream};
use futures::StreamExt;
use trunkline_engine::read_stream::StatementStreams;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BoundStatement, Origin, SqlType};
use trunkline_sql::values::Carrier;

use super::context::StatementContext;
use crate::environment::Environment;
use crate::error::from_datafusion;
use crate::expression::column_name;
use crate::lower::{Lowering, TableSource};
use crate::scan::Cancellation;
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
    columns: Vec<ResultColumn>,
    stream: SendableRecordBatchStream,
    streams: StatementStreams,
    cancellation: Cancellation,
}

impl fmt::Debug for Rows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl Rows {
    /// The columns of each batch.
    pub fn columns(&self) -> &[ResultColumn] {
        &self.columns
    }

    /// The next rows; `None` at the end. After an error, the statement must be dropped.
    ///
    /// # Errors
    /// Those of functions and scans; 57014 if the statement was cancelled.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, SqlError> {
        self.cancellation.check()?;
        match self.stream.next().await {
            None => Ok(None),
            Some(Ok(batch)) => Ok(Some(batch)),
            Some(Err(error)) => Err(from_datafusion(&error)),
        }
    }

    /// Releases the pages that the statement's scans have read ahead, because no more rows will be
    /// fetched for a while.
    pub fn release_ahead(&self) {
        self.streams.release_ahead();
    }
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
    let columns = statement.query.output.iter().map(|output| {
        let column = statement.columns.get(output.id);
        let carrier = context.environment.carrier(column.ty.oid)?;
        let (name, ty, origin) = (output.name.clone(), column.ty, column.origin);
        Ok(ResultColumn { name, ty, carrier, origin })
    });
    let columns = columns.collect::<Result<_, SqlError>>()?;
    let cancellation = context.cancellation.clone();
    Ok(Rows { columns, stream, streams, cancellation })
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

async fn physical_plan(
    statement: &BoundStatement,
    context: &StatementContext,
    streams: &StatementStreams,
) -> Result<(SessionState, Arc<dyn ExecutionPlan>), SqlError> {
    context.cancellation.check()?;
    let logical = logical_plan(statement, context, streams)?;
    let state = context.options.state()?;
    let plan = state.create_physical_plan(&logical).await;
    Ok((state, plan.map_err(|error| from_datafusion(&error))?))
}

/// The logical plan, with the output columns in order.
fn logical_plan(
    statement: &BoundStatement,
    context: &StatementContext,
    streams: &StatementStreams,
) -> Result<LogicalPlan, SqlError> {
    let source = TableSource {
        engine: context.engine.clone(),
        database: Arc::clone(&context.database),
        streams: streams.clone(),
        cancellation: context.cancellation.clone(),
    };
    let BoundStatement { columns, subqueries, query } = statement;
    let environment = with_server(context);
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
fn with_server(context: &StatementContext) -> Environment {
    let mut environment = context.environment.clone();
    let mut settings = (*environment.settings).clone();
    settings.server = Some(Arc::new(ServerView::new(
        context.engine.clone(),
        Arc::clone(&context.database),
        context.cancellation.clone(),
        settings.statement_start,
    )));
    environment.settings = Arc::new(settings);
    environment
}
