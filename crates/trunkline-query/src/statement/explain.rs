//! `EXPLAIN`: plans a statement, executes it with `ANALYZE`, and shows the plan.

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, execute_stream};
use futures::StreamExt;
use trunkline_aio::clock;
use trunkline_engine::read_stream::StatementStreams;
use trunkline_format::Oid;
use trunkline_sql::SqlError;
use trunkline_sql::bound::{BoundStatement, SqlType};
use trunkline_sql::catalog::oids;
use trunkline_sql::values::Carrier;

use super::context::StatementContext;
use super::deep_stack::OnDeepStack;
use super::rows::{ResultColumn, Rows, failure, physical_plan};
use crate::error::from_datafusion;
use crate::explain::{
    Describer, ExplainFormat, ExplainOptions, Summary, instrumented, is_complete, json_report,
    text_report,
};

/// How long to wait for tasks that have been stopped. They end at once unless something keeps them, in
/// which case their counts are not shown.
const STOPPING_MAX: Duration = Duration::from_secs(1);

/// `json`.
const JSON: Oid = Oid(114);

/// The column of the result.
pub(crate) fn explain_columns(options: ExplainOptions) -> Vec<ResultColumn> {
    let oid = match options.format {
        ExplainFormat::Text => oids::TEXT,
        ExplainFormat::Json => JSON,
    };
    let ty = SqlType::new(oid);
    vec![ResultColumn { name: "QUERY PLAN".into(), ty, carrier: Carrier::Text, origin: None }]
}

/// Explains a statement. `settings` are those to be shown.
///
/// # Errors
/// As for [`super::execute`]; with `ANALYZE`, also those of the rows.
pub(crate) async fn explain_statement(
    statement: &BoundStatement,
    context: &StatementContext,
    options: ExplainOptions,
    settings: Option<Vec<(String, String)>>,
) -> Result<Rows, SqlError> {
    // Plans nest as deep as the statement.
    let explained = explained(statement, context, options, settings);
    OnDeepStack::new(statement.nesting, explained).await
}

async fn explained(
    statement: &BoundStatement,
    context: &StatementContext,
    options: ExplainOptions,
    settings: Option<Vec<(String, String)>>,
) -> Result<Rows, SqlError> {
    let streams = StatementStreams::default();
    let begun = clock::now();
    let (state, mut plan) = physical_plan(statement, context, &streams).await?;
    if plan.output_partitioning().partition_count() > 1 {
        plan = Arc::new(CoalescePartitionsExec::new(plan));
    }
    let planned = clock::now();
    let mut summary = Summary { settings, ..Summary::default() };
    if options.analyze {
        plan = instrumented(plan).map_err(|error| from_datafusion(&error))?;
        let rows = execute_stream(Arc::clone(&plan), state.task_ctx());
        let mut rows = rows.map_err(|error| from_datafusion(&error))?;
        while let Some(batch) = rows.next().await {
            context.cancellation.check()?;
            batch.map_err(|error| failure(&error, &context.cancellation))?;
        }
        drop(rows);
        // What was stopped early ends with its tasks.
        let stopped = clock::now();
        while !is_complete(&plan) && clock::now().since(stopped) < STOPPING_MAX {
            context.cancellation.check()?;
            tokio::task::yield_now().await;
        }
    }
    let executed = clock::now();
    if options.summary {
        summary.planning = Some(planned.since(begun));
        summary.execution = options.analyze.then(|| executed.since(planned));
    }
    let lines = report(statement, context, &plan, &summary, options)?;
    let array: ArrayRef = Arc::new(StringViewArray::from_iter_values(lines));
    let field = Field::new("r0", DataType::Utf8View, true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]);
    let batch = batch.map_err(|error| SqlError::internal(error.to_string()))?;
    Ok(Rows::in_memory(explain_columns(options), vec![batch]))
}

/// The rows of the result.
fn report(
    statement: &BoundStatement,
    context: &StatementContext,
    plan: &Arc<dyn ExecutionPlan>,
    summary: &Summary,
    options: ExplainOptions,
) -> Result<Vec<String>, SqlError> {
    let environment = &context.environment;
    let described = Describer::new(statement, environment, plan, options)?.plan(plan)?;
    let major = environment.settings.major;
    Ok(match options.format {
        ExplainFormat::Text => text_report(&described, summary, options, major),
        ExplainFormat::Json => vec![json_report(&described, summary, options, major)],
    })
}
