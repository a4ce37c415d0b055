//! Cancelling what doesn't read tables.
//!
//! Scans notice a cancel themselves. A join can produce rows for hours after its inputs have ended, so
//! its result passes through a node that checks. Its batches also count as work of the task, which
//! therefore yields from time to time. A condition of a join may be false for all rows, so evaluating it
//! checks, too.
//!
//! ```text
//!   AggregateExec                     AggregateExec
//!     CrossJoinExec              ──▶    InterruptibleExec
//!                                         CrossJoinExec
//! ```

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{Result, exec_err};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::cooperative;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec,
};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::StreamExt;

use crate::error::to_datafusion;
use crate::pass_through::{PassThroughExec, Work};
use crate::scan::Cancellation;

/// Makes the joins of a plan check whether the statement was cancelled.
#[derive(Debug)]
pub(crate) struct Interruptible {
    cancellation: Cancellation,
}

impl Interruptible {
    pub(crate) fn new(cancellation: &Cancellation) -> Self {
        Self { cancellation: cancellation.clone() }
    }

    /// A condition of a join that checks.
    fn filter(&self, filter: &JoinFilter) -> JoinFilter {
        let (condition, cancellation) =
            (Arc::clone(filter.expression()), self.cancellation.clone());
        let condition = Arc::new(InterruptibleExpr { condition, cancellation });
        let (indices, schema) = (filter.column_indices().to_vec(), Arc::clone(filter.schema()));
        JoinFilter::new(condition, indices, schema)
    }

    /// If this is a join: the same with a condition that checks, if it has one.
    fn join(&self, plan: &Arc<dyn ExecutionPlan>) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
            let Some(filter) = join.filter() else { return Ok(Some(Arc::clone(plan))) };
            let (filter, kind) = (Some(self.filter(filter)), join.join_type());
            let (left, right) = (Arc::clone(join.left()), Arc::clone(join.right()));
            let projection = join.projection().as_ref().map(|projection| projection.to_vec());
            let join = NestedLoopJoinExec::try_new(left, right, filter, kind, projection)?;
            return Ok(Some(Arc::new(join)));
        }
        if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
            let Some(filter) = join.filter() else { return Ok(Some(Arc::clone(plan))) };
            let join = join.builder().with_filter(Some(self.filter(filter))).build()?;
            return Ok(Some(Arc::new(join)));
        }
        if let Some(join) = plan.downcast_ref::<SortMergeJoinExec>() {
            let Some(filter) = join.filter() else { return Ok(Some(Arc::clone(plan))) };
            let join = SortMergeJoinExec::try_new(
                Arc::clone(join.left()),
                Arc::clone(join.right()),
                join.on().to_vec(),
                Some(self.filter(filter)),
                join.join_type(),
                join.sort_options().to_vec(),
                join.null_equality(),
            )?;
            return Ok(Some(Arc::new(join)));
        }
        let is_endless = plan.is::<CrossJoinExec>() || plan.is::<RecursiveQueryExec>();
        Ok(is_endless.then(|| Arc::clone(plan)))
    }
}

impl PhysicalOptimizerRule for Interruptible {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            let Some(input) = self.join(&plan)? else { return Ok(Transformed::no(plan)) };
            Ok(Transformed::yes(Interrupt::over(input, &self.cancellation)))
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "Interruptible"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Passes on the batches of its input until the statement is cancelled.
#[derive(Debug, Clone)]
pub(crate) struct Interrupt(Cancellation);

impl Interrupt {
    /// A node over this one, until the statement is cancelled.
    pub(crate) fn over(
        input: Arc<dyn ExecutionPlan>,
        cancellation: &Cancellation,
    ) -> Arc<dyn ExecutionPlan> {
        PassThroughExec::over(input, Self(cancellation.clone()))
    }
}

impl Work for Interrupt {
    const NAME: &'static str = "InterruptibleExec";

    fn pass(&self, rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
        let (schema, cancellation) = (rows.schema(), self.0.clone());
        let checked = rows.map(move |batch| {
            cancellation.check().map_err(to_datafusion)?;
            batch
        });
        Box::pin(cooperative(RecordBatchStreamAdapter::new(schema, checked)))
    }
}

/// A condition that fails if the statement was cancelled.
#[derive(Debug)]
pub(crate) struct InterruptibleExpr {
    condition: Arc<dyn PhysicalExpr>,
    cancellation: Cancellation,
}

impl fmt::Display for InterruptibleExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)
    }
}

impl PartialEq for InterruptibleExpr {
    fn eq(&self, other: &Self) -> bool {
        self.condition.eq(&other.condition)
    }
}

impl Eq for InterruptibleExpr {}

impl Hash for InterruptibleExpr {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.condition.hash(state);
    }
}

impl PhysicalExpr for InterruptibleExpr {
    fn data_type(&self, schema: &Schema) -> Result<DataType> {
        self.condition.data_type(schema)
    }

    fn nullable(&self, schema: &Schema) -> Result<bool> {
        self.condition.nullable(schema)
    }

    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        self.cancellation.check().map_err(to_datafusion)?;
        self.condition.evaluate(batch)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.condition]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        match (children.pop(), children.pop()) {
            (Some(condition), None) => {
                let cancellation = self.cancellation.clone();
                Ok(Arc::new(Self { condition, cancellation }))
            }
            _ => exec_err!("a condition has one child"),
        }
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt_sql(f)
    }
}
